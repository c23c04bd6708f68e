// SPDX-License-Identifier: Apache-2.0
/*
 * Traced processes. A duplicate series would make Prometheus reject the whole page. So of two processes with
 * one PID (one has ended, the other runs) the younger has the series, and of two devices with equal labels
 * the first.
 */
#include "view/walk/private.h"

#include <math.h>

#include "view/names.h"
#include "view/shown.h"
#include "view/traced.h"

#define DEVICE_PREFIX "gpusonde_gpu_"
#define WORKLOAD_PREFIX "gpusonde_workload_"
/* process_cuda_launches_total becomes gpu_cuda_launches_total, which does not fall when a process ends. */
#define DEVICE_STRIP (sizeof("process_") - 1)

struct traced_walk {
	struct walk *walk;
	const struct trace_view *view;
	const struct label_set **processes; /* pid, comm */
	const struct label_set **devices; /* gpu, uuid, gi, ci, if known */
	struct traced_totals totals;
	bool *process_shown, *device_shown;
	double *other; /* gauges that may be summed: TRACED_METRICS numbers per total */
	bool *has_other;
};

const struct label_set *traced_device_set(struct walk *walk, const char *uuid)
{
	const struct entity *e = entity_by_uuid(walk->s, uuid);

	if (e)
		return walk->entities[e - walk->s->entities];
	return *uuid ? WALK_SET(walk, true, { "uuid", uuid }) : NULL;
}

const struct label_set *traced_process_set(struct walk *walk, const struct traced_process *process)
{
	const struct workload_name *workload = traced_workload(walk->s, process);
	struct label labels[2 + OWNER_LABELS] = {
		{ "pid", walk_number(walk, process->id.pid) },
		{ "comm", process->comm },
	};

	return walk_set(walk, true, labels, walk_owner_labels(labels, 2, workload ? workload->owner : NULL));
}

static bool is_younger(const struct traced_process *a, const struct traced_process *b)
{
	return a->exited != b->exited ? b->exited : a->id.start_ticks > b->id.start_ticks;
}

uint32_t traced_youngest(const struct trace_view *view, uint32_t first, uint32_t *ret_end)
{
	const struct traced_process *all = view->processes;
	uint32_t youngest = first, end = first + 1;

	for (; end < view->processes_n && all[end].id.pid == all[first].id.pid; end++)
		if (is_younger(&all[end], &all[youngest]))
			youngest = end;
	*ret_end = end;
	return youngest;
}

static void choose_processes(struct traced_walk *tw)
{
	for (uint32_t first = 0, end; first < tw->view->processes_n; first = end) {
		uint32_t youngest = traced_youngest(tw->view, first, &end);

		tw->process_shown[youngest] = tw->view->processes[youngest].has_series;
	}
}

/* Of two devices of one process with equal labels only the first is shown. */
static void choose_devices(struct traced_walk *tw, const struct traced_process *process)
{
	uint32_t first = process->devices_first, end = first + process->devices_n;

	for (uint32_t k = first; k < end; k++) {
		tw->device_shown[k] = true;
		for (uint32_t before = first; before < k; before++)
			if (label_set_equal(tw->devices[before], tw->devices[k]))
				tw->device_shown[k] = false;
	}
}

bool traced_totals_init(struct walk *walk, struct traced_totals *ret_totals)
{
	const struct trace_view *view = walk->s->trace;
	struct traced_totals totals = {
		.sets = walk_zeroes(walk, view->totals_n, sizeof(*totals.sets)),
		.shown = walk_zeroes(walk, view->totals_n, sizeof(*totals.shown)),
	};

	if (!totals.sets || !totals.shown)
		return false;
	for (uint32_t i = 0; i < view->totals_n; i++) {
		totals.sets[i] = traced_device_set(walk, view->totals[i].uuid);
		totals.shown[i] = true;
		for (uint32_t before = 0; before < i; before++)
			if (label_set_equal(totals.sets[before], totals.sets[i]))
				totals.shown[i] = false;
	}
	*ret_totals = totals;
	return true;
}

/* Memory may be summed over processes; ratios, peaks and means (of launches, by class) may not. */
static bool gauge_adds_up(const struct metric *m)
{
	return m->kind == METRIC_GAUGE && m->unit == UNIT_BYTES && !(m->label && STRV_EQ(m->label, "class"));
}

/*
 * Counters of processes without a series come with the view; sums of gauges over the current processes are
 * computed here.
 */
static void sum_others(struct traced_walk *tw)
{
	const struct trace_view *view = tw->view;

	for (uint32_t i = 0; i < view->devices_n; i++) {
		const struct traced_device *device = &view->devices[i];
		const struct traced_process *process = &view->processes[device->process];
		uint32_t total = 0;

		if (process->has_series)
			continue;
		while (total < view->totals_n && !STRV_EQ(view->totals[total].uuid, device->uuid))
			total++;
		for (unsigned row = 0; total < view->totals_n && row < TRACED_METRICS; row++) {
			size_t at = (size_t)total * TRACED_METRICS + row;

			if (!gauge_adds_up(&traced_metrics[row]) ||
			    !traced_shows(tw->walk->s, process, &traced_metrics[row]))
				continue;
			/* If one value is unknown, so is the sum. */
			tw->other[at] += presence_is(device->p[row]) ? device->v[row] : NAN;
			tw->has_other[at] = !isnan(tw->other[at]);
		}
	}
	for (uint32_t total = 0; total < view->totals_n; total++)
		for (unsigned row = 0; row < TRACED_METRICS; row++) {
			size_t at = (size_t)total * TRACED_METRICS + row;

			if (!metric_is_counter(&traced_metrics[row]))
				continue;
			tw->other[at] = view->totals[total].other[row];
			tw->has_other[at] = tw->other[at] > 0;
		}
}

static bool traced_walk_init(struct traced_walk *tw, struct walk *walk)
{
	const struct trace_view *view = walk->s->trace;
	size_t others = (size_t)view->totals_n * TRACED_METRICS;

	*tw = (struct traced_walk){
		.walk = walk,
		.view = view,
		.processes = walk_zeroes(walk, view->processes_n, sizeof(*tw->processes)),
		.devices = walk_zeroes(walk, view->devices_n, sizeof(*tw->devices)),
		.process_shown = walk_zeroes(walk, view->processes_n, sizeof(bool)),
		.device_shown = walk_zeroes(walk, view->devices_n, sizeof(bool)),
		.other = walk_zeroes(walk, others, sizeof(*tw->other)),
		.has_other = walk_zeroes(walk, others, sizeof(bool)),
	};
	if (walk->failed || !traced_totals_init(walk, &tw->totals))
		return false;
	choose_processes(tw);
	for (uint32_t i = 0; i < view->processes_n; i++)
		if (tw->process_shown[i])
			tw->processes[i] = traced_process_set(walk, &view->processes[i]);
	for (uint32_t i = 0; i < view->devices_n; i++)
		if (tw->process_shown[view->devices[i].process])
			tw->devices[i] = traced_device_set(walk, view->devices[i].uuid);
	for (uint32_t i = 0; i < view->processes_n; i++)
		if (tw->process_shown[i])
			choose_devices(tw, &view->processes[i]);
	sum_others(tw);
	return true;
}

static bool device_shows(const struct traced_walk *tw, uint32_t i, const struct metric *m)
{
	const struct traced_device *device = &tw->view->devices[i];

	return tw->device_shown[i] && traced_shows(tw->walk->s, &tw->view->processes[device->process], m);
}

static void walk_traced_row(struct traced_walk *tw, unsigned row)
{
	const struct trace_view *view = tw->view;
	const struct metric *m = &traced_metrics[row];
	const struct label_set *row_set = walk_row_set(tw->walk, m);

	for (uint32_t i = 0; i < view->devices_n; i++) {
		const struct traced_device *device = &view->devices[i];

		if (presence_is(device->p[row]) && device_shows(tw, i, m))
			walk_series(tw->walk,
				    &(struct series){ .sets = { tw->devices[i],
								tw->processes[device->process], row_set },
						      .value = device->v[row],
						      .presence = device->p[row],
						      .created_real_ns =
							      view->processes[device->process].first_real_ns,
						      .row = m,
						      .entity = UINT32_MAX });
	}
	for (uint32_t i = 0; i < view->totals_n; i++) {
		size_t at = (size_t)i * TRACED_METRICS + row;

		if (tw->totals.shown[i] && tw->has_other[at])
			walk_series(tw->walk, &(struct series){ .sets = { tw->totals.sets[i], row_set,
									  tw->walk->other_process },
								.value = tw->other[at],
								.presence = PRESENCE_PRESENT,
								.row = m,
								.entity = UINT32_MAX });
	}
}

static void walk_traced_rows(struct traced_walk *tw)
{
	for (unsigned first = 0, end; first < TRACED_METRICS; first = end) {
		if (!walk_family_rows(tw->walk, WALK_PREFIX, 0, NULL, traced_metrics, TRACED_METRICS, first,
				      &end))
			continue;
		for (unsigned row = first; row < end; row++)
			walk_traced_row(tw, row);
	}
}

static bool total_shows(const struct traced_walk *tw, uint32_t total, const struct metric *m)
{
	return tw->totals.shown[total] && traced_shows(tw->walk->s, NULL, m);
}

static void walk_total_row(struct traced_walk *tw, unsigned row)
{
	const struct metric *m = &traced_metrics[row];
	const struct label_set *row_set = walk_row_set(tw->walk, m);

	for (uint32_t i = 0; i < tw->view->totals_n; i++) {
		const struct traced_total *total = &tw->view->totals[i];

		if (presence_is(total->p[row]) && total_shows(tw, i, m))
			walk_series(tw->walk, &(struct series){ .sets = { tw->totals.sets[i], row_set },
								.value = total->v[row],
								.presence = total->p[row],
								.row = m,
								.entity = UINT32_MAX });
	}
}

static void walk_total_rows(struct traced_walk *tw)
{
	for (unsigned first = 0, end; first < TRACED_METRICS; first = end) {
		if (!walk_family_rows(tw->walk, DEVICE_PREFIX, DEVICE_STRIP,
				      "By device, processes that have ended included: ", traced_metrics,
				      TRACED_METRICS, first, &end))
			continue;
		for (unsigned row = first; row < end; row++)
			walk_total_row(tw, row);
	}
}

static void walk_estimated_processes(struct traced_walk *tw)
{
	const struct trace_view *view = tw->view;

	if (!walk_family_named(tw->walk, "process_cuda_estimated", FAMILY_GAUGE, UNIT_NONE,
			       "1 for each metric of the process whose value is an estimate."))
		return;
	for (unsigned row = 0; row < TRACED_METRICS; row++) {
		const struct metric *m = &traced_metrics[row];
		const struct label_set *row_set = walk_row_set(tw->walk, m),
				       *metric = walk_metric_set(tw->walk, WALK_PREFIX, m->family);

		for (uint32_t i = 0; i < view->devices_n; i++)
			if (presence_estimated(view->devices[i].p[row]) && device_shows(tw, i, m))
				walk_series(
					tw->walk,
					&(struct series){ .sets = { tw->devices[i],
								    tw->processes[view->devices[i].process],
								    row_set, metric },
							  .value = 1,
							  .presence = PRESENCE_PRESENT,
							  .entity = UINT32_MAX });
	}
}

static void walk_estimated_totals(struct traced_walk *tw)
{
	if (!walk_family_named(tw->walk, "gpu_cuda_estimated", FAMILY_GAUGE, UNIT_NONE,
			       "1 for each metric of traced processes by device whose value is an estimate."))
		return;
	for (unsigned row = 0; row < TRACED_METRICS; row++) {
		const struct metric *m = &traced_metrics[row];
		const struct label_set *row_set = walk_row_set(tw->walk, m),
				       *metric = walk_metric_set(tw->walk, DEVICE_PREFIX,
								 m->family + DEVICE_STRIP);

		for (uint32_t i = 0; i < tw->view->totals_n; i++)
			if (presence_estimated(tw->view->totals[i].p[row]) && total_shows(tw, i, m))
				walk_series(tw->walk,
					    &(struct series){ .sets = { tw->totals.sets[i], row_set, metric },
							      .value = 1,
							      .presence = PRESENCE_PRESENT,
							      .entity = UINT32_MAX });
	}
}

/* `kind` is that of memory and copies here, so the kind of workload has another name. */
static const struct label_set *use_set(struct walk *walk, const struct traced_use *use)
{
	const struct workload_name *w =
		use->name < walk->s->workload_names_n ? &walk->s->workload_names[use->name] : NULL;
	struct label labels[3 + OWNER_LABELS] = {
		{ "workload", workload_kind_name(w ? w->kind : WORKLOAD_NONE) },
		{ workload_id_name(w ? w->kind : WORKLOAD_NONE), w ? w->id : WALK_OTHER },
	};
	uint32_t n = 2;

	if (w && w->kind == WORKLOAD_CONTAINER && w->pod_uid[0])
		labels[n++] = (struct label){ "pod_uid", w->pod_uid };
	return walk_set(walk, true, labels, walk_owner_labels(labels, n, w ? w->owner : NULL));
}

static void walk_use_row(struct walk *walk, const struct label_set *const *sets, unsigned row)
{
	const struct metric *m = &traced_metrics[row];
	const struct label_set *row_set = walk_row_set(walk, m);

	for (uint32_t i = 0; i < walk->s->traced_uses_n; i++) {
		const struct traced_use *use = &walk->s->traced_uses[i];

		if (presence_is(use->p[row]) && traced_shows(walk->s, NULL, m))
			walk_series(walk, &(struct series){ .sets = { traced_device_set(walk, use->uuid),
								      sets[i], row_set },
							    .value = use->v[row],
							    .presence = use->p[row],
							    .row = m,
							    .entity = UINT32_MAX });
	}
}

/* process_cuda_launches_total becomes workload_cuda_launches_total. */
static void walk_uses(struct walk *walk)
{
	const struct label_set **sets = walk_zeroes(walk, walk->s->traced_uses_n, sizeof(*sets));

	for (uint32_t i = 0; sets && i < walk->s->traced_uses_n; i++)
		sets[i] = use_set(walk, &walk->s->traced_uses[i]);
	for (unsigned first = 0, end; sets && first < TRACED_METRICS; first = end) {
		if (!walk_family_rows(walk, WORKLOAD_PREFIX, DEVICE_STRIP,
				      "By workload, processes that have ended included: ", traced_metrics,
				      TRACED_METRICS, first, &end))
			continue;
		for (unsigned row = first; row < end; row++)
			walk_use_row(walk, sets, row);
	}
}

static void walk_incomplete(struct traced_walk *tw)
{
	const struct trace_view *view = tw->view;
	const char *reason;

	if (!walk_family_named(
		    tw->walk, "process_cuda_incomplete", FAMILY_GAUGE, UNIT_NONE,
		    "1 for each reason why figures of the traced process are less than what happened."))
		return;
	for (uint32_t i = 0; i < view->processes_n; i++)
		for (unsigned bit = 0; tw->process_shown[i] && (reason = traced_incomplete_name(bit)); bit++)
			if (view->processes[i].incomplete & (1u << bit))
				walk_series(tw->walk,
					    &(struct series){ .sets = { tw->processes[i],
									WALK_SET(tw->walk, false,
										 { "reason", reason }) },
							      .value = 1,
							      .presence = PRESENCE_PRESENT,
							      .entity = UINT32_MAX });
}

static void walk_unplaced(struct traced_walk *tw)
{
	const struct trace_view *view = tw->view;

	if (!walk_family_named(tw->walk, "process_cuda_device_unknown", FAMILY_GAUGE, UNIT_NONE,
			       "1 for a traced process with work on a device that is not known, and why."))
		return;
	for (uint32_t i = 0; i < view->processes_n; i++) {
		const char *reason = traced_unplaced_name(view->processes[i].unplaced);

		if (tw->process_shown[i] && reason)
			walk_series(tw->walk, &(struct series){ .sets = { tw->processes[i],
									  WALK_SET(tw->walk, false,
										   { "reason", reason }) },
								.value = 1,
								.presence = PRESENCE_PRESENT,
								.entity = UINT32_MAX });
	}
}

static void walk_overhead(struct traced_walk *tw)
{
	const struct trace_view *view = tw->view;

	if (!walk_family_named(tw->walk, "process_trace_overhead_ratio", FAMILY_GAUGE, UNIT_RATIO,
			       "Estimate: share of a core that tracing costs the process, probe hits times "
			       "measured cost."))
		return;
	for (uint32_t i = 0; i < view->processes_n; i++)
		if (tw->process_shown[i] && !view->processes[i].exited && !tw->walk->s->trace_stale)
			walk_series(tw->walk,
				    &(struct series){ .sets = { tw->processes[i] },
						      .value = view->processes[i].overhead,
						      .presence = PRESENCE_PRESENT | PRESENCE_ESTIMATED,
						      .entity = UINT32_MAX });
}

static void walk_trace_info(struct walk *walk)
{
	const struct trace_view *view = walk->s->trace;

	if (walk_family_named(walk, "trace_info", FAMILY_INFO, UNIT_NONE,
			      "Whether CUDA calls are traced, how, and why not or what is missing."))
		walk_series(walk,
			    &(struct series){
				    .sets = { WALK_SET(
					    walk, false, { "enabled", view->enabled ? "true" : "false" },
					    { "backend", view->backend }, { "reason", view->why }) },
				    .value = 1,
				    .presence = PRESENCE_PRESENT,
				    .entity = UINT32_MAX });
}

static void walk_gaps(struct traced_walk *tw)
{
	if (!walk_family_named(tw->walk, "gpu_cuda_launch_gap_seconds", FAMILY_HISTOGRAM, UNIT_SECONDS,
			       "By device: time from the return of a launch to the next launch in the same "
			       "stream, whatever the program did meanwhile."))
		return;
	for (uint32_t i = 0; i < tw->view->totals_n; i++) {
		const struct traced_gaps *gaps = &tw->view->totals[i].gaps;

		if (tw->totals.shown[i])
			walk_durations(tw->walk, tw->totals.sets[i], gaps->within, gaps->seconds);
	}
}

void walk_traced(struct walk *walk)
{
	struct traced_walk tw;

	if (!walk->s->trace || !traced_walk_init(&tw, walk))
		return;
	walk_trace_info(walk);
	walk_traced_rows(&tw);
	walk_total_rows(&tw);
	walk_uses(walk);
	walk_gaps(&tw);
	walk_estimated_processes(&tw);
	walk_estimated_totals(&tw);
	walk_incomplete(&tw);
	walk_unplaced(&tw);
	walk_overhead(&tw);
}
