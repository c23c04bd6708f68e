// SPDX-License-Identifier: Apache-2.0
/*
 * "gpusonde trace --timeline": the calls of each thread, the estimated work of each stream, the GPUs'
 * figures, and what is missing, on one clock. Written as it comes, so that the file opens however tracing
 * ends.
 */
#pragma once

#include "activity/event_sink.h"
#include "activity/span_sink.h"
#include "blas/blas.h"
#include "cmd/trace/kernels.h"
#include "timeline/timeline.h"

struct trace_timeline;

/* The format that a file's name asks for: .pftrace or .json. False: none. */
bool trace_timeline_format(const char *path, enum timeline_format *ret_format);

/* @kernels: name launches, and have the GPUs' figures. -errno, also of opening @path. */
int trace_timeline_new(const char *path, enum timeline_format format, struct trace_kernels *kernels,
		       struct trace_timeline **ret_timeline);
void trace_timeline_free(struct trace_timeline *timeline);
DEFINE_CLEANUP(struct trace_timeline *, trace_timeline_free, trace_timeline_freep)

/* After those of @kernels and @blas. */
struct event_sink *trace_timeline_sink(struct trace_timeline *timeline);
struct span_sink *trace_timeline_spans(struct trace_timeline *timeline);
void trace_timeline_set_blas(struct trace_timeline *timeline, const struct blas *blas);
/* To be called once a second: what has come is written. */
void trace_timeline_collect(struct trace_timeline *timeline);
/* *ret_said: what is missing in the file, "" if nothing; valid as long as @timeline. */
int trace_timeline_finish(struct trace_timeline *timeline, const char **ret_said);
