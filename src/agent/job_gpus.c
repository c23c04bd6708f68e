// SPDX-License-Identifier: Apache-2.0
#include "agent/job_gpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "base/log.h"
#include "base/macro.h"
#include "proc/ancestor.h"
#include "proc/proc.h"

enum { JOBS_MAX = 256, GPUS_MAX = 64, KEEPERS_MAX = 8 };
#define CHECK_NS (5 * NSEC_PER_SEC)

struct given_job {
	char id[sizeof(((struct job *)NULL)->id)];
	struct process_id keepers[KEEPERS_MAX]; /* of its steps: it lasts while one of them lives */
	uint32_t keepers_n;
	uint64_t gpus; /* bits of device numbers */
};

struct job_gpus {
	struct model *model;
	char *proc_root;
	struct given_job jobs[JOBS_MAX];
	uint32_t n;
	int64_t checked_ns;
	struct allocation *rows; /* ALLOCATIONS_MAX */
	uint32_t left_out; /* GPUs of jobs that have no row, since so many others have */
	char beyond[sizeof(((struct job *)NULL)->id)]; /* the newest job above JOBS_MAX */
	bool said_unknown;
};

int job_gpus_new(struct model *model, const char *proc_root, struct job_gpus **ret_gpus)
{
	struct job_gpus *gpus = calloc(1, sizeof(*gpus));

	if (!gpus)
		return -ENOMEM;
	gpus->model = model;
	gpus->proc_root = strdup(proc_root);
	if (!gpus->proc_root) {
		free(gpus);
		return -ENOMEM;
	}
	*ret_gpus = gpus;
	return 0;
}

void job_gpus_free(struct job_gpus *gpus)
{
	if (!gpus)
		return;
	free(gpus->rows);
	free(gpus->proc_root);
	free(gpus);
}

/* "0,2-3"; 0: none, or it is no such list. */
static uint64_t parse_gpus(const char *list)
{
	struct cursor c = cursor_over(list, strlen(list));
	uint64_t gpus = 0, first, last;

	do {
		if (cursor_u64(&c, &first) < 0)
			return 0;
		last = first;
		if (cursor_literal(&c, "-") && cursor_u64(&c, &last) < 0)
			return 0;
		if (last >= GPUS_MAX)
			return 0;
		for (uint64_t i = first; i <= last; i++)
			gpus |= UINT64_C(1) << i;
	} while (cursor_literal(&c, ","));
	return cursor_eof(&c) ? gpus : 0;
}

/* Counts on above the limit. */
static void add_rows(struct job_gpus *gpus, const struct given_job *job, uint32_t *n)
{
	for (uint32_t i = 0; i < GPUS_MAX; i++) {
		struct allocation *row;

		if (!(job->gpus >> i & 1) || (*n)++ >= ALLOCATIONS_MAX)
			continue;
		row = &gpus->rows[*n - 1];
		*row = (struct allocation){ .workload = WORKLOAD_JOB,
					    .resource = "gres/gpu",
					    .claimed = true,
					    .estimated = 1,
					    .device = { .kind = DEVICE_BY_MINOR,
							.index = i,
							.gi = DEVICE_REF_NO,
							.ci = DEVICE_REF_NO,
							.mig = DEVICE_REF_NO } };
		memcpy(row->id, job->id, sizeof(row->id));
	}
}

/* One that is left out for long is counted once. */
static void count_left_out(struct job_gpus *gpus, uint32_t left_out)
{
	if (left_out > gpus->left_out)
		model_agent_add(gpus->model, AGENT_DROPPED_ALLOCATIONS, left_out - gpus->left_out);
	gpus->left_out = left_out;
}

static void tell_model(struct job_gpus *gpus)
{
	uint32_t n = 0;

	if (!gpus->rows)
		gpus->rows = calloc(ALLOCATIONS_MAX, sizeof(gpus->rows[0]));
	if (!gpus->rows)
		return;
	for (uint32_t i = 0; i < gpus->n; i++)
		add_rows(gpus, &gpus->jobs[i], &n);
	count_left_out(gpus, n > ALLOCATIONS_MAX ? n - ALLOCATIONS_MAX : 0);
	(void)model_set_allocations(gpus->model, SOURCE_JOBS, gpus->rows, MIN(n, (uint32_t)ALLOCATIONS_MAX));
}

static struct given_job *find_job(struct job_gpus *gpus, const char *id)
{
	for (uint32_t i = 0; i < gpus->n; i++)
		if (STRV_EQ(gpus->jobs[i].id, id))
			return &gpus->jobs[i];
	return NULL;
}

static bool is_alive(const struct job_gpus *gpus, struct process_id id)
{
	struct process_id now;

	return proc_process_id(gpus->proc_root, id.pid, &now) == 0 && process_id_equal(now, id);
}

static void drop_ended(const struct job_gpus *gpus, struct given_job *job)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < job->keepers_n; i++)
		if (is_alive(gpus, job->keepers[i]))
			job->keepers[kept++] = job->keepers[i];
	job->keepers_n = kept;
}

/* A job's steps end one after another, each with a slurmstepd of its own. */
static void add_keeper(const struct job_gpus *gpus, struct given_job *job, struct process_id keeper)
{
	for (uint32_t i = 0; i < job->keepers_n; i++)
		if (process_id_equal(job->keepers[i], keeper))
			return;
	if (job->keepers_n == KEEPERS_MAX)
		drop_ended(gpus, job);
	/* With so many alive one more keeps nothing: the first, the batch step's mostly, lives longest. */
	if (job->keepers_n < KEEPERS_MAX)
		job->keepers[job->keepers_n++] = keeper;
}

static bool are_known(struct job_gpus *gpus, const char *id, uint64_t numbers)
{
	bool instances, known;

	known = (numbers & ~model_gpu_minors(gpus->model, &instances)) == 0 && !instances;
	if (!known && !gpus->said_unknown)
		log_notice("what Slurm gave to job %s is not known: %s", id,
			   instances ? "with MIG its numbers of GPUs are not those of their device nodes" :
				       "a process of it names GPUs that this node does not have");
	gpus->said_unknown |= !known;
	return known;
}

/* A job's processes come one after the other: those of the newest one count once. */
static void leave_out(struct job_gpus *gpus, const struct given_job *job)
{
	if (!STRV_EQ(gpus->beyond, job->id))
		model_agent_add(gpus->model, AGENT_DROPPED_ALLOCATIONS, __builtin_popcountll(job->gpus));
	memcpy(gpus->beyond, job->id, sizeof(gpus->beyond));
}

/* The first process of a job that tells decides. */
void job_gpus_add(struct job_gpus *gpus, const char *id, struct process_id process, const char *list)
{
	struct given_job job = { .gpus = parse_gpus(list) };
	struct given_job *known = find_job(gpus, id);
	struct process_id keeper;

	if (!job.gpus || proc_root_ancestor(gpus->proc_root, process.pid, "slurmstepd", &keeper) < 0 ||
	    !are_known(gpus, id, job.gpus))
		return;
	if (known) {
		add_keeper(gpus, known, keeper);
		return;
	}
	snprintf(job.id, sizeof(job.id), "%s", id);
	if (gpus->n == JOBS_MAX) {
		leave_out(gpus, &job);
		return;
	}
	add_keeper(gpus, &job, keeper);
	gpus->jobs[gpus->n++] = job;
	tell_model(gpus);
}

void job_gpus_tick(struct job_gpus *gpus)
{
	int64_t now_ns = clock_boot_ns();
	uint32_t kept = 0;

	if (gpus->n == 0 || now_ns - gpus->checked_ns < CHECK_NS)
		return;
	gpus->checked_ns = now_ns;
	for (uint32_t i = 0; i < gpus->n; i++) {
		drop_ended(gpus, &gpus->jobs[i]);
		if (gpus->jobs[i].keepers_n > 0)
			gpus->jobs[kept++] = gpus->jobs[i];
	}
	if (kept == gpus->n)
		return;
	gpus->n = kept;
	tell_model(gpus);
}
