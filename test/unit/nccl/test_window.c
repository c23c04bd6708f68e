// SPDX-License-Identifier: Apache-2.0
#include "calls.h"
#include "users.h"

static void rates(void **state)
{
	struct nccl *nccl = *state;

	CALL(nccl, ALL_REDUCE, .addr = COMM);
	assert_float_equal(figures(nccl)->communicators[0].per_second, 0, 1e-9);
	for (int i = 0; i < 5; i++)
		CALL(nccl, ALL_REDUCE, .addr = COMM);
	assert_float_equal(figures(nccl)->communicators[0].per_second, 5, 1e-9);
	assert_float_equal(figures(nccl)->communicators[0].per_second, 0, 1e-9);
}

static void sizes_beyond_the_limit(void **state)
{
	struct nccl *nccl = *state;
	const struct nccl_view *view;

	for (uint32_t i = 1; i <= 100; i++) {
		CALL(nccl, INIT, .handle = i, .kind = i);
		CALL(nccl, ALL_REDUCE, .addr = i, .size = 1);
		CALL(nccl, DESTROY, .addr = i);
	}
	view = figures(nccl);
	assert_int_equal(view->rows_n, NCCL_SIZES_MAX - 1);
	assert_int_equal(row_of(view, NCCL_ALL_REDUCE, 14)->calls, 1);
	assert_int_equal(row_of(view, NCCL_ALL_REDUCE, NCCL_RANKS_OTHER)->calls, 100 - 14);
	/* The place of one that has ended is another's. */
	assert_int_equal(view->communicators_n, 1);
}

static void communicators_beyond_the_limit(void **state)
{
	struct nccl *nccl = *state;
	const struct nccl_view *view;

	for (uint64_t i = 1; i <= NCCL_COMMUNICATORS_MAX + 10; i++)
		CALL(nccl, ALL_REDUCE, .addr = i, .size = 1);
	view = figures(nccl);
	assert_int_equal(view->communicators_n, NCCL_COMMUNICATORS_MAX);
	assert_int_equal(view->processes[0].left_out, 10);
	assert_int_equal(row_of(view, NCCL_ALL_REDUCE, NCCL_RANKS_UNKNOWN)->calls,
			 NCCL_COMMUNICATORS_MAX + 10);
}

static void processes_beyond_the_limit(void **state)
{
	struct nccl *nccl = *state;
	const struct nccl_view *view;

	for (uint32_t i = 1; i <= NCCL_PROCESSES_MAX + 10; i++)
		call(nccl, &(struct trace_call){ .header = { .tgid = i,
							     .type = TRACE_EVENT_CALL,
							     .op = TRACE_OP_NCCL_ALL_REDUCE },
						 .addr = COMM });
	view = figures(nccl);
	assert_int_equal(view->processes_n, NCCL_PROCESSES_MAX);
	assert_int_equal(view->beyond, 10);
	assert_int_equal(view->totals[0].calls, NCCL_PROCESSES_MAX + 10);
	assert_true(view->processes[3].has_series);
	assert_false(view->processes[4].has_series);
	for (uint32_t i = 1; i < view->processes_n; i++)
		assert_true(view->processes[i - 1].pid < view->processes[i].pid);
}

static void users_share_the_processes(void **state)
{
	enum { SHARE = NCCL_PROCESSES_MAX / 8 * 7 };
	struct traced_users *users = two_users();
	const struct nccl_view *view;
	struct nccl *nccl = *state;

	nccl_share(nccl, users);
	for (uint32_t i = 1; i <= NCCL_PROCESSES_MAX + 1; i++)
		call(nccl,
		     &(struct trace_call){ .header = { .tgid = i <= NCCL_PROCESSES_MAX ? i : OTHER_USERS_PID,
						       .type = TRACE_EVENT_CALL,
						       .op = TRACE_OP_NCCL_ALL_REDUCE },
					   .addr = COMM });
	for (uint32_t i = 1; i <= NCCL_PROCESSES_MAX; i++)
		nccl_process_over(nccl, i, 0);
	view = figures(nccl);
	assert_int_equal(view->processes_n, SHARE + 1);
	assert_int_equal(view->processes[SHARE].pid, OTHER_USERS_PID);
	assert_int_equal(view->beyond, NCCL_PROCESSES_MAX - SHARE);
	assert_int_equal(users->shares.used[TRACED_TABLE_NCCL], 1); /* those that have ended are gone */
	nccl_share(nccl, NULL);
	free(users);
}

static void those_that_have_ended_are_kept(void **state)
{
	struct nccl *nccl = nccl_new(4, true);

	(void)state;
	CALL(nccl, ALL_REDUCE, .addr = COMM);
	life(nccl, TRACE_EVENT_EXIT, 0);
	figures(nccl);
	assert_int_equal(figures(nccl)->processes_n, 1);
	nccl_free(nccl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rates, setup, teardown),
		cmocka_unit_test_setup_teardown(sizes_beyond_the_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(communicators_beyond_the_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(processes_beyond_the_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(users_share_the_processes, setup, teardown),
		cmocka_unit_test_setup_teardown(those_that_have_ended_are_kept, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
