// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

/* Busy and observed seconds over `n` passes a second apart, each preceded by a second at `percent`. */
static void run(unsigned n, uint32_t percent, double *busy, double *observed)
{
	for (unsigned i = 0; i < n; i++) {
		fake.gpus[0].samples_n = 0;
		clock_advance(NSEC_PER_SEC);
		fake_busy(&fake.gpus[0], 1000, percent);
		pass_after(0);
		*busy += VALUE(0, BUSY_GPU);
		*observed += VALUE(0, OBSERVED);
	}
}

static void integrates_the_drivers_samples(void **state)
{
	double busy = 0, observed = 0;

	(void)state;
	pass_after(0);
	run(1, 50, &busy, &observed); /* the first window is one sample long */
	assert_near(observed, 0.1, 1e-9);
	busy = observed = 0;
	run(10, 40, &busy, &observed);
	run(10, 80, &busy, &observed);
	assert_near(observed, 20, 1e-9);
	assert_near(busy, 12, 1e-9);
	assert_near(VALUE(0, UTILIZATION_GPU), 0.8, 1e-9);
	assert_near(VALUE(0, UTILIZATION_MAX_GPU), 0.8, 1e-9);
	assert_int_equal(PRESENCE(0, BUSY_GPU), PRESENCE_PRESENT);
}

static void what_was_before_the_agent_is_not_counted(void **state)
{
	(void)state;
	clock_advance(20 * NSEC_PER_SEC);
	fake_busy(&fake.gpus[0], 20000, 100);
	pass_after(0);
	assert_near(VALUE(0, OBSERVED), 0.1, 1e-9);
	assert_near(VALUE(0, BUSY_GPU), 0.1, 1e-9);
}

static void short_ticks_keep_the_newest_ratio(void **state)
{
	double busy = 0, observed = 0;

	(void)state;
	run(2, 70, &busy, &observed);
	pass_after(50);
	assert_near(VALUE(0, BUSY_GPU), 0, 0);
	assert_near(VALUE(0, OBSERVED), 0, 0);
	assert_near(VALUE(0, UTILIZATION_GPU), 0.7, 1e-9);
	assert_int_equal(PRESENCE(0, UTILIZATION_GPU), PRESENCE_PRESENT);
}

/* As the driver of Hopper boards, which takes milliseconds of CPU time for an answer. */
static void costly_samples_are_read_less_often(void **state)
{
	double busy = 0, observed = 0;
	unsigned calls;

	(void)state;
	run(2, 50, &busy, &observed);
	busy = observed = 0;
	fake.gpus[0].samples_cost_ns = 2 * NSEC_PER_MSEC;
	fake.gpus[0].samples_n = 0;
	fake.gpus[0].rate_gpu = 70; /* the driver's newest ratio, when samples are not asked for */
	calls = fake.gpus[0].samples_calls;
	for (unsigned i = 0; i < 16; i++) {
		clock_advance(NSEC_PER_SEC);
		fake_busy(&fake.gpus[0], 1000, 50);
		pass_after(0);
		busy += VALUE(0, BUSY_GPU);
		observed += VALUE(0, OBSERVED);
		assert_near(VALUE(0, UTILIZATION_GPU), VALUE(0, OBSERVED) > 0 ? 0.5 : 0.7, 1e-9);
		assert_int_equal(PRESENCE(0, UTILIZATION_GPU), PRESENCE_PRESENT);
		assert_int_equal(PRESENCE(0, UTILIZATION_MAX_GPU), PRESENCE_PRESENT);
		assert_int_equal(PRESENCE(0, BUSY_GPU), PRESENCE_PRESENT);
	}
	/* In the first second, and then at most every two seconds and at least every five. */
	calls = fake.gpus[0].samples_calls - calls;
	assert_in_range(calls, 1 + 15 / 5, 1 + 15 / 2);
	assert_true(observed >= 11);
	/* Nothing of it is lost, and with cheap calls each pass reads again. */
	fake.gpus[0].samples_cost_ns = 0;
	for (unsigned i = 0; i < 6; i++) {
		calls = fake.gpus[0].samples_calls;
		clock_advance(NSEC_PER_SEC);
		fake_busy(&fake.gpus[0], 1000, 50);
		pass_after(0);
		busy += VALUE(0, BUSY_GPU);
		observed += VALUE(0, OBSERVED);
	}
	assert_int_equal(fake.gpus[0].samples_calls, calls + 1);
	assert_near(observed, 16 + 6, 1e-9);
	assert_near(busy, observed / 2, 1e-9);
}

static void nothing_is_counted_twice_over_a_reattachment(void **state)
{
	double busy = 0, observed = 0;

	(void)state;
	run(3, 50, &busy, &observed);
	busy = observed = 0;
	fake.gone = true;
	pass_after(1000);
	fake_busy(&fake.gpus[0], 1000, 50);
	for (unsigned i = 0; i < 2; i++) {
		clock_advance(NSEC_PER_SEC);
		fake_busy(&fake.gpus[0], 1000, 50);
		pass_after(0);
		busy += VALUE(0, BUSY_GPU);
		observed += VALUE(0, OBSERVED);
	}
	/* The three seconds since the last good reading, all of them still in the driver's buffer, once. */
	assert_int_equal(reader->reading->state, READING_OK);
	assert_near(observed, 3, 1e-9);
	assert_near(busy, 1.5, 1e-9);
}

static void a_pass_that_came_to_nothing_counts_nothing(void **state)
{
	double busy = 0, observed = 0;
	uint64_t window;

	(void)state;
	run(3, 50, &busy, &observed);
	window = reader->shared->states[0].window_us;
	/* The GPU is read, then the driver goes while the second one is. */
	fake_busy(&fake.gpus[0], 1000, 50);
	clock_advance(NSEC_PER_SEC);
	fake.gone = true;
	pass_after(0);
	assert_int_equal(reader->shared->states[0].window_us, window);
}

static void the_clock_set_back_starts_anew(void **state)
{
	double busy = 0, observed = 0;

	(void)state;
	run(3, 50, &busy, &observed);
	/* As if the state came from an hour ahead. */
	reader->devices[0].work.window_us += UINT64_C(3600000000);
	run(1, 60, &busy, &observed);
	assert_near(VALUE(0, OBSERVED), 0.1, 1e-9);
	run(1, 60, &busy, &observed);
	assert_near(VALUE(0, OBSERVED), 1, 1e-9);
	assert_near(VALUE(0, BUSY_GPU), 0.6, 1e-9);
}

/* What was before the step is no hour that was observed: no more than what has passed, to a sample. */
static void the_clock_set_forward_adds_no_time(void **state)
{
	const uint64_t hour_us = UINT64_C(3600000000);
	double busy = 0, observed = 0;

	(void)state;
	run(3, 50, &busy, &observed);
	/* As if the state came from an hour before. */
	reader->devices[0].work.window_us -= hour_us;
	for (int i = 0; i < ENGINES; i++)
		if (reader->devices[0].newest_us[i])
			reader->devices[0].newest_us[i] -= hour_us;
	busy = observed = 0;
	run(4, 60, &busy, &observed);
	assert_near(observed, 4, 0.101);
	assert_near(busy, 0.6 * observed, 1e-9);
	assert_int_equal(PRESENCE(0, BUSY_GPU), PRESENCE_PRESENT);
}

/* Its samples are of no window of ours: its newest ratio is told, and what is made of that is an estimate. */
static void a_driver_whose_clock_is_far_behind(void **state)
{
	double busy = 0, observed = 0;

	(void)state;
	fake.gpus[0].rate_gpu = 30;
	for (unsigned i = 0; i < 4; i++) {
		clock_advance(NSEC_PER_SEC);
		fake.gpus[0].samples_n = 0;
		fake_busy(&fake.gpus[0], 1000, 30);
		for (unsigned k = 0; k < fake.gpus[0].samples_n; k++)
			fake.gpus[0].samples[k].timestamp -= 10000000;
		pass_after(0);
		busy += VALUE(0, BUSY_GPU);
		observed += VALUE(0, OBSERVED);
	}
	assert_near(VALUE(0, UTILIZATION_GPU), 0.3, 1e-9);
	assert_int_equal(PRESENCE(0, UTILIZATION_GPU), PRESENCE_PRESENT);
	assert_int_equal(PRESENCE(0, BUSY_GPU), PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	assert_near(observed, 3, 1e-9); /* since the first */
	assert_near(busy, 0.9, 1e-9);
}

static void impossible_samples_are_refused(void **state)
{
	double busy = 0, observed = 0;

	(void)state;
	run(3, 50, &busy, &observed);
	clock_advance(NSEC_PER_SEC);
	fake.gpus[0].samples_n = 0;
	fake_busy(&fake.gpus[0], 1000, 50);
	fake.gpus[0].samples[4].value.as_uint = UINT32_MAX;
	fake.gpus[0].samples[9].timestamp += UINT64_C(3600000000); /* from the future */
	pass_after(0);
	assert_int_equal(reader->reading->rejected[GPU_UTILIZATION_GPU], 1);
	assert_near(VALUE(0, OBSERVED), 0.9, 1e-9);
	assert_near(VALUE(0, BUSY_GPU), 0.45, 1e-9);
}

/* More samples than there is room for: what they are, nobody knows. */
static void claims_beyond_the_buffer_are_refused(void **state)
{
	double busy = 0, observed = 0;

	(void)state;
	run(3, 50, &busy, &observed);
	fake.gpus[0].samples_claim = 5000;
	run(1, 50, &busy, &observed);
	assert_int_equal(reader->reading->rejected[GPU_UTILIZATION_GPU], 1);
	assert_near(VALUE(0, OBSERVED), 0, 0);
	assert_near(VALUE(0, BUSY_GPU), 0, 0);
}

static void rates_where_there_are_no_samples(void **state)
{
	(void)state;
	fake.gpus[0].samples_result = NVML_ERROR_NOT_SUPPORTED;
	fake.gpus[0].rate_gpu = 30;
	pass_after(0);
	assert_near(VALUE(0, OBSERVED), 0, 0);
	assert_near(VALUE(0, UTILIZATION_GPU), 0.3, 1e-9);
	pass_after(2000);
	assert_near(VALUE(0, OBSERVED), 2, 1e-9);
	assert_near(VALUE(0, BUSY_GPU), 0.6, 1e-9);
	assert_int_equal(PRESENCE(0, BUSY_GPU), PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	assert_int_equal(PRESENCE(0, BUSY_ENCODER), PRESENCE_UNSUPPORTED);
	assert_int_equal(PRESENCE(0, UTILIZATION_MAX_GPU), PRESENCE_UNSUPPORTED);
}

static void engines_without_samples_share_the_window(void **state)
{
	double busy = 0, observed = 0;

	(void)state;
	fake.gpus[0].rate_gpu = 40; /* of which the memory's rate is half */
	run(3, 90, &busy, &observed);
	assert_near(VALUE(0, BUSY_GPU), 0.9, 1e-9);
	assert_near(VALUE(0, BUSY_MEMORY), 0.2, 1e-9);
	assert_int_equal(PRESENCE(0, BUSY_GPU), PRESENCE_PRESENT);
	assert_int_equal(PRESENCE(0, BUSY_MEMORY), PRESENCE_PRESENT | PRESENCE_ESTIMATED);
}

static void gpm_tells_the_rest(void **state)
{
	(void)state;
	fake.gpus[0].gpm = true;
	fake.gpus[0].gpm_percent = 25;
	pass_after(0);
	assert_false(presence_is(PRESENCE(0, SM_ACTIVE)));
	pass_after(1000);
	assert_near(VALUE(0, SM_ACTIVE), 0.25, 1e-9);
	assert_int_equal(PRESENCE(0, GRAPHICS_ACTIVE), PRESENCE_PRESENT);
	assert_near(VALUE(0, PCIE_TX_RATE), 25.0 * 1048576, 1e-6);
	/* Its NaN is no number, and one metric's error is that metric's alone. */
	assert_int_equal(PRESENCE(0, PIPE_FP32), PRESENCE_ABSENT);
	assert_int_equal(PRESENCE(0, PIPE_FP16), PRESENCE_UNSUPPORTED);
	/* A little more than all is all; much more is nonsense. */
	fake.gpus[0].gpm_percent = 100.4;
	pass_after(1000);
	assert_near(VALUE(0, SM_ACTIVE), 1, 0);
	fake.gpus[0].gpm_percent = 400;
	pass_after(1000);
	assert_int_equal(PRESENCE(0, SM_ACTIVE), PRESENCE_REJECTED);
}

static void samples_of_gpm_need_time_between_them(void **state)
{
	(void)state;
	fake.gpus[0].gpm = true;
	fake.gpus[0].gpm_percent = 25;
	pass_after(0);
	pass_after(1000);
	fake.gpus[0].gpm_percent = 75;
	pass_after(60);
	assert_near(VALUE(0, SM_ACTIVE), 0.25, 1e-9);
	assert_int_equal(PRESENCE(0, SM_ACTIVE), PRESENCE_PRESENT);
	pass_after(60);
	assert_near(VALUE(0, SM_ACTIVE), 0.75, 1e-9);
}

static void without_gpm_utilisation_is_an_estimate_of_activity(void **state)
{
	double busy = 0, observed = 0;

	(void)state;
	run(2, 35, &busy, &observed);
	assert_int_equal(PRESENCE(0, SM_ACTIVE), PRESENCE_UNSUPPORTED);
	assert_int_equal(PRESENCE(0, GRAPHICS_ACTIVE), PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	assert_near(VALUE(0, GRAPHICS_ACTIVE), 0.35, 1e-9);
}

static void energy_is_the_counter_or_the_integral(void **state)
{
	(void)state;
	fake.gpus[0].energy_mj = 5000;
	pass_after(0);
	assert_near(VALUE(0, ENERGY), 5, 1e-9);
	assert_int_equal(PRESENCE(0, ENERGY), PRESENCE_PRESENT);
	/* A failure is no reason to mix the two. */
	fake.gpus[0].energy_result = NVML_ERROR_UNKNOWN;
	pass_after(1000);
	assert_int_equal(PRESENCE(0, ENERGY), PRESENCE_FAILED);
}

static void energy_without_a_counter_is_estimated(void **state)
{
	double before;

	(void)state;
	fake.gpus[0].energy_result = NVML_ERROR_NOT_SUPPORTED;
	pass_after(0);
	assert_int_equal(PRESENCE(0, ENERGY), PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	fake.gpus[0].power_mw = 300000;
	pass_after(2000);
	assert_near(VALUE(0, ENERGY), 400, 1e-6); /* 100 W to 300 W in 2 s */
	before = VALUE(0, ENERGY);
	/* It survives a reattachment, and goes on. */
	fake.gone = true;
	pass_after(1000);
	pass_after(1000);
	assert_near(VALUE(0, ENERGY), before + 600, 1e-6);
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(integrates_the_drivers_samples),
		TEST(what_was_before_the_agent_is_not_counted),
		TEST(short_ticks_keep_the_newest_ratio),
		TEST(costly_samples_are_read_less_often),
		TEST(nothing_is_counted_twice_over_a_reattachment),
		TEST(a_pass_that_came_to_nothing_counts_nothing),
		TEST(the_clock_set_back_starts_anew),
		TEST(the_clock_set_forward_adds_no_time),
		TEST(a_driver_whose_clock_is_far_behind),
		TEST(impossible_samples_are_refused),
		TEST(claims_beyond_the_buffer_are_refused),
		TEST(rates_where_there_are_no_samples),
		TEST(engines_without_samples_share_the_window),
		TEST(gpm_tells_the_rest),
		TEST(samples_of_gpm_need_time_between_them),
		TEST(without_gpm_utilisation_is_an_estimate_of_activity),
		TEST(energy_is_the_counter_or_the_integral),
		TEST(energy_without_a_counter_is_estimated),
	};

	return cmocka_run_group_tests_name("utilization", tests, NULL, NULL);
}
