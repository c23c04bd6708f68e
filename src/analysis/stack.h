// SPDX-License-Identifier: Apache-2.0
/* Stacks of an analysis: where calls were made, and where the programs of a finding were. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	ANALYSIS_STACK_FRAMES = 64, /* of one stack: the innermost ones */
	ANALYSIS_FRAMES_MAX = 256, /* of a finding's stacks */
};

struct analysis;

/* A frame of a stack. */
struct analysis_place {
	const char *function, *file; /* file: "" and line 0: not known */
	uint32_t line;
};

/* Stacks merged by frame: a tree in the order in which it is printed, the outermost frame first. */
struct analysis_frames {
	uint32_t n;
	struct analysis_frame {
		uint32_t depth; /* from 0; the frame that calls it is the one before that has one less */
		const char *frame; /* "forward (model.py:31)" */
		const char *
			ranks; /* whose stacks these are: "0-2, 5", "PID 7"; "" of a finding with one stack */
	} list[];
};

/*
 * The number of a stack, whose @key is the caller's, with its frames, the innermost first. Numbers end when
 * all stacks begin anew, and are of no stack then. One that is known has these names from now on. -ENOBUFS:
 * the user, or all, have as many as they may, counted.
 */
int analysis_stack(struct analysis *analysis, uint64_t user, uint64_t key,
		   const struct analysis_place *places, uint32_t n, uint64_t *ret_stack);
bool analysis_stack_known(const struct analysis *analysis, uint64_t key, uint64_t *ret_stack);
