// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that hold GPU memory, for an analysis: how much, by the driver, how much CPU time they use, and
 * when they end, also those that are not traced. One thread owns it.
 */
#pragma once

#include "analysis/analysis.h"
#include "base/process_id.h"
#include "model/snapshot.h"

enum { ANALYSIS_HOLDERS = 256 }; /* beyond, CPU time is not known */

struct analysis_processes {
	const char *proc_root;
	bool sees_all; /* PIDs are those of /proc */
	uint64_t cpu_ns; /* when CPU times were read last */
	uint32_t n;
	struct analysis_holder {
		struct process_id id;
		bool seen; /* in the newest snapshot */
		double cpu_seconds; /* negative: not read yet */
		uint64_t cpu_ns;
	} list[ANALYSIS_HOLDERS];
};

/* What a new snapshot says. */
void analysis_take_processes(struct analysis_processes *processes, struct analysis *analysis,
			     const struct snapshot *node, uint64_t now_ns);
/* The number of a GPU or MIG instance's name; 0: there is no room. */
uint32_t analysis_device_of(struct analysis *analysis, const struct entity *entity);
