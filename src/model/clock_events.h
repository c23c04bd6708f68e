// SPDX-License-Identifier: Apache-2.0
/*
 * How many readings of a window of time found a reason that throttles a GPU's clocks: what the DCGM exporter
 * counts as DCGM_EXP_CLOCK_EVENTS_COUNT. Counted in parts of the window, so that a count is of the window or
 * of up to one part less.
 */
#pragma once

#include <stdint.h>

/* The exporter's clock events, in the order of their bits (NVML's clocks event reasons). */
enum { CLOCK_EVENTS = 9 };
struct clock_event_row {
	const char *name; /* as the exporter's label `clock_event` has it */
	uint64_t bit;
};
extern const struct clock_event_row clock_event_rows[CLOCK_EVENTS];

#define CLOCK_WINDOW_DEFAULT_NS (300 * NSEC_PER_SEC) /* the exporter's */

struct clock_window;

/*
 * Counts a reading that found these @reasons (NVML's bits). *window: NULL at first; free() frees it. Out of
 * memory it is not counted.
 */
void clock_window_take(struct clock_window **window, uint64_t reasons, int64_t window_ns, int64_t now_ns);
/* @window may be NULL: nothing was counted. */
void clock_window_counts(const struct clock_window *window, int64_t now_ns,
			 uint32_t ret_counts[CLOCK_EVENTS]);
