// SPDX-License-Identifier: Apache-2.0
/*
 * Busy time of a process on a device, from what its calls tell.
 *
 * Once NVML has shown how long the device worked for the process, each launch is taken to cost the mean of
 * what launches have cost lately. They queue up: what was launched is a backlog, a window spends of it as
 * much as it has time with work pending (the union of spans, which bounds it from above), and a stream of
 * calls that has waited for everything leaves none. So a burst that runs for minutes is spread over them, and
 * time between launches in which nothing ran is not counted, which a span alone would do.
 *
 * Before that: a wait that really waited says that the device worked until it returned, so its whole span;
 * one that returned at once says that the work was over before, so no more than until the last launch had
 * returned (struct span_block's likely_ns).
 *
 * NVML counts whole percents: what it calls 0 is anything below one. An estimate of less agrees with that,
 * and teaches nothing; one of more is taken to have been half of one.
 *
 * The error is reckoned before anything is learned from the window it is about.
 */
#include "cuda/private.h"

#include <math.h>

#define COMPARE_SECONDS \
	2.0 /* of NVML's time, at least: its samples come several a second, ours at each tick */
#define PERCENT 0.01
#define KEEP 0.8 /* of what was learned before, each time */

double estimate_window(struct estimate *estimate, double elapsed, double span, double likely, double launches,
		       bool pending)
{
	double busy = MIN(likely, span);

	if (estimate->calibrated) {
		estimate->backlog += launches * estimate->per_launch;
		busy = MIN(span, estimate->backlog);
		estimate->backlog = pending ? estimate->backlog - busy : 0;
	}
	estimate->elapsed += elapsed;
	estimate->estimated += busy;
	estimate->launches += launches;
	return busy;
}

static void start_over(struct estimate *estimate, const struct nvml_word *nvml)
{
	estimate->started = true;
	estimate->nvml_busy = nvml->busy;
	estimate->nvml_observed = nvml->observed;
	estimate->elapsed = estimate->estimated = estimate->launches = 0;
}

/* @busy: NVML's, in the time that the estimate is about. */
static void learn(struct estimate *estimate, double busy)
{
	double larger = MAX(busy, estimate->estimated);

	if (larger > 0)
		estimate->errors[estimate->errors_n++ % ERRORS_KEPT] =
			(float)(fabs(busy - estimate->estimated) / larger);
	estimate->learned_busy = estimate->learned_busy * KEEP + busy;
	estimate->learned_launches = estimate->learned_launches * KEEP + estimate->launches;
	if (estimate->learned_launches < 1)
		return;
	estimate->per_launch = estimate->learned_busy / estimate->learned_launches;
	estimate->calibrated = true;
}

bool estimate_calibrate(struct estimate *estimate, const struct nvml_word *nvml)
{
	double observed = nvml->observed - estimate->nvml_observed;
	double busy = nvml->busy - estimate->nvml_busy;
	bool learned = false;

	if (!estimate->started || observed < 0 || busy < 0) {
		start_over(estimate, nvml);
		return false;
	}
	if (observed < COMPARE_SECONDS)
		return false;
	if (busy > 0 || (estimate->launches > 0 && estimate->estimated > PERCENT * estimate->elapsed)) {
		/* NVML's time and ours are not cut at the same moments: compare shares. */
		double share = busy > 0 ? MIN(busy / observed, 1.0) : PERCENT / 2;

		learn(estimate, share * estimate->elapsed);
		learned = true;
	}
	start_over(estimate, nvml);
	return learned;
}

double estimate_error(const struct estimate *estimate)
{
	uint32_t n = MIN(estimate->errors_n, (uint32_t)ERRORS_KEPT);
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += (double)estimate->errors[i];
	return n ? sum / n : NAN;
}
