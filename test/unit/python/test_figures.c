// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/macro.h"
#include "python/figures.h"
#include "users.h"

static void tell(struct python_figures *figures, uint32_t tgid, uint32_t tid, enum trace_op op, uint64_t n,
		 uint64_t total_ns, uint64_t longest_ns, uint32_t kind)
{
	const struct trace_call event = {
		.header = { .type = TRACE_EVENT_CALL, .op = (uint8_t)op, .tgid = tgid, .tid = tid },
		.duration_ns = total_ns,
		.addr = longest_ns,
		.size = n,
		.kind = kind,
	};

	python_figures_event(figures, &event.header, sizeof(event));
}

static void end(struct python_figures *figures, uint32_t tgid)
{
	const struct trace_process event = {
		.header = { .type = TRACE_EVENT_EXIT, .tgid = tgid, .time_ns = 1 << 20 }
	};

	python_figures_event(figures, &event.header, sizeof(event));
}

static void waits_are_added_up_by_thread(_unused_ void **state)
{
	_cleanup_(python_figures_freep) struct python_figures *figures = python_figures_new(1, false);
	_cleanup_free_ struct python_view *view = NULL;

	tell(figures, 20, 21, TRACE_OP_PYTHON_GIL, 2, 300, 200, 0);
	tell(figures, 20, 22, TRACE_OP_PYTHON_GIL, 1, 500, 500, 0);
	tell(figures, 20, 21, TRACE_OP_PYTHON_GIL, 1, 100, 100, 0);
	tell(figures, 10, 11, TRACE_OP_PYTHON_GIL, 1, 5, 5, 0);
	tell(figures, 10, 11, TRACE_OP_PYTHON_CALL, 7, 7, 7, 0);
	view = python_figures_window(figures);
	assert_int_equal(view->processes_n, 2);
	assert_int_equal(view->processes[0].pid, 10);
	assert_false(view->processes[0].has_series); /* the first that came has */
	assert_true(view->processes[1].has_series);
	assert_int_equal(view->processes[1].waits.count, 4);
	assert_int_equal(view->processes[1].waits.total_ns, 900);
	assert_int_equal(view->processes[1].waits.longest_ns, 500);
	assert_int_equal(view->processes[1].waiters_n, 2);
	assert_int_equal(view->waiters[view->processes[1].waiters_first].tid, 22);
	assert_int_equal(view->waiters[view->processes[1].waiters_first + 1].waits.count, 3);
	assert_int_equal(view->waits.count, 5);
}

static void only_found_interpreters_are_known(_unused_ void **state)
{
	_cleanup_(python_figures_freep) struct python_figures *figures = python_figures_new(1, true);
	_cleanup_free_ struct python_view *view = NULL;

	python_figures_known(figures, 2);
	for (uint32_t tgid = 1; tgid <= 3; tgid++)
		tell(figures, tgid, tgid, TRACE_OP_PYTHON_GC, 0, 30, 0, 2);
	tell(figures, 3, 3, TRACE_OP_PYTHON_GIL, 1, 1, 1, 0); /* a child has its parent's */
	end(figures, 2); /* what ran before in this process */
	tell(figures, 2, 2, TRACE_OP_PYTHON_GC, 0, 30, 0, 2);
	python_figures_unknown(figures, 0x030f0000);
	view = python_figures_window(figures);
	assert_int_equal(view->processes_n, 4);
	assert_false(view->processes[0].known);
	assert_true(view->processes[1].exited);
	assert_false(view->processes[1].known);
	assert_true(view->processes[2].known);
	assert_true(view->processes[3].known);
	assert_int_equal(view->unknown, 1);
	assert_int_equal(view->unknown_version, 0x030f0000);
}

/* An interpreter that ended is not known of the next program with its PID. */
static void what_is_known_ends_with_its_program(_unused_ void **state)
{
	_cleanup_(python_figures_freep) struct python_figures *figures = python_figures_new(1, true);
	const struct trace_process event = {
		.header = { .type = TRACE_EVENT_EXEC, .tgid = 1, .time_ns = UINT64_MAX }
	};
	const struct trace_process later = { .header = { .type = TRACE_EVENT_PROCESS, .tgid = 2 },
					     .start_boot_ns = UINT64_MAX };
	_cleanup_free_ struct python_view *view = NULL;

	python_figures_known(figures, 1);
	tell(figures, 1, 1, TRACE_OP_PYTHON_GC, 0, 30, 0, 2);
	python_figures_event(figures, &event.header, sizeof(event));
	tell(figures, 1, 1, TRACE_OP_PYTHON_GC, 0, 30, 0, 2);
	python_figures_known(figures, 2);
	python_figures_event(figures, &later.header, sizeof(later));
	tell(figures, 2, 2, TRACE_OP_PYTHON_GC, 0, 30, 0, 2);
	view = python_figures_window(figures);
	assert_int_equal(view->processes_n, 3);
	assert_true(view->processes[0].known);
	assert_false(view->processes[1].known);
	assert_false(view->processes[2].known);
}

static void those_that_waited_longest_are_shown(_unused_ void **state)
{
	_cleanup_(python_figures_freep) struct python_figures *figures = python_figures_new(1, false);
	_cleanup_free_ struct python_view *view = NULL;

	for (uint32_t tid = 1; tid <= 30; tid++)
		tell(figures, 1, tid, TRACE_OP_PYTHON_GIL, 1, tid * 7 % 31, 1, 0);
	view = python_figures_window(figures);
	assert_int_equal(view->waiters_n, PYTHON_WAITERS_SHOWN);
	for (uint64_t i = 0; i < PYTHON_WAITERS_SHOWN; i++)
		assert_int_equal(view->waiters[i].waits.total_ns, 30 - i);
	assert_int_equal(view->processes[0].more_waiters, 20);
	assert_int_equal(view->processes[0].more_waits, 20);
}

/* Each process leaves as many threads to others as it has. */
static void threads_are_bounded_over_all(_unused_ void **state)
{
	enum { PROCESSES = 100 };
	_cleanup_(python_figures_freep) struct python_figures *figures = python_figures_new(1, true);
	_cleanup_free_ struct python_view *view = NULL;
	uint32_t n = 0;

	for (uint32_t tgid = 1; tgid <= PROCESSES; tgid++)
		for (uint32_t tid = 1; tid <= PYTHON_WAITERS_MAX; tid++)
			tell(figures, tgid, tid, TRACE_OP_PYTHON_GIL, 1, 1, 1, 0);
	view = python_figures_window(figures);
	for (uint32_t i = 0; i < PROCESSES; i++)
		n += view->processes[i].waiters_n + view->processes[i].more_waiters;
	assert_true(n <= PYTHON_ALL_WAITERS_MAX);
	assert_true(n > PYTHON_ALL_WAITERS_MAX - 16);
	assert_int_equal(view->waits.count, PROCESSES * PYTHON_WAITERS_MAX);
}

static void garbage_is_added_up_by_generation(_unused_ void **state)
{
	_cleanup_(python_figures_freep) struct python_figures *figures = python_figures_new(1, false);
	_cleanup_free_ struct python_view *view = NULL;

	tell(figures, 1, 1, TRACE_OP_PYTHON_GC, 0, 30, 0, 2);
	tell(figures, 1, 2, TRACE_OP_PYTHON_GC, 0, 40, 0, 2);
	tell(figures, 1, 1, TRACE_OP_PYTHON_GC, 0, 1, 0, (uint32_t)TRACE_GENERATION_UNKNOWN);
	tell(figures, 1, 1, TRACE_OP_PYTHON_GC, 0, 1, 0, PYTHON_GENERATIONS); /* hostile */
	view = python_figures_window(figures);
	assert_int_equal(view->processes[0].collections[0].count, 0);
	assert_int_equal(view->processes[0].collections[2].count, 2);
	assert_int_equal(view->processes[0].collections[2].total_ns, 70);
	assert_int_equal(view->processes[0].collections[2].longest_ns, 40);
	assert_int_equal(view->processes[0].collections[PYTHON_GENERATIONS].count, 2);
	assert_int_equal(view->processes[0].waits.count, 0);
}

static void who_has_ended_is_told_once(_unused_ void **state)
{
	_cleanup_(python_figures_freep) struct python_figures *figures = python_figures_new(1, false);
	struct python_view *view;

	tell(figures, 1, 1, TRACE_OP_PYTHON_GIL, 1, 1, 1, 0);
	end(figures, 1);
	tell(figures, 1, 1, TRACE_OP_PYTHON_GIL, 1, 2, 2, 0); /* of another one */
	view = python_figures_window(figures);
	assert_int_equal(view->processes_n, 2);
	free(view);
	view = python_figures_window(figures);
	assert_int_equal(view->processes_n, 1);
	assert_false(view->processes[0].exited);
	assert_int_equal(view->processes[0].waits.total_ns, 2);
	assert_int_equal(view->waits.total_ns, 3); /* of all that ever were */
	free(view);
}

static void tables_are_bounded(_unused_ void **state)
{
	_cleanup_(python_figures_freep) struct python_figures *figures = python_figures_new(1, true);
	_cleanup_free_ struct python_view *view = NULL;

	for (uint32_t tid = 1; tid <= PYTHON_WAITERS_MAX + 5; tid++)
		tell(figures, 1, tid, TRACE_OP_PYTHON_GIL, 1, 1, 1, 0);
	for (uint32_t tgid = 2; tgid <= PYTHON_PROCESSES_MAX + 5; tgid++)
		tell(figures, tgid, tgid, TRACE_OP_PYTHON_GIL, 1, 1, 1, 0);
	python_figures_lost(figures, 2);
	view = python_figures_window(figures);
	assert_int_equal(view->processes_n, PYTHON_PROCESSES_MAX);
	assert_int_equal(view->processes[0].waiters_n, PYTHON_WAITERS_SHOWN);
	assert_int_equal(view->processes[0].more_waiters, PYTHON_WAITERS_MAX - PYTHON_WAITERS_SHOWN);
	assert_int_equal(view->processes[0].waits.count, PYTHON_WAITERS_MAX + 5);
	assert_int_equal(view->processes[0].more_waits, PYTHON_WAITERS_MAX - PYTHON_WAITERS_SHOWN + 5);
	assert_false(view->processes[0].incomplete);
	assert_true(view->processes[1].incomplete);
	assert_int_equal(view->waits.count, PYTHON_WAITERS_MAX + PYTHON_PROCESSES_MAX + 9);
}

static void users_share_the_tables(_unused_ void **state)
{
	enum { SHARE = PYTHON_PROCESSES_MAX / 8 * 7 };
	_cleanup_(python_figures_freep) struct python_figures *figures = python_figures_new(1, false);
	struct traced_users *users = two_users();
	_cleanup_free_ struct python_view *view = NULL;

	python_figures_share(figures, users);
	for (uint32_t tid = 1; tid <= 10; tid++)
		for (uint32_t tgid = 1; tgid <= PYTHON_PROCESSES_MAX; tgid++)
			tell(figures, tgid, tid, TRACE_OP_PYTHON_GIL, 1, 1, 1, 0);
	tell(figures, OTHER_USERS_PID, 1, TRACE_OP_PYTHON_GIL, 1, 1, 1, 0);
	for (uint32_t tgid = 1; tgid <= PYTHON_PROCESSES_MAX; tgid++)
		end(figures, tgid);
	assert_true(users->shares.used[TRACED_TABLE_WAITERS] <= PYTHON_ALL_WAITERS_MAX / 8 * 7 + 1);
	view = python_figures_window(figures);
	assert_int_equal(view->processes_n, SHARE + 1);
	assert_int_equal(view->processes[SHARE].pid, OTHER_USERS_PID);
	assert_int_equal(view->processes[SHARE].waiters_n, 1);
	/* Those that have ended are gone. */
	assert_int_equal(users->shares.used[TRACED_TABLE_PYTHON], 1);
	assert_int_equal(users->shares.used[TRACED_TABLE_WAITERS], 1);
	python_figures_share(figures, NULL);
	free(users);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_added_up_by_thread),
		cmocka_unit_test(only_found_interpreters_are_known),
		cmocka_unit_test(what_is_known_ends_with_its_program),
		cmocka_unit_test(those_that_waited_longest_are_shown),
		cmocka_unit_test(threads_are_bounded_over_all),
		cmocka_unit_test(garbage_is_added_up_by_generation),
		cmocka_unit_test(who_has_ended_is_told_once),
		cmocka_unit_test(tables_are_bounded),
		cmocka_unit_test(users_share_the_tables),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
