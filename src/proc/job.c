// SPDX-License-Identifier: Apache-2.0
#include "proc/job.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/macro.h"
#include "base/text.h"

/* ---- one variable ---- */

/* The first one counts, as for getenv(). */
static bool find_variable(struct cursor all, const char *name, struct cursor *ret_value)
{
	while (name && *name && cursor_until(&all, 0, ret_value) == 0)
		if (cursor_literal(ret_value, name) && cursor_literal(ret_value, "="))
			return true;
	return false;
}

static bool copy_variable(struct cursor all, const char *name, char *to, size_t size)
{
	struct cursor value;

	if (!find_variable(all, name, &value) || cursor_eof(&value))
		return false;
	snprintf(to, size, "%.*s", (int)MIN(cursor_left(&value), size - 1), value.p);
	utf8_sanitize(to);
	return true;
}
#define COPY(all_, name_, member_) copy_variable(all_, name_, member_, sizeof(member_))

static bool copy_first(struct cursor all, const char *const *names, char *to, size_t size)
{
	for (; *names; names++)
		if (copy_variable(all, *names, to, size))
			return true;
	return false;
}
#define COPY_FIRST(all_, member_, ...) \
	copy_first(all_, (const char *const[]){ __VA_ARGS__, NULL }, member_, sizeof(member_))

static bool read_number(struct cursor all, const char *name, uint32_t *ret_number)
{
	struct cursor value;
	uint64_t number;

	if (!find_variable(all, name, &value) || cursor_u64(&value, &number) < 0 || !cursor_eof(&value) ||
	    number >= PROC_RANK_UNKNOWN)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

/* ---- batch systems ---- */

/* A text of digits, and what else is in a job's ID. */
static bool is_id(const char *text)
{
	if (!isdigit((unsigned char)*text))
		return false;
	for (const char *p = text; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr(".-_[]@", *p))
			return false;
	return true;
}

static bool claim_slurm(struct cursor all, struct proc_job_claim *claim)
{
	if (!COPY_FIRST(all, claim->job.id, "SLURM_JOB_ID", "SLURM_JOBID"))
		return false;
	COPY(all, "SLURM_JOB_NAME", claim->name);
	COPY(all, "SLURM_JOB_USER", claim->user);
	COPY_FIRST(all, claim->job.step, "SLURM_STEP_ID", "SLURM_STEPID");
	COPY_FIRST(all, claim->gpus, "SLURM_JOB_GPUS", "SLURM_STEP_GPUS");
	return true;
}

static bool claim_pbs(struct cursor all, struct proc_job_claim *claim)
{
	if (!COPY(all, "PBS_JOBID", claim->job.id))
		return false;
	COPY(all, "PBS_JOBNAME", claim->name);
	COPY_FIRST(all, claim->user, "PBS_O_LOGNAME", "LOGNAME");
	return true;
}

static bool claim_lsf(struct cursor all, struct proc_job_claim *claim)
{
	char index[16] = "";
	size_t n;

	if (!COPY(all, "LSB_JOBID", claim->job.id))
		return false;
	n = strlen(claim->job.id);
	if (COPY(all, "LSB_JOBINDEX", index) && is_id(index) && !STRV_EQ(index, "0"))
		snprintf(claim->job.id + n, sizeof(claim->job.id) - n, "[%s]", index);
	COPY(all, "LSB_JOBNAME", claim->name);
	COPY_FIRST(all, claim->user, "LSFUSER", "LOGNAME");
	return true;
}

static bool claim_htcondor(struct cursor all, struct proc_job_claim *claim)
{
	uint32_t cluster, process;
	char command[256];
	const char *slash;

	if (!read_number(all, "condor:ClusterId", &cluster) || !read_number(all, "condor:ProcId", &process))
		return false;
	snprintf(claim->job.id, sizeof(claim->job.id), "%u.%u", cluster, process);
	COPY(all, "condor:Owner", claim->user);
	if (COPY(all, "condor:JobBatchName", claim->name) || !COPY(all, "condor:Cmd", command))
		return true;
	slash = strrchr(command, '/');
	snprintf(claim->name, sizeof(claim->name), "%.*s", (int)sizeof(claim->name) - 1,
		 slash ? slash + 1 : command);
	utf8_sanitize(claim->name);
	return true;
}

static const struct {
	enum proc_job_manager manager;
	bool (*claim)(struct cursor all, struct proc_job_claim *claim);
} managers[] = {
	{ PROC_JOB_SLURM, claim_slurm },
	{ PROC_JOB_PBS, claim_pbs },
	{ PROC_JOB_LSF, claim_lsf },
	{ PROC_JOB_HTCONDOR, claim_htcondor },
};

static void claim_job(struct cursor all, enum proc_job_manager of, struct proc_job_claim *ret_claim)
{
	for (size_t i = 0; i < ARRAY_SIZE(managers); i++) {
		struct proc_job_claim claim = { .job.manager = managers[i].manager };

		if ((of == PROC_JOB_NONE || of == managers[i].manager) && managers[i].claim(all, &claim) &&
		    is_id(claim.job.id)) {
			*ret_claim = claim;
			return;
		}
	}
}

/* ---- ranks ---- */

/*
 * Those of the innermost launcher first: torchrun under srun, mpirun in a batch script. RANK is a common
 * name, so it counts only with WORLD_SIZE.
 */
static const struct {
	const char *rank, *local, *world;
	bool needs_world;
} launchers[] = {
	{ "RANK", "LOCAL_RANK", "WORLD_SIZE", true },
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", false },
	{ "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE", false },
	{ "PMIX_RANK", "PMIX_LOCAL_RANK", "PMIX_SIZE", false },
	{ "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", false },
	{ "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", false },
};

static void claim_rank(struct cursor all, struct proc_job_claim *claim)
{
	for (size_t i = 0; i < ARRAY_SIZE(launchers); i++) {
		uint32_t rank, world = PROC_RANK_UNKNOWN;
		bool has_world = read_number(all, launchers[i].world, &world);

		if (!read_number(all, launchers[i].rank, &rank) || (launchers[i].needs_world && !has_world) ||
		    (has_world && rank >= world))
			continue;
		claim->rank = rank;
		claim->world = world;
		read_number(all, launchers[i].local, &claim->local_rank);
		return;
	}
}

void proc_job_claim(const char *text, size_t n, enum proc_job_manager of, const char *run, const char *group,
		    struct proc_job_claim *ret_claim)
{
	struct cursor all = cursor_over(text, n);
	struct proc_job_claim claim = { 0 };

	claim_job(all, of, &claim);
	COPY(all, run, claim.run);
	COPY(all, group, claim.group);
	claim.rank = claim.local_rank = claim.world = PROC_RANK_UNKNOWN;
	claim_rank(all, &claim);
	*ret_claim = claim;
}
