// SPDX-License-Identifier: Apache-2.0
/*
 * Of an analysis, what is of one job of a batch system: its processes, by the job's cgroup, and the GPUs on
 * which they hold memory. One thread owns it.
 */
#pragma once

#include "base/hashmap.h"
#include "base/row_list.h"
#include "model/finding.h"
#include "model/snapshot.h"

/* All zeros at the start, but for the first two. */
struct analysis_job {
	const char *id; /* NULL: everything is wanted */
	const char *proc_root;
	struct hashmap known; /* by PID: 1: of the job */
	struct hashmap members; /* the same, those that have ended, too */
	struct row_list devices; /* struct analysis_job_device */
};

void analysis_job_done(struct analysis_job *job);
bool analysis_job_has(struct analysis_job *job, uint32_t pid);
/* The PID may be another process's from now on. */
void analysis_job_over(struct analysis_job *job, uint32_t pid);
/* Which GPUs are the job's, by a new snapshot. */
void analysis_job_node(struct analysis_job *job, const struct snapshot *node);
/* Leaves out what is of others. */
void analysis_job_filter(const struct analysis_job *job, struct findings *findings);
