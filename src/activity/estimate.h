// SPDX-License-Identifier: Apache-2.0
/*
 * Busy time of a process on a device, estimated from what its calls say, and corrected by the driver's own
 * figures where it has some.
 *
 * Once the driver has shown how long the device worked for the process, each launch is taken to cost the mean
 * of what launches have cost lately. They queue up: what was launched is a backlog, a window spends of it as
 * much as it has time with work pending (the union of spans, which bounds it from above), and a stream of
 * calls that has waited for everything leaves none. So a burst that runs for minutes is spread over them, and
 * time between launches in which nothing ran is not counted, which a span alone would do.
 *
 * Before that: a wait that took time says that the device worked until it returned, so its whole span counts;
 * one that returned at once says that the work was over before, so no more than until the last launch had
 * returned (struct span_block's likely_ns).
 *
 * NVML counts whole percents: what it calls 0 is anything below one. An estimate of less agrees with that,
 * and teaches nothing; one of more is taken to have been half of one.
 *
 * The error is computed before anything is learned from the window it is about. All times are in seconds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ERRORS_KEPT = 16 }; /* calibration windows whose error is averaged */

struct estimate {
	double per_launch; /* seconds of the device's, learned */
	double learned_busy, learned_launches; /* decaying sums behind it */
	double backlog; /* seconds of launches that the estimate has not yet spent */
	/* Since the driver's figure was last compared: */
	double elapsed, estimated, launches;
	double driver_busy, driver_observed; /* its totals then */
	bool started, calibrated;
	uint32_t errors_n; /* ever */
	float errors[ERRORS_KEPT];
};

/*
 * The estimate of a window of @elapsed seconds: @span covered by spans, of it @likely before calibration,
 * with so many @launches. @pending: work was not finished when it closed.
 */
double estimate_window(struct estimate *estimate, double elapsed, double span, double likely, double launches,
		       bool pending);
/* The driver's totals: of @observed_total seconds the device worked @busy_total. Was something learned? */
bool estimate_calibrate(struct estimate *estimate, double busy_total, double observed_total);
/* The mean relative error of the last calibrations; NAN without any. */
double estimate_error(const struct estimate *estimate);
