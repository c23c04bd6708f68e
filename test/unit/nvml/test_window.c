// SPDX-License-Identifier: Apache-2.0
#include "near.h"

#include <string.h>

#include "base/macro.h"
#include "nvml/window.h"

#define PERIOD 200000
#define T0 UINT64_C(1700000000000000)

/*
 * What a driver's buffer says of one engine: samples every PERIOD with given percents, the first at `first`.
 */
struct series {
	struct nvml_sample samples[64];
	unsigned n;
};

static void fill(struct series *series, uint64_t first, const uint32_t *percents, unsigned n)
{
	series->n = n;
	for (unsigned i = 0; i < n; i++)
		series->samples[i] =
			(struct nvml_sample){ .timestamp = first + i * PERIOD, .value.as_uint = percents[i] };
}

static struct window_engine engine_of(const struct series *series)
{
	return (struct window_engine){
		.samples = series->samples,
		.n = series->n,
		.newest_us = series->n ? series->samples[series->n - 1].timestamp : 0,
		.period_us = PERIOD,
	};
}

/* Asked when the newest sample is just there. */
static void choose(const struct window_engine engines[ENGINES], uint64_t previous_us, int64_t elapsed_us,
		   int64_t carry_us, struct window *ret_window)
{
	window_choose(engines, engines[ENGINE_GPU].newest_us, previous_us, elapsed_us, carry_us, ret_window);
}

static void first_window_is_one_period(void **state)
{
	struct window_engine engines[ENGINES] = { { .n = 0 } };
	struct series gpu;
	struct window window;
	double max;

	(void)state;
	fill(&gpu, T0, (uint32_t[]){ 100, 100, 100, 50 }, 4);
	engines[ENGINE_GPU] = engine_of(&gpu);
	choose(engines, 0, 0, 0, &window);
	assert_int_equal(window.engines, 1u << ENGINE_GPU);
	assert_int_equal(window.end_us, T0 + 3 * PERIOD);
	assert_int_equal(window.begin_us, T0 + 2 * PERIOD);
	assert_near(window_busy(&engines[ENGINE_GPU], &window, &max), 0.1, 1e-9);
	assert_near(max, 0.5, 1e-9);
}

static void integrates_exactly(void **state)
{
	struct window_engine engines[ENGINES] = { { .n = 0 } };
	struct series gpu;
	struct window window;
	double max;

	(void)state;
	/* 1 s since T0: 10, 20, 30, 40, 100 percent of 0.2 s each. */
	fill(&gpu, T0 + PERIOD, (uint32_t[]){ 10, 20, 30, 40, 100 }, 5);
	engines[ENGINE_GPU] = engine_of(&gpu);
	choose(engines, T0, 1000000, 0, &window);
	assert_int_equal(window.begin_us, T0);
	assert_int_equal(window.end_us, T0 + 1000000);
	assert_near(window_busy(&engines[ENGINE_GPU], &window, &max), 0.4, 1e-9);
	assert_near(max, 1, 1e-9);
}

static void windows_join_without_loss(void **state)
{
	static const uint32_t percents[] = { 80, 10, 90, 30, 70, 20, 60, 40, 50, 100, 0, 100 };
	double sum = 0, observed = 0, busy = 0, max;
	uint64_t previous = T0;
	int64_t carry = 0;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(percents); i++)
		sum += percents[i] * PERIOD * 1e-8;
	/* Read every 1, 2 or 3 samples, in turn. */
	for (unsigned at = 0, step = 1; at < ARRAY_SIZE(percents); at += step, step = step % 3 + 1) {
		unsigned n = MIN(step, (unsigned)ARRAY_SIZE(percents) - at);
		struct window_engine engines[ENGINES] = { { .n = 0 } };
		struct series gpu;
		struct window window;

		fill(&gpu, T0 + (at + 1) * PERIOD, percents + at, n);
		engines[ENGINE_GPU] = engine_of(&gpu);
		choose(engines, previous, n * PERIOD, carry, &window);
		busy += window_busy(&engines[ENGINE_GPU], &window, &max);
		observed += window_seconds(&window);
		previous = window.end_us;
		carry = window.carry_us;
	}
	assert_near(busy, sum, 1e-9);
	assert_near(observed, ARRAY_SIZE(percents) * PERIOD * 1e-6, 1e-9);
}

static void engines_share_the_window(void **state)
{
	struct window_engine engines[ENGINES] = { { .n = 0 } };
	struct series gpu, memory;
	struct window window;
	double max;

	(void)state;
	fill(&gpu, T0 + PERIOD, (uint32_t[]){ 50, 50, 50, 50 }, 4);
	fill(&memory, T0 + PERIOD, (uint32_t[]){ 20, 20 }, 2);
	engines[ENGINE_GPU] = engine_of(&gpu);
	engines[ENGINE_MEMORY] = engine_of(&memory);
	choose(engines, T0, 4 * PERIOD, 0, &window);
	/* As far as the slower one has come; the rest of the faster one's is for next time. */
	assert_int_equal(window.end_us, T0 + 2 * PERIOD);
	assert_near(window_busy(&engines[ENGINE_GPU], &window, &max), 0.2, 1e-9);
	assert_near(window_busy(&engines[ENGINE_MEMORY], &window, &max), 0.08, 1e-9);
}

static void a_sample_is_split_between_windows(void **state)
{
	struct window_engine engines[ENGINES] = { { .n = 0 } };
	struct series gpu, memory;
	struct window first, second;
	double max, busy;

	(void)state;
	fill(&gpu, T0 + PERIOD, (uint32_t[]){ 100 }, 1);
	fill(&memory, T0 + PERIOD / 2, (uint32_t[]){ 0 }, 1);
	engines[ENGINE_GPU] = engine_of(&gpu);
	engines[ENGINE_MEMORY] = engine_of(&memory);
	choose(engines, T0, PERIOD, 0, &first);
	busy = window_busy(&engines[ENGINE_GPU], &first, &max);
	assert_near(busy, 0.1, 1e-9);
	fill(&memory, T0 + PERIOD / 2 + PERIOD, (uint32_t[]){ 0 }, 1);
	engines[ENGINE_MEMORY] = engine_of(&memory);
	choose(engines, first.end_us, PERIOD, first.carry_us, &second);
	assert_int_equal(second.begin_us, first.end_us);
	busy += window_busy(&engines[ENGINE_GPU], &second, &max);
	assert_near(busy, 0.2, 1e-9);
}

static void a_lagging_engine_holds_nobody_up(void **state)
{
	struct window_engine engines[ENGINES] = { { .n = 0 } };
	struct series gpu, memory;
	struct window window;

	(void)state;
	fill(&gpu, T0 + PERIOD, (uint32_t[]){ 50, 50 }, 2);
	fill(&memory, T0 - WINDOW_LAG_US, (uint32_t[]){ 20 }, 1);
	engines[ENGINE_GPU] = engine_of(&gpu);
	engines[ENGINE_MEMORY] = engine_of(&memory);
	choose(engines, T0, 2 * PERIOD, 0, &window);
	assert_int_equal(window.engines, 1u << ENGINE_GPU);
	assert_int_equal(window.end_us, T0 + 2 * PERIOD);
}

static void engines_that_have_fallen_silent_are_left_out(void **state)
{
	struct window_engine engines[ENGINES] = { [ENGINE_GPU] = {
							  .n = 0, .newest_us = T0, .period_us = PERIOD } };
	struct window window;

	(void)state;
	window_choose(engines, T0 + WINDOW_LAG_US, T0, 3000000, 0, &window);
	assert_int_equal(window.engines, 1u << ENGINE_GPU);
	window_choose(engines, T0 + WINDOW_LAG_US + 1, T0, 3000000, 0, &window);
	assert_int_equal(window.engines, 0);
}

static void no_new_sample_no_window(void **state)
{
	struct window_engine engines[ENGINES] = { { .n = 0, .newest_us = T0, .period_us = PERIOD } };
	struct window window;
	double max;

	(void)state;
	choose(engines, T0, 100000, 0, &window);
	assert_int_equal(window.begin_us, window.end_us);
	assert_near(window_seconds(&window), 0, 0);
	assert_near(window_busy(&engines[ENGINE_GPU], &window, &max), 0, 0);
	/* The time is not lost: it may be in the next one. */
	assert_int_equal(window.carry_us, 100000);
}

static void after_a_gap_what_the_buffer_holds(void **state)
{
	struct window_engine engines[ENGINES] = { { .n = 0 } };
	struct series gpu;
	struct window window;
	double max;

	(void)state;
	/* A minute without a reading, and a buffer of 1 s. */
	fill(&gpu, T0 + 59200000, (uint32_t[]){ 100, 100, 100, 100, 100 }, 5);
	engines[ENGINE_GPU] = engine_of(&gpu);
	choose(engines, T0, 60000000, 0, &window);
	assert_near(window_seconds(&window), 1, 1e-9);
	assert_near(window_busy(&engines[ENGINE_GPU], &window, &max), 1, 1e-9);
}

static void a_clock_set_forward_adds_no_time(void **state)
{
	struct window_engine engines[ENGINES] = { { .n = 0 } };
	struct series gpu;
	struct window window;
	double max;

	(void)state;
	/* One second has passed; in its middle the wall clock was set forward by an hour. */
	fill(&gpu, T0 + PERIOD, (uint32_t[]){ 100, 100, 100, 100, 100 }, 5);
	for (unsigned i = 2; i < 5; i++)
		gpu.samples[i].timestamp += UINT64_C(3600000000);
	engines[ENGINE_GPU] = engine_of(&gpu);
	choose(engines, T0, 1000000, 0, &window);
	assert_true(window_seconds(&window) <= 1.2 + 1e-9);
	assert_near(window_busy(&engines[ENGINE_GPU], &window, &max), window_seconds(&window), 1e-9);
	assert_int_equal(window.end_us, gpu.samples[4].timestamp);
}

static void a_clock_set_back_gives_an_empty_window(void **state)
{
	struct window_engine engines[ENGINES] = { { .n = 0 } };
	struct series gpu;
	struct window window;

	(void)state;
	fill(&gpu, T0, (uint32_t[]){ 100 }, 1);
	engines[ENGINE_GPU] = engine_of(&gpu);
	choose(engines, T0 + 500000, 200000, 0, &window);
	assert_int_equal(window.begin_us, T0 + 500000);
	assert_int_equal(window.end_us, T0 + 500000);
}

/* Many small steps forward: what is observed stays what the monotonic clock says. */
static void steps_do_not_add_up(void **state)
{
	uint64_t previous = T0, wall = T0;
	int64_t carry = 0;
	double observed = 0;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		struct window_engine engines[ENGINES] = { { .n = 0 } };
		struct series gpu;
		struct window window;

		wall += 1000000 + 130000; /* 130 ms ahead each second */
		fill(&gpu, wall - 4 * PERIOD, (uint32_t[]){ 10, 10, 10, 10, 10 }, 5);
		engines[ENGINE_GPU] = engine_of(&gpu);
		choose(engines, previous, 1000000, carry, &window);
		observed += window_seconds(&window);
		previous = window.end_us;
		carry = window.carry_us;
	}
	assert_true(observed <= 100 + PERIOD * 1e-6 + 1e-9);
	assert_true(observed >= 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_window_is_one_period),
		cmocka_unit_test(integrates_exactly),
		cmocka_unit_test(windows_join_without_loss),
		cmocka_unit_test(engines_share_the_window),
		cmocka_unit_test(a_sample_is_split_between_windows),
		cmocka_unit_test(a_lagging_engine_holds_nobody_up),
		cmocka_unit_test(engines_that_have_fallen_silent_are_left_out),
		cmocka_unit_test(no_new_sample_no_window),
		cmocka_unit_test(after_a_gap_what_the_buffer_holds),
		cmocka_unit_test(a_clock_set_forward_adds_no_time),
		cmocka_unit_test(a_clock_set_back_gives_an_empty_window),
		cmocka_unit_test(steps_do_not_add_up),
	};

	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
