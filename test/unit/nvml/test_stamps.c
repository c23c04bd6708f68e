// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

#include <string.h>

enum { POWER_INSTANT = 186 };

/* The driver's times of numbers on our clock, whatever its own clock says. */
static const struct reading_stamps *stamps(void)
{
	return &reader->reading->entities[0].stamps;
}

static int64_t age_ms(enum stamped what)
{
	return stamps()->at_ns[what] ? (clock_boot_ns() - stamps()->at_ns[what]) / NSEC_PER_MSEC : -1;
}

static void skewed_pass(int64_t ms)
{
	struct fake_gpu *gpu = &fake.gpus[0];

	clock_advance(ms * NSEC_PER_MSEC);
	gpu->samples_n = 0;
	fake_busy(gpu, 1000, 40);
	for (unsigned i = 0; i < gpu->samples_n; i++)
		gpu->samples[i].timestamp += (uint64_t)(gpu->skew_us - 30000); /* the newest is 30 ms old */
	reader_pass(reader);
}

static int setup(void **state)
{
	int r = fake_setup(state);

	fake_field(&fake.gpus[0], POWER_INSTANT, 0, 100000);
	return r;
}

static void a_skewed_clock_is_measured(void **state)
{
	static const int64_t skews_us[] = { 0, -250123, 400123, -2000123 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(skews_us); i++) {
		fake_teardown(state);
		setup(state);
		fake.gpus[0].skew_us = skews_us[i];
		skewed_pass(0);
		skewed_pass(1000);
		assert_near((double)stamps()->offset_ns, (double)skews_us[i] * 1000, 2000);
		assert_in_range(stamps()->error_ns, 1, 2 * NSEC_PER_MSEC);
		assert_int_equal(stamps()->unusable, 0);
		assert_int_equal(age_ms(STAMPED_POWER_INSTANT), 0);
		/* The mean is of the second that ended with the newest sample. */
		assert_in_range(age_ms(STAMPED_UTILIZATION_GPU), 1029, 1031);
		assert_int_equal(age_ms(STAMPED_UTILIZATION_MEMORY), -1);
	}
}

/* A driver that stamps fields when it last read them: the highest of a few readings counts. */
static void old_values_do_not_mislead(void **state)
{
	(void)state;
	skewed_pass(0);
	fake.gpus[0].field_age_us = 70000;
	skewed_pass(1000);
	assert_near((double)stamps()->offset_ns, 0, 2000);
	assert_in_range(stamps()->error_ns, 70 * NSEC_PER_MSEC, 72 * NSEC_PER_MSEC);
	assert_in_range(age_ms(STAMPED_POWER_INSTANT), 69, 71);
}

static void without_fields_samples_tell(void **state)
{
	(void)state;
	fake.gpus[0].fields[0].result = NVML_ERROR_NOT_SUPPORTED;
	skewed_pass(0);
	skewed_pass(1000);
	assert_near((double)stamps()->offset_ns, -30e6, 2000);
	assert_in_range(stamps()->error_ns, 100 * NSEC_PER_MSEC, 102 * NSEC_PER_MSEC); /* a period */
	assert_int_equal(age_ms(STAMPED_UTILIZATION_GPU), 1000);
}

static void a_clock_that_is_set_is_not_believed_for_a_while(void **state)
{
	static const int64_t steps_us[] = { -3600000000, 7200000000, -1500000 };

	(void)state;
	skewed_pass(0);
	for (size_t i = 0; i < ARRAY_SIZE(steps_us); i++) {
		skewed_pass(1000);
		assert_int_equal(stamps()->unusable, 0);
		fake.gpus[0].skew_us += steps_us[i];
		for (unsigned pass = 0; pass < 3; pass++) {
			skewed_pass(1000);
			assert_int_equal(stamps()->unusable, 1);
			assert_int_equal(age_ms(STAMPED_POWER_INSTANT), -1);
			assert_int_equal(age_ms(STAMPED_UTILIZATION_GPU), -1);
		}
		skewed_pass(1000);
		assert_int_equal(stamps()->unusable, 0);
		assert_int_equal(age_ms(STAMPED_POWER_INSTANT), 0);
		assert_near((double)stamps()->offset_ns, (double)fake.gpus[0].skew_us * 1000, 2000);
	}
}

static void one_that_stands_still_is_not_believed(void **state)
{
	(void)state;
	skewed_pass(0);
	for (unsigned pass = 0; pass < 20; pass++) {
		fake.gpus[0].skew_us -= 1000000;
		skewed_pass(1000);
		assert_true(stamps()->unusable || age_ms(STAMPED_POWER_INSTANT) <= 1001);
	}
	assert_int_equal(stamps()->unusable, 1);
	assert_int_equal(age_ms(STAMPED_POWER_INSTANT), -1);
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	skewed_pass(0);
	fake.gpus[0].skew_us = INT64_MAX / 2;
	skewed_pass(1000);
	assert_int_equal(stamps()->unusable, 1);
	fake.gpus[0].skew_us = 0;
	skewed_pass(1000);
	assert_int_equal(stamps()->unusable, 0);
	fake.gpus[0].lost = true;
	skewed_pass(1000);
	assert_int_equal(stamps()->error_ns, 0);
	assert_int_equal(age_ms(STAMPED_POWER_INSTANT), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_skewed_clock_is_measured, setup, fake_teardown),
		cmocka_unit_test_setup_teardown(old_values_do_not_mislead, setup, fake_teardown),
		cmocka_unit_test_setup_teardown(without_fields_samples_tell, setup, fake_teardown),
		cmocka_unit_test_setup_teardown(a_clock_that_is_set_is_not_believed_for_a_while, setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(one_that_stands_still_is_not_believed, setup, fake_teardown),
		cmocka_unit_test_setup_teardown(nonsense_is_refused, setup, fake_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
