// SPDX-License-Identifier: Apache-2.0
/*
 * Jobs of batch systems in a cgroup path, component by component:
 *
 *   Slurm     slurm/uid_1000/job_42/step_0/task_0; slurm_NODE/...;
 *             slurmstepd.scope/job_42/step_0/user/task_0, NODE_slurmstepd.scope/...
 *   HTCondor  condor_var_lib_condor_execute_slot1_2@HOST, the folder's path with _ for /, and the slot
 *   LSF       lsf/CLUSTER/job.42.PID.TIME
 *   PBS       pbs_jobs.service/jobid/42.SERVER (v2: jobs/42.SERVER), pbspro/42.SERVER,
 *             pbspro.slice/pbspro-42.SERVER.slice with systemd's escapes, torque/42.SERVER
 *
 * Users may make cgroups below their own service manager (user@UID.service): cgroup.c asks for no job there.
 */
#pragma once

#include <stdbool.h>

#include "base/cursor.h"
#include "proc/proc.h"

/* What the components so far were; zeroed at first. */
struct job_path {
	enum proc_job_manager below;
	bool in_job;
};

/* True if this component is a job's; fills @job. A step's component fills job->step and is none. */
bool job_path_take(struct job_path *path, struct cursor component, struct proc_job *job);
/* Goes on to the next component. */
void job_path_enter(struct job_path *path, struct cursor component);
