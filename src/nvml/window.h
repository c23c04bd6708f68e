// SPDX-License-Identifier: Apache-2.0
/*
 * Utilisation, integrated exactly from the driver's sample buffers. Pure arithmetic.
 *
 * The driver samples each engine a few times a second and keeps (time stamp, percent); a sample with time
 * stamp t[i] covers (t[i-1], t[i]]. All engines of a device are integrated over one common window (begin,
 * end], so that the busy seconds of each over the observed seconds is its exact average. `end` is the newest
 * time that all engines have reached; the next window begins there.
 *
 * Time stamps are the CPU's wall clock, which may be set. The length of a window is limited by a clock that
 * may not (`elapsed`): a window longer than that, and than what earlier windows have left over (`carry`), is
 * cut at its begin.
 */
#pragma once

#include <stdbool.h>

#include "model/metric.h"
#include "nvml/abi.h"

/* An engine whose newest sample is this much older than the others', or than now, is not in the window. */
#define WINDOW_LAG_US INT64_C(3000000)
/* The longest plausible time between two samples of an engine. */
#define WINDOW_PERIOD_MAX_US INT64_C(2000000)

struct window_engine {
	/* ascending, newer than the last window's end; percent in as_uint */
	const struct nvml_sample *samples;
	unsigned n;
	uint64_t newest_us; /* newest sample ever seen; 0 none */
	uint64_t period_us; /* between samples */
};

struct window {
	uint64_t begin_us, end_us; /* empty when equal */
	int64_t carry_us; /* for the next one */
	unsigned engines; /* bits of those that reach it */
};

/*
 * Chooses the window, @now_us by the driver's clock, after @previous_us (0: the first one, which is at most
 * one sample period long, so that nothing from before is counted). @elapsed_us is the monotonic time since
 * the last call, @carry_us what that one left.
 */
void window_choose(const struct window_engine engines[ENGINES], uint64_t now_us, uint64_t previous_us,
		   int64_t elapsed_us, int64_t carry_us, struct window *ret_window);

/* Busy seconds of an engine within the window, and the highest sample in it (ratio 0..1). */
double window_busy(const struct window_engine *engine, const struct window *window, double *ret_max);

static inline double window_seconds(const struct window *window)
{
	return (double)(window->end_us - window->begin_us) * 1e-6;
}
