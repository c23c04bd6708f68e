// SPDX-License-Identifier: Apache-2.0
/*
 * A command held at its mappings: what is reported, how it ends, and that it goes on when gpusonde is killed.
 */
#include "needs.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/trace/exec_gate.h"

struct seen {
	sd_event *event;
	char paths[64][256];
	pid_t pids[64];
	bool executions[64], placed[64];
	int n;
	int status;
	bool stop_at_first; /* do not answer: die instead */
};

static void on_mapping(const struct exec_gate_mapping *mapping, void *userdata)
{
	struct seen *seen = userdata;
	struct stat st;

	assert_int_equal(fstat(mapping->fd, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	if (seen->stop_at_first)
		raise(SIGKILL);
	if (seen->n < 64) {
		snprintf(seen->paths[seen->n], sizeof(seen->paths[0]), "%s", mapping->path);
		seen->executions[seen->n] = mapping->execution;
		seen->placed[seen->n] = mapping->length > 0 && mapping->address > 0;
		seen->pids[seen->n++] = mapping->pid;
	}
}

static void on_ended(int status, void *userdata)
{
	struct seen *seen = userdata;

	seen->status = status;
	sd_event_exit(seen->event, 0);
}

/* As the event loop wants it; again for each case, since one that skips puts back what was. */
static void block_ends(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void run(struct seen *seen, char *const *argv)
{
	static const struct exec_gate_ops ops = { .mapping = on_mapping, .ended = on_ended };
	struct exec_gate *gate;

	block_ends();
	assert_true(sd_event_new(&seen->event) >= 0);
	assert_int_equal(exec_gate_new(seen->event, argv, &ops, seen, &gate), 0);
	if (exec_gate_unheld(gate)) {
		print_message("# SKIP %s\n", exec_gate_unheld(gate));
		exec_gate_signal(gate, SIGKILL);
		exec_gate_free(gate);
		sd_event_unref(seen->event);
		skip();
	}
	assert_int_equal(exec_gate_release(gate), 0);
	sd_event_loop(seen->event);
	exec_gate_free(gate);
	sd_event_unref(seen->event);
}

static int find(const struct seen *seen, const char *part)
{
	for (int i = 0; i < seen->n; i++)
		if (strstr(seen->paths[i], part))
			return i;
	return -1;
}

static void mappings_are_seen_before_the_command_goes_on(_unused_ void **state)
{
	struct seen seen = { 0 };

	run(&seen, (char *[]){ "sh", "-c", "cat /dev/null; exit 7", NULL });
	assert_int_equal(seen.status, 7);
	assert_true(find(&seen, "/sh") >= 0 || find(&seen, "dash") >= 0);
	assert_true(find(&seen, "libc.so") >= 0);
	/* What the command starts is held, too. */
	assert_true(find(&seen, "/cat") >= 0);
	assert_int_not_equal(seen.pids[find(&seen, "/cat")], seen.pids[0]);
}

static void a_script_shows_its_interpreter(_unused_ void **state)
{
	char path[] = "/tmp/gpusonde-hold-XXXXXX";
	struct seen seen = { 0 };
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, "#!/bin/sh\nexit 3\n", 17), 17);
	fchmod(fd, 0700);
	close(fd);
	run(&seen, (char *[]){ path, NULL });
	unlink(path);
	assert_int_equal(seen.status, 3);
	assert_true(find(&seen, path) >= 0);
	assert_true(find(&seen, "/bin/sh") >= 0);
}

static void what_cannot_be_run_ends_as_in_a_shell(_unused_ void **state)
{
	struct seen seen = { 0 };

	run(&seen, (char *[]){ "/nonexistent/program", NULL });
	assert_int_equal(seen.status, 127);
	run(&seen, (char *[]){ "/etc/passwd", NULL });
	assert_int_equal(seen.status, 126);
}

static void a_signal_is_told(_unused_ void **state)
{
	struct seen seen = { 0 };

	run(&seen, (char *[]){ "sh", "-c", "kill -TERM $$", NULL });
	assert_int_equal(seen.status, 128 + SIGTERM);
}

/*
 * A shell becomes another one: what it becomes is told as that, what is mapped then with its place, where
 * that is known.
 */
static void becoming_another_program_is_not_mapping_a_file(_unused_ void **state)
{
	struct seen seen = { 0 };
	int libc = -1, programs = 0;

	run(&seen, (char *[]){ "sh", "-c", "(exit 3); exec sh -c 'exit 7'", NULL });
	assert_int_equal(seen.status, 7);
	for (int i = 0; i < seen.n; i++) {
		programs += seen.executions[i];
		if (strstr(seen.paths[i], "libc.so"))
			libc = i;
		assert_false(seen.executions[i] && seen.placed[i]);
	}
	assert_int_equal(programs, 2);
	assert_true(libc >= 0);
	assert_false(seen.executions[libc]);
}

/* The linker says where code is to lie, but for the first segment of a file. */
static void places_are_told(_unused_ void **state)
{
	struct seen seen = { 0 };
	int placed = 0;

	run(&seen, (char *[]){ "cat", "/dev/null", NULL });
	for (int i = 0; i < seen.n; i++)
		placed += seen.placed[i];
	assert_true(placed > 0);
}

/* A signal without SA_RESTART makes calls that wait return: the end of a program is not such a call. */
static void signals_do_not_spoil_the_end(_unused_ void **state)
{
	for (int i = 0; i < 100; i++) {
		struct seen seen = { 0 };

		run(&seen, (char *[]){ "/proc/self/exe", "--alarms", NULL });
		assert_int_equal(seen.status, 0);
	}
}

static void on_alarm(_unused_ int signal)
{
}

/* What the test above runs: it ends while signals come, as often as they can. */
static int end_under_alarms(void)
{
	const struct sigaction action = { .sa_handler = on_alarm };
	const struct itimerval every = { { 0, 1000 }, { 0, 1 } };
	struct timespec while_ = { 0, 3000000 };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (nanosleep(&while_, &while_) < 0)
		;
	return 0;
}

/* A user who cannot trace it does not run it either. */
static void a_command_that_is_not_released_never_begins(_unused_ void **state)
{
	static const struct exec_gate_ops ops = { .mapping = on_mapping, .ended = on_ended };
	char path[] = "/tmp/gpusonde-hold-XXXXXX";
	struct seen seen = { 0 };
	struct exec_gate *gate;
	int fd = mkstemp(path);
	pid_t pid;

	assert_true(fd >= 0);
	close(fd);
	block_ends();
	assert_true(sd_event_new(&seen.event) >= 0);
	assert_int_equal(exec_gate_new(seen.event, (char *[]){ "rm", path, NULL }, &ops, &seen, &gate), 0);
	pid = exec_gate_pid(gate);
	exec_gate_free(gate);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(unlink(path), 0);
	sd_event_unref(seen.event);
}

/* gpusonde dies while the command is held: its mapping, and all that follow, go on. */
static void the_command_survives_us(_unused_ void **state)
{
	char path[] = "/tmp/gpusonde-hold-XXXXXX", script[128], text[16] = "";
	size_t n = 0;
	int fd = mkstemp(path), status;
	pid_t us;

	assert_true(fd >= 0);
	close(fd);
	snprintf(script, sizeof(script), "cat /dev/null && echo fine > %s", path);
	us = fork();
	if (us == 0) {
		struct seen seen = { .stop_at_first = true };

		run(&seen, (char *[]){ "sh", "-c", script, NULL });
		_exit(0);
	}
	assert_int_equal(waitpid(us, &status, 0), us);
	if (WIFEXITED(status)) {
		unlink(path);
		need_unmet("commands are not held here: the case before says why");
	}
	for (int i = 0; i < 600 && n == 0; i++) {
		usleep(100000);
		read_file(path, text, sizeof(text) - 1, &n);
	}
	unlink(path);
	assert_string_equal(text, "fine\n");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mappings_are_seen_before_the_command_goes_on),
		cmocka_unit_test(a_script_shows_its_interpreter),
		cmocka_unit_test(what_cannot_be_run_ends_as_in_a_shell),
		cmocka_unit_test(a_signal_is_told),
		cmocka_unit_test(becoming_another_program_is_not_mapping_a_file),
		cmocka_unit_test(places_are_told),
		cmocka_unit_test(signals_do_not_spoil_the_end),
		cmocka_unit_test(a_command_that_is_not_released_never_begins),
		cmocka_unit_test(the_command_survives_us),
	};

	if (argc == 2 && strcmp(argv[1], "--alarms") == 0)
		return end_under_alarms();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
