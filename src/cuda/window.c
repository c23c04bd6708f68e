// SPDX-License-Identifier: Apache-2.0
/*
 * Aggregates of a window, as the GPU probe that gpusonde follows defines them, for each process and device:
 *
 *   active   the union of the spans, over the window; of a device: the union over its processes
 *   cores    each span's time, times its mean threads per launch but no more than the device has cores,
 *            over the window; where the processes of a device together exceed its cores, all are scaled
 *            down alike
 *   peaks    the most bytes of each kind of memory at once; scaled in the same way by the device's memory
 *
 * Spans are clamped to the window at both ends. Work still pending counts as a span that ends now, and stays
 * pending: the next window goes on from here. What reaches beyond the window (events newer than its end) is
 * left for the next one.
 */
#include "cuda/private.h"

#include <errno.h>
#include <math.h>

#include "base/clock.h"

/* The pending work of each usage: since when, and on how many cores. */
static void take_pending(const struct cuda *cuda, struct process *p, uint64_t now_ns)
{
	for (uint32_t i = 0; i < p->usages_n; i++) {
		p->usages[i].pending_first_ns = UINT64_MAX;
		p->usages[i].pending_core_ns = 0;
	}
	for (uint32_t at = p->pending; at; at = stream_at(p, at - 1)->next) {
		const struct stream *s = stream_at(p, at - 1);
		struct usage *u = usage_of(p, s->context);
		uint64_t first = MAX(s->first_ns, (uint64_t)cuda->window_start_ns);

		if (first >= now_ns)
			continue;
		u->pending_first_ns = MIN(u->pending_first_ns, first);
		u->pending_core_ns += usage_cores(cuda, u, s) * (double)(now_ns - first);
	}
}

static void add_to_device(struct total *total, const struct span_union *spans)
{
	if (!total->spans)
		total->spans = calloc(1, sizeof(*total->spans));
	for (uint32_t i = 0; total->spans && i < spans->n; i++)
		span_add(total->spans, spans->blocks[i]);
}

static void close_spans(struct cuda *cuda, struct usage *u, uint64_t now_ns)
{
	double elapsed = (double)(now_ns - (uint64_t)cuda->window_start_ns), likely = 0, core_ns = 0, busy;
	struct span_union spans;
	uint64_t covered;

	spans.n = 0;
	if (u->spans)
		span_take(u->spans, now_ns, &spans);
	u->pending = u->pending_first_ns < now_ns;
	if (u->pending) {
		uint64_t length = now_ns - u->pending_first_ns;

		/*
		 * span_take() may have filled the array, but this block extends the last one or follows it
		 * directly.
		 */
		span_add(&spans, (struct span_block){ u->pending_first_ns, now_ns, length, u->pending_core_ns,
						      (double)length });
	}
	for (uint32_t i = 0; i < spans.n; i++) {
		likely += spans.blocks[i].likely_ns;
		core_ns += spans.blocks[i].core_ns;
	}
	covered = MIN(span_covered(&spans), now_ns - (uint64_t)cuda->window_start_ns);
	u->touched |= covered > 0;
	u->active = (double)covered / elapsed;
	u->cores = core_ns / elapsed;
	busy = estimate_window(&u->estimate, elapsed / NSEC_PER_SEC, (double)covered / NSEC_PER_SEC,
			       likely / NSEC_PER_SEC, (double)(u->work - u->work_shown), u->pending);
	u->now[TRACED_SPAN] = add_saturated(u->now[TRACED_SPAN], covered);
	u->busy_ns = (uint64_t)(busy * NSEC_PER_SEC);
	measured_window(u, (uint64_t)cuda->window_start_ns, now_ns, busy, (double)(u->work - u->work_shown));
	u->work_shown = u->work;
	u->now[TRACED_BUSY_ESTIMATED] = add_saturated(u->now[TRACED_BUSY_ESTIMATED], u->busy_ns);
	add_to_device(&cuda->totals[u->device], &spans);
}

static void take_nvml_figures(struct cuda *cuda, const struct process *p, struct usage *u, int64_t now_ns)
{
	if (u->nvml.window != cuda->window)
		return;
	cuda->stats.calibration_windows += estimate_calibrate(&u->estimate, u->nvml.busy, u->nvml.observed);
	u->error = estimate_error(&u->estimate.errors);
	if (presence_is(live_presence(p, u, TRACED_LEAK)))
		leak_window(&u->leak, now_ns, u->device_live, u->nvml.memory);
	else
		u->leak = (struct leak){ 0 };
	u->leaks = leak_verdict(&u->leak);
}

/* Each increment is credited to the total, and for a process without series also to "other". */
static void credit_usage(struct cuda *cuda, const struct process *p, struct usage *u)
{
	struct total *total = &cuda->totals[u->device];

	for (unsigned row = 0; row < TRACED_METRICS; row++) {
		double unit = traced_metrics[row].unit == UNIT_SECONDS ? 1e-9 : 1;
		double increment = (double)(u->now[row] - u->shown[row]) * unit;

		if (traced_metrics[row].kind != METRIC_COUNTER)
			continue;
		series_credit(p->claim.has, increment, &total->all[row], NULL, &total->other[row]);
	}
	for (unsigned row = TRACED_LIVE_DEVICE; row <= TRACED_LIVE_ARRAY; row++) {
		uint8_t presence = live_presence(p, u, row);

		total->live[row] += u->now[row];
		total->live_known &= presence_is(presence);
		total->live_doubtful |= (presence & PRESENCE_ESTIMATED) != 0;
	}
	for (unsigned i = 0; i < TRACE_MEMORIES; i++) {
		u->window_peaks[i] = (double)u->peaks[i];
		total->window_peaks[i] += u->window_peaks[i];
		u->peaks[i] = u->now[TRACED_LIVE_DEVICE + i];
	}
	total->peak_doubtful |= !total->live_known || total->live_doubtful;
	total->doubtful |= (counter_presence(p, TRACED_LAUNCHES) & PRESENCE_ESTIMATED) != 0;
	total->results_seen |= presence_is(counter_presence(p, TRACED_ERRORS));
	total->results_missed |= !presence_is(counter_presence(p, TRACED_ERRORS));
	total->cores += u->cores;
	total->touched = true;
	memcpy(u->shown, u->now, sizeof(u->shown));
	u->shown_once = true;
}

static void close_process(struct cuda *cuda, struct process *p, int64_t now_ns)
{
	functions_ask(cuda, p);
	take_pending(cuda, p, (uint64_t)now_ns);
	for (uint32_t i = 0; i < p->usages_n; i++)
		close_spans(cuda, &p->usages[i], (uint64_t)now_ns);
	share_process(cuda, p);
	for (uint32_t i = 0; i < p->usages_n; i++) {
		struct usage *u = &p->usages[i];

		if (!p->over)
			take_nvml_figures(cuda, p, u, now_ns);
		if (!u->touched)
			continue;
		credit_usage(cuda, p, u);
		cuda->shown_devices++;
	}
	p->shown_once = true;
	p->shown_over = p->over && (p->lingered == LINGER_WINDOWS || !functions_asked(p));
	p->lingered += p->over;
}

/* By what the peaks of a device's memory are to be divided: 1, or more where together they exceed it. */
static double memory_excess(const struct total *total)
{
	double bytes = 0;

	for (unsigned i = 0; i < TRACE_MEMORIES; i++)
		if (memory_on_device((uint8_t)i))
			bytes += total->window_peaks[i];
	return total->device_memory > 0 ? MAX(bytes / (double)total->device_memory, 1) : 1;
}

/* False: they fit, and stay as they are. */
static bool scale_down(double peaks[TRACE_MEMORIES], double excess)
{
	for (unsigned i = 0; i < TRACE_MEMORIES; i++)
		if (memory_on_device((uint8_t)i))
			peaks[i] /= excess;
	return excess > 1;
}

/* The totals last, since they say by how much. */
static void scale_peaks(struct cuda *cuda)
{
	for (uint32_t i = 0; i < cuda->processes_n; i++) {
		struct process *p = cuda->processes[i];

		for (uint32_t k = 0; k < p->usages_n; k++) {
			struct usage *u = &p->usages[k];

			u->scaled = scale_down(u->window_peaks, memory_excess(&cuda->totals[u->device]));
		}
	}
	for (uint32_t i = 0; i < cuda->uuids_n; i++) {
		struct total *total = &cuda->totals[i];

		total->scaled = scale_down(total->window_peaks, memory_excess(total));
	}
}

static void close_devices(struct cuda *cuda, int64_t now_ns)
{
	double elapsed = (double)(now_ns - cuda->window_start_ns);

	cuda->shown_totals = 0;
	for (uint32_t i = 0; i < cuda->uuids_n; i++) {
		struct total *total = &cuda->totals[i];

		if (total->spans)
			total->active = MIN((double)span_covered(total->spans) / elapsed, 1.0);
		cuda->shown_totals += total->touched;
	}
	for (uint32_t i = 0; i < cuda->processes_n; i++) {
		struct process *p = cuda->processes[i];

		for (uint32_t k = 0; k < p->usages_n; k++) {
			const struct total *total = &cuda->totals[p->usages[k].device];

			if (total->device_cores > 0 && total->cores > total->device_cores)
				p->usages[k].cores *= total->device_cores / total->cores;
		}
	}
	for (uint32_t i = 0; i < cuda->uuids_n; i++)
		if (cuda->totals[i].device_cores > 0)
			cuda->totals[i].cores = MIN(cuda->totals[i].cores, cuda->totals[i].device_cores);
}

static void open_devices(struct cuda *cuda)
{
	for (uint32_t i = 0; i < cuda->uuids_n; i++) {
		struct total *total = &cuda->totals[i];

		if (total->spans)
			total->spans->n = 0;
		total->active = total->cores = 0;
		total->live_known = true;
		total->live_doubtful = false;
		memset(total->live, 0, sizeof(total->live));
		memset(total->window_peaks, 0, sizeof(total->window_peaks));
	}
}

static int by_pid(const void *a, const void *b)
{
	const struct process *const *x = a, *const *y = b;

	if ((*x)->tgid != (*y)->tgid)
		return (*x)->tgid < (*y)->tgid ? -1 : 1;
	return ((*x)->first_ns > (*y)->first_ns) - ((*x)->first_ns < (*y)->first_ns);
}

static int shown_room(struct cuda *cuda)
{
	struct process **shown;

	if (cuda->shown_room >= cuda->processes_n)
		return 0;
	shown = realloc(cuda->shown, cuda->processes_room * sizeof(struct process *));
	if (!shown)
		return -ENOMEM;
	cuda->shown = shown;
	cuda->shown_room = cuda->processes_room;
	return 0;
}

int cuda_window(struct cuda *cuda, int64_t now_ns, struct cuda_figures *ret_figures)
{
	if (now_ns <= cuda->window_start_ns)
		return -EINVAL;
	if (shown_room(cuda) < 0)
		return -ENOMEM;
	processes_forget(cuda);
	open_devices(cuda);
	cuda->shown_devices = 0;
	for (uint32_t i = 0; i < cuda->processes_n; i++) {
		close_process(cuda, cuda->processes[i], now_ns);
		cuda->shown[i] = cuda->processes[i];
	}
	cuda->shown_n = cuda->processes_n;
	if (cuda->shown_n > 0)
		qsort(cuda->shown, cuda->shown_n, sizeof(struct process *), by_pid);
	close_devices(cuda, now_ns);
	scale_peaks(cuda);
	share_close(cuda, (double)(now_ns - cuda->window_start_ns) / NSEC_PER_SEC);
	cuda->shown_kernels = kernels_shown(cuda);
	cuda->window_start_ns = now_ns;
	cuda->window++;
	*ret_figures = (struct cuda_figures){ cuda->shown_n, cuda->shown_devices, cuda->shown_totals,
					      cuda->shown_kernels };
	return 0;
}
