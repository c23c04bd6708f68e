// SPDX-License-Identifier: Apache-2.0
/*
 * What a process's environment, and the file that HTCondor lays into a job's folder, say about its job: its
 * name, its user, its rank, the GPUs that it was given. All of it is chosen by the process's user.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proc/proc.h"

/*
 * Copies the variables of the environment that a process was started with which tell about its job, each as
 * NAME=VALUE with a NUL, values cut to PROC_JOB_VALUE_MAX, and those that @more names, separated by commas;
 * then what HTCondor's file says, as condor:ATTRIBUTE=VALUE. The environment lies in the process's memory and
 * the file anywhere, so this may wait for as long as the process likes. -ESRCH: it has ended; -EPERM.
 */
int proc_job_environment(const char *root, uint32_t pid, const char *more, char *buf, size_t size,
			 size_t *ret_n);

enum { PROC_JOB_VALUE_MAX = 512, PROC_JOB_NAME_MAX = 64 };
#define PROC_RANK_UNKNOWN UINT32_MAX

struct proc_job_claim {
	struct proc_job job;
	char name[128], user[64], run[128], group[128];
	uint32_t rank, local_rank, world; /* PROC_RANK_UNKNOWN */
	char gpus[256]; /* Slurm's list of its job's GPUs, by the numbers of their nodes; "": not told */
};

/*
 * Reads those variables. @of: the batch system that the process's cgroup is of, PROC_JOB_NONE: any that they
 * tell. @run, @group: names of variables; NULL: none. Texts are cut and made valid UTF-8. Pure.
 */
void proc_job_claim(const char *text, size_t n, enum proc_job_manager of, const char *run, const char *group,
		    struct proc_job_claim *ret_claim);
