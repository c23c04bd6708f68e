// SPDX-License-Identifier: Apache-2.0
/*
 * Traced processes. No series may appear twice, or Prometheus refuses the whole page: of two processes with
 * one PID (one has ended, its successor runs) the younger has the series, and of two devices with equal
 * labels the first.
 */
#include "view/prometheus.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/shown.h"

#define PREFIX "gpusonde_"
#define DEVICE_PREFIX "gpusonde_gpu_"

struct trace_page {
	struct exposition_page *p;
	const struct trace_view *view;
	struct labels processes; /* pid, comm */
	struct labels devices; /* gpu, uuid, gi, ci as far as they are known; pid, comm */
	struct labels totals; /* gpu, uuid, gi, ci */
	bool *process_shown, *device_shown, *total_shown;
	double *other; /* gauges that may be added up: TRACED_METRICS numbers per total */
	bool *has_other;
	struct strbuf tail, last; /* label texts of the sample at hand */
};

static void begin(struct trace_page *tp, const char *name, enum family_type type, enum metric_unit unit,
		  const char *help)
{
	page_family(&tp->p->page, &(struct family){ PREFIX, name, help, NULL, type, unit });
}

void traced_device_labels(const struct exposition_page *p, const char *uuid, struct strbuf *entry)
{
	const struct entity *e = entity_by_uuid(p->s, uuid);

	if (e)
		strbuf_adds(entry, labels_get(&p->entities, (uint32_t)(e - p->s->entities)));
	else if (*uuid)
		label_add(entry, "uuid", uuid);
}

static bool is_younger(const struct traced_process *a, const struct traced_process *b)
{
	return a->exited != b->exited ? b->exited : a->start_ticks > b->start_ticks;
}

uint32_t traced_youngest(const struct trace_view *view, uint32_t first, uint32_t *ret_end)
{
	const struct traced_process *all = view->processes;
	uint32_t youngest = first, end = first + 1;

	for (; end < view->processes_n && all[end].pid == all[first].pid; end++)
		if (is_younger(&all[end], &all[youngest]))
			youngest = end;
	*ret_end = end;
	return youngest;
}

static void choose_processes(struct trace_page *tp)
{
	for (uint32_t first = 0, end; first < tp->view->processes_n; first = end) {
		uint32_t youngest = traced_youngest(tp->view, first, &end);

		tp->process_shown[youngest] = tp->view->processes[youngest].has_series;
	}
}

static int make_process_labels(struct trace_page *tp, struct strbuf *entry)
{
	int r = labels_init(&tp->processes, tp->view->processes_n);

	for (uint32_t i = 0; r >= 0 && i < tp->view->processes_n; i++) {
		strbuf_reset(entry);
		label_add_u64(entry, "pid", tp->view->processes[i].pid);
		label_add(entry, "comm", tp->view->processes[i].comm);
		labels_add(&tp->processes, entry);
	}
	return r < 0 ? r : labels_check(&tp->processes);
}

static int make_device_labels(struct trace_page *tp, struct strbuf *entry)
{
	int r = labels_init(&tp->devices, tp->view->devices_n);

	for (uint32_t i = 0; r >= 0 && i < tp->view->devices_n; i++) {
		const struct traced_device *device = &tp->view->devices[i];

		strbuf_reset(entry);
		traced_device_labels(tp->p, device->uuid, entry);
		if (entry->len > 0)
			strbuf_addc(entry, ',');
		strbuf_adds(entry, labels_get(&tp->processes, device->process));
		labels_add(&tp->devices, entry);
	}
	r = r < 0 ? r : labels_check(&tp->devices);
	for (uint32_t i = 0; r >= 0 && i < tp->view->processes_n; i++) {
		const struct traced_process *process = &tp->view->processes[i];
		uint32_t first = process->devices_first, end = first + process->devices_n;

		for (uint32_t k = first; tp->process_shown[i] && k < end; k++) {
			tp->device_shown[k] = true;
			for (uint32_t before = first; before < k; before++)
				if (STRV_EQ(labels_get(&tp->devices, before), labels_get(&tp->devices, k)))
					tp->device_shown[k] = false;
		}
	}
	return r;
}

static int make_total_labels(struct trace_page *tp, struct strbuf *entry)
{
	int r = labels_init(&tp->totals, tp->view->totals_n);

	for (uint32_t i = 0; r >= 0 && i < tp->view->totals_n; i++) {
		strbuf_reset(entry);
		traced_device_labels(tp->p, tp->view->totals[i].uuid, entry);
		labels_add(&tp->totals, entry);
	}
	r = r < 0 ? r : labels_check(&tp->totals);
	for (uint32_t i = 0; r >= 0 && i < tp->view->totals_n; i++) {
		tp->total_shown[i] = true;
		for (uint32_t before = 0; before < i; before++)
			if (STRV_EQ(labels_get(&tp->totals, before), labels_get(&tp->totals, i)))
				tp->total_shown[i] = false;
	}
	return r;
}

/* Memory may be added up over processes: a ratio, a peak or a mean (of launches, by class) may not. */
static bool gauge_adds_up(const struct metric *m)
{
	return m->kind == METRIC_GAUGE && m->unit == UNIT_BYTES && !(m->label && STRV_EQ(m->label, "class"));
}

/*
 * Counters of those without a series come with the view; what is a sum over today's processes is made here.
 */
static void sum_others(struct trace_page *tp)
{
	const struct trace_view *view = tp->view;

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
			    !traced_shows(tp->p->s, process, &traced_metrics[row]))
				continue;
			/* One that is not known, and neither is the sum. */
			tp->other[at] += presence_is(device->p[row]) ? device->v[row] : NAN;
			tp->has_other[at] = !isnan(tp->other[at]);
		}
	}
	for (uint32_t total = 0; total < view->totals_n; total++)
		for (unsigned row = 0; row < TRACED_METRICS; row++) {
			size_t at = (size_t)total * TRACED_METRICS + row;

			if (!metric_is_counter(&traced_metrics[row]))
				continue;
			tp->other[at] = view->totals[total].other[row];
			tp->has_other[at] = tp->other[at] > 0;
		}
}

static void *zeroes(size_t n, size_t size)
{
	return calloc(n > 0 ? n : 1, size);
}

static int trace_page_init(struct trace_page *tp, struct exposition_page *p)
{
	const struct trace_view *view = p->s->trace;
	size_t others = (size_t)view->totals_n * TRACED_METRICS;
	struct strbuf entry;
	int r;

	*tp = (struct trace_page){ .p = p, .view = view };
	strbuf_init(&tp->tail, 0);
	strbuf_init(&tp->last, 0);
	tp->process_shown = zeroes(view->processes_n, sizeof(bool));
	tp->device_shown = zeroes(view->devices_n, sizeof(bool));
	tp->total_shown = zeroes(view->totals_n, sizeof(bool));
	tp->other = zeroes(others, sizeof(*tp->other));
	tp->has_other = zeroes(others, sizeof(bool));
	if (!tp->process_shown || !tp->device_shown || !tp->total_shown || !tp->other || !tp->has_other)
		return -ENOMEM;
	choose_processes(tp);
	strbuf_init(&entry, 0);
	r = make_process_labels(tp, &entry);
	if (r >= 0)
		r = make_device_labels(tp, &entry);
	if (r >= 0)
		r = make_total_labels(tp, &entry);
	strbuf_done(&entry);
	if (r >= 0)
		sum_others(tp);
	return r;
}

static void trace_page_done(struct trace_page *tp)
{
	labels_done(&tp->processes);
	labels_done(&tp->devices);
	labels_done(&tp->totals);
	free(tp->process_shown);
	free(tp->device_shown);
	free(tp->total_shown);
	free(tp->other);
	free(tp->has_other);
	strbuf_done(&tp->tail);
	strbuf_done(&tp->last);
}

static void add_row(struct trace_page *tp, unsigned row)
{
	const struct trace_view *view = tp->view;
	const struct metric *m = &traced_metrics[row];
	struct page *page = &tp->p->page;

	row_labels(m, &tp->tail);
	for (uint32_t i = 0; i < view->devices_n; i++) {
		const struct traced_device *device = &view->devices[i];

		if (tp->device_shown[i] && presence_is(device->p[row]) &&
		    traced_shows(tp->p->s, &view->processes[device->process], m))
			page_sample(page, labels_get(&tp->devices, i), tp->tail.data, device->v[row]);
	}
	label_add(&tp->tail, "pid", "other");
	label_add(&tp->tail, "comm", "other");
	for (uint32_t i = 0; i < view->totals_n; i++) {
		size_t at = (size_t)i * TRACED_METRICS + row;

		if (tp->total_shown[i] && tp->has_other[at])
			page_sample(page, labels_get(&tp->totals, i), tp->tail.data, tp->other[at]);
	}
}

static void add_rows(struct trace_page *tp)
{
	for (unsigned first = 0, end; first < TRACED_METRICS; first = end) {
		struct family family;

		end = family_end(traced_metrics, TRACED_METRICS, first);
		family_of(&traced_metrics[first], PREFIX, traced_metrics[first].family, &family);
		page_family(&tp->p->page, &family);
		for (unsigned row = first; row < end; row++)
			add_row(tp, row);
	}
}

/* process_cuda_launches_total becomes gpu_cuda_launches_total, which does not fall when a process ends. */
static const char *device_family(const struct metric *m)
{
	return m->family + strlen("process_");
}

static bool total_shows(const struct trace_page *tp, uint32_t total, const struct metric *m)
{
	return tp->total_shown[total] && (m->kind != METRIC_GAUGE || !tp->p->s->trace_stale);
}

static void add_device_rows(struct trace_page *tp)
{
	for (unsigned first = 0, end; first < TRACED_METRICS; first = end) {
		struct family family;

		end = family_end(traced_metrics, TRACED_METRICS, first);
		family_of(&traced_metrics[first], DEVICE_PREFIX, device_family(&traced_metrics[first]),
			  &family);
		family.help = "By device, processes that have ended included: ";
		family.help_more = traced_metrics[first].help;
		page_family(&tp->p->page, &family);
		for (unsigned row = first; row < end; row++) {
			const struct metric *m = &traced_metrics[row];

			row_labels(m, &tp->tail);
			for (uint32_t i = 0; i < tp->view->totals_n; i++)
				if (presence_is(tp->view->totals[i].p[row]) && total_shows(tp, i, m))
					page_sample(&tp->p->page, labels_get(&tp->totals, i), tp->tail.data,
						    tp->view->totals[i].v[row]);
		}
	}
}

static bool estimated(uint8_t presence)
{
	return presence_is(presence) && (presence & PRESENCE_ESTIMATED);
}

/* Leaves in tp->tail the labels that say which metric is one. */
static void estimated_labels(struct trace_page *tp, const struct metric *m, const char *prefix,
			     const char *name)
{
	strbuf_reset(&tp->last);
	strbuf_adds(&tp->last, prefix);
	strbuf_adds(&tp->last, name);
	row_labels(m, &tp->tail);
	label_add(&tp->tail, "metric", tp->last.data);
}

static void add_estimated(struct trace_page *tp)
{
	begin(tp, "process_cuda_estimated", FAMILY_GAUGE, UNIT_NONE,
	      "1 for each metric of the process whose value is an estimate.");
	for (unsigned row = 0; row < TRACED_METRICS; row++) {
		const struct metric *m = &traced_metrics[row];

		estimated_labels(tp, m, PREFIX, m->family);
		for (uint32_t i = 0; i < tp->view->devices_n; i++) {
			const struct traced_device *device = &tp->view->devices[i];

			if (tp->device_shown[i] && estimated(device->p[row]) &&
			    traced_shows(tp->p->s, &tp->view->processes[device->process], m))
				page_sample(&tp->p->page, labels_get(&tp->devices, i), tp->tail.data, 1);
		}
	}
	begin(tp, "gpu_cuda_estimated", FAMILY_GAUGE, UNIT_NONE,
	      "1 for each metric of traced processes by device whose value is an estimate.");
	for (unsigned row = 0; row < TRACED_METRICS; row++) {
		const struct metric *m = &traced_metrics[row];

		estimated_labels(tp, m, DEVICE_PREFIX, device_family(m));
		for (uint32_t i = 0; i < tp->view->totals_n; i++)
			if (estimated(tp->view->totals[i].p[row]) && total_shows(tp, i, m))
				page_sample(&tp->p->page, labels_get(&tp->totals, i), tp->tail.data, 1);
	}
}

static void add_process_state(struct trace_page *tp)
{
	const struct trace_view *view = tp->view;
	const char *reason;

	begin(tp, "process_cuda_incomplete", FAMILY_GAUGE, UNIT_NONE,
	      "1 for each reason why figures of the traced process are less than what happened.");
	for (uint32_t i = 0; i < view->processes_n; i++)
		for (unsigned bit = 0; tp->process_shown[i] && (reason = traced_incomplete_name(bit));
		     bit++) {
			if (!(view->processes[i].incomplete & (1u << bit)))
				continue;
			strbuf_reset(&tp->tail);
			label_add(&tp->tail, "reason", reason);
			page_sample(&tp->p->page, labels_get(&tp->processes, i), tp->tail.data, 1);
		}
	begin(tp, "process_trace_overhead_ratio", FAMILY_GAUGE, UNIT_RATIO,
	      "Estimate: share of a core that tracing costs the process, probe hits times measured cost.");
	for (uint32_t i = 0; i < view->processes_n; i++)
		if (tp->process_shown[i] && !view->processes[i].exited && !tp->p->s->trace_stale)
			page_sample(&tp->p->page, labels_get(&tp->processes, i), "",
				    view->processes[i].overhead);
}

static void add_info(struct trace_page *tp)
{
	begin(tp, "trace_info", FAMILY_INFO, UNIT_NONE,
	      "Whether CUDA calls are traced, how, and why not or what is missing.");
	strbuf_reset(&tp->tail);
	label_add(&tp->tail, "enabled", tp->view->enabled ? "true" : "false");
	label_add(&tp->tail, "backend", tp->view->backend);
	label_add(&tp->tail, "reason", tp->view->why);
	page_sample(&tp->p->page, "", tp->tail.data, 1);
}

int prometheus_trace(struct exposition_page *p)
{
	struct trace_page tp;
	int r;

	if (!p->s->trace)
		return 0;
	r = trace_page_init(&tp, p);
	if (r >= 0) {
		add_info(&tp);
		add_rows(&tp);
		add_device_rows(&tp);
		add_estimated(&tp);
		add_process_state(&tp);
		if (tp.tail.failed || tp.last.failed)
			r = -ENOMEM;
	}
	trace_page_done(&tp);
	return r;
}
