// SPDX-License-Identifier: Apache-2.0
/*
 * What Slurm gave its jobs: the GPUs that SLURM_JOB_GPUS names in the environments of a job's processes, for
 * as long as the slurmstepd that they run below lives. Only jobs that cgroups tell, below a slurmstepd of
 * root's: a process may say what it likes, but only of its own job. It may: so what it says is marked as
 * claimed, numbers that no GPU of the node has are not believed, and with MIG instances none are, since
 * Slurm's numbers are not those of the GPUs' nodes then.
 */
#pragma once

#include "model/model.h"

struct job_gpus;
int job_gpus_new(struct model *model, const char *proc_root, struct job_gpus **ret_gpus);
void job_gpus_free(struct job_gpus *gpus);
/* @list: "0,2-3", the numbers of devices in Slurm's configuration, which are those of their nodes. */
void job_gpus_add(struct job_gpus *gpus, const char *job, struct process_id process, const char *list);
/* Forgets the jobs that have ended. */
void job_gpus_tick(struct job_gpus *gpus);
