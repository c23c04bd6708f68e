// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <math.h>

#include "model/nccl_measured.h"

static void bandwidths(void **state)
{
	struct nccl_measured row = {
		.operation = NCCL_ALL_REDUCE, .ranks = 8, .traffic = 8000, .bus_traffic = 14000
	};

	(void)state;
	assert_true(isnan(nccl_algorithm_bandwidth(&row)));
	assert_true(isnan(nccl_bus_bandwidth(&row)));
	row.seconds = 2;
	assert_float_equal(nccl_algorithm_bandwidth(&row), 4000, 1e-6);
	assert_float_equal(nccl_bus_bandwidth(&row), 7000, 1e-6);
	assert_string_equal(nccl_measured_operation(&row), "all_reduce");
	row.operation = NCCL_OPERATIONS;
	assert_string_equal(nccl_measured_operation(&row), "other");
}

static void sums_saturate(void **state)
{
	struct nccl_measured to = { .calls = 1, .channels = 2, .traffic = UINT64_MAX - 1 };
	const struct nccl_measured row = {
		.calls = 2, .channels = 1, .traffic = 5, .seconds = 0.5, .host_timed = 1
	};

	(void)state;
	nccl_measured_add(&to, &row);
	assert_int_equal(to.calls, 3);
	assert_int_equal(to.channels, 2);
	assert_true(to.traffic == UINT64_MAX);
	assert_int_equal(to.host_timed, 1);
}

static void totals_are_bounded(void **state)
{
	struct nccl_totals totals = { 0 }, sum = { 0 };
	const struct nccl_measured row = { .calls = 1, .timed = 1 };

	(void)state;
	for (uint32_t ranks = 0; ranks < NCCL_TOTALS_MAX + 10; ranks++)
		nccl_measured_add(nccl_totals_row(&totals, NCCL_SEND, ranks), &row);
	assert_int_equal(totals.n, NCCL_TOTALS_MAX);
	assert_int_equal(totals.rows[1].ranks, 1);
	assert_int_equal(totals.rows[1].calls, 1);
	assert_int_equal(totals.rows[NCCL_TOTALS_MAX - 1].operation, NCCL_OPERATIONS);
	assert_int_equal(totals.rows[NCCL_TOTALS_MAX - 1].calls, 11);
	/* Without ranks it is in no bandwidth. */
	assert_int_equal(totals.rows[0].timed, 1);
	assert_int_equal(totals.rows[NCCL_TOTALS_MAX - 1].timed, 0);
	/* Wherever the row of the others stands. */
	nccl_totals_row(&sum, NCCL_OPERATIONS, NCCL_RANKS_OTHER);
	totals.lost = 2;
	nccl_totals_add(&sum, &totals);
	nccl_totals_add(&sum, &totals);
	assert_int_equal(sum.n, NCCL_TOTALS_MAX);
	assert_int_equal(sum.rows[0].calls, 22);
	assert_int_equal(nccl_totals_row(&sum, NCCL_SEND, NCCL_TOTALS_MAX - 2)->calls, 2);
	assert_int_equal(sum.lost, 4);
}

static void references(void **state)
{
	const struct nccl_measured row = { .pid = 7 };
	struct nccl_measurements *m = nccl_measurements_new(&row, 1);

	(void)state;
	assert_non_null(m);
	assert_ptr_equal(nccl_measurements_ref(m), m);
	nccl_measurements_unref(m);
	assert_int_equal(m->rows[0].pid, 7);
	nccl_measurements_unref(m);
	nccl_measurements_unref(NULL);
	assert_null(nccl_measurements_ref(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bandwidths),
		cmocka_unit_test(sums_saturate),
		cmocka_unit_test(totals_are_bounded),
		cmocka_unit_test(references),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
