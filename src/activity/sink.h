// SPDX-License-Identifier: Apache-2.0
/*
 * src/activity (L1) has what the interpretation of every traced library needs: pools of rows (pool.h), unions
 * of spans (span_union.h), estimates of busy time (estimate.h), and lists of receivers of events and finished
 * spans: event sinks (event_sink.h) and span sinks (span_sink.h), by what lists of sinks share (sink_list.h).
 *
 *   trace engine ── event sinks ──> figures (src/pipeline, src/cuda) ── span sinks ──> timelines, analysis
 *                       └─────────> raw output, timelines, analysis
 *
 * Invariants
 *  1. A sink receives each event or span once, in order. Dropped ones are counted, and the sink is notified
 *     of their number and position. Other sinks of the list are not affected.
 *  2. A sink may have a time limit for each turn (one drain of the ring): what arrives after it is dropped
 *     for this sink. A call cannot be interrupted, so excess time is subtracted from the sink's next turns.
 *     Of a sink that only computes, the time in which the thread had no processor does not count.
 *  3. A sink bounds its own memory: it returns a negative errno (-ENOBUFS) for what it cannot store.
 *  4. Nothing is allocated for an event or a span. There is no own thread: everything runs in the thread that
 *     drains the ring. A list changes only between events.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/macro.h"

/* Common part of event sinks and span sinks. Owned by the caller, and must outlive the list. */
struct sink {
	const char *name; /* for messages */
	void *userdata;
	int64_t turn_ns; /* time limit of its calls in one turn; 0: unlimited */
	bool computes; /* it waits for nothing, such as a disk */
	/* Set by the list: */
	int64_t used_ns; /* in this turn, including excess time of earlier turns */
	int64_t excess_ns; /* that excess time */
	int64_t turn_cpu_ns; /* the thread's CPU time when the turn began */
	bool spent; /* all of it, for sure */
	uint64_t taken, lost; /* events or spans, total */
	uint64_t refused; /* of the lost: those that the sink itself dropped */
	uint64_t unreported; /* of the others, those that are not yet reported to the sink */
};

/* Of a sink that computes it has used at most what the thread has. Seldom, as this is a system call. */
static inline void sink_correct(struct sink *sink)
{
	int64_t most_ns = sink->excess_ns + clock_thread_cpu_ns() - sink->turn_cpu_ns;

	sink->used_ns = MIN(sink->used_ns, most_ns);
}

static inline bool sink_is_spent(struct sink *sink)
{
	if (sink->used_ns >= sink->turn_ns && sink->computes && !sink->spent)
		sink_correct(sink);
	sink->spent = sink->used_ns >= sink->turn_ns;
	return sink->spent;
}

/* May the sink be called? If not, the event is counted as lost. */
static inline bool sink_enter(struct sink *sink, int64_t *ret_begin_ns)
{
	*ret_begin_ns = 0;
	if (sink->turn_ns == 0)
		return true;
	if (sink_is_spent(sink)) {
		sink->lost++;
		sink->unreported++;
		return false;
	}
	*ret_begin_ns = clock_mono_ns();
	return true;
}

/* @r: the sink's return value; negative: dropped. */
static inline void sink_leave(struct sink *sink, int r, int64_t begin_ns)
{
	if (sink->turn_ns != 0)
		sink->used_ns += clock_mono_ns() - begin_ns;
	if (r < 0) {
		sink->lost++;
		sink->refused++;
	} else {
		sink->taken++;
	}
}

/* Starts a turn and returns how many to report as lost in the previous turn for lack of time. */
static inline uint64_t sink_turn(struct sink *sink)
{
	uint64_t unreported = sink->unreported;

	if (sink->turn_ns != 0 && sink->computes) {
		sink_correct(sink);
		sink->turn_cpu_ns = clock_thread_cpu_ns();
	}
	sink->used_ns = sink->used_ns > sink->turn_ns ? sink->used_ns - sink->turn_ns : 0;
	sink->excess_ns = sink->used_ns;
	sink->spent = false;
	sink->unreported = 0;
	return unreported;
}
