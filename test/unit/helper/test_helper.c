// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "helper/helper.h"

#define PATIENCE_NS (20 * NSEC_PER_SEC)

static struct fixture {
	sd_event *event;
	struct helper *helper;
	struct helper_stats stats;
	unsigned answers, hung, crashed;
	char last[256];
} f;
static char program[4096];

static void on_answer(const void *message, size_t n, int fd, void *userdata)
{
	assert_ptr_equal(userdata, &f);
	assert_int_equal(fd, -1);
	snprintf(f.last, sizeof(f.last), "%.*s", (int)n, (const char *)message);
	f.answers++;
	helper_deadline(f.helper, 0);
}

static void on_lost(bool hung, void *userdata)
{
	assert_ptr_equal(userdata, &f);
	f.hung += hung;
	f.crashed += !hung;
}

static void start_with(const char *role, int64_t idle_ns, unsigned max_stuck)
{
	const struct helper_ops ops = { on_answer, on_lost };
	struct helper_config config = {
		.program = program, .role = role, .max_stuck = max_stuck, .idle_ns = idle_ns
	};

	need_programs();
	snprintf(program, sizeof(program), "%s/test/unit/helper/fake_reader", test_build_root());
	assert_true(sd_event_new(&f.event) >= 0);
	assert_int_equal(helper_new(f.event, &config, &ops, &f, &f.helper), 0);
}

static void start(const char *role)
{
	start_with(role, 0, 2);
}

static int stop(void **state)
{
	(void)state;
	helper_free(f.helper);
	sd_event_unref(f.event);
	memset(&f, 0, sizeof(f));
	return 0;
}

#define WAIT_FOR(condition_)                                            \
	do {                                                            \
		int64_t until = clock_mono_ns() + PATIENCE_NS;          \
                                                                        \
		helper_stats(f.helper, &f.stats);                       \
		while (!(condition_)) {                                 \
			if (clock_mono_ns() > until)                    \
				fail_msg("in vain: %s", #condition_);   \
			assert_true(sd_event_run(f.event, 50000) >= 0); \
			helper_stats(f.helper, &f.stats);               \
		}                                                       \
	} while (0)

static int say(const char *text)
{
	return helper_send(f.helper, text, strlen(text) + 1, -1);
}

static void answers_with_one_process(void **state)
{
	char first[256];

	(void)state;
	start("answers");
	assert_int_equal(f.stats.starts, 0);
	assert_int_equal(say("pid"), 0);
	WAIT_FOR(f.answers == 1);
	memcpy(first, f.last, sizeof(first));
	assert_int_equal(atoi(first), f.stats.pid);
	assert_int_equal(say("pid"), 0);
	WAIT_FOR(f.answers == 2);
	assert_string_equal(f.last, first);
	assert_int_equal(f.stats.starts, 1);
}

/* stdin, stdout, stderr and its socket, whatever we have open without O_CLOEXEC. */
static void inherits_no_descriptor(void **state)
{
	int fd = open("/dev/null", O_RDONLY);

	(void)state;
	assert_true(fd >= 0);
	start("answers");
	assert_int_equal(say("open files"), 0);
	WAIT_FOR(f.answers == 1);
	assert_string_equal(f.last, "4");
	close(fd);
}

static void what_hangs_is_killed_and_replaced(void **state)
{
	pid_t first;

	(void)state;
	start("hangs");
	assert_int_equal(say("x"), 0);
	helper_stats(f.helper, &f.stats);
	first = f.stats.pid;
	helper_deadline(f.helper, 100 * NSEC_PER_MSEC);
	WAIT_FOR(f.hung == 1);
	WAIT_FOR(f.stats.killed == 0);
	assert_int_equal(kill(first, 0), -1);
	assert_int_equal(f.crashed, 0);
	assert_int_equal(f.stats.hung, 1);
	assert_int_equal(say("x"), 0);
	helper_stats(f.helper, &f.stats);
	assert_int_not_equal(f.stats.pid, first);
	assert_int_equal(f.stats.starts, 2);
}

/* What the kernel does not let end is tried by test/e2e/hostile_files.py. */
static void one_that_is_about_to_end_is_not_stuck(void **state)
{
	(void)state;
	start_with("hangs", 0, 0);
	assert_int_equal(say("x"), 0);
	helper_mark(f.helper, 7);
	assert_false(helper_is_stuck_for(f.helper, 7)); /* it works */
	helper_deadline(f.helper, NSEC_PER_MSEC);
	while (f.hung == 0)
		assert_true(sd_event_run(f.event, 50000) >= 0);
	helper_stats(f.helper, &f.stats);
	assert_int_equal(f.stats.killed, 1);
	assert_int_equal(f.stats.stuck, 0);
	assert_false(helper_is_stuck_for(f.helper, 7));
	/* Nor one whose end was not noticed for long. */
	usleep(1100000);
	helper_stats(f.helper, &f.stats);
	assert_int_equal(f.stats.killed, 1);
	assert_int_equal(f.stats.stuck, 0);
	assert_false(helper_is_stuck_for(f.helper, 7));
	assert_int_equal(say("x"), 0);
}

/* As by an upgrade of the package: the program of this version is started on. */
static void a_replaced_program_is_still_ours(void **state)
{
	char folder[] = "/tmp/gpusonde-test-helper-XXXXXX", command[9000], copy[128];
	const struct helper_ops ops = { on_answer, on_lost };
	const struct helper_config config = { .program = copy, .role = "answers" };

	(void)state;
	need_programs();
	assert_non_null(mkdtemp(folder));
	snprintf(copy, sizeof(copy), "%s/reader", folder);
	snprintf(command, sizeof(command), "cp %s/test/unit/helper/fake_reader %s", test_build_root(), copy);
	assert_int_equal(system(command), 0);
	assert_true(sd_event_new(&f.event) >= 0);
	assert_int_equal(helper_new(f.event, &config, &ops, &f, &f.helper), 0);
	snprintf(command, sizeof(command), "cp /bin/false %s.new && mv %s.new %s", copy, copy, copy);
	assert_int_equal(system(command), 0);
	assert_int_equal(say("x"), 0);
	WAIT_FOR(f.answers == 1);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

static void what_crashes_waits_before_it_is_replaced(void **state)
{
	int64_t begin;

	(void)state;
	start("crashes");
	assert_int_equal(say("x"), 0);
	WAIT_FOR(f.crashed == 1);
	begin = clock_mono_ns();
	assert_int_equal(say("x"), -EAGAIN);
	while (say("x") == -EAGAIN)
		usleep(1000);
	assert_true(clock_mono_ns() - begin >= 50 * (int64_t)NSEC_PER_MSEC);
	WAIT_FOR(f.crashed == 2);
	assert_int_equal(f.stats.crashes, 2);
	assert_int_equal(f.hung, 0);
}

static void one_of_another_version_is_said_once(void **state)
{
	int log = memfd_create("log", MFD_CLOEXEC), before = dup(STDERR_FILENO);
	char said[4096] = "", *first;

	(void)state;
	start("is of another version");
	dup2(log, STDERR_FILENO);
	for (unsigned i = 1; i <= 2; i++) {
		while (say("x") == -EAGAIN)
			usleep(1000);
		WAIT_FOR(f.crashed == i && f.stats.killed == 0);
	}
	dup2(before, STDERR_FILENO);
	assert_true(pread(log, said, sizeof(said) - 1, 0) > 0);
	first = strstr(said, "is not of this version");
	assert_non_null(first);
	assert_null(strstr(first + 1, "is not of this version"));
	close(before);
	close(log);
}

static void one_that_ends_at_once_is_lost(void **state)
{
	(void)state;
	start("ends");
	say("x"); /* it may have ended by now */
	WAIT_FOR(f.crashed == 1);
}

static void a_missing_program_is_an_error(void **state)
{
	const struct helper_ops ops = { on_answer, on_lost };
	const struct helper_config config = { .program = "/nonexistent", .role = "x" };

	(void)state;
	assert_true(sd_event_new(&f.event) >= 0);
	assert_int_equal(helper_new(f.event, &config, &ops, &f, &f.helper), 0);
	assert_int_equal(say("x"), -ENOENT);
	assert_int_equal(say("x"), -EAGAIN);
}

static void an_idle_one_ends(void **state)
{
	(void)state;
	start_with("answers", 100 * (int64_t)NSEC_PER_MSEC, 2);
	assert_int_equal(say("x"), 0);
	WAIT_FOR(f.answers == 1);
	WAIT_FOR(f.stats.pid == 0 && f.stats.killed == 0);
	assert_int_equal(f.crashed + f.hung, 0);
	assert_int_equal(say("x"), 0);
	WAIT_FOR(f.answers == 2);
	assert_int_equal(f.stats.starts, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(answers_with_one_process, stop),
		cmocka_unit_test_teardown(inherits_no_descriptor, stop),
		cmocka_unit_test_teardown(what_hangs_is_killed_and_replaced, stop),
		cmocka_unit_test_teardown(one_that_is_about_to_end_is_not_stuck, stop),
		cmocka_unit_test_teardown(a_replaced_program_is_still_ours, stop),
		cmocka_unit_test_teardown(what_crashes_waits_before_it_is_replaced, stop),
		cmocka_unit_test_teardown(one_of_another_version_is_said_once, stop),
		cmocka_unit_test_teardown(one_that_ends_at_once_is_lost, stop),
		cmocka_unit_test_teardown(a_missing_program_is_an_error, stop),
		cmocka_unit_test_teardown(an_idle_one_ends, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
