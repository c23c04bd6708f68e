// SPDX-License-Identifier: Apache-2.0
/*
 * Jobs that processes belong to: a table of different ones with the number of processes, live or exited, and
 * of workloads that refer to each. An index is used again when nothing refers to it any more. What processes
 * say of themselves has half of the table at most, so that there is a place for what cgroups say.
 */
#include "model/private.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

struct tracked_job {
	struct job job;
	uint32_t users; /* 0: free */
	bool said; /* by processes alone, not by a cgroup */
};

/* A free index, the lowest; JOB_NONE: at the limit, or no memory. */
static uint32_t place_new(struct job_table *table, uint32_t limit)
{
	uint32_t room = MIN(MAX(16u, table->room * 2), limit);
	struct tracked_job *jobs;

	for (uint32_t i = 0; i < table->n; i++)
		if (table->jobs[i].users == 0)
			return i;
	if (table->n == table->room) {
		if (room <= table->room)
			return JOB_NONE;
		jobs = reallocarray(table->jobs, room, sizeof(*jobs));
		if (!jobs)
			return JOB_NONE;
		table->jobs = jobs;
		table->room = room;
	}
	return table->n++;
}

static bool is_nothing(const struct job *job)
{
	return job->manager == JOB_MANAGER_NONE && !job->run[0] && !job->group[0];
}

static bool said_are_full(const struct model *model)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < model->jobs.n; i++)
		n += model->jobs.jobs[i].users > 0 && model->jobs.jobs[i].said;
	return n >= MAX(model->limits.workloads / 2, 1u);
}

/* Equal jobs have equal bytes: all are made by clean_job(). @said: by a process. */
static uint32_t take_job(struct model *model, const struct job *job, bool said)
{
	struct job_table *table = &model->jobs;
	uint32_t place;

	if (is_nothing(job))
		return JOB_NONE;
	for (uint32_t i = 0; i < table->n; i++)
		if (table->jobs[i].users > 0 && memcmp(&table->jobs[i].job, job, sizeof(*job)) == 0) {
			table->jobs[i].users++;
			table->jobs[i].said &= said;
			return i;
		}
	place = said && said_are_full(model) ? JOB_NONE : place_new(table, model->limits.workloads);
	if (place == JOB_NONE) {
		model_agent_add(model, AGENT_DROPPED_WORKLOADS, 1);
		return JOB_NONE;
	}
	table->jobs[place] = (struct tracked_job){ .job = *job, .users = 1, .said = said };
	return place;
}

uint32_t job_ref(struct model *model, uint32_t job)
{
	if (job != JOB_NONE)
		model->jobs.jobs[job].users++;
	return job;
}

void job_unref(struct model *model, uint32_t job)
{
	if (job != JOB_NONE)
		model->jobs.jobs[job].users--;
}

#define COPY(member_, from_) copy_text((member_), sizeof(member_), (from_))

/* Zeroes what lies between and behind. */
static void clean_job(struct job *to, const struct job *from)
{
	memset(to, 0, sizeof(*to));
	to->manager = from->manager < JOB_MANAGERS ? from->manager : JOB_MANAGER_NONE;
	to->claimed = from->claimed;
	COPY(to->id, from->id);
	COPY(to->step, from->step);
	COPY(to->name, from->name);
	COPY(to->user, from->user);
	COPY(to->run, from->run);
	COPY(to->group, from->group);
	if (to->manager == JOB_MANAGER_NONE)
		to->id[0] = to->step[0] = to->name[0] = to->user[0] = '\0';
}

uint32_t job_of_cgroup(struct model *model, const struct process_identity *identity)
{
	struct job job = { .manager = identity->job_manager }, clean;

	COPY(job.id, identity->job_id);
	COPY(job.step, identity->job_step);
	clean_job(&clean, &job);
	return take_job(model, &clean, false);
}

/* Whether both are of one job. HTCondor's cgroup names the slot. */
static bool is_same_job(const struct job *cgroup, const struct job *claim)
{
	return cgroup->manager == claim->manager &&
	       (cgroup->manager == JOB_MANAGER_HTCONDOR || STRV_EQ(cgroup->id, claim->id));
}

/* What is known of a process from its cgroup, NULL if nothing, with what its environment says. */
static void join_claim(struct job *to, const struct job *cgroup, const struct job *claim)
{
	struct job joined = *claim;

	joined.claimed = true;
	if (cgroup && cgroup->manager != JOB_MANAGER_NONE) {
		if (!is_same_job(cgroup, claim)) {
			joined = *cgroup;
			memcpy(joined.run, claim->run, sizeof(joined.run));
			memcpy(joined.group, claim->group, sizeof(joined.group));
		} else if (cgroup->manager != JOB_MANAGER_HTCONDOR) {
			joined.claimed = false;
			if (cgroup->step[0])
				memcpy(joined.step, cgroup->step, sizeof(joined.step));
		}
	}
	clean_job(to, &joined);
}

void job_name_workload(struct model *model, const struct tracked *t)
{
	struct tracked_workload *w = t->workload == NO_INDEX ? NULL : &model->workloads[t->workload];
	const struct job *job = t->p.job == JOB_NONE ? NULL : &model->jobs.jobs[t->p.job].job;

	if (!w || !job || w->w.kind != WORKLOAD_JOB || w->w.job != JOB_NONE || job->claimed ||
	    !STRV_EQ(job->id, w->w.id) || (!job->name[0] && !job->user[0]))
		return;
	w->w.job = job_ref(model, t->p.job);
}

static void set_claim(struct model *model, struct tracked *t, const struct job_claim *claim)
{
	struct job joined;
	uint32_t before = t->p.job, job;

	join_claim(&joined, before == JOB_NONE ? NULL : &model->jobs.jobs[before].job, &claim->job);
	job = take_job(model, &joined, true);
	/* Without a place what the cgroup says stays. */
	if (job != JOB_NONE || is_nothing(&joined)) {
		t->p.job = job;
		job_unref(model, before);
	}
	t->p.rank = claim->rank;
	job_name_workload(model, t);
}

/* ---- asking ---- */

void job_copy(struct model *model, struct tracked *to, const struct tracked *from)
{
	job_unref(model, to->p.job);
	to->p.job = job_ref(model, from->p.job);
	to->p.rank = from->p.rank;
	to->environment = from->environment;
	job_name_workload(model, to);
}

static struct tracked *find_on(const struct model *model, uint16_t device, struct process_id id)
{
	struct tracked *t = tracked_find(model, model->order[device], id.pid);

	return t && t->environment != ENVIRONMENT_UNKNOWN && process_id_equal(t->p.id, id) ? t : NULL;
}

void model_mark_read(struct model *model, struct process_id id, bool read)
{
	enum environment_state state = read ? ENVIRONMENT_ASKED : ENVIRONMENT_WANTED;

	for (uint16_t i = 0; i < model->devices_n; i++) {
		struct tracked *t = find_on(model, i, id);

		if (!t)
			continue;
		model->environments_wanted -= t->environment == ENVIRONMENT_WANTED;
		model->environments_wanted += state == ENVIRONMENT_WANTED;
		t->environment = state;
	}
}

void model_set_job(struct model *model, struct process_id id, const struct job_claim *claim)
{
	model_mark_read(model, id, true);
	for (uint16_t i = 0; i < model->devices_n; i++) {
		struct tracked *t = find_on(model, i, id);

		if (t)
			set_claim(model, t, claim);
	}
}

bool model_next_unread(const struct model *model, uint32_t *at, struct model_unread *ret_unread)
{
	for (uint32_t n = 0; model->environments_wanted > 0 && n < model->processes_n; n++) {
		const struct tracked *t = &model->processes[(*at)++ % model->processes_n];

		if (t->environment != ENVIRONMENT_WANTED)
			continue;
		ret_unread->id = t->p.id;
		ret_unread->manager =
			t->p.job == JOB_NONE ? JOB_MANAGER_NONE : model->jobs.jobs[t->p.job].job.manager;
		COPY(ret_unread->job, t->p.job == JOB_NONE ? "" : model->jobs.jobs[t->p.job].job.id);
		return true;
	}
	return false;
}

void jobs_publish(const struct model *model, struct snapshot *s)
{
	s->jobs_n = model->jobs.n;
	for (uint32_t i = 0; i < model->jobs.n; i++)
		s->jobs[i] = model->jobs.jobs[i].job;
}

void jobs_done(struct model *model)
{
	free(model->jobs.jobs);
}
