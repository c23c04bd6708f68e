// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "python/finder.h"

static char reader[PATH_MAX];

static struct {
	unsigned n;
	pid_t pid;
	int r;
} told;

static void on_found(pid_t pid, int r, uint32_t version, const struct trace_python *python, void *userdata)
{
	(void)version;
	(void)userdata;
	told.n++;
	told.pid = pid;
	told.r = r;
	assert_true((r == 0) == (python != NULL));
}

/* A process that waits until it is killed, or this one ends: a test that fails leaves none behind. */
static pid_t waiting(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void run_until(sd_event *event, unsigned n)
{
	for (unsigned turns = 0; told.n < n && turns < 600; turns++)
		sd_event_run(event, 100 * 1000);
	assert_int_equal(told.n, n);
}

/* This test's program has no interpreter, and each process is told of once. */
static void each_is_told_once(void **state)
{
	_cleanup_(python_finder_freep) struct python_finder *finder = NULL;
	pid_t first = waiting(), second = waiting();
	sd_event *event = NULL;

	(void)state;
	assert_true(sd_event_new(&event) >= 0);
	assert_int_equal(python_finder_new(event, reader, on_found, NULL, &finder), 0);
	assert_int_equal(python_finder_ask(finder, first), 0);
	assert_int_equal(python_finder_ask(finder, second), 0);
	assert_int_equal(python_finder_ask(finder, second), 0);
	run_until(event, 2);
	assert_int_equal(told.pid, second);
	assert_int_equal(told.r, -ENOENT);
	/* What has ended is not told of. */
	assert_int_equal(python_finder_ask(finder, first), 0);
	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
	assert_int_equal(python_finder_ask(finder, first), -ESRCH);
	assert_int_equal(python_finder_ask(finder, second), 0);
	run_until(event, 3);
	assert_int_equal(told.pid, second);
	kill(second, SIGKILL);
	waitpid(second, NULL, 0);
	python_finder_freep(&finder);
	finder = NULL;
	sd_event_unref(event);
}

/* What was asked about a process before it ran another program is not told; what is asked then is. */
static void what_ran_before_exec_is_not_told(void **state)
{
	_cleanup_(python_finder_freep) struct python_finder *finder = NULL;
	pid_t first = waiting(), second = waiting(), third = waiting();
	sd_event *event = NULL;

	(void)state;
	told.n = 0;
	assert_true(sd_event_new(&event) >= 0);
	assert_int_equal(python_finder_new(event, reader, on_found, NULL, &finder), 0);
	assert_int_equal(python_finder_ask(finder, first), 0);
	python_finder_exec(finder, first, 1); /* long ago */
	assert_int_equal(python_finder_ask(finder, second), 0);
	python_finder_exec(finder, second, UINT64_MAX);
	assert_int_equal(python_finder_ask(finder, third), 0);
	run_until(event, 1);
	assert_int_equal(told.pid, first);
	run_until(event, 2);
	assert_int_equal(told.pid, third); /* not the second one, which was asked about before it */
	assert_int_equal(python_finder_ask(finder, second), 0);
	run_until(event, 3);
	assert_int_equal(told.pid, second);
	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
	kill(second, SIGKILL);
	waitpid(second, NULL, 0);
	kill(third, SIGKILL);
	waitpid(third, NULL, 0);
	python_finder_freep(&finder);
	finder = NULL;
	sd_event_unref(event);
}

/* A user leaves room for others, whatever he starts. */
static void a_user_has_a_share(void **state)
{
	_cleanup_(python_finder_freep) struct python_finder *finder = NULL;
	pid_t pids[FINDER_WAITING];
	unsigned taken = 0;
	sd_event *event = NULL;

	(void)state;
	assert_true(sd_event_new(&event) >= 0);
	assert_int_equal(python_finder_new(event, reader, on_found, NULL, &finder), 0);
	for (unsigned i = 0; i < FINDER_WAITING; i++)
		pids[i] = waiting();
	for (unsigned i = 0; i < FINDER_WAITING; i++)
		taken += python_finder_ask(finder, pids[i]) == 0;
	assert_int_equal(taken, FINDER_WAITING / 8 * 7);
	for (unsigned i = 0; i < FINDER_WAITING; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	python_finder_freep(&finder);
	finder = NULL;
	sd_event_unref(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_told_once),
		cmocka_unit_test(what_ran_before_exec_is_not_told),
		cmocka_unit_test(a_user_has_a_share),
	};

	snprintf(reader, sizeof(reader), "%s/gpusonde-reader", getenv("GPUSONDE_TEST_BUILD"));
	return cmocka_run_group_tests_name("finder", tests, NULL, NULL);
}
