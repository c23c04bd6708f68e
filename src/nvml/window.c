// SPDX-License-Identifier: Apache-2.0
#include "nvml/window.h"

#include "base/macro.h"

/*
 * If the first sample is this many periods after the last window's end, the buffer has lost samples in
 * between.
 */
#define GAP_PERIODS 3

static uint64_t newest_of_all(const struct window_engine engines[ENGINES])
{
	uint64_t newest = 0;

	for (int i = 0; i < ENGINES; i++)
		newest = MAX(newest, engines[i].newest_us);
	return newest;
}

/* Chooses the engines that have recent samples, and the time that all of them have reached. */
static void choose_end(const struct window_engine engines[ENGINES], uint64_t now_us, struct window *window)
{
	uint64_t newest = newest_of_all(engines), latest = MAX(newest, now_us);

	window->engines = 0;
	window->end_us = newest;
	for (int i = 0; i < ENGINES; i++) {
		if (!engines[i].newest_us || latest - engines[i].newest_us > (uint64_t)WINDOW_LAG_US)
			continue;
		window->engines |= 1u << i;
		window->end_us = MIN(window->end_us, engines[i].newest_us);
	}
}

/* Begin of the interval covered by the sample that reaches `end`. */
static uint64_t newest_begin(const struct window_engine *engine, uint64_t end_us)
{
	uint64_t before = 0;

	for (unsigned i = 0; i < engine->n; i++) {
		uint64_t at = engine->samples[i].timestamp;

		if (at >= end_us)
			return before && at - before <= 2 * engine->period_us ?
				       before :
				       at - MIN(at, engine->period_us);
		before = at;
	}
	return end_us;
}

/*
 * Begin of the first sample after a gap; samples are missing if the buffer is too small for the time between
 * two readings.
 */
static uint64_t after_gap(const struct window_engine *engine, uint64_t begin_us)
{
	uint64_t first;

	if (engine->n == 0)
		return begin_us;
	first = engine->samples[0].timestamp;
	return first > begin_us + GAP_PERIODS * engine->period_us ? first - engine->period_us : begin_us;
}

static uint64_t choose_begin(const struct window_engine engines[ENGINES], uint64_t previous_us,
			     const struct window *window)
{
	uint64_t begin = previous_us;

	for (int i = 0; i < ENGINES; i++) {
		if (!(window->engines & 1u << i))
			continue;
		begin = MAX(begin, previous_us ? after_gap(&engines[i], begin) :
						 newest_begin(&engines[i], window->end_us));
	}
	return MIN(begin, window->end_us);
}

static int64_t longest_period(const struct window_engine engines[ENGINES], unsigned mask)
{
	uint64_t longest = 0;

	for (int i = 0; i < ENGINES; i++)
		if (mask & 1u << i)
			longest = MAX(longest, engines[i].period_us);
	return (int64_t)longest;
}

void window_choose(const struct window_engine engines[ENGINES], uint64_t now_us, uint64_t previous_us,
		   int64_t elapsed_us, int64_t carry_us, struct window *ret_window)
{
	struct window window = { .end_us = 0 };
	int64_t period, allowed;

	choose_end(engines, now_us, &window);
	if (previous_us > window.end_us) /* nothing new, or the clock was set back */
		window.end_us = previous_us;
	window.begin_us = choose_begin(engines, previous_us, &window);
	period = longest_period(engines, window.engines);
	if (previous_us) {
		allowed = MAX(elapsed_us + carry_us + period, INT64_C(0));
		if ((int64_t)(window.end_us - window.begin_us) > allowed)
			window.begin_us = window.end_us - (uint64_t)allowed;
		window.carry_us = carry_us + elapsed_us - (int64_t)(window.end_us - window.begin_us);
		window.carry_us = CLAMP(window.carry_us, -period, WINDOW_LAG_US + period);
	}
	*ret_window = window;
}

double window_busy(const struct window_engine *engine, const struct window *window, double *ret_max)
{
	uint64_t covered = window->begin_us;
	double busy_us = 0, max = 0;

	for (unsigned i = 0; i < engine->n; i++) {
		uint64_t end = MIN(engine->samples[i].timestamp, window->end_us);
		double ratio = engine->samples[i].value.as_uint / 100.0;

		if (end <= covered)
			continue;
		busy_us += ratio * (double)(end - covered);
		max = MAX(max, ratio);
		covered = end;
	}
	*ret_max = max;
	return busy_us * 1e-6;
}
