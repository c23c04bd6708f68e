// SPDX-License-Identifier: Apache-2.0
/*
 * Data about processes from /proc and cgroup paths. Stateless, bounded reads, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process_id.h"

enum proc_cgroup_kind {
	PROC_CGROUP_NONE,
	PROC_CGROUP_CONTAINER,
	PROC_CGROUP_POD,
	PROC_CGROUP_JOB,
	PROC_CGROUP_UNIT
};

enum proc_job_manager {
	PROC_JOB_NONE,
	PROC_JOB_SLURM,
	PROC_JOB_HTCONDOR,
	PROC_JOB_LSF,
	PROC_JOB_PBS, /* PBS Pro, OpenPBS, Torque */
	PROC_JOB_MANAGERS
};

struct proc_job {
	enum proc_job_manager manager;
	char id[96]; /* HTCondor's cgroups name the slot, not the job */
	char step[32]; /* Slurm's: "0", "batch", "extern", "interactive" */
};

struct proc_cgroup {
	enum proc_cgroup_kind kind;
	/*
	 * container id, pod uid, job id, systemd unit; below a user's service manager, where users choose
	 * names, "user@UID.service/NAME"
	 */
	char id[96];
	char pod_uid[48]; /* of a container in a pod; not below a user's service manager */
	uint32_t user; /* in whose slice, or below whose service manager, it is; 0: root's, or in none */
	struct proc_job job; /* also that of a container in a job */
};

struct proc_identity {
	struct process_id id;
	uint32_t uid; /* UINT32_MAX: unknown */
	uint32_t ns_pid; /* in its own PID name space; 0: unknown */
	char comm[64]; /* sanitised UTF-8 */
	struct proc_cgroup cgroup;
};

/* Parses /proc/PID/cgroup (all lines, v1 and v2). PROC_CGROUP_NONE if nothing is recognised. */
void proc_cgroup_parse(const char *text, size_t length, struct proc_cgroup *ret_cgroup);
/* The process that has the PID now: 0 or -ESRCH. @root is "/proc" except in tests. */
int proc_process_id(const char *root, uint32_t pid, struct process_id *ret_id);
/* False if no thread is left; a leader that has exited is a zombie until its last thread exits. */
bool proc_is_alive(const char *root, uint32_t pid);
/* Seconds of CPU time that its threads have used since it began. -ESRCH, -EBADMSG. */
int proc_cpu_seconds(const char *root, uint32_t pid, double *ret_seconds);
/* Of /proc/PID/task/TID/stat: 'R', 'S', 'D', ...; NUL: it has ended, or cannot be read. */
char proc_thread_state(const char *root, uint32_t pid, uint32_t tid);
/* -ESRCH; -EBADMSG, -E2BIG: invalid stat file. Other fields that cannot be read are unknown. */
int proc_identify(const char *root, uint32_t pid, struct proc_identity *ret_identity);
/*
 * False in a PID namespace, where /proc lacks the machine's other processes. True if it cannot be determined.
 */
bool proc_sees_all(void);
