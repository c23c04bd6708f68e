// SPDX-License-Identifier: Apache-2.0
#include "activity/estimate.h"

#include <math.h>

#include "base/macro.h"

#define COMPARE_SECONDS \
	2.0 /* minimum of the driver's time: it has several samples a second, we read them once a tick */
#define PERCENT 0.01
#define DECAY 0.8 /* weight of previously learned values at each step */

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

static void estimate_restart(struct estimate *estimate, double busy_total, double observed_total)
{
	estimate->started = true;
	estimate->driver_busy = busy_total;
	estimate->driver_observed = observed_total;
	estimate->elapsed = estimate->estimated = estimate->launches = 0;
}

static void note_error(struct estimate_errors *errors, double busy, double estimated)
{
	double larger = MAX(busy, estimated);

	if (larger > 0)
		errors->newest[errors->n++ % ERRORS_KEPT] = (float)(fabs(busy - estimated) / larger);
}

static void estimate_learn(struct estimate *estimate, double busy, double launches)
{
	estimate->learned_busy = estimate->learned_busy * DECAY + busy;
	estimate->learned_launches = estimate->learned_launches * DECAY + launches;
	if (estimate->learned_launches < 1)
		return;
	estimate->per_launch = estimate->learned_busy / estimate->learned_launches;
	estimate->calibrated = true;
}

void estimate_measure(struct estimate *estimate, double busy, double estimated, double launches)
{
	note_error(&estimate->measured_errors, busy, estimated);
	if (!estimate->measured)
		estimate->learned_busy = estimate->learned_launches = 0;
	estimate->measured = true;
	estimate_learn(estimate, busy, launches);
}

bool estimate_calibrate(struct estimate *estimate, double busy_total, double observed_total)
{
	double observed = observed_total - estimate->driver_observed;
	double busy = busy_total - estimate->driver_busy;
	bool learned = false;

	if (!estimate->started || observed < 0 || busy < 0) {
		estimate_restart(estimate, busy_total, observed_total);
		return false;
	}
	if (observed < COMPARE_SECONDS)
		return false;
	if (busy > 0 || (estimate->launches > 0 && estimate->estimated > PERCENT * estimate->elapsed)) {
		/* The driver's windows and ours start at different times, so compare shares. */
		double share = busy > 0 ? MIN(busy / observed, 1.0) : PERCENT / 2;

		note_error(&estimate->errors, share * estimate->elapsed, estimate->estimated);
		if (!estimate->measured)
			estimate_learn(estimate, share * estimate->elapsed, estimate->launches);
		learned = true;
	}
	estimate_restart(estimate, busy_total, observed_total);
	return learned;
}

double estimate_error(const struct estimate_errors *errors)
{
	uint32_t n = MIN(errors->n, (uint32_t)ERRORS_KEPT);
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += (double)errors->newest[i];
	return n ? sum / n : NAN;
}
