// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/curve.h"

#include <math.h>

#include "base/macro.h"

enum { JITTER_PERIOD_MS = 100 };

const char *const curve_shape_names[CURVE_SHAPE_COUNT] = {
	[CURVE_CONSTANT] = "constant", [CURVE_SINE] = "sine", [CURVE_SQUARE] = "square",
	[CURVE_SAW] = "saw",           [CURVE_RAMP] = "ramp", [CURVE_NOISE] = "noise",
};

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014), upper half. */
uint32_t mix32(uint64_t value)
{
	value += UINT64_C(0x9e3779b97f4a7c15);
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((value ^ value >> 31) >> 32);
}

/* 0..1, the same for the same seed and step */
static float noise(uint32_t seed, int64_t step)
{
	return (float)mix32((uint64_t)seed << 40 ^ (uint64_t)step) * 0x1p-32f;
}

/* 0..1 */
static float level(const struct curve *curve, int64_t time_ms, uint32_t salt)
{
	float part;

	if (curve->shape == CURVE_CONSTANT)
		return 1;
	if (curve->shape == CURVE_RAMP)
		return MIN(1.0f, (float)time_ms / (float)curve->period_ms);
	if (curve->shape == CURVE_NOISE)
		return noise(curve->seed + salt, time_ms / curve->period_ms);
	part = (float)(time_ms % curve->period_ms) / (float)curve->period_ms;
	if (curve->shape == CURVE_SINE)
		return 0.5f + 0.5f * sinf(part * 2 * (float)M_PI);
	if (curve->shape == CURVE_SQUARE)
		return part < curve->duty ? 1 : 0;
	return part;
}

float curve_at(const struct curve *curve, int64_t time_ms, uint32_t salt)
{
	float value;

	time_ms += curve->phase_ms;
	value = curve->low + (curve->high - curve->low) * level(curve, time_ms, salt);
	if (curve->jitter > 0)
		value += curve->jitter * (2 * noise(~(curve->seed + salt), time_ms / JITTER_PERIOD_MS) - 1);
	return value;
}

int64_t window_openings(const struct window *window, int64_t time_ms)
{
	if (time_ms < window->at_ms)
		return 0;
	return window->every_ms > 0 ? (time_ms - window->at_ms) / window->every_ms + 1 : 1;
}

int64_t window_last_opening(const struct window *window, int64_t time_ms)
{
	return window->at_ms + (window_openings(window, time_ms) - 1) * window->every_ms;
}

int64_t window_next_opening(const struct window *window, int64_t time_ms)
{
	if (time_ms < window->at_ms)
		return window->at_ms;
	return window->every_ms > 0 ? window_last_opening(window, time_ms) + window->every_ms : INT64_MAX;
}

bool window_open(const struct window *window, int64_t time_ms)
{
	if (time_ms < window->at_ms)
		return false;
	return window->length_ms < 0 || time_ms - window_last_opening(window, time_ms) < window->length_ms;
}

int64_t window_open_ms(const struct window *window, int64_t time_ms)
{
	int64_t openings = window_openings(window, time_ms), since;

	if (openings == 0)
		return 0;
	since = time_ms - window_last_opening(window, time_ms);
	if (window->length_ms < 0)
		return time_ms - window->at_ms;
	return (openings - 1) * MIN(window->length_ms, MAX(window->every_ms, INT64_C(1))) +
	       MIN(since, window->length_ms);
}
