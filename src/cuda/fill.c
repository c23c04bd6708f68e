// SPDX-License-Identifier: Apache-2.0
/*
 * Figures of the last window into a view. What is shown depends on what was missed:
 *
 *   counters        always there; estimates where calls, or arguments of calls, may have been missed
 *   all of them     estimates where the order of the devices is an estimate (visible.c)
 *   errors, waits   absent without return probes; in totals, only where no process had any
 *   memory          absent where calls were missed for certain, those before tracing began included; an
 *                   estimate where some may have been missed
 *   leaks, leaked   as memory, but what was allocated before does not matter: it does not rise
 *   busy, cores     always estimates; cores absent where the device or its cores are not known
 */
#include "cuda/private.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"

#define MISSED                                                                           \
	(TRACED_INCOMPLETE_LOST | TRACED_INCOMPLETE_QUIET | TRACED_INCOMPLETE_GIVEN_UP | \
	 TRACED_INCOMPLETE_SITES)
#define BLIND (TRACED_INCOMPLETE_NO_RETURNS | TRACED_INCOMPLETE_QUIET | TRACED_INCOMPLETE_GIVEN_UP)
#define DOUBTFUL \
	(TRACED_INCOMPLETE_LOST | TRACED_INCOMPLETE_LATE | TRACED_INCOMPLETE_SITES | TRACED_INCOMPLETE_LIMIT)

/* Rows of metrics.def that are counted through stand together, in the order of what they are filled with. */
_Static_assert(TRACED_LIVE_ARRAY - TRACED_LIVE_DEVICE == TRACE_MEMORY_ARRAY - TRACE_MEMORY_DEVICE &&
		       TRACED_LIVE_HOST - TRACED_LIVE_DEVICE == TRACE_MEMORY_HOST - TRACE_MEMORY_DEVICE,
	       "kinds of memory");
_Static_assert(TRACED_LAUNCH_CONSTANT == TRACED_LAUNCH_SHARED + 1 &&
		       TRACED_LAUNCH_CODE == TRACED_LAUNCH_SHARED + 2 && LAUNCH_CLASSES == 3,
	       "shared memory, constants, code: as share.c has them");

uint8_t live_presence(const struct process *p, const struct usage *u, enum traced_metric row)
{
	unsigned blind = row == TRACED_LEAK ? BLIND : BLIND | TRACED_INCOMPLETE_LATE;
	bool arrays = u->unsized > 0;

	if ((p->incomplete & blind) || (arrays && row == TRACED_LIVE_ARRAY))
		return PRESENCE_ABSENT;
	if ((p->incomplete & DOUBTFUL) || p->visible_estimated ||
	    (arrays && (row == TRACED_PEAK || row == TRACED_LEAK)))
		return PRESENCE_PRESENT | PRESENCE_ESTIMATED;
	return PRESENCE_PRESENT;
}

static bool is_result(enum traced_metric row)
{
	return row == TRACED_ERRORS || row == TRACED_ALLOCATION_FAILURES || row == TRACED_SYNC_WAIT ||
	       row == TRACED_LEAKED_ALLOCATIONS || row == TRACED_LEAKED_BYTES;
}

/* Includes launches that failed, or not their errors, where it is not known which did. */
static bool is_of_launches(enum traced_metric row)
{
	return row == TRACED_LAUNCHES || row == TRACED_GRAPH_LAUNCHES || row == TRACED_THREADS ||
	       row == TRACED_ERRORS;
}

uint8_t counter_presence(const struct process *p, enum traced_metric row)
{
	bool without = p->incomplete & TRACED_INCOMPLETE_NO_RETURNS;

	if (is_result(row) && without)
		return PRESENCE_ABSENT;
	if ((p->incomplete & MISSED) || p->visible_estimated || p->unread || without ||
	    row == TRACED_BUSY_ESTIMATED || row == TRACED_SPAN ||
	    ((p->incomplete & TRACED_INCOMPLETE_LAUNCH_RETURNS) && is_of_launches(row)))
		return PRESENCE_PRESENT | PRESENCE_ESTIMATED;
	return PRESENCE_PRESENT;
}

/* Nothing where nothing was compared; how old it is is said beside it. */
static void fill_measured(const struct cuda *cuda, const struct usage *u, struct traced_device *d)
{
	const struct measured_busy *m = u->measured;

	if (!m || u->estimate.measured_errors.n == 0)
		return;
	d->v[TRACED_BUSY_MEASURED_ERROR] = estimate_error(&u->estimate.measured_errors);
	d->v[TRACED_BUSY_MEASURED_COMPARED] = m->compared_seconds;
	d->v[TRACED_BUSY_MEASURED_AGE] =
		(double)((uint64_t)cuda->window_start_ns - m->compared_ns) / NSEC_PER_SEC;
	for (unsigned row = TRACED_BUSY_MEASURED_ERROR; row <= TRACED_BUSY_MEASURED_AGE; row++)
		d->p[row] = PRESENCE_PRESENT;
}

static void fill_gauges(const struct cuda *cuda, const struct process *p, const struct usage *u,
			struct traced_device *d)
{
	const uint8_t estimated = PRESENCE_PRESENT | PRESENCE_ESTIMATED;

	d->v[TRACED_ACTIVE_RATIO] = u->active;
	d->p[TRACED_ACTIVE_RATIO] = estimated;
	d->v[TRACED_CORES] = u->cores;
	d->p[TRACED_CORES] = cuda->totals[u->device].device_cores > 0 ? estimated : PRESENCE_ABSENT;
	fill_measured(cuda, u, d);
	if (u->estimate.errors.n > 0) {
		d->v[TRACED_BUSY_ERROR] = u->error;
		d->p[TRACED_BUSY_ERROR] = PRESENCE_PRESENT;
	}
	for (unsigned i = 0; i < LAUNCH_CLASSES; i++) {
		if (isnan(u->classes[i]))
			continue;
		d->v[TRACED_LAUNCH_SHARED + i] = u->classes[i];
		d->p[TRACED_LAUNCH_SHARED + i] = estimated;
	}
	for (unsigned i = 0; i < TRACE_MEMORIES; i++) {
		d->p[TRACED_WINDOW_DEVICE + i] = live_presence(p, u, TRACED_LIVE_DEVICE + i);
		if (!presence_is(d->p[TRACED_WINDOW_DEVICE + i]))
			continue;
		d->v[TRACED_WINDOW_DEVICE + i] = u->window_peaks[i];
		if (u->scaled && memory_on_device((uint8_t)i))
			d->p[TRACED_WINDOW_DEVICE + i] = estimated;
	}
	if (u->leak.started) {
		d->v[TRACED_LEAK] = u->leaks;
		d->p[TRACED_LEAK] = live_presence(p, u, TRACED_LEAK);
	}
}

static double in_units(unsigned row, uint64_t n)
{
	return traced_metrics[row].unit == UNIT_SECONDS ? (double)n / NSEC_PER_SEC : (double)n;
}

static void fill_device(const struct cuda *cuda, const struct process *p, const struct usage *u,
			uint32_t process, struct traced_device *d)
{
	memset(d, 0, sizeof(*d));
	d->process = process;
	memcpy(d->uuid, cuda->uuids[u->device], sizeof(d->uuid));
	fill_gauges(cuda, p, u, d);
	for (unsigned row = 0; row < TRACED_METRICS; row++) {
		bool live = (row >= TRACED_LIVE_DEVICE && row <= TRACED_LIVE_ARRAY) || row == TRACED_PEAK;

		if (live)
			d->p[row] = live_presence(p, u, row);
		else if (traced_metrics[row].kind == METRIC_COUNTER)
			d->p[row] = counter_presence(p, row);
		else
			continue;
		d->v[row] = presence_is(d->p[row]) ? in_units(row, u->shown[row]) : 0;
	}
}

/* For the whole process, on all devices. */
static void fill_threads(const struct process *p, struct traced_process *ret)
{
	bool doubtful = p->incomplete & DOUBTFUL;

	if (p->incomplete & (BLIND | TRACED_INCOMPLETE_LATE))
		return;
	for (uint32_t i = 0; i < p->usages_n; i++)
		doubtful |= p->usages[i].unsized > 0;
	holders_top(p, ret);
	ret->threads_p = doubtful ? PRESENCE_PRESENT | PRESENCE_ESTIMATED : PRESENCE_PRESENT;
}

/* Allocations that were made before tracing began do not count. */
static void fill_leaked(const struct process *p, struct traced_process *ret)
{
	if (p->incomplete & BLIND)
		return;
	leaked_top(p, ret);
	ret->leaked_p = PRESENCE_PRESENT | (p->incomplete & DOUBTFUL ? PRESENCE_ESTIMATED : 0);
}

static void fill_process(const struct cuda *cuda, const struct process *p, struct traced_process *ret)
{
	ret->id = (struct process_id){ .pid = p->tgid, .start_ticks = process_ticks(p->start_boot_ns) };
	ret->ns_pid = p->ns_pid;
	memcpy(ret->comm, p->comm, sizeof(ret->comm));
	ret->first_real_ns =
		clock_real_ns() - clock_mono_ns() + (int64_t)MIN(p->first_ns, (uint64_t)INT64_MAX / 4);
	ret->exited = p->shown_over;
	ret->has_series = p->claim.has;
	ret->incomplete = p->incomplete;
	ret->unplaced = (uint8_t)device_unplaced(cuda, p);
	fill_threads(p, ret);
	fill_leaked(p, ret);
}

static void fill_total_memory(const struct total *total, struct traced_total *ret)
{
	uint8_t estimated = PRESENCE_PRESENT | PRESENCE_ESTIMATED;

	for (unsigned i = 0; total->live_known && i < TRACE_MEMORIES; i++) {
		uint8_t p = total->live_doubtful ? estimated : PRESENCE_PRESENT;

		ret->v[TRACED_LIVE_DEVICE + i] = (double)total->live[TRACED_LIVE_DEVICE + i];
		ret->p[TRACED_LIVE_DEVICE + i] = p;
		ret->v[TRACED_WINDOW_DEVICE + i] = total->window_peaks[i];
		ret->p[TRACED_WINDOW_DEVICE + i] =
			total->scaled && memory_on_device((uint8_t)i) ? estimated : p;
	}
	ret->v[TRACED_PEAK] = (double)total->peak;
	ret->p[TRACED_PEAK] = total->peak_doubtful ? estimated : PRESENCE_PRESENT;
}

static void fill_gaps(const struct launch_gaps *gaps, struct traced_gaps *ret)
{
	for (unsigned i = 0; i < TRACED_LE; i++)
		ret->within[i] = ret->count += gaps->count[i];
	ret->seconds = (double)gaps->ns / NSEC_PER_SEC;
}

static void fill_total(const struct cuda *cuda, uint32_t uuid, struct traced_total *ret)
{
	const struct total *total = &cuda->totals[uuid];
	uint8_t estimated = PRESENCE_PRESENT | PRESENCE_ESTIMATED;

	memset(ret, 0, sizeof(*ret));
	memcpy(ret->uuid, cuda->uuids[uuid], sizeof(ret->uuid));
	for (unsigned row = 0; row < TRACED_METRICS; row++) {
		if (traced_metrics[row].kind == METRIC_COUNTER) {
			bool guessed = row == TRACED_BUSY_ESTIMATED || row == TRACED_SPAN ||
				       total->doubtful || (is_result(row) && total->results_missed);

			if (is_result(row) && !total->results_seen)
				continue;
			ret->v[row] = total->all[row];
			ret->other[row] = total->other[row];
			ret->p[row] = guessed ? estimated : PRESENCE_PRESENT;
		}
	}
	fill_total_memory(total, ret);
	fill_gaps(&total->gaps, &ret->gaps);
	ret->kernels = launches_of(&total->kernels);
	ret->kernels_other = launches_of(&total->kernels_other);
	ret->v[TRACED_ACTIVE_RATIO] = total->active;
	ret->p[TRACED_ACTIVE_RATIO] = estimated;
	if (total->device_cores > 0) {
		ret->v[TRACED_CORES] = total->cores;
		ret->p[TRACED_CORES] = estimated;
	}
}

void cuda_fill(struct cuda *cuda, struct trace_view *view)
{
	uint32_t devices = 0, totals = 0;

	view->kernels_n = 0;
	for (uint32_t i = 0; i < cuda->shown_n && i < view->processes_n; i++) {
		const struct process *p = cuda->shown[i];

		fill_process(cuda, p, &view->processes[i]);
		view->processes[i].devices_first = devices;
		for (uint32_t k = 0; k < p->usages_n && devices < view->devices_n; k++)
			if (p->usages[k].shown_once)
				fill_device(cuda, p, &p->usages[k], i, &view->devices[devices++]);
		view->processes[i].devices_n = devices - view->processes[i].devices_first;
		kernels_fill(cuda, p, &view->processes[i], i, view);
	}
	for (uint32_t i = 0; i < cuda->uuids_n && totals < view->totals_n; i++)
		if (cuda->totals[i].touched)
			fill_total(cuda, i, &view->totals[totals++]);
}
