// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * What changes over time in a scenario: curves (how much) and windows (when). Both are pure functions of
 * the time they are given; at the same time every caller, in any process, gets the same answer.
 */

enum curve_shape {
	CURVE_CONSTANT, /* high */
	CURVE_SINE, /* between low and high, at the middle and rising at time 0 */
	CURVE_SQUARE, /* high for `duty` of the period, then low */
	CURVE_SAW, /* from low to high, then again from low */
	CURVE_RAMP, /* from low to high once, then high */
	CURVE_NOISE, /* a new value between low and high in every period */
	CURVE_SHAPE_COUNT,
};

struct curve {
	enum curve_shape shape;
	float low, high;
	float duty; /* 0..1 */
	float jitter; /* adds up to plus or minus this, drawn again every 100 ms */
	int64_t period_ms; /* positive but for CURVE_CONSTANT */
	int64_t phase_ms; /* added to the time */
	uint32_t seed;
};

/* The name of a shape in scenarios. */
extern const char *const curve_shape_names[CURVE_SHAPE_COUNT];

/*
 * time_ms is at least 0. Without jitter, the result lies between low and high. Noise differs between salts.
 */
float curve_at(const struct curve *curve, int64_t time_ms, uint32_t salt);

/* Open from `at` for `length`, again every `every`. */
struct window {
	int64_t at_ms;
	int64_t length_ms; /* negative: without end */
	int64_t every_ms; /* 0: once */
};

bool window_open(const struct window *window, int64_t time_ms);

/* How often it has opened so far; an opening at `time_ms` counts. */
int64_t window_openings(const struct window *window, int64_t time_ms);

/* For how long it has been open so far. */
int64_t window_open_ms(const struct window *window, int64_t time_ms);

/* When it last opened, at or before `time_ms`; only for windows that have opened. */
int64_t window_last_opening(const struct window *window, int64_t time_ms);

/* When it opens next, after `time_ms`; INT64_MAX for never. */
int64_t window_next_opening(const struct window *window, int64_t time_ms);

/* A number of 32 well-mixed bits for any input. */
uint32_t mix32(uint64_t value);
