// SPDX-License-Identifier: Apache-2.0
/* A child process that prints, prints too much, hangs, or is not there. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "helper/run.h"

/* The last words are the shell's. Returns what run_program() does. */
static int shell(const char *words, unsigned seconds, size_t limit, struct strbuf *output,
		 struct strbuf *errors)
{
	char *arguments[] = { (char *)"sh", (char *)"-c", (char *)words, NULL };
	atomic_int pid = -1;
	const struct run run = {
		.program = "/bin/sh",
		.arguments = arguments,
		.seconds = seconds,
		.limit = limit,
		.pid = &pid,
	};
	int r;

	strbuf_init(output, 0);
	strbuf_init(errors, 0);
	r = run_program(&run, output, errors);
	assert_int_equal(pid, 0);
	return r;
}

static void test_what_it_prints(_unused_ void **state)
{
	struct strbuf output, errors;

	assert_int_equal(shell("echo one; echo two >&2; exit 3", 60, 100, &output, &errors), 3);
	assert_string_equal(output.data, "one\n");
	assert_string_equal(errors.data, "two\n");
	strbuf_done(&output);
	strbuf_done(&errors);
}

static void test_the_signal_that_ends_it(_unused_ void **state)
{
	struct strbuf output, errors;

	assert_int_equal(shell("kill -9 $$", 60, 100, &output, &errors), 128 + 9);
	strbuf_done(&output);
	strbuf_done(&errors);
}

static void test_too_much(_unused_ void **state)
{
	struct strbuf output, errors;

	assert_int_equal(shell("while :; do echo x; done", 60, 100, &output, &errors), -E2BIG);
	assert_true(output.len <= 100);
	strbuf_done(&output);
	strbuf_done(&errors);
}

static void test_too_long(_unused_ void **state)
{
	struct strbuf output, errors;

	assert_int_equal(shell("exec sleep 1000", 1, 100, &output, &errors), -ETIMEDOUT);
	strbuf_done(&output);
	strbuf_done(&errors);
}

/* It prints no more, and goes on. */
static void test_one_that_only_looks_ended(_unused_ void **state)
{
	struct strbuf output, errors;

	assert_int_equal(shell("exec >&- 2>&-; exec sleep 1000", 1, 100, &output, &errors), -ETIMEDOUT);
	strbuf_done(&output);
	strbuf_done(&errors);
}

/* Who waits for the program that this process starts, until it is killed. */
static _Noreturn void wait_for_program(int told)
{
	char *arguments[] = { (char *)"sh", (char *)"-c", (char *)"exec sleep 1000", NULL };
	atomic_int pid = 0;
	const struct run run = {
		.program = "/bin/sh", .arguments = arguments, .seconds = 1000, .limit = 100, .pid = &pid
	};
	struct strbuf output, errors;

	/* The program has this descriptor, too: it is closed when both have ended. */
	fcntl(told, F_SETFD, 0);
	strbuf_init(&output, 0);
	strbuf_init(&errors, 0);
	_exit(run_program(&run, &output, &errors) & 0xff);
}

/* Until @pid has one. */
static void wait_for_child(pid_t pid)
{
	const int64_t end_ns = clock_mono_ns() + 60 * NSEC_PER_SEC;
	char path[64], text[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	while (!*text && clock_mono_ns() < end_ns)
		assert_int_equal(read_file(path, text, sizeof(text), NULL), 0);
	assert_true(*text);
}

static void test_it_ends_with_who_waits(_unused_ void **state)
{
	int ends[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		wait_for_program(ends[1]);
	close(ends[1]);
	wait_for_child(pid);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	struct pollfd end = { .fd = ends[0], .events = POLLIN };

	assert_int_equal(poll(&end, 1, 60000), 1);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}

/* A capability that an exec keeps. False: there is none to be had. */
static bool has_ambient_one(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, sets) < 0)
		return false;
	sets[0].inheritable |= sets[0].permitted & 1U << CAP_KILL;
	return syscall(SYS_capset, &header, sets) == 0 &&
	       prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0) == 0;
}

static void test_what_it_may_have(_unused_ void **state)
{
	char *arguments[] = { (char *)"sh", (char *)"-c",
			      (char *)"ulimit -v; nice; grep CapAmb /proc/self/status", NULL };
	const struct run run = {
		.program = "/bin/sh",
		.arguments = arguments,
		.seconds = 60,
		.limit = 1000,
		.nice = 15,
		.memory = (size_t)1 << 30,
		.powerless = true,
	};
	struct strbuf output, errors;

	if (!has_ambient_one())
		print_message("no root: that capabilities are taken away is not tested\n");
	strbuf_init(&output, 0);
	strbuf_init(&errors, 0);
	assert_int_equal(run_program(&run, &output, &errors), 0);
	assert_string_equal(output.data, SANITIZED ? "unlimited\n15\nCapAmb:\t0000000000000000\n" :
						     "1048576\n15\nCapAmb:\t0000000000000000\n");
	strbuf_done(&output);
	strbuf_done(&errors);
}

static void test_it_is_not_there(_unused_ void **state)
{
	char *arguments[] = { (char *)"nothing", NULL };
	const struct run run = {
		.program = "/nowhere/nothing", .arguments = arguments, .seconds = 1, .limit = 1
	};
	struct strbuf output, errors;

	strbuf_init(&output, 0);
	strbuf_init(&errors, 0);
	assert_int_equal(run_program(&run, &output, &errors), -ENOENT);
	strbuf_done(&output);
	strbuf_done(&errors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_it_prints),
		cmocka_unit_test(test_the_signal_that_ends_it),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_it_is_not_there),
		cmocka_unit_test(test_one_that_only_looks_ended),
		cmocka_unit_test(test_it_ends_with_who_waits),
		cmocka_unit_test(test_what_it_may_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
