// SPDX-License-Identifier: Apache-2.0
/* "gpusonde trace --timeline FILE": a timeline (pipeline/recorder.h) in files that open however it ends. */
#pragma once

#include "cmd/trace/kernels.h"
#include "cmd/trace/request.h"
#include "pipeline/recorder.h"

struct timeline_file;

/*
 * @kernels: name launches, have the GPUs' figures, and tell spans and what is measured. -errno, also of
 * opening @path; with @request->last_ns nothing is written before the end, or before it is asked for.
 */
int timeline_file_new(const char *path, const struct timeline_request *request, struct trace_kernels *kernels,
		      struct timeline_file **ret_file);
void timeline_file_free(struct timeline_file *file);
DEFINE_CLEANUP(struct timeline_file *, timeline_file_free, timeline_file_freep)

struct trace_timeline *timeline_file_timeline(struct timeline_file *file);
/* Calls have stacks, too. NULL: not recorded. */
void timeline_file_set_stacks(struct timeline_file *file, struct stack_sums *stacks);
/* To be called once a second: what has come is written. */
void timeline_file_collect(struct timeline_file *file);
/* With last_ns: what is kept is written with the next collection, to a file with a number. */
void timeline_file_ask(struct timeline_file *file);
/* The same for what was found, NULL: nothing was; not more often than once in last_ns. */
void timeline_file_found(struct timeline_file *file, const char *finding);
/*
 * Ends it, with what the program wrote to @merge (NULL: nothing), and prints what is missing. -errno of the
 * first that failed: the timeline is written without what cannot be merged.
 */
int timeline_file_finish(struct timeline_file *file, const char *merge);
