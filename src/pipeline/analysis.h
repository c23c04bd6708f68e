// SPDX-License-Identifier: Apache-2.0
/*
 * Live analysis: traced calls, spans of streams and the GPUs' figures become the events of one analysis
 * (src/analysis), which is asked once a second what it has found.
 *
 * Times that CUPTI measured are judged where there are some, estimates elsewhere (analysis_late.h).
 *
 * The sinks have a limit to their time in a turn, set by the caller; what they have no time for is counted as
 * lost. One thread owns it: the one that drains the ring.
 */
#pragma once

#include "model/finding.h"
#include "pipeline/pipeline.h"
#include "pipeline/work_sink.h"

struct live_analysis;

/* @pipeline: NULL: communicators are not known; @late_max: of analysis_late_init(). -ENOMEM. */
int live_analysis_new(const struct pipeline *pipeline, uint32_t late_max,
		      struct live_analysis **ret_analysis);
void live_analysis_free(struct live_analysis *analysis);
DEFINE_CLEANUP(struct live_analysis *, live_analysis_free, live_analysis_freep)

/* Only what is of this job is told: its ID, which has to stay. To be called before events come. */
void live_analysis_set_job(struct live_analysis *analysis, const char *job);
struct stack_sums;
/* Stacks of calls are those of these sums (NULL: not known), whose sink comes before. */
void live_analysis_set_stacks(struct live_analysis *analysis, struct stack_sums *stacks);
/* After the pipeline's own. */
struct event_sink *live_analysis_sink(struct live_analysis *analysis);
struct span_sink *live_analysis_spans(struct live_analysis *analysis);
/* For what CUPTI measures in programs (pipeline_measured()). */
struct work_sink *live_analysis_works(struct live_analysis *analysis);
/*
 * To be called once a second: figures of the node (NULL: none are new), and the moment. *ret_new: name of a
 * finding that was not active the second before; NULL: none. NULL: out of memory.
 */
struct findings *live_analysis_tick(struct live_analysis *analysis, const struct snapshot *node,
				    uint64_t now_ns, const char **ret_new);
/*
 * Its time in each drain of the ring, for who has not asked for the analysis itself; what it has no time for
 * it has not seen. Unlimited, if this is not called.
 */
void live_analysis_limit(struct live_analysis *analysis);
/* No event comes any more: with what the last window, which may be a short one, says. NULL: out of memory. */
struct findings *live_analysis_finish(struct live_analysis *analysis);
