// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <math.h>

#include "model/nccl_measured.h"

static void bandwidths(void **state)
{
	struct nccl_measured row = { .operation = NCCL_ALL_REDUCE, .traffic = 8000, .bus_traffic = 14000 };

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
		cmocka_unit_test(references),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
