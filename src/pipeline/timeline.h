// SPDX-License-Identifier: Apache-2.0
/*
 * Timelines of what is traced: the calls of each thread, the estimated work of each stream, the GPUs'
 * figures, and what is missing, on one clock. For the command and the agent, which say where blocks go.
 *
 *   engine ── event sink ──> timeline_calls.c ─┐
 *   pipeline ─ span sink ──> timeline_spans.c ─┼─> tracks and slices ──> src/timeline ──> ops.write
 *   snapshots ─────────────> timeline_gpus.c ──┘
 *
 * One thread owns it: the one that drains the ring. Memory is bounded; what does not fit is counted.
 */
#pragma once

#include "activity/event_sink.h"
#include "activity/span_sink.h"
#include "blas/blas.h"
#include "model/cupti_wire.h"
#include "model/snapshot.h"
#include "pipeline/pipeline.h"
#include "pipeline/work_sink.h"
#include "timeline/timeline.h"

struct stack_sums;
struct trace_timeline;

struct trace_timeline_config {
	enum timeline_format format;
	struct pipeline *pipeline; /* names kernels */
	const struct blas *blas; /* for cublasLt's sizes; NULL: not known */
	const struct stack_sums *stacks; /* a sink before the timeline's; NULL: not recorded */
	uint32_t pid; /* calls and work of this process alone; 0: of all */
	/* A GPU has had an error since the timeline began; may be NULL. */
	void (*xid)(uint32_t code, void *userdata);
	void *xid_userdata;
	struct timeline_ops ops;
	void *userdata; /* of @ops */
};

/* What a timeline lacks. */
struct trace_timeline_missing {
	uint64_t lost; /* events that did not arrive */
	uint64_t dropped; /* events for which there was no room */
	uint64_t cut; /* the same for arguments and names */
	uint64_t unwritten; /* events that files had no room for (recorder.h) */
};

/* -ENOMEM. */
int trace_timeline_new(const struct trace_timeline_config *config, struct trace_timeline **ret_timeline);
void trace_timeline_free(struct trace_timeline *timeline);
DEFINE_CLEANUP(struct trace_timeline *, trace_timeline_free, trace_timeline_freep)

/* To be added after those of the pipeline and of @blas. */
struct event_sink *trace_timeline_sink(struct trace_timeline *timeline);
struct span_sink *trace_timeline_spans(struct trace_timeline *timeline);
/* Of true work; the pipeline tells it (pipeline_measured()). NULL: it does not. */
struct work_sink *trace_timeline_works(struct trace_timeline *timeline);
void trace_timeline_set_blas(struct trace_timeline *timeline, const struct blas *blas);
void trace_timeline_set_stacks(struct trace_timeline *timeline, const struct stack_sums *stacks);
/* Since the last collection there were stacks with native functions that have no name yet. */
bool trace_timeline_wants_names(const struct trace_timeline *timeline);
/* The track that has the times of a process of which all work is told. */
#define TIMELINE_MEASURED "time that CUPTI measured"
/* Figures of GPUs; streams are named by their devices, so the first is to come before events. NULL: none. */
void trace_timeline_node(struct trace_timeline *timeline, const struct snapshot *snapshot);
/* A mark on a track of gpusonde's own, now. */
void trace_timeline_say(struct trace_timeline *timeline, const char *text);
/* What comes from now on is of another recording, which has marks of its own. */
void trace_timeline_begin(struct trace_timeline *timeline);
/* To be called once a second: what has come is written. */
void trace_timeline_collect(struct trace_timeline *timeline);
/* The first write's error that failed. */
int trace_timeline_finish(struct trace_timeline *timeline);
struct trace_timeline_missing trace_timeline_missing(const struct trace_timeline *timeline);
