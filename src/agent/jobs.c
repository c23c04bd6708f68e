// SPDX-License-Identifier: Apache-2.0
#include "agent/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/job_gpus.h"
#include "base/log.h"
#include "base/macro.h"
#include "proc/job.h"
#include "proc/proc.h"
#include "symbolize/client.h"

enum {
	ASKED_MAX = 64, /* that wait for an answer */
	TRIES_PER_TICK = 128,
};

struct asked_process {
	struct process_id id;
	enum proc_job_manager manager; /* of its cgroup */
	char job[sizeof(((struct job *)NULL)->id)];
};

struct jobs {
	struct model *model;
	struct symbols *symbols;
	struct job_gpus *gpus;
	char *variables, *run, *group;
	struct asked_process asked[ASKED_MAX];
	uint32_t asked_n;
	uint32_t at; /* where the model's processes are looked at next */
	bool said_unreadable;
};

/* ---- answers ---- */

static void take_claim(struct jobs *jobs, const struct asked_process *asked, const char *text, size_t n)
{
	struct proc_job_claim found;
	struct job_claim claim = { 0 };

	proc_job_claim(text, n, asked->manager, jobs->run, jobs->group, &found);
	_Static_assert((int)PROC_JOB_MANAGERS == (int)JOB_MANAGERS &&
			       (int)PROC_JOB_PBS == (int)JOB_MANAGER_PBS &&
			       (int)PROC_JOB_SLURM == (int)JOB_MANAGER_SLURM &&
			       (int)PROC_JOB_LSF == (int)JOB_MANAGER_LSF,
		       "one is passed on as the other");
	_Static_assert(sizeof(claim.job.id) >= sizeof(found.job.id) &&
			       sizeof(claim.job.step) >= sizeof(found.job.step) &&
			       sizeof(claim.job.name) >= sizeof(found.name) &&
			       sizeof(claim.job.user) >= sizeof(found.user) &&
			       sizeof(claim.job.run) >= sizeof(found.run) &&
			       sizeof(claim.job.group) >= sizeof(found.group),
		       "texts must fit");
	claim.job.manager = (enum job_manager)found.job.manager;
	strcpy(claim.job.id, found.job.id);
	strcpy(claim.job.step, found.job.step);
	strcpy(claim.job.name, found.name);
	strcpy(claim.job.user, found.user);
	strcpy(claim.job.run, found.run);
	strcpy(claim.job.group, found.group);
	claim.rank = (struct rank){ found.rank, found.local_rank, found.world };
	model_set_job(jobs->model, asked->id, &claim);
	if (asked->manager == PROC_JOB_SLURM && found.gpus[0] && STRV_EQ(asked->job, found.job.id))
		job_gpus_add(jobs->gpus, asked->job, asked->id, found.gpus);
}

static void say_unreadable(struct jobs *jobs, uint32_t pid)
{
	if (jobs->said_unreadable)
		return;
	jobs->said_unreadable = true;
	log_notice(
		"the environment of process %u cannot be read, so names of jobs and ranks of such processes "
		"are not known; give the agent CAP_SYS_PTRACE, or leave them out with --workload-jobs false",
		pid);
}

static void on_environment(uint32_t pid, int state, const char *text, size_t n, void *userdata)
{
	struct jobs *jobs = userdata;
	struct asked_process asked;
	struct process_id now;
	uint32_t i = 0;

	while (i < jobs->asked_n && jobs->asked[i].id.pid != pid)
		i++;
	if (i == jobs->asked_n)
		return;
	asked = jobs->asked[i];
	jobs->asked[i] = jobs->asked[--jobs->asked_n];
	if (state == -EPERM || state == -EACCES)
		say_unreadable(jobs, pid);
	/* It was read by its PID, which may be another process's since. */
	if (state < 0 || proc_process_id("/proc", pid, &now) < 0 || !process_id_equal(now, asked.id))
		return;
	take_claim(jobs, &asked, text, n);
}

/* Nothing is asked about kernels. */
static void ignore_kernel(_unused_ uint64_t id, _unused_ struct kernel *kernel, _unused_ void *userdata)
{
}

static void log_reading(int level, const char *text, _unused_ void *userdata)
{
	log_at(level, "reading environments: %s", text);
}

/* ---- questions ---- */

static bool is_asked(const struct jobs *jobs, uint32_t pid)
{
	for (uint32_t i = 0; i < jobs->asked_n; i++)
		if (jobs->asked[i].id.pid == pid)
			return true;
	return false;
}

static void ask_about(struct jobs *jobs, const struct model_unread *unread)
{
	struct asked_process *asked;
	int r;

	if (is_asked(jobs, unread->id.pid))
		return;
	/* The answer may come at once. */
	asked = &jobs->asked[jobs->asked_n++];
	*asked = (struct asked_process){ unread->id, (enum proc_job_manager)unread->manager, "" };
	memcpy(asked->job, unread->job, sizeof(asked->job));
	model_mark_read(jobs->model, unread->id, true);
	r = symbols_environment(jobs->symbols, unread->id);
	if (r >= 0)
		return;
	for (uint32_t i = 0; i < jobs->asked_n; i++)
		if (process_id_equal(jobs->asked[i].id, unread->id))
			jobs->asked[i] = jobs->asked[--jobs->asked_n];
	/* Too many at a time, or its user made a helper hang: later. */
	model_mark_read(jobs->model, unread->id, r != -EAGAIN);
}

void jobs_tick(struct jobs *jobs)
{
	struct model_unread unread;

	job_gpus_tick(jobs->gpus);
	for (unsigned tries = 0; tries < TRIES_PER_TICK && jobs->asked_n < ASKED_MAX; tries++) {
		if (!model_next_unread(jobs->model, &jobs->at, &unread))
			return;
		ask_about(jobs, &unread);
	}
}

/* ---- life ---- */

int jobs_new(sd_event *event, struct model *model, const struct jobs_config *config, struct jobs **ret_jobs)
{
	static const struct symbols_ops ops = { .kernel = ignore_kernel,
						.environment = on_environment,
						.notice = log_reading };
	struct jobs *jobs = calloc(1, sizeof(*jobs));
	struct symbols_config reading = { .program = config->program, .stall_ns = config->stall_ns };
	int r = -ENOMEM;

	if (!jobs)
		return -ENOMEM;
	jobs->model = model;
	jobs->run = strdup(config->run);
	jobs->group = strdup(config->group);
	if (jobs->run && jobs->group && asprintf(&jobs->variables, "%s,%s", jobs->run, jobs->group) < 0)
		jobs->variables = NULL;
	if (jobs->variables) {
		reading.variables = jobs->variables;
		r = symbols_new(event, &reading, &ops, jobs, &jobs->symbols);
		if (r == 0)
			r = job_gpus_new(model, "/proc", &jobs->gpus);
	}
	if (r < 0) {
		jobs_free(jobs);
		return r;
	}
	*ret_jobs = jobs;
	return 0;
}

void jobs_free(struct jobs *jobs)
{
	if (!jobs)
		return;
	symbols_free(jobs->symbols);
	job_gpus_free(jobs->gpus);
	free(jobs->variables);
	free(jobs->run);
	free(jobs->group);
	free(jobs);
}

pid_t jobs_pid(const struct jobs *jobs)
{
	struct symbols_stats stats;

	symbols_stats(jobs->symbols, &stats);
	return stats.pid;
}
