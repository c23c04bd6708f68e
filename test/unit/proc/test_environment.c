// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "needs.h"
#include "proc/environment.h"

#define VISIBLE "CUDA_VISIBLE_DEVICES="
#define ORDER "CUDA_DEVICE_ORDER="

struct child {
	pid_t pid;
	int told;
};

/* @argv[0] runs with @environment and has said so; it ends when the test closes its standard input. */
static struct child started(const char *const *argv, const char *const *environment)
{
	int said[2], told[2];
	struct child child;
	char c;

	assert_int_equal(pipe(said) | pipe(told), 0);
	child = (struct child){ .pid = fork(), .told = told[1] };
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		close(told[1]);
		dup2(told[0], STDIN_FILENO);
		dup2(said[1], STDOUT_FILENO);
		execve(argv[0], (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)environment);
		_exit(EXIT_FAILURE);
	}
	close(said[1]);
	close(told[0]);
	assert_int_equal(read(said[0], &c, 1), 1);
	close(said[0]);
	return child;
}

static void ended(const struct child *child)
{
	int status;

	close(child->told);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	assert_int_equal(status, 0);
}

/* What proc_environment() returns, and the variables with a blank after each. */
static int read_of(pid_t pid, char text[static 4096])
{
	size_t n = 0;
	int r = proc_environment("/proc", (uint32_t)pid, text, 4095, &n);

	for (size_t i = 0; r >= 0 && i < n; i++)
		text[i] = (char)(text[i] ? text[i] : ' ');
	text[r < 0 ? 0 : n] = 0;
	return r;
}

static void expect(const char *const *argv, const char *const *environment, int state, const char *wanted)
{
	struct child child = started(argv, environment);
	char text[4096];

	assert_int_equal(read_of(child.pid, text), state);
	assert_string_equal(text, wanted);
	ended(&child);
}

/* ---- what is started: this program itself ---- */

static void change(const char *how)
{
	static char put[] = VISIBLE "put";
	static char names[9000][16];
	char *edge;

	if (strcmp(how, "set") == 0)
		setenv("CUDA_VISIBLE_DEVICES", "2,3", 1);
	else if (strcmp(how, "put") == 0)
		putenv(put);
	else if (strcmp(how, "back") == 0)
		setenv("CUDA_VISIBLE_DEVICES", "2", 1), setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	else if (strcmp(how, "unset") == 0)
		unsetenv("CUDA_VISIBLE_DEVICES");
	else if (strcmp(how, "clear") == 0)
		clearenv();
	for (unsigned i = 0; strcmp(how, "many") == 0 && i < ARRAY_SIZE(names); i++) {
		snprintf(names[i], sizeof(names[i]), "V%u=", i);
		putenv(names[i]);
	}
	/* The text ends where its memory does. */
	if (strcmp(how, "edge") == 0) {
		edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap(edge + 4096, 4096);
		putenv(strcpy(edge + 4096 - sizeof(VISIBLE "7"), VISIBLE "7"));
		putenv(strcpy(edge + 2048 - sizeof("A=7"), "A=7"));
	}
}

static int be_child(const char *how)
{
	char c;

	change(how);
	if (write(STDOUT_FILENO, "x", 1) != 1)
		return EXIT_FAILURE;
	return read(STDIN_FILENO, &c, 1) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void as_it_is_now(_unused_ void **state)
{
	static const char *const none[] = { "HOME=/", NULL }, *const one[] = { "HOME=/", VISIBLE "1", NULL };
	static const char *const all[] = {
		ORDER "PCI_BUS_ID",        VISIBLE "1", VISIBLE "2", "NVIDIA_VISIBLE_DEVICES=all",
		"CUDA_VISIBLE_DEVICES_=3", NULL
	};
	const char *argv[] = { "/proc/self/exe", "", NULL };
	static const struct {
		const char *how;
		const char *const *environment;
		int state;
		const char *wanted;
	} cases[] = {
		{ "nothing", none, PROC_ENVIRONMENT_KEPT, "" },
		{ "nothing", all, PROC_ENVIRONMENT_KEPT,
		  "NVIDIA_VISIBLE_DEVICES=all " VISIBLE "1 " ORDER "PCI_BUS_ID " },
		{ "set", none, PROC_ENVIRONMENT_CHANGED, VISIBLE "2,3 " },
		{ "set", one, PROC_ENVIRONMENT_CHANGED, VISIBLE "2,3 " },
		{ "put", one, PROC_ENVIRONMENT_CHANGED, VISIBLE "put " },
		{ "back", one, PROC_ENVIRONMENT_KEPT, VISIBLE "1 " },
		{ "unset", one, PROC_ENVIRONMENT_CHANGED, "" },
		{ "clear", one, PROC_ENVIRONMENT_CHANGED, "" },
		{ "clear", none, PROC_ENVIRONMENT_KEPT, "" },
		{ "edge", none, PROC_ENVIRONMENT_CHANGED, VISIBLE "7 " },
		{ "many", one, PROC_ENVIRONMENT_UNKNOWN, VISIBLE "1 " },
	};

	need_processes();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		argv[1] = cases[i].how;
		expect(argv, cases[i].environment, cases[i].state, cases[i].wanted);
	}
}

static void of_a_process_that_has_ended(_unused_ void **state)
{
	char text[4096];
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT);
	assert_int_equal(read_of(pid, text), -ESRCH);
	waitpid(pid, NULL, 0);
	assert_int_equal(read_of(pid, text), -ESRCH);
}

static void that_does_not_fit(_unused_ void **state)
{
	static const char *const one[] = { VISIBLE "0123456789", NULL };
	const char *argv[] = { "/proc/self/exe", "nothing", NULL };
	struct child child;
	char text[31];
	size_t n;

	need_processes();
	child = started(argv, one);
	assert_int_equal(proc_environment("/proc", (uint32_t)child.pid, text, sizeof(text), &n), -E2BIG);
	ended(&child);
}

/* ---- other C libraries, other languages ---- */

/* A program compiled of this source, or a skip. */
static void compiled(const char *with, const char *path)
{
	static const char source[] = "#include <stdlib.h>\n#include <unistd.h>\n"
				     "int main(void) { char c; setenv(\"CUDA_VISIBLE_DEVICES\", \"5\", 1);\n"
				     "return write(1, \"x\", 1) != 1 || read(0, &c, 1) != 0; }\n";
	char file[128], command[512];

	snprintf(file, sizeof(file), "%s.c", path);
	assert_int_equal(write_file_atomic(file, source, strlen(source), 0600), 0);
	snprintf(command, sizeof(command), "%s -o %s %s 2>/dev/null", with, path, file);
	if (system(command) != 0) {
		unlink(file);
		print_message("# SKIP \"%s\" does not compile\n", with);
		skip();
	}
	unlink(file);
}

static void set_by_a_program(const char *with, int result, const char *wanted)
{
	static const char *const one[] = { VISIBLE "1", NULL };
	char path[] = "/tmp/gpusonde-test-XXXXXX";
	const char *argv[] = { path, NULL };
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	compiled(with, path);
	expect(argv, one, result, wanted);
	unlink(path);
}

static void of_musl(_unused_ void **state)
{
	need_processes();
	set_by_a_program("musl-gcc", PROC_ENVIRONMENT_CHANGED, VISIBLE "5 ");
}

static void of_a_program_at_a_fixed_address(_unused_ void **state)
{
	need_processes();
	set_by_a_program("cc -no-pie", PROC_ENVIRONMENT_CHANGED, VISIBLE "5 ");
}

/*
 * It has no list of objects. CUDA's driver would bring a C library of its own (test/e2e/devices_chosen.py).
 */
static void of_a_static_program(_unused_ void **state)
{
	need_processes();
	set_by_a_program("cc -static", PROC_ENVIRONMENT_UNKNOWN, VISIBLE "1 ");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_it_is_now),
		cmocka_unit_test(of_a_process_that_has_ended),
		cmocka_unit_test(that_does_not_fit),
		cmocka_unit_test(of_musl),
		cmocka_unit_test(of_a_program_at_a_fixed_address),
		cmocka_unit_test(of_a_static_program),
	};

	if (argc > 1)
		return be_child(argv[1]);
	return cmocka_run_group_tests_name("environment", tests, NULL, NULL);
}
