// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/macro.h"
#include "dcgm/family.h"
#include "model/xid.h"

static const struct family *find(const char *name)
{
	return families_find(name, strlen(name));
}

/* Both generations of the contract's names give the contract's unit. */
static void generations_of_names(void **state)
{
	static const struct {
		const char *name;
		double value;
		bool whole;
		enum contract_metric contract;
		double in_contract, in_base;
	} rows[] = {
		{ "DCGM_FI_DEV_GPU_UTIL", 57, true, CONTRACT_gpu_utilization, 57, 0.57 },
		{ "DCGM_FI_DEV_GPU_UTIL_RATIO", 0.57, false, CONTRACT_gpu_utilization, 57, 0.57 },
		{ "DCGM_FI_DEV_GPU_UTIL_RATIO", 57, true, CONTRACT_gpu_utilization, 57, 0.57 }, /* of 4.6 */
		{ "DCGM_FI_DEV_GPU_UTIL_RATIO", 1, false, CONTRACT_gpu_utilization, 100, 1 },
		{ "DCGM_FI_DEV_FB_USED", 2048, true, CONTRACT_framebuffer_used, 2048, 2147483648.0 },
		{ "DCGM_FI_DEV_FB_USED_BYTES", 2147483648.0, true, CONTRACT_framebuffer_used, 2048,
		  2147483648.0 },
		{ "DCGM_FI_DEV_SM_CLOCK", 1980, true, CONTRACT_sm_clock, 1980, 1980e6 },
		{ "DCGM_FI_DEV_SM_CLOCK_HERTZ", 1980e6, true, CONTRACT_sm_clock, 1980, 1980e6 },
		{ "DCGM_FI_DEV_POWER_USAGE", 412.533, false, CONTRACT_power_usage, 412.533, 412.533 },
		{ "DCGM_FI_DEV_BOARD_POWER_WATTS", 412.533, false, CONTRACT_power_usage, 412.533, 412.533 },
		{ "DCGM_FI_PROF_SM_ACTIVE", 0.25, false, CONTRACT_sm_active, 0.25, 0.25 },
		{ "DCGM_FI_PROF_SM_UTIL_RATIO", 0.25, false, CONTRACT_sm_active, 0.25, 0.25 },
		{ "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 4, true, CONTRACT_clocks_event_reasons, 4, 4 },
		{ "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 4, true, CONTRACT_clocks_event_reasons, 4, 4 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct family *family = find(rows[i].name);

		if (!family || family->contract != rows[i].contract ||
		    family_contract_value(family, rows[i].value, rows[i].whole) != rows[i].in_contract ||
		    family_base_value(family, rows[i].value, rows[i].whole) != rows[i].in_base)
			fail_msg("%s", rows[i].name);
	}
}

static void every_number_of_the_contract_is_read(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CONTRACT_METRICS; i++) {
		assert_non_null(find(contract_rows[i].name));
		assert_int_equal(find(contract_rows[i].name)->contract, i);
	}
	assert_int_equal(find("DCGM_FI_DEV_XID_ERRORS")->kind, FAMILY_XID);
	assert_int_equal(find("DCGM_FI_DEV_XID_ERROR")->contract, CONTRACT_xid_errors);
}

static void and_what_only_the_model_has(void **state)
{
	const struct family *energy = find("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION");

	(void)state;
	assert_non_null(energy);
	assert_int_equal(energy->contract, CONTRACT_METRICS);
	assert_ptr_equal(energy->metric, &gpu_metrics[GPU_ENERGY]);
	assert_true(family_base_value(energy, 5000, true) == 5);
	assert_null(find("DCGM_EXP_XID_ERRORS_COUNT"));
	assert_null(find("go_goroutines"));
	assert_null(find(""));
}

/* By any of its names; what is no number of a GPU stays. */
static void left_out(void **state)
{
	uint8_t out[FAMILY_NUMBERS] = { 0 };

	(void)state;
	out[find("DCGM_FI_DEV_FB_USED")->metric - gpu_metrics] = 1;
	families_leave_out(out);
	assert_null(find("DCGM_FI_DEV_FB_USED"));
	assert_null(find("DCGM_FI_DEV_FB_USED_BYTES"));
	assert_non_null(find("DCGM_FI_DEV_GPU_UTIL"));
	assert_non_null(find(DCGM_XID_OLD));
	memset(out, 1, sizeof(out));
	families_leave_out(out);
	assert_null(find("DCGM_FI_DEV_GPU_UTIL"));
	assert_null(find(DCGM_XID_OLD));
	assert_null(find(DCGM_XID_49));
	assert_non_null(find("gpusonde_node_info"));
	memset(out, 0, sizeof(out));
	families_leave_out(out);
	assert_non_null(find("DCGM_FI_DEV_FB_USED"));
}

static int setup(void **state)
{
	(void)state;
	return families_init();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generations_of_names),
		cmocka_unit_test(every_number_of_the_contract_is_read),
		cmocka_unit_test(and_what_only_the_model_has),
		cmocka_unit_test(left_out),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
