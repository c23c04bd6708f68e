// SPDX-License-Identifier: Apache-2.0
/* Who answers for a process, and stacks of its calls, for an analysis. One thread owns it. */
#pragma once

#include "analysis/analysis.h"
#include "base/hashmap.h"
#include "base/row_list.h"
#include "pipeline/stacks.h"

enum { ANALYSIS_UNNAMED = 1024 };

/* All zeros at the start, but for `sums`. */
struct analysis_stacks {
	struct stack_sums *sums; /* NULL: stacks are not recorded */
	int64_t since_ns; /* of the sums */
	/* Stacks with native functions that have no names yet. */
	uint32_t unnamed_n;
	struct analysis_unnamed {
		uint32_t path;
		uint64_t user;
	} unnamed[ANALYSIS_UNNAMED];
	struct hashmap user_by; /* index of `users`, by PID */
	struct row_list users; /* uint64_t */
};

void analysis_stacks_done(struct analysis_stacks *stacks);
/* As struct analysis_event has it. */
uint64_t analysis_user(struct analysis_stacks *stacks, uint32_t tgid);
/* 0: not known. */
uint64_t analysis_stack_of(struct analysis_stacks *stacks, struct analysis *analysis,
			   const struct trace_header *event, uint64_t user);
/* Once a second: functions that had no names may have them now. */
void analysis_stacks_name(struct analysis_stacks *stacks, struct analysis *analysis);
void analysis_stacks_over(struct analysis_stacks *stacks, uint32_t tgid);
