// SPDX-License-Identifier: Apache-2.0
/*
 * Busy time of a process on a device, estimated from its calls, and calibrated by the driver's own figures if
 * it has any.
 *
 * Once the driver has shown how long the device worked for the process, each launch is assumed to cost the
 * mean of recent launches. Launches form a backlog; each window reduces it by at most the time in which work
 * was pending (the union of spans, an upper bound), and a call that waits for all work clears it. So a burst
 * that runs for minutes is spread over them, and idle time between launches is not counted, as it would be
 * with spans alone.
 *
 * Before calibration: if a wait took time, the device worked until it returned, so its whole span counts; if
 * it returned at once, the work had ended earlier, so at most the time until the last launch returned counts
 * (struct span_block's likely_ns).
 *
 * NVML counts whole percents: 0 means less than one. An estimate below that agrees and is not used for
 * learning; for a higher estimate the driver's value is assumed to be half a percent.
 *
 * The error of a window is computed before anything is learned from that window. All times are in seconds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ERRORS_KEPT = 16 }; /* calibration windows whose error is averaged */

struct estimate_errors {
	uint32_t n; /* total number */
	float newest[ERRORS_KEPT];
};

struct estimate {
	double per_launch; /* learned cost of a launch on the device */
	double learned_busy, learned_launches; /* decaying sums that per_launch is computed from */
	double backlog; /* seconds of launches not yet counted in an estimate */
	/* Since the last comparison with the driver's figure: */
	double elapsed, estimated, launches;
	double driver_busy, driver_observed; /* the driver's totals at that comparison */
	bool started, calibrated;
	bool measured; /* by who was at the device: the driver's whole percents teach nothing meanwhile */
	struct estimate_errors errors; /* against the driver's figures */
	struct estimate_errors measured_errors; /* against what was measured */
};

/*
 * The estimate for a window of @elapsed seconds with @launches launches: @span seconds covered by spans, of
 * which @likely count before calibration. @pending: work was unfinished at the end of the window.
 */
double estimate_window(struct estimate *estimate, double elapsed, double span, double likely, double launches,
		       bool pending);
/*
 * Calibrates with the driver's totals: the device worked @busy_total of @observed_total seconds. Returns
 * whether something was learned.
 */
bool estimate_calibrate(struct estimate *estimate, double busy_total, double observed_total);
/*
 * Calibrates with what was measured on the device: it worked for @busy seconds, where @estimated were shown,
 * for @launches.
 */
void estimate_measure(struct estimate *estimate, double busy, double estimated, double launches);
/* The mean relative error of the last calibrations; NAN without any. */
double estimate_error(const struct estimate_errors *errors);
