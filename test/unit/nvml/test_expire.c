// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

static struct fake_gpu *const gpu = &fake.gpus[0];

static void seconds_at(unsigned n, uint32_t percent)
{
	for (unsigned i = 0; i < n; i++) {
		gpu->samples_n = 0;
		clock_advance(NSEC_PER_SEC);
		fake_busy(gpu, 1000, percent);
		pass_after(0);
	}
}

/*
 * The driver has no samples any more, and keeps saying so: first the newest ratio holds, then its rates are
 * taken.
 */
static void samples_that_dry_up(void **state)
{
	static const enum nvml_return ways[] = { NVML_ERROR_UNKNOWN, NVML_ERROR_NOT_FOUND };

	(void)state;
	gpu->rate_gpu = 20;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		gpu->samples_result = NVML_SUCCESS;
		seconds_at(3, 90);
		assert_near(VALUE(0, UTILIZATION_GPU), 0.9, 1e-9);
		assert_int_equal(PRESENCE(0, UTILIZATION_MAX_GPU), PRESENCE_PRESENT);
		gpu->samples_result = ways[i];
		pass_after(1000);
		assert_near(VALUE(0, UTILIZATION_GPU), 0.9, 1e-9);
		assert_int_equal(PRESENCE(0, UTILIZATION_GPU), PRESENCE_PRESENT);
		/* Nothing new is not nothing known: the sums stay on show. */
		assert_int_equal(PRESENCE(0, BUSY_GPU), PRESENCE_PRESENT);
		assert_near(VALUE(0, BUSY_GPU), 0, 0);
		for (unsigned j = 0; j < 3; j++)
			pass_after(1000);
		assert_near(VALUE(0, UTILIZATION_GPU), 0.2, 1e-9);
		assert_int_equal(PRESENCE(0, UTILIZATION_MAX_GPU), PRESENCE_UNSUPPORTED);
		assert_int_equal(PRESENCE(0, BUSY_GPU), PRESENCE_PRESENT | PRESENCE_ESTIMATED);
		assert_near(VALUE(0, GRAPHICS_ACTIVE), 0.2, 1e-9);
	}
}

/* Samples and rates fail: nothing is known of utilisation, nor of what is derived from it. */
static void nothing_is_left_when_rates_fail_too(void **state)
{
	(void)state;
	seconds_at(3, 90);
	assert_int_equal(PRESENCE(0, GRAPHICS_ACTIVE), PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	gpu->samples_result = NVML_ERROR_UNKNOWN;
	gpu->mig = true; /* so that this driver refuses rates */
	for (unsigned j = 0; j < 4; j++)
		pass_after(1000);
	assert_int_equal(PRESENCE(0, UTILIZATION_GPU), PRESENCE_UNSUPPORTED);
	assert_int_equal(PRESENCE(0, GRAPHICS_ACTIVE), PRESENCE_ABSENT);
	assert_int_equal(PRESENCE(0, DRAM_ACTIVE), PRESENCE_ABSENT);
}

static void fail_fields(void)
{
	for (unsigned i = 0; i < gpu->fields_n; i++)
		gpu->fields[i].result = NVML_ERROR_UNKNOWN;
}

static void rates_of_counters_that_fail(void **state)
{
	(void)state;
	for (uint64_t kib = 0; kib < 3; kib++) {
		fake_field(gpu, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, UINT32_MAX, 1000 * kib);
		fake_field(gpu, NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0, 1000 * kib);
		pass_after(1000);
	}
	assert_near(VALUE(0, NVLINK_TX_RATE), 1024000, 1e-6);
	assert_near(VALUE(0, PCIE_TX_RATE), 1000, 1e-6);
	fail_fields();
	pass_after(1000);
	assert_int_equal(PRESENCE(0, NVLINK_TX_BYTES), PRESENCE_FAILED);
	assert_int_equal(PRESENCE(0, NVLINK_TX_RATE), PRESENCE_ABSENT);
	assert_int_equal(PRESENCE(0, PCIE_TX_RATE), PRESENCE_ABSENT);
}

static void sums_of_links_that_fail(void **state)
{
	(void)state;
	for (uint64_t kib = 0; kib < 3; kib++) {
		fake_field(gpu, NVML_FI_DEV_NVLINK_LINK_COUNT, 0, 1);
		fake_field(gpu, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 0, 1000 * kib);
		pass_after(1000);
	}
	assert_near(VALUE(0, NVLINK_TX_RATE), 1024000, 1e-6);
	fail_fields();
	for (unsigned i = 0; i < 11; i++)
		pass_after(1000);
	assert_int_equal(PRESENCE(0, NVLINK_TX_BYTES), PRESENCE_FAILED);
	assert_int_equal(PRESENCE(0, NVLINK_TX_RATE), PRESENCE_ABSENT);
}

/* What GPM told is not taken for what the counter was in the pass before. */
static void a_rate_spans_one_pass_only(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		fake_field(gpu, NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0, 1000 * i);
		pass_after(1000);
	}
	gpu->gpm = true;
	pass_after(400000);
	for (uint64_t i = 3; i < 6; i++) {
		fake_field(gpu, NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0, 1000 * i);
		pass_after(1000);
	}
	gpu->gpm_result = NVML_ERROR_UNKNOWN;
	fake_field(gpu, NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0, 6000);
	pass_after(1000);
	assert_near(VALUE(0, PCIE_TX_RATE), 1000, 1e-6);
}

static void fans_that_are_not_counted_any_more(void **state)
{
	(void)state;
	gpu->fans_n = 3;
	pass_after(0);
	assert_near(reader->reading->entities[0].v[SLOT_FAN_SPEED + 2], 0.32, 1e-9);
	gpu->fans_n = 2;
	pass_after(1000);
	assert_int_equal(PRESENCE(0, FAN_SPEED + 1), PRESENCE_PRESENT);
	assert_int_equal(PRESENCE(0, FAN_SPEED + 2), PRESENCE_ABSENT);
	gpu->fans_result = NVML_ERROR_UNKNOWN;
	pass_after(1000);
	assert_int_equal(PRESENCE(0, FAN_SPEED), PRESENCE_FAILED);
	assert_int_equal(PRESENCE(0, FAN_SPEED + 1), PRESENCE_ABSENT);
}

/* One of the two is not offered: the other is read on. */
static void application_clocks_one_by_one(void **state)
{
	(void)state;
	gpu->application_mhz = 1000;
	gpu->application_memory_result = NVML_ERROR_NOT_SUPPORTED;
	pass_after(0);
	gpu->application_mhz = 1500;
	pass_after(11000);
	assert_near(VALUE(0, CLOCK_APPLICATION_GRAPHICS), 1.5e9, 0);
	assert_int_equal(PRESENCE(0, CLOCK_APPLICATION_MEMORY), PRESENCE_UNSUPPORTED);
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(samples_that_dry_up),           TEST(nothing_is_left_when_rates_fail_too),
		TEST(rates_of_counters_that_fail),   TEST(sums_of_links_that_fail),
		TEST(a_rate_spans_one_pass_only),    TEST(fans_that_are_not_counted_any_more),
		TEST(application_clocks_one_by_one),
	};

	return cmocka_run_group_tests_name("expire", tests, NULL, NULL);
}
