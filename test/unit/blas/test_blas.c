// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdlib.h>

#include "base/macro.h"
#include "blas/blas.h"
#include "users.h"

enum { PID = 100, HANDLE = 0x1000, SHAPES = 4, BF16 = TRACE_GEMM_TYPES(14, 14, 14, 68), FP32 = 0 };

#define CALL(blas_, op_, ...)                                                                        \
	call((blas_),                                                                                \
	     &(struct trace_call){                                                                   \
		     .header = { .tgid = PID, .type = TRACE_EVENT_CALL, .op = TRACE_OP_BLAS_##op_ }, \
		     __VA_ARGS__ })

static void call(struct blas *blas, const struct trace_call *event)
{
	blas_event(blas, &event->header, sizeof(*event));
}

static void gemm(struct blas *blas, uint32_t m, uint32_t types, int32_t result)
{
	CALL(blas, GEMM, .addr = m, .other = 20, .stream = 30, .size = 2, .handle = HANDLE, .kind = types,
	     .result = result);
}

static void life(struct blas *blas, uint8_t type, uint64_t incarnation)
{
	const struct trace_process event = { .header = { .tgid = PID, .type = type },
					     .incarnation = incarnation };

	blas_event(blas, &event.header, sizeof(event));
}

static struct blas_process only(struct blas *blas)
{
	_cleanup_free_ struct blas_view *view = blas_window(blas);

	assert_non_null(view);
	assert_int_equal(view->processes_n, 1);
	return view->processes[0];
}

static void flop_are_added_by_shape_and_precision(void **state)
{
	struct blas *blas = *state;
	_cleanup_free_ struct blas_view *view = NULL;

	gemm(blas, 10, BF16, 0);
	gemm(blas, 11, BF16, 0);
	gemm(blas, 11, BF16, 0);
	gemm(blas, 11, BF16, 7); /* failed */
	CALL(blas, GEMM, .addr = 10, .other = 20, .stream = 30, .size = 1,
	     .kind = TRACE_GEMM_TYPES(5, 5, 5, 70));
	view = blas_window(blas);
	assert_int_equal(view->rows_n, 3);
	assert_int_equal(view->rows[0].shape.m, 11);
	assert_int_equal(view->rows[0].sum.calls, 2);
	assert_true(view->rows[0].sum.flop == 2 * 2.0 * 11 * 20 * 30 * 2);
	assert_int_equal(view->rows[1].shape.precision, BLAS_FP64);
	assert_true(view->rows[1].sum.flop == 8.0 * 10 * 20 * 30);
	assert_int_equal(view->processes[0].failed, 1);
	assert_true(view->totals[BLAS_BF16].flop == 2.0 * (10 + 11 + 11) * 20 * 30 * 2);
	assert_int_equal(view->processes[0].by_precision[BLAS_BF16].calls, 3);
	assert_true(view->processes[0].peak_share < 0);
}

static void shapes_beyond_the_limit_are_in_the_sums(void **state)
{
	struct blas *blas = *state;
	struct blas_process p;

	for (uint32_t m = 1; m <= SHAPES + 3; m++)
		gemm(blas, m, BF16, 0);
	gemm(blas, 1, BF16, 0);
	p = only(blas);
	assert_int_equal(p.rows_n, SHAPES);
	assert_int_equal(p.others.calls, 3);
	assert_int_equal(p.by_precision[BLAS_BF16].calls, SHAPES + 4);
}

static void single_precision_is_by_the_math_mode_of_the_handle(void **state)
{
	struct blas *blas = *state;
	struct blas_process p;

	gemm(blas, 1, FP32, 0); /* made before it was traced */
	CALL(blas, MATH, .handle = HANDLE, .kind = 3);
	gemm(blas, 1, FP32, 0);
	CALL(blas, MATH, .handle = HANDLE, .kind = 0, .result = 1); /* failed */
	CALL(blas, MATH, .handle = HANDLE, .kind = 0, .header.flags = TRACE_FLAG_NO_RESULT);
	gemm(blas, 1, TRACE_GEMM_TYPES(0, 0, 0, 68), 0);
	CALL(blas, MATH, .handle = HANDLE, .kind = 0x10);
	gemm(blas, 1, FP32, 0);
	gemm(blas, 1, TRACE_GEMM_TYPES(0, 0, 0, 77), 0);
	blas_lost(blas);
	gemm(blas, 1, FP32, 0);
	p = only(blas);
	assert_int_equal(p.by_precision[BLAS_FP32_OR_TF32].calls, 2);
	assert_int_equal(p.by_precision[BLAS_TF32].calls, 3);
	assert_int_equal(p.by_precision[BLAS_FP32].calls, 1);
}

static void layout(struct blas *blas, uint64_t digest, uint64_t rows, uint64_t cols)
{
	CALL(blas, LAYOUT, .handle = digest, .addr = rows, .stream = cols, .kind = 0);
}

static void matmul(struct blas *blas, uint64_t a, uint64_t b, uint64_t d)
{
	CALL(blas, MATMUL, .addr = 99, .handle = a, .size = b, .stream = d);
}

static void sizes_come_from_layouts_or_are_not_known(void **state)
{
	struct blas *blas = *state;
	struct blas_process p;

	CALL(blas, DESC, .handle = 99, .kind = 68);
	layout(blas, 1, 30, 10); /* A, transposed */
	layout(blas, 2, 30, 20);
	layout(blas, 3, 10, 20);
	matmul(blas, 1, 2, 3);
	matmul(blas, 1, 2, 4); /* not seen */
	matmul(blas, 1, 2, 0); /* not readable */
	matmul(blas, 2, 1, 3); /* they do not fit: known by chance */
	CALL(blas, LAYOUT_SET, .addr = 3, .handle = 4, .kind = 5, .size = 6, .stream = 4);
	matmul(blas, 1, 2, 4);
	p = only(blas);
	assert_int_equal(p.unsized, 3);
	assert_int_equal(p.by_precision[BLAS_FP32].calls, 2);
	assert_true(p.by_precision[BLAS_FP32].flop == 2.0 * 10 * 20 * 30 * (1 + 6));
}

static void what_is_not_told_is_counted_as_such(void **state)
{
	struct blas *blas = *state;
	struct blas_process p;

	CALL(blas, UNKNOWN);
	CALL(blas, GEMM, .addr = 1, .other = UINT32_MAX, .stream = 1, .size = 1, .kind = BF16);
	CALL(blas, GEMM, .addr = 1, .other = 1, .stream = 1, .size = 1, .kind = BF16,
	     .header.flags = TRACE_FLAG_UNREAD);
	p = only(blas);
	assert_int_equal(p.unsized, 3);
	assert_int_equal(p.rows_n, 0);
}

static void a_process_that_executes_another_program_is_another_one(void **state)
{
	struct blas *blas = *state;
	_cleanup_free_ struct blas_view *view = NULL;

	CALL(blas, MATH, .handle = HANDLE, .kind = 3);
	gemm(blas, 1, FP32, 0);
	life(blas, TRACE_EVENT_EXEC, 0);
	gemm(blas, 1, FP32, 0);
	view = blas_window(blas);
	assert_int_equal(view->processes_n, 2);
	free(TAKE_PTR(view));
	assert_int_equal(only(blas).by_precision[BLAS_FP32_OR_TF32].calls, 1);
	blas_process_over(blas, PID, 0);
	free(blas_window(blas));
	view = blas_window(blas);
	assert_int_equal(view->processes_n, 0);
	assert_int_equal(view->totals[BLAS_FP32_OR_TF32].calls + view->totals[BLAS_TF32].calls, 2);
}

static void what_is_said_of_a_predecessor_does_not_end_it(void **state)
{
	struct blas *blas = *state;
	_cleanup_free_ struct blas_view *view = NULL;

	life(blas, TRACE_EVENT_PROCESS, 7);
	gemm(blas, 1, FP32, 0);
	blas_process_over(blas, PID, 5);
	life(blas, TRACE_EVENT_EXIT, 5);
	free(blas_window(blas));
	view = blas_window(blas);
	assert_int_equal(view->processes_n, 1);
	assert_false(view->processes[0].exited);
	free(TAKE_PTR(view));
	blas_process_over(blas, PID, 7);
	view = blas_window(blas);
	assert_true(view->processes[0].exited);
}

static void processes_are_bounded(void **state)
{
	struct blas *blas = *state;
	_cleanup_free_ struct blas_view *view = NULL;

	for (uint32_t i = 1; i <= BLAS_PROCESSES_MAX + 5; i++)
		call(blas,
		     &(struct trace_call){
			     .header = { .tgid = i, .type = TRACE_EVENT_CALL, .op = TRACE_OP_BLAS_GEMM },
			     .addr = 1,
			     .other = 1,
			     .stream = 1,
			     .size = 1,
			     .kind = BF16 });
	view = blas_window(blas);
	assert_int_equal(view->processes_n, BLAS_PROCESSES_MAX);
	assert_int_equal(view->totals[BLAS_BF16].calls, BLAS_PROCESSES_MAX + 5);
	assert_int_equal(view->beyond, 5);
}

static void multiply(struct blas *blas, uint32_t tgid)
{
	call(blas, &(struct trace_call){
			   .header = { .tgid = tgid, .type = TRACE_EVENT_CALL, .op = TRACE_OP_BLAS_GEMM },
			   .addr = 1,
			   .other = 1,
			   .stream = 1,
			   .size = tgid,
			   .kind = BF16 });
}

/* A window puts processes in order and forgets those that have ended: each is still found. */
static void processes_are_found_after_a_window(void **state)
{
	struct blas *blas = *state;

	for (uint32_t tgid = 50; tgid > 0; tgid--)
		multiply(blas, tgid);
	for (uint32_t tgid = 10; tgid <= 50; tgid += 10)
		blas_process_over(blas, tgid, 0);
	for (unsigned i = 0; i < 3; i++) {
		_cleanup_free_ struct blas_view *view = blas_window(blas);

		assert_int_equal(view->processes_n, i == 0 ? 50 : 45);
		for (uint32_t p = 0; p < view->processes_n; p++)
			assert_true(view->processes[p].by_precision[BLAS_BF16].flop ==
				    2.0 * (i + 1) * view->processes[p].pid);
		for (uint32_t tgid = 1; tgid < 50; tgid++)
			if (tgid % 10)
				multiply(blas, tgid);
	}
}

static int setup(void **state)
{
	*state = blas_new(4, SHAPES, false);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	blas_free(*state);
	return 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static void users_share_the_processes(void **state)
{
	enum { SHARE = BLAS_PROCESSES_MAX / 8 * 7 };
	struct traced_users *users = two_users();
	_cleanup_free_ struct blas_view *view = NULL;
	struct blas *blas = blas_new(4, 4, false);

	(void)state;
	assert_non_null(blas);
	blas_share(blas, users);
	for (uint32_t i = 1; i <= BLAS_PROCESSES_MAX; i++)
		multiply(blas, i);
	multiply(blas, OTHER_USERS_PID);
	for (uint32_t i = 1; i <= BLAS_PROCESSES_MAX; i++)
		blas_process_over(blas, i, 0);
	view = blas_window(blas);
	assert_int_equal(view->processes_n, SHARE + 1);
	assert_int_equal(view->processes[SHARE].pid, OTHER_USERS_PID);
	assert_int_equal(view->beyond, BLAS_PROCESSES_MAX - SHARE);
	assert_int_equal(users->shares.used[TRACED_TABLE_BLAS], 1); /* those that have ended are gone */
	blas_free(blas);
	free(users);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(flop_are_added_by_shape_and_precision),
		TEST(shapes_beyond_the_limit_are_in_the_sums),
		TEST(single_precision_is_by_the_math_mode_of_the_handle),
		TEST(sizes_come_from_layouts_or_are_not_known),
		TEST(what_is_not_told_is_counted_as_such),
		TEST(a_process_that_executes_another_program_is_another_one),
		TEST(what_is_said_of_a_predecessor_does_not_end_it),
		TEST(processes_are_bounded),
		TEST(users_share_the_processes),
		TEST(processes_are_found_after_a_window),
	};

	return cmocka_run_group_tests_name("blas", tests, NULL, NULL);
}
