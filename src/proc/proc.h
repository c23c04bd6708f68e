// SPDX-License-Identifier: Apache-2.0
/*
 * Knowledge about processes: /proc and cgroup paths. Stateless, bounded reads, any thread.
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

struct proc_cgroup {
	enum proc_cgroup_kind kind;
	char id[96]; /* container id, pod uid, Slurm job id, systemd unit */
	char pod_uid[48]; /* of a container in a pod */
};

struct proc_identity {
	struct process_id id;
	uint32_t uid;
	char comm[64]; /* sanitised UTF-8 */
	struct proc_cgroup cgroup;
};

/* The text of /proc/PID/cgroup (all its lines, v1 and v2). PROC_CGROUP_NONE when nothing is recognised. */
void proc_cgroup_parse(const char *text, size_t length, struct proc_cgroup *ret_cgroup);
/* Which process has the PID now: 0 or -ESRCH. @root is "/proc" except in tests. */
int proc_process_id(const char *root, uint32_t pid, struct process_id *ret_id);
/* False when no thread of it is left; a leader that has ended is a zombie until its last thread has, too. */
bool proc_is_alive(const char *root, uint32_t pid);
/* -ESRCH; -EBADMSG, -E2BIG: its stat is not the kernel's. What else cannot be read stays unknown. */
int proc_identify(const char *root, uint32_t pid, struct proc_identity *ret_identity);
/*
 * False in a PID namespace of our own, where /proc has none of the machine's other processes. True where it
 * cannot be told.
 */
bool proc_sees_all(void);
