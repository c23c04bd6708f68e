// SPDX-License-Identifier: Apache-2.0
/*
 * The job of a batch system that a process belongs to. Its cgroup says so where the batch system uses
 * cgroups; its name, its user and its rank are in the process's environment alone, which the process's user
 * chooses. So what the environment says never replaces what the cgroup says, and is marked where it is all
 * that there is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum job_manager {
	JOB_MANAGER_NONE, /* no job, only a run or group */
	JOB_MANAGER_SLURM,
	JOB_MANAGER_HTCONDOR,
	JOB_MANAGER_LSF,
	JOB_MANAGER_PBS,
	JOB_MANAGERS
};

#define JOB_NONE UINT32_MAX

struct job {
	enum job_manager manager;
	bool claimed; /* id and step are from the environment alone */
	char id[96]; /* "42", "12.server", HTCondor's "7.0", or its slot while no more is known */
	char step[32]; /* Slurm's: "0", "batch" */
	/* This and what follows is from the environment, so always a claim; "": not known. */
	char name[128];
	char user[64];
	/* A training run and the group that it belongs to: the values of configured variables. */
	char run[128], group[128];
};

/* Nothing but the environment tells a job's name and user: where there is one, it is claimed. */
static inline bool job_name_is_claimed(const struct job *job)
{
	return job->name[0] || job->user[0];
}

/* Which of a job's processes: MPI's or torchrun's numbers. */
#define RANK_UNKNOWN UINT32_MAX
struct rank {
	uint32_t rank, local, world; /* world: how many there are */
};

/* What a process's environment says. Of another job than the cgroup's nothing but run and group is used. */
struct job_claim {
	struct job job; /* `claimed` is not read */
	struct rank rank;
};
