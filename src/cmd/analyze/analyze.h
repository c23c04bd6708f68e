// SPDX-License-Identifier: Apache-2.0
/*
 * "gpusonde analyze": timelines of one or several nodes become the events of one analysis, in the order of
 * their ends, on the clock of the first file.
 */
#pragma once

#include "analysis/offsets.h"
#include "cmd/analyze/file.h"
#include "config/cmdline.h"

struct analyze_input {
	const char *path;
	struct analyze_file *file;
	struct node_offset offset;
	struct analysis_event next;
	bool has_next;
};

struct analyze_inputs {
	struct analysis *analysis;
	struct analyze_input list[OPERANDS_MAX];
	uint32_t n;
};

/* Each finds its errors, and says them on standard error; false: it did. */
bool analyze_open(struct analyze_inputs *inputs);
/* Finds the offsets of several files by reading them once. They are open again afterwards. */
bool analyze_align(struct analyze_inputs *inputs);
/* Everything, in order. What is missing in the files is said. */
bool analyze_read(struct analyze_inputs *inputs);
void analyze_close(struct analyze_inputs *inputs);
