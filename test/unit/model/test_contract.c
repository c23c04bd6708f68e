// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "model/contract.h"

static double factor_of(const char *name, enum contract_metric expected)
{
	enum contract_metric found = CONTRACT_METRICS;
	double factor = 0;

	if (contract_find(name, strlen(name), &found, &factor) < 0)
		fail_msg("%s is not found", name);
	assert_int_equal(found, expected);
	return factor;
}

static void every_metric_is_found_by_its_name(_unused_ void **state)
{
	assert_int_equal(CONTRACT_METRICS, 28);
	for (unsigned i = 0; i < CONTRACT_METRICS; i++) {
		const struct contract_row *row = &contract_rows[i];
		const struct metric *source = contract_source(i);

		assert_float_equal(factor_of(row->name, i), 1, 0);
		if (row->also)
			assert_float_equal(factor_of(row->also, i), 1, 0);
		assert_int_equal(source == NULL, i == CONTRACT_xid_errors);
		if (source)
			assert_string_equal(source->dcgm.name, row->name);
	}
}

static void names_of_the_second_generation_have_other_units(_unused_ void **state)
{
	assert_float_equal(factor_of("DCGM_FI_DEV_FB_USED_BYTES", CONTRACT_framebuffer_used), 1.0 / 1048576,
			   0);
	assert_float_equal(factor_of("DCGM_FI_DEV_FB_CAPACITY_BYTES", CONTRACT_framebuffer_total),
			   1.0 / 1048576, 0);
	assert_float_equal(factor_of("DCGM_FI_DEV_GPU_UTIL_RATIO", CONTRACT_gpu_utilization), 100, 0);
	assert_float_equal(factor_of("DCGM_FI_DEV_SM_CLOCK_HERTZ", CONTRACT_sm_clock), 1e-6, 0);
	assert_float_equal(
		factor_of("DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", CONTRACT_power_violation), 1e9, 0);
	assert_float_equal(factor_of("DCGM_FI_PROF_SM_UTIL_RATIO", CONTRACT_sm_active), 1, 0);
	assert_float_equal(factor_of("DCGM_FI_DEV_XID_ERROR", CONTRACT_xid_errors), 1, 0);
	assert_float_equal(factor_of("DCGM_FI_PROF_PCIE_TX_BYTES", CONTRACT_pcie_tx_bytes), 1, 0);
}

static void other_names_are_not_found(_unused_ void **state)
{
	static const struct {
		const char *name;
		size_t length;
	} names[] = {
		{ "", 0 },
		{ "DCGM_FI_DEV_FB_USE", 18 },
		{ "DCGM_FI_DEV_FB_USED_", 20 },
		{ "DCGM_FI_DEV_FB_USED\0x", 21 },
		{ "DCGM_FI_DEV_XID_ERRORS\0", 23 },
		{ "dcgm_fi_dev_fb_used", 19 },
		/* in metrics.def, but not in the page */
		{ "DCGM_FI_DEV_FB_RESERVED", 23 },
	};
	enum contract_metric found;
	double factor;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(contract_find(names[i].name, names[i].length, &found, &factor), -ENOENT);
}

/* The name need not end: it is a part of a page. */
static void only_the_length_counts(_unused_ void **state)
{
	enum contract_metric found;
	double factor;

	assert_int_equal(contract_find("DCGM_FI_DEV_GPU_TEMP{gpu=", 20, &found, &factor), 0);
	assert_int_equal(found, CONTRACT_temperature);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_metric_is_found_by_its_name),
		cmocka_unit_test(names_of_the_second_generation_have_other_units),
		cmocka_unit_test(other_names_are_not_found),
		cmocka_unit_test(only_the_length_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
