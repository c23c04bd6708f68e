// SPDX-License-Identifier: Apache-2.0
#include "view/walk/private.h"

#include <stdlib.h>
#include <string.h>

#include "view/names.h"
#include "view/shown.h"

#define WORKLOAD_PREFIX "gpusonde_workload_"

struct process_walk {
	struct walk *walk;
	const struct label_set **sets; /* pid, comm of each process with series of its own */
	double *other; /* sums over the processes without a series: PROCESS_METRICS numbers per entity */
	bool *has_other;
};

/* Whether sums over processes make sense: not for ratios and peaks. */
static bool row_adds_up(const struct metric *m)
{
	return m->kind == METRIC_INCREMENT || (m->kind == METRIC_GAUGE && m->unit == UNIT_BYTES);
}

/*
 * Values of the series pid="other". Increments are those credited there, not a sum over the current
 * processes: otherwise the series would fall when a process gets its own series.
 */
static void sum_others(struct process_walk *pw)
{
	const struct snapshot *s = pw->walk->s;

	for (uint32_t i = 0; i < s->processes_n; i++) {
		const struct process *process = &s->processes[i];

		for (unsigned row = 0; !process->has_series && row < PROCESS_METRICS; row++) {
			size_t at = (size_t)process->entity * PROCESS_METRICS + row;

			if (!presence_is(process->p[row]))
				continue;
			pw->has_other[at] = true;
			if (process_metrics[row].kind != METRIC_INCREMENT)
				pw->other[at] += process->v[row];
		}
	}
	for (uint32_t i = 0; i < s->entities_n; i++)
		for (unsigned row = 0; row < PROCESS_METRICS; row++) {
			size_t at = (size_t)i * PROCESS_METRICS + row;

			if (process_metrics[row].kind == METRIC_INCREMENT) {
				pw->other[at] = s->entities[i].process_other[row];
				pw->has_other[at] |= pw->other[at] > 0;
			}
		}
}

static const struct label_set *process_set(struct walk *walk, const struct process *process)
{
	const struct snapshot *s = walk->s;
	struct label labels[2 + OWNER_LABELS] = {
		{ "pid", walk_number(walk, process->id.pid) },
		{ "comm", process->comm },
	};
	const struct owner *owner =
		process->workload < s->workloads_n ? s->workloads[process->workload].owner : NULL;

	return walk_set(walk, true, labels, walk_owner_labels(labels, 2, owner));
}

static bool process_walk_init(struct process_walk *pw, struct walk *walk)
{
	const struct snapshot *s = walk->s;
	size_t others = (size_t)s->entities_n * PROCESS_METRICS;

	*pw = (struct process_walk){
		.walk = walk,
		.sets = walk_zeroes(walk, s->processes_n, sizeof(*pw->sets)),
		.other = walk_zeroes(walk, others, sizeof(*pw->other)),
		.has_other = walk_zeroes(walk, others, sizeof(*pw->has_other)),
	};
	if (walk->failed)
		return false;
	for (uint32_t i = 0; i < s->processes_n; i++)
		if (s->processes[i].has_series)
			pw->sets[i] = process_set(walk, &s->processes[i]);
	sum_others(pw);
	return true;
}

static void walk_process_row(struct process_walk *pw, unsigned row)
{
	const struct snapshot *s = pw->walk->s;
	const struct metric *m = &process_metrics[row];
	const struct label_set *row_set = walk_row_set(pw->walk, m);

	for (uint32_t i = 0; i < s->processes_n; i++) {
		const struct process *process = &s->processes[i];
		bool credited = m->kind == METRIC_INCREMENT;

		if (process->has_series && presence_is(process->p[row]) &&
		    entity_shows(&s->entities[process->entity], m))
			walk_series(pw->walk, &(struct series){ .sets = { pw->walk->entities[process->entity],
									  pw->sets[i], row_set },
								.value = credited ? process->series[row] :
										    process->v[row],
								.presence = process->p[row],
								.created_real_ns = process->first_real_ns,
								.row = m,
								.entity = process->entity });
	}
	for (uint32_t i = 0; row_adds_up(m) && i < s->entities_n; i++) {
		size_t at = (size_t)i * PROCESS_METRICS + row;

		if (pw->has_other[at] && entity_shows(&s->entities[i], m))
			walk_series(pw->walk, &(struct series){ .sets = { pw->walk->entities[i], row_set,
									  pw->walk->other_process },
								.value = pw->other[at],
								.presence = PRESENCE_PRESENT,
								.row = m,
								.entity = i });
	}
}

/* Totals over live and ended processes, with or without a series. */
static void walk_process_totals(struct walk *walk)
{
	const struct metric *m = &process_metrics[PROCESS_BUSY];

	if (!walk_family_named(
		    walk, "gpu_processes_busy_seconds_total", FAMILY_COUNTER, UNIT_SECONDS,
		    "Time the multiprocessors worked for processes, those that have ended included."))
		return;
	for (uint32_t i = 0; i < walk->s->entities_n; i++) {
		const struct entity *e = &walk->s->entities[i];
		double total = e->process_total[PROCESS_BUSY];

		if ((presence_is(e->id.process_util) || total > 0) && entity_shows(e, m))
			walk_series(walk, &(struct series){ .sets = { walk->entities[i] },
							    .value = total,
							    .presence = PRESENCE_PRESENT,
							    .entity = i });
	}
}

void walk_processes(struct walk *walk)
{
	struct process_walk pw;

	if (!process_walk_init(&pw, walk))
		return;
	for (unsigned first = 0, end; first < PROCESS_METRICS; first = end) {
		if (!walk_family_rows(walk, WALK_PREFIX, 0, NULL, process_metrics, PROCESS_METRICS, first,
				      &end))
			continue;
		for (unsigned row = first; row < end; row++)
			walk_process_row(&pw, row);
	}
	walk_process_totals(walk);
}

static const struct label_set *workload_set(struct walk *walk, const struct workload *workload)
{
	struct label labels[3 + OWNER_LABELS] = {
		{ "kind", workload_kind_name(workload->kind) },
		{ workload_id_name(workload->kind), workload->id },
	};
	uint32_t n = 2;

	if (workload->kind == WORKLOAD_CONTAINER && workload->pod_uid[0])
		labels[n++] = (struct label){ "pod_uid", workload->pod_uid };
	return walk_set(walk, true, labels, walk_owner_labels(labels, n, workload->owner));
}

static void walk_workload_row(struct walk *walk, const struct label_set *const *sets, unsigned row)
{
	const struct metric *m = &process_metrics[row];
	const struct label_set *row_set = walk_row_set(walk, m);

	for (uint32_t i = 0; i < walk->s->workloads_n; i++) {
		const struct workload *workload = &walk->s->workloads[i];

		if (presence_is(workload->p[row]) && entity_shows(&walk->s->entities[workload->entity], m))
			walk_series(walk, &(struct series){ .sets = { walk->entities[workload->entity],
								      sets[i], row_set },
							    .value = workload->v[row],
							    .presence = workload->p[row],
							    .row = m,
							    .entity = workload->entity });
	}
}

void walk_workloads(struct walk *walk)
{
	/* process_gpu_busy_seconds_total is renamed workload_gpu_busy_seconds_total */
	static const size_t strip = sizeof("process_") - 1;
	const struct label_set **sets = walk_zeroes(walk, walk->s->workloads_n, sizeof(*sets));

	for (uint32_t i = 0; sets && i < walk->s->workloads_n; i++)
		sets[i] = workload_set(walk, &walk->s->workloads[i]);
	for (unsigned first = 0, end; sets && first < PROCESS_METRICS; first = end) {
		if (!walk_family_rows(walk, WORKLOAD_PREFIX, strip, "By workload: ", process_metrics,
				      PROCESS_METRICS, first, &end))
			continue;
		for (unsigned row = first; row < end; row++)
			walk_workload_row(walk, sets, row);
	}
}

/* ---- jobs ---- */

static int compare_jobs(const void *a, const void *b)
{
	const struct workload *x = *(const struct workload *const *)a;
	const struct workload *y = *(const struct workload *const *)b;
	int order = strcmp(x->id, y->id);

	return order ? order : x < y ? -1 : x > y;
}

static void walk_job_info(struct walk *walk, const struct label *labels, uint32_t n)
{
	walk_series(walk, &(struct series){ .sets = { walk_set(walk, false, labels, n) },
					    .value = 1,
					    .presence = PRESENCE_PRESENT,
					    .entity = UINT32_MAX });
}

/*
 * Of the workloads of one job, one for each device, the first that knows counts: what processes claim may
 * differ, and a job has one series of each kind, so that others can be joined with it.
 */
static void walk_job(struct walk *walk, const struct workload *const *of, uint32_t n)
{
	const struct job *job = NULL;
	uint32_t uid = UINT32_MAX, labels_n = 1;
	struct label labels[4] = { { "job", of[0]->id } };

	for (uint32_t i = 0; i < n; i++) {
		uid = uid == UINT32_MAX ? of[i]->uid : uid;
		job = job ? job : snapshot_job(walk->s, of[i]->job);
	}
	if (uid != UINT32_MAX)
		walk_job_info(walk,
			      (const struct label[]){ labels[0],
						      { "job_uid", walk_number(walk, uid) },
						      { "claimed", "false" } },
			      3);
	if (!job || !job_name_is_claimed(job))
		return;
	if (job->name[0])
		labels[labels_n++] = (struct label){ "job_name", job->name };
	if (job->user[0])
		labels[labels_n++] = (struct label){ "job_user", job->user };
	labels[labels_n++] = (struct label){ "claimed", "true" };
	walk_job_info(walk, labels, labels_n);
}

void walk_jobs(struct walk *walk)
{
	const struct workload **jobs = walk_zeroes(walk, walk->s->workloads_n, sizeof(*jobs));
	uint32_t n = 0;

	if (!jobs || !walk_family_named(walk, "job_info", FAMILY_INFO, UNIT_NONE,
					"Whose a batch system's job is: the user ID of its processes; and, "
					"claimed, the name and user that a process of it says."))
		return;
	for (uint32_t i = 0; i < walk->s->workloads_n; i++)
		if (walk->s->workloads[i].kind == WORKLOAD_JOB)
			jobs[n++] = &walk->s->workloads[i];
	qsort(jobs, n, sizeof(*jobs), compare_jobs);
	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && STRV_EQ(jobs[end]->id, jobs[i]->id);)
			end++;
		walk_job(walk, jobs + i, end - i);
	}
}

/* ---- training runs of pods ---- */

static int compare_pods(const void *a, const void *b)
{
	const struct owner *x = *(const struct owner *const *)a, *y = *(const struct owner *const *)b;
	int order = strcmp(x->namespace, y->namespace);

	order = order ? order : strcmp(x->pod, y->pod);
	return order ? order : x < y ? -1 : x > y;
}

static void walk_run(struct walk *walk, const struct owner *pod)
{
	struct label labels[4] = { { "namespace", pod->namespace }, { "pod", pod->pod } };
	uint32_t n = 2;

	if (pod->run[0])
		labels[n++] = (struct label){ "run", pod->run };
	if (pod->group[0])
		labels[n++] = (struct label){ "run_group", pod->group };
	walk_series(walk, &(struct series){ .sets = { walk_set(walk, false, labels, n) },
					    .value = 1,
					    .presence = PRESENCE_PRESENT,
					    .entity = UINT32_MAX });
}

/* One for each pod, however many containers and devices it has. */
void walk_runs(struct walk *walk)
{
	const struct snapshot *s = walk->s;
	const struct owner **pods = walk_zeroes(walk, s->workloads_n, sizeof(*pods));
	uint32_t n = 0;

	if (!pods || !walk_family_named(walk, "pod_run_info", FAMILY_INFO, UNIT_NONE,
					"Training run that a pod on a GPU belongs to, and its group, by the "
					"pod's label or annotation."))
		return;
	for (uint32_t i = 0; i < s->workloads_n; i++) {
		pods[n] = run_owner(s, &s->workloads[i]);
		n += pods[n] && pods[n]->pod[0];
	}
	qsort(pods, n, sizeof(*pods), compare_pods);
	for (uint32_t i = 0; i < n; i++)
		if (i == 0 || !STRV_EQ(pods[i]->pod, pods[i - 1]->pod) ||
		    !STRV_EQ(pods[i]->namespace, pods[i - 1]->namespace))
			walk_run(walk, pods[i]);
}
