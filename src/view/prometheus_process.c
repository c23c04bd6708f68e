// SPDX-License-Identifier: Apache-2.0
#include "view/prometheus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "view/names.h"
#include "view/shown.h"

#define PREFIX "gpusonde_"
#define WORKLOAD_PREFIX "gpusonde_workload_"

struct process_page {
	struct exposition_page *p;
	struct labels labels; /* of each process, its entity's included */
	double *other; /* sums over the processes without a series: PROCESS_METRICS numbers per entity */
	bool *has_other;
};

static int make_process_labels(struct process_page *pp)
{
	const struct snapshot *s = pp->p->s;
	struct strbuf entry;
	int r = labels_init(&pp->labels, s->processes_n);

	if (r < 0)
		return r;
	strbuf_init(&entry, 0);
	for (uint32_t i = 0; i < s->processes_n; i++) {
		strbuf_reset(&entry);
		strbuf_adds(&entry, labels_get(&pp->p->entities, s->processes[i].entity));
		label_add_u64(&entry, "pid", s->processes[i].pid);
		label_add(&entry, "comm", s->processes[i].comm);
		labels_add(&pp->labels, &entry);
	}
	strbuf_done(&entry);
	return labels_check(&pp->labels);
}

/* May be added up over processes: a ratio or a peak may not. */
static bool row_adds_up(const struct metric *m)
{
	return m->kind == METRIC_INCREMENT || (m->kind == METRIC_GAUGE && m->unit == UNIT_BYTES);
}

/*
 * What stands in the line of the others. For increments it is what was credited there, not a sum over today's
 * processes: a process that gets a series of its own later must not take along what is in here, or the line
 * would fall.
 */
static int sum_others(struct process_page *pp)
{
	const struct snapshot *s = pp->p->s;

	pp->other = calloc((size_t)s->entities_n * PROCESS_METRICS + 1, sizeof(*pp->other));
	pp->has_other = calloc((size_t)s->entities_n * PROCESS_METRICS + 1, sizeof(*pp->has_other));
	if (!pp->other || !pp->has_other)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->processes_n; i++) {
		const struct process *process = &s->processes[i];

		for (unsigned row = 0; !process->has_series && row < PROCESS_METRICS; row++) {
			size_t at = (size_t)process->entity * PROCESS_METRICS + row;

			if (!presence_is(process->p[row]))
				continue;
			pp->has_other[at] = true;
			if (process_metrics[row].kind != METRIC_INCREMENT)
				pp->other[at] += process->v[row];
		}
	}
	for (uint32_t i = 0; i < s->entities_n; i++)
		for (unsigned row = 0; row < PROCESS_METRICS; row++) {
			size_t at = (size_t)i * PROCESS_METRICS + row;

			if (process_metrics[row].kind == METRIC_INCREMENT) {
				pp->other[at] = s->entities[i].process_other[row];
				pp->has_other[at] |= pp->other[at] > 0;
			}
		}
	return 0;
}

static void add_process_row(struct process_page *pp, unsigned row, struct strbuf *tail)
{
	const struct snapshot *s = pp->p->s;
	const struct metric *m = &process_metrics[row];

	row_labels(m, tail);
	for (uint32_t i = 0; i < s->processes_n; i++) {
		const struct process *process = &s->processes[i];

		if (process->has_series && presence_is(process->p[row]) &&
		    entity_shows(&s->entities[process->entity], m))
			page_sample(&pp->p->page, labels_get(&pp->labels, i), tail->data,
				    m->kind == METRIC_INCREMENT ? process->series[row] : process->v[row]);
	}
	if (!row_adds_up(m))
		return;
	label_add(tail, "pid", "other");
	label_add(tail, "comm", "other");
	for (uint32_t i = 0; i < s->entities_n; i++) {
		size_t at = (size_t)i * PROCESS_METRICS + row;

		if (pp->has_other[at] && entity_shows(&s->entities[i], m))
			page_sample(&pp->p->page, labels_get(&pp->p->entities, i), tail->data, pp->other[at]);
	}
}

/* Live processes and all that have ended, with or without a series. */
static void add_process_totals(struct exposition_page *p)
{
	const struct metric *m = &process_metrics[PROCESS_BUSY];

	page_family(&p->page,
		    &(struct family){
			    PREFIX, "gpu_processes_busy_seconds_total",
			    "Time the multiprocessors worked for processes, those that have ended included.",
			    NULL, FAMILY_COUNTER, UNIT_SECONDS });
	for (uint32_t i = 0; i < p->s->entities_n; i++) {
		const struct entity *e = &p->s->entities[i];

		if ((presence_is(e->id.process_util) || e->process_total[PROCESS_BUSY] > 0) &&
		    entity_shows(e, m))
			page_sample(&p->page, labels_get(&p->entities, i), "",
				    e->process_total[PROCESS_BUSY]);
	}
}

int prometheus_processes(struct exposition_page *p)
{
	struct process_page pp = { .p = p };
	struct strbuf tail;
	int r;

	strbuf_init(&tail, 0);
	r = make_process_labels(&pp);
	if (r >= 0)
		r = sum_others(&pp);
	for (unsigned first = 0, end; r >= 0 && first < PROCESS_METRICS; first = end) {
		struct family family;

		end = family_end(process_metrics, PROCESS_METRICS, first);
		family_of(&process_metrics[first], PREFIX, process_metrics[first].family, &family);
		page_family(&p->page, &family);
		for (unsigned row = first; row < end; row++)
			add_process_row(&pp, row, &tail);
	}
	if (r >= 0)
		add_process_totals(p);
	if (tail.failed)
		r = -ENOMEM;
	strbuf_done(&tail);
	free(pp.other);
	free(pp.has_other);
	labels_done(&pp.labels);
	return r;
}

static int make_workload_labels(struct exposition_page *p, struct labels *labels)
{
	struct strbuf entry;
	int r = labels_init(labels, p->s->workloads_n);

	if (r < 0)
		return r;
	strbuf_init(&entry, 0);
	for (uint32_t i = 0; i < p->s->workloads_n; i++) {
		const struct workload *workload = &p->s->workloads[i];

		strbuf_reset(&entry);
		strbuf_adds(&entry, labels_get(&p->entities, workload->entity));
		label_add(&entry, "kind", workload_kind_name(workload->kind));
		label_add(&entry, workload_id_name(workload->kind), workload->id);
		if (workload->kind == WORKLOAD_CONTAINER && workload->pod_uid[0])
			label_add(&entry, "pod_uid", workload->pod_uid);
		labels_add(labels, &entry);
	}
	strbuf_done(&entry);
	return labels_check(labels);
}

static void add_workload_row(struct exposition_page *p, const struct labels *labels, unsigned row,
			     const char *tail)
{
	const struct metric *m = &process_metrics[row];

	for (uint32_t i = 0; i < p->s->workloads_n; i++) {
		const struct workload *workload = &p->s->workloads[i];

		if (presence_is(workload->p[row]) && entity_shows(&p->s->entities[workload->entity], m))
			page_sample(&p->page, labels_get(labels, i), tail, workload->v[row]);
	}
}

int prometheus_workloads(struct exposition_page *p)
{
	struct labels labels;
	struct strbuf tail;
	int r = make_workload_labels(p, &labels);

	strbuf_init(&tail, 0);
	for (unsigned first = 0, end; r >= 0 && first < PROCESS_METRICS; first = end) {
		/* process_gpu_busy_seconds_total becomes workload_gpu_busy_seconds_total */
		const char *name = process_metrics[first].family + strlen("process_");
		struct family family;

		end = family_end(process_metrics, PROCESS_METRICS, first);
		family_of(&process_metrics[first], WORKLOAD_PREFIX, name, &family);
		family.help = "By workload: ";
		family.help_more = process_metrics[first].help;
		page_family(&p->page, &family);
		for (unsigned row = first; row < end; row++)
			add_workload_row(p, &labels, row, row_labels(&process_metrics[row], &tail));
	}
	if (r >= 0 && tail.failed)
		r = -ENOMEM;
	strbuf_done(&tail);
	labels_done(&labels);
	return r;
}
