// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

static void make(struct nccl *nccl, uint64_t handle, uint32_t ranks)
{
	CALL(nccl, INIT, .addr = 0xabc, .handle = handle, .kind = ranks, .other = 1);
}

static const struct nccl_communicator *only(struct nccl *nccl)
{
	const struct nccl_view *view = figures(nccl);

	assert_int_equal(view->communicators_n, 1);
	return &view->communicators[0];
}

static void arguments_of_each_rank_are_multiplied(void **state)
{
	struct nccl *nccl = *state;
	const struct nccl_view *view;

	make(nccl, COMM, 8);
	CALL(nccl, ALL_GATHER, .addr = COMM, .size = 100);
	CALL(nccl, ALL_REDUCE, .addr = COMM, .size = 100);
	CALL(nccl, ALL_GATHER, .addr = COMM, .size = UINT64_MAX);
	view = figures(nccl);
	assert_int_equal(row_of(view, NCCL_ALL_REDUCE, 8)->traffic, 100);
	assert_int_equal(row_of(view, NCCL_ALL_GATHER, 8)->traffic, UINT64_MAX);
	assert_int_equal(row_of(view, NCCL_ALL_GATHER, 8)->bytes, UINT64_MAX);
	assert_int_equal(row_of(view, NCCL_ALL_GATHER, 8)->calls, 2);
}

static void ranks_are_learnt_late(void **state)
{
	struct nccl *nccl = *state;
	const struct nccl_view *view;

	CALL(nccl, ALL_GATHER, .addr = COMM, .size = 10);
	view = figures(nccl);
	assert_true(row_of(view, NCCL_ALL_GATHER, NCCL_RANKS_UNKNOWN)->unsized);
	CALL(nccl, COUNT, .addr = COMM, .kind = 4, .result = 1);
	CALL(nccl, COUNT, .addr = COMM, .kind = 4, .header.flags = TRACE_FLAG_NO_RESULT);
	assert_int_equal(only(nccl)->ranks, 0);
	CALL(nccl, COUNT, .addr = COMM, .kind = 4);
	CALL(nccl, USER_RANK, .addr = COMM, .kind = 3);
	CALL(nccl, ALL_GATHER, .addr = COMM, .size = 10);
	assert_int_equal(only(nccl)->rank, 3);
	assert_true(only(nccl)->late);
	assert_int_equal(only(nccl)->sequence, 2);
	assert_int_equal(row_of(figures(nccl), NCCL_ALL_GATHER, 4)->traffic, 40);
}

/* A rank whose events were lost or not collected is not one that is behind. */
static void what_is_lost_is_marked(void **state)
{
	struct nccl *nccl = *state;
	const struct nccl_view *view;

	make(nccl, COMM, 8);
	assert_false(only(nccl)->late);
	nccl_lost(nccl, 0x7fffffff);
	assert_false(only(nccl)->late);
	nccl_lost(nccl, 0);
	assert_true(only(nccl)->late);
	CALL(nccl, SPLIT, .addr = COMM, .handle = CHILD, .kind = 5);
	view = figures(nccl);
	assert_int_equal(view->communicators[1].id, 0);
}

/* Those that name each operation ask of a live one, in the order of events. */
static void a_communicator_is_told_as_of_now(void **state)
{
	struct nccl *nccl = *state;
	const struct trace_header reduce = { .op = TRACE_OP_NCCL_REDUCE, .type = TRACE_EVENT_CALL },
				  send = { .op = TRACE_OP_NCCL_SEND, .type = TRACE_EVENT_CALL };
	const struct nccl_communicator *c;

	assert_null(nccl_communicator(nccl, PID, COMM));
	make(nccl, COMM, 8);
	CALL(nccl, REDUCE, .addr = COMM, .size = 10);
	c = nccl_communicator(nccl, PID, COMM);
	assert_non_null(c);
	assert_int_equal(c->ranks, 8);
	assert_int_equal(c->rank, 1);
	assert_int_equal(c->sequence, 1);
	assert_null(nccl_communicator(nccl, PID, CHILD));
	assert_null(nccl_communicator(nccl, PID + 1, COMM));
	CALL(nccl, DESTROY, .addr = COMM);
	assert_null(nccl_communicator(nccl, PID, COMM));
	assert_true(nccl_is_collective(&reduce));
	assert_false(nccl_is_collective(&send));
}

static void failures_are_not_in_the_sequence(void **state)
{
	struct nccl *nccl = *state;

	make(nccl, COMM, 8);
	CALL(nccl, REDUCE, .addr = COMM, .size = 10, .result = 4);
	CALL(nccl, REDUCE, .addr = COMM, .size = 10);
	CALL(nccl, SEND, .addr = COMM, .size = 10, .header.flags = TRACE_FLAG_GROUPED);
	assert_int_equal(only(nccl)->sequence, 1);
	assert_int_equal(only(nccl)->point_to_point, 1);
	assert_int_equal(row_of(figures(nccl), NCCL_REDUCE, 8)->failed, 1);
	assert_int_equal(row_of(figures(nccl), NCCL_REDUCE, 8)->bytes, 10);
	assert_int_equal(row_of(figures(nccl), NCCL_SEND, 8)->grouped, 1);
}

static void a_handle_may_be_used_again(void **state)
{
	struct nccl *nccl = *state;
	const struct nccl_view *view;

	make(nccl, COMM, 8);
	CALL(nccl, ALL_REDUCE, .addr = COMM, .size = 1);
	CALL(nccl, DESTROY, .addr = COMM);
	assert_true(only(nccl)->ended);
	make(nccl, COMM, 2);
	CALL(nccl, ALL_REDUCE, .addr = COMM, .size = 1);
	view = figures(nccl);
	assert_int_equal(row_of(view, NCCL_ALL_REDUCE, 8)->calls, 1);
	assert_int_equal(row_of(view, NCCL_ALL_REDUCE, 2)->calls, 1);
	/* Its end was not seen. */
	make(nccl, COMM, 3);
	CALL(nccl, ALL_REDUCE, .addr = COMM, .size = 1);
	assert_int_equal(row_of(figures(nccl), NCCL_ALL_REDUCE, 3)->calls, 1);
}

static void children(void **state)
{
	struct nccl *nccl = *state;
	const struct nccl_view *view;

	make(nccl, COMM, 8);
	/* A rank of no color gets none; the next split counts it. */
	CALL(nccl, SPLIT, .addr = COMM, .handle = 0, .kind = (uint32_t)-1);
	CALL(nccl, SPLIT, .addr = COMM, .handle = CHILD, .kind = 5);
	CALL(nccl, SHRINK, .addr = COMM, .handle = OTHER, .kind = 3);
	view = figures(nccl);
	assert_int_equal(view->communicators_n, 3);
	assert_true(view->communicators[1].id == nccl_child_id(0xabc, 2, 5));
	assert_int_equal(view->communicators[1].ranks, 0);
	assert_int_equal(view->communicators[2].ranks, 5);
	assert_true(view->communicators[2].id == nccl_child_id(0xabc, 0, 0));
	/* Of a parent that was made before it was traced, how many splits there were is not known. */
	CALL(nccl, SPLIT, .addr = 0x9000, .handle = 0x9100, .kind = 5);
	view = figures(nccl);
	assert_int_equal(view->communicators[view->communicators_n - 1].id, 0);
}

static void ids_that_could_not_be_read(void **state)
{
	struct nccl *nccl = *state;

	CALL(nccl, INIT, .addr = 0xabc, .handle = COMM, .kind = 8, .header.flags = TRACE_FLAG_UNREAD);
	assert_int_equal(only(nccl)->id, 0);
	assert_int_equal(only(nccl)->ranks, 8);
}

static void groups(void **state)
{
	struct nccl *nccl = *state;

	CALL(nccl, GROUP_END, .header.time_ns = 5000, .other = 2);
	CALL(nccl, GROUP_END, .header.time_ns = 9000, .other = 1, .stream = 1000, .handle = 3);
	/* One that began before it was traced. */
	CALL(nccl, GROUP_END, .header.time_ns = 9000, .other = 0);
	assert_int_equal(figures(nccl)->processes[0].groups, 1);
	assert_int_equal(figures(nccl)->processes[0].group_operations, 3);
	assert_float_equal(figures(nccl)->processes[0].group_seconds, 9e-6, 1e-12);
}

static void exec_and_end_forget(void **state)
{
	static const uint8_t types[] = { TRACE_EVENT_EXEC, TRACE_EVENT_EXIT, TRACE_EVENT_PROCESS };
	struct nccl *nccl = *state;

	for (unsigned i = 0; i < 3; i++) {
		make(nccl, COMM, 8);
		CALL(nccl, ALL_REDUCE, .addr = COMM, .size = 1);
		life(nccl, types[i], 1 << 20); /* began after the first call */
		/* In the next one the handle is another communicator's. */
		CALL(nccl, ALL_REDUCE, .addr = COMM, .size = 1);
		assert_int_equal(figures(nccl)->processes_n, 2);
		assert_int_equal(figures(nccl)->processes_n, 1);
		assert_true(only(nccl)->late);
		nccl_process_over(nccl, PID, 0);
		assert_true(figures(nccl)->processes[0].exited);
		assert_int_equal(figures(nccl)->processes_n, 0);
	}
	/* The sums stay. */
	assert_int_equal(figures(nccl)->totals_n, 2);
	assert_int_equal(figures(nccl)->totals[1].calls, 3);
}

static void errors_of_work_that_goes_on(void **state)
{
	struct nccl *nccl = *state;

	CALL(nccl, ASYNC_ERROR, .addr = COMM, .kind = 7);
	assert_int_equal(only(nccl)->async_error, 0);
	CALL(nccl, ASYNC_ERROR, .addr = COMM, .kind = 6);
	CALL(nccl, ASYNC_ERROR, .addr = COMM, .kind = 0);
	assert_int_equal(only(nccl)->async_error, 6);
}

static void what_is_no_event_of_nccl(void **state)
{
	struct nccl *nccl = *state;
	struct trace_call event = { .header = {
					    .tgid = PID, .type = TRACE_EVENT_CALL, .op = TRACE_OP_COPY } };

	call(nccl, &event);
	event.header.op = TRACE_OP_NCCL_ALL_REDUCE;
	nccl_event(nccl, &event.header, sizeof(event.header)); /* too short */
	assert_int_equal(figures(nccl)->processes_n, 0);
}

static void what_is_said_of_a_predecessor_does_not_end_it(void **state)
{
	struct nccl *nccl = *state;

	life(nccl, TRACE_EVENT_PROCESS, 7);
	make(nccl, COMM, 8);
	nccl_process_over(nccl, PID, 5);
	life(nccl, TRACE_EVENT_EXIT, 5);
	figures(nccl);
	assert_false(figures(nccl)->processes[0].exited);
	assert_false(only(nccl)->late);
	life(nccl, TRACE_EVENT_PROCESS, 9);
	assert_true(figures(nccl)->processes[0].exited);
	assert_int_equal(figures(nccl)->processes_n, 0);
	/* A call that is told before its process's beginning. */
	make(nccl, COMM, 8);
	nccl_process_over(nccl, PID, 7);
	assert_false(figures(nccl)->processes[0].exited);
	nccl_process_over(nccl, PID, 9);
	assert_true(figures(nccl)->processes[0].exited);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(arguments_of_each_rank_are_multiplied, setup, teardown),
		cmocka_unit_test_setup_teardown(ranks_are_learnt_late, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_lost_is_marked, setup, teardown),
		cmocka_unit_test_setup_teardown(failures_are_not_in_the_sequence, setup, teardown),
		cmocka_unit_test_setup_teardown(a_handle_may_be_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(children, setup, teardown),
		cmocka_unit_test_setup_teardown(ids_that_could_not_be_read, setup, teardown),
		cmocka_unit_test_setup_teardown(a_communicator_is_told_as_of_now, setup, teardown),
		cmocka_unit_test_setup_teardown(groups, setup, teardown),
		cmocka_unit_test_setup_teardown(exec_and_end_forget, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_of_work_that_goes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_event_of_nccl, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_said_of_a_predecessor_does_not_end_it, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
