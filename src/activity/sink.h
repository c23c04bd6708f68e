// SPDX-License-Identifier: Apache-2.0
/*
 * src/activity (L1) has what the interpretation of every traced library needs: pools of rows (pool.h), unions
 * of spans (span_union.h), estimates of busy time (estimate.h), and lists of receivers of events and finished
 * spans: event sinks (event_sink.h) and span sinks (span_sink.h).
 *
 *   trace engine ── event sinks ──> figures (src/pipeline, src/cuda) ── span sinks ──> timelines, analysis
 *                       └─────────> raw output, timelines, analysis
 *
 * Invariants
 *  1. A sink receives each event or span once, in order. Dropped ones are counted, and the sink is notified
 *     of their number and position. Other sinks of the list are not affected.
 *  2. A sink may have a time limit for each turn (one drain of the ring): what arrives after it is dropped
 *     for this sink. A call cannot be interrupted, so excess time is subtracted from the sink's next turns.
 *  3. A sink bounds its own memory: it returns a negative errno (-ENOBUFS) for what it cannot store.
 *  4. Nothing is allocated for an event or a span. There is no own thread: everything runs in the thread that
 *     drains the ring. A list changes only between events.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* Common part of event sinks and span sinks. Owned by the caller, and must outlive the list. */
struct sink {
	const char *name; /* for messages */
	void *userdata;
	int64_t turn_ns; /* time limit of its calls in one turn; 0: unlimited */
	/* Set by the list: */
	int64_t used_ns; /* in this turn, including excess time of earlier turns */
	uint64_t taken, lost; /* events or spans, total */
	uint64_t refused; /* of the lost: those that the sink itself dropped */
	uint64_t unreported; /* of the others, those that are not yet reported to the sink */
};

/* May the sink be called? If not, the event is counted as lost. */
static inline bool sink_enter(struct sink *sink, int64_t *ret_begin_ns)
{
	*ret_begin_ns = 0;
	if (sink->turn_ns == 0)
		return true;
	if (sink->used_ns >= sink->turn_ns) {
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

	sink->used_ns = sink->used_ns > sink->turn_ns ? sink->used_ns - sink->turn_ns : 0;
	sink->unreported = 0;
	return unreported;
}
