// SPDX-License-Identifier: Apache-2.0
/* The thread that starts processes: what these are given, and what they are not. */
#include "../file_capabilities.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "base/raised.h"
#include "helper/starter.h"

enum { PATIENCE_MS = 20000 };

/* A shell that runs @script, and keeps all descriptors that it is not told to close. */
struct shell {
	const char *script;
	pid_t pid;
};

static int start_shell(const int fds[], void *userdata)
{
	struct shell *shell = userdata;
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)shell->script, NULL };
	posix_spawn_file_actions_t actions;
	int r;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[0], STDOUT_FILENO);
	r = -posix_spawn(&shell->pid, "/bin/sh", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void gives_the_descriptors_that_it_is_sent(_unused_ void **state)
{
	struct shell shell = { .script = "echo here" };
	char text[16] = "";
	int pair[2];

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	assert_int_equal(starter_run(start_shell, &shell, &pair[1], 1), 0);
	close(pair[1]);
	assert_int_equal(read(pair[0], text, sizeof(text)), 5);
	assert_string_equal(text, "here\n");
	/* At the end of the process: nobody else has it. */
	assert_int_equal(read(pair[0], text, sizeof(text)), 0);
	close(pair[0]);
	assert_int_equal(waitpid(shell.pid, NULL, 0), shell.pid);
}

/* Not closed at an exec: the process would have it, had it been in the table that it began with. */
static void keeps_our_descriptors_from_it(_unused_ void **state)
{
	struct shell shell = { .script = "exec sleep 60" };
	_cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct pollfd reader;
	int pair[2];

	assert_int_equal(pipe(pair), 0);
	assert_int_equal(starter_run(start_shell, &shell, &null, 1), 0);
	close(pair[1]);
	reader = (struct pollfd){ .fd = pair[0] };
	assert_int_equal(poll(&reader, 1, PATIENCE_MS), 1);
	assert_true(reader.revents & POLLHUP);
	assert_int_equal(waitpid(shell.pid, NULL, WNOHANG), 0);
	end(shell.pid);
	close(pair[0]);
}

static int numbers(const int fds[], void *userdata)
{
	memcpy(userdata, fds, STARTER_FDS_MAX * sizeof(int));
	return -EXDEV;
}

static void returns_what_the_call_does_and_closes_its_copies(_unused_ void **state)
{
	int first[STARTER_FDS_MAX], second[STARTER_FDS_MAX];
	const int fds[STARTER_FDS_MAX] = { 0, 1, 2, 2 };

	assert_int_equal(starter_run(numbers, first, fds, STARTER_FDS_MAX), -EXDEV);
	assert_int_equal(starter_run(numbers, second, fds, STARTER_FDS_MAX), -EXDEV);
	assert_memory_equal(first, second, sizeof(first));
	for (int i = 0; i < STARTER_FDS_MAX; i++)
		assert_true(first[i] >= 10);
}

static void *start_some(_unused_ void *userdata)
{
	_cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (int i = 0; i < 20; i++) {
		struct shell shell = { .script = "exit 7" };
		int status = -1;

		if (starter_run(start_shell, &shell, &null, 1) < 0 ||
		    waitpid(shell.pid, &status, 0) != shell.pid || WEXITSTATUS(status) != 7)
			return (void *)1;
	}
	return NULL;
}

static void serves_several_threads(_unused_ void **state)
{
	pthread_t threads[4];
	void *failed;

	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, start_some, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
}

/* Its parent's thread is not in it. */
static void works_in_a_forked_process(_unused_ void **state)
{
	int status;
	pid_t pid;

	assert_null(start_some(NULL));
	pid = fork();
	if (pid == 0) {
		alarm(PATIENCE_MS / 1000);
		_exit(start_some(NULL) ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int tell_capabilities(_unused_ const int fds[], void *userdata)
{
	*(unsigned *)userdata = effective_capabilities();
	return 0;
}

/* Of a copy of this program whose file has a capability, run by a user; its first call is a raised one. */
static int with_file_capabilities(void)
{
	unsigned raised, inside = ~0U, after = ~0U;

	if (!getauxval(AT_SECURE))
		return FILE_CAPABILITIES_NONE;
	if (capabilities_lower() < 0 || !capabilities_lowered())
		return 2;
	{
		WITH_CAPABILITIES;

		raised = effective_capabilities();
		if (starter_run(tell_capabilities, &inside, NULL, 0) < 0)
			return 3;
	}
	if (raised == 0 || inside != 0)
		return 4;
	return starter_run(tell_capabilities, &after, NULL, 0) < 0 || after != 0 ? 5 : 0;
}

static void does_not_inherit_what_a_caller_has_raised(_unused_ void **state)
{
	need_file_capabilities();
	assert_int_equal(run_with_file_capability(CAP_DAC_READ_SEARCH, "raised"), 0);
}

int main(int argc, _unused_ char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_the_descriptors_that_it_is_sent),
		cmocka_unit_test(keeps_our_descriptors_from_it),
		cmocka_unit_test(returns_what_the_call_does_and_closes_its_copies),
		cmocka_unit_test(serves_several_threads),
		cmocka_unit_test(works_in_a_forked_process),
		cmocka_unit_test(does_not_inherit_what_a_caller_has_raised),
	};

	return argc > 1 ? with_file_capabilities() : cmocka_run_group_tests(tests, NULL, NULL);
}
