// SPDX-License-Identifier: Apache-2.0
/* Rules of what a program's steps spend their time with: launches, waits, data, the driver's allocator. */
#include "analysis/private.h"

#define LAUNCHES_MIN 1000.0 /* a second: fewer cannot keep a thread busy, at 2 to 10 us each */
#define LAUNCH_SHARE 0.20 /* of a thread's time in launches */
#define SMALL_SHARE 0.50
#define BUSY 0.70 /* of the device's time: above, it is not what waits */
#define WAITS_MIN 20.0 /* a second */
#define WAITS_OF_STEP 3.0 /* a loss that is read and a step that ends are two */
#define WAIT_SHARE 0.10
#define IDLE_SHARE 0.10
#define DATA_SHARE 0.10
#define ALLOCATIONS_MIN 10.0 /* a second */
#define ALLOCATION_SHARE 0.05

/* Share of the steps' time in which the device did nothing; false: it is not known. */
static bool idle_share(const struct process_usage *usage, double *ret_share)
{
	double idle = 0;

	if (usage->steps.n == 0 || !usage->steps.work_known)
		return false;
	for (unsigned i = 0; i < ANALYSIS_STEP_PARTS; i++)
		idle += usage->steps.idle[i];
	*ret_share = idle / usage->steps.seconds;
	return true;
}

/*
 * The same; or else at least, by the process's work, which may be at the same time as other work, and by what
 * the driver says of the whole device.
 */
static bool device_idle(const struct judgement *judgement, const struct process_usage *usage,
			double *ret_share)
{
	const struct call_sum *work = &usage->kinds[ANALYSIS_WORK];
	double utilization, idle = 0;
	bool is_figure;

	if (idle_share(usage, ret_share))
		return true;
	if (usage->devices_n > 1) /* which of them waits is not known */
		return false;
	is_figure = usage_figure(usage_device(judgement->analysis, usage->node, usage->device),
				 ANALYSIS_COUNTER_UTILIZATION, &utilization);
	if (is_figure)
		idle = 1 - utilization;
	if (work->n > 0)
		idle = MAX(idle, 1 - work->seconds / judgement->window->seconds);
	*ret_share = idle;
	return is_figure || work->n > 0;
}

bool rule_launch_bound(const struct judgement *judgement, struct process_usage *usage)
{
	const struct call_sum *launches = &usage->kinds[ANALYSIS_LAUNCH];
	struct analysis_finding *finding = judgement->finding;
	double rate = (double)launches->n / judgement->window->seconds, idle = 0,
	       share = launches->seconds / judgement->window->seconds;
	bool known = device_idle(judgement, usage, &idle), sized = usage->sized_launches > 0;
	double small = sized ? (double)usage->small_launches / (double)usage->sized_launches : 0;

	if (rate < LAUNCHES_MIN || share < LAUNCH_SHARE || (sized && small < SMALL_SHARE) ||
	    (known && idle < 1 - BUSY))
		return false;
	finding->confidence = 0.5 + (known ? 0.25 : 0) + (sized ? 0.2 : 0);
	finding->without = known ? 0 : 1U << EVIDENCE_WORK | 1U << EVIDENCE_UTILIZATION;
	finding_value(finding, "launches_per_second", ANALYSIS_PER_SECOND, rate);
	finding_value(finding, "time_share", ANALYSIS_RATIO, share);
	if (sized)
		finding_value(finding, "small_share", ANALYSIS_RATIO, small);
	if (known)
		finding_value(finding, "device_idle_share", ANALYSIS_RATIO, idle);
	usage_say_times(usage, finding);
	return true;
}

bool rule_sync_in_loop(const struct judgement *judgement, struct process_usage *usage)
{
	const struct call_sum *syncs = &usage->kinds[ANALYSIS_SYNC];
	const struct step_sums *steps = &usage->steps;
	struct analysis_finding *finding = judgement->finding;
	double share = syncs->seconds / judgement->window->seconds, idle = 0,
	       rate = (double)syncs->n / judgement->window->seconds;
	bool known = device_idle(judgement, usage, &idle);
	/* Of those in steps that are known: these may be a part of the window. */
	double of_step = steps->n > 0 ? (double)steps->waits / steps->n : 0;

	if (rate < WAITS_MIN || share < WAIT_SHARE || (known && idle < IDLE_SHARE) ||
	    (steps->n > 0 && of_step < WAITS_OF_STEP))
		return false;
	finding->confidence = 0.5 + (known ? 0.2 : 0) + (steps->n > 0 ? 0.2 : 0);
	finding->without = (known ? 0 : 1U << EVIDENCE_WORK | 1U << EVIDENCE_UTILIZATION) |
			   (steps->n > 0 ? 0 : 1U << EVIDENCE_STEPS);
	finding_value(finding, "waits_per_second", ANALYSIS_PER_SECOND, rate);
	finding_value(finding, "time_share", ANALYSIS_RATIO, share);
	if (steps->n > 0)
		finding_value(finding, "waits_per_step", ANALYSIS_NUMBER, of_step);
	if (known)
		finding_value(finding, "device_idle_share", ANALYSIS_RATIO, idle);
	usage_say_times(usage, finding);
	return true;
}

/* Time that loading takes while the device works costs nothing. */
bool rule_data_starvation(const struct judgement *judgement, struct process_usage *usage)
{
	const struct step_sums *steps = &usage->steps;
	const struct call_sum *loads = &usage->kinds[ANALYSIS_DATA];
	struct analysis_finding *finding = judgement->finding;
	bool known = steps->n > 0 && steps->work_known;
	double share = known ? steps->idle[ANALYSIS_STEP_DATA] / steps->seconds :
			       loads->seconds / judgement->window->seconds;

	if (loads->n == 0 || share < DATA_SHARE)
		return false;
	finding->confidence = known ? 0.95 : 0.6;
	finding->without = known ? 0 : 1U << EVIDENCE_WORK;
	finding_value(finding, known ? "idle_share" : "time_share", ANALYSIS_RATIO, share);
	usage_say_times(usage, finding);
	finding_value(finding, "waits", ANALYSIS_NUMBER, (double)loads->n);
	finding_value(finding, "mean", ANALYSIS_SECONDS, loads->seconds / (double)loads->n);
	return true;
}

/* In its first window a program allocates what it needs. */
bool rule_allocator_thrash(const struct judgement *judgement, struct process_usage *usage)
{
	const struct call_sum *frees = &usage->kinds[ANALYSIS_FREE],
			      *allocations = &usage->device_allocations;
	struct analysis_finding *finding = judgement->finding;
	double seconds = judgement->window->seconds, rate = (double)allocations->n / seconds,
	       share = (allocations->seconds + frees->seconds) / seconds;

	if (usage->begin_ns >= judgement->window->begin_ns || rate < ALLOCATIONS_MIN ||
	    (double)frees->n / seconds < ALLOCATIONS_MIN || share < ALLOCATION_SHARE)
		return false;
	finding->confidence = 0.9;
	finding_value(finding, "allocations_per_second", ANALYSIS_PER_SECOND, rate);
	finding_value(finding, "frees_per_second", ANALYSIS_PER_SECOND, (double)frees->n / seconds);
	finding_value(finding, "time_share", ANALYSIS_RATIO, share);
	finding_value(finding, "mean_bytes", ANALYSIS_BYTES,
		      (double)allocations->bytes / (double)allocations->n);
	return true;
}
