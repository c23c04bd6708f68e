// SPDX-License-Identifier: Apache-2.0
/*
 * src/activity (L1) is what every traced library's meaning is made with, whatever the library: pools of rows
 * (pool.h), the union of spans for figures (span_union.h), estimates of busy time (estimate.h), and the lists
 * by which events and finished spans reach those who want them: event sinks (event_sink.h) and span sinks
 * (span_sink.h).
 *
 *   trace engine ── event sinks ──> figures (src/pipeline, src/cuda) ── span sinks ──> timelines, analysis
 *                       └─────────> raw output, timelines, analysis
 *
 * Invariants
 *  1. A sink gets each event or span once, in order; what it does not get is counted, and the sink
 *     learns how many are missing, and where. The others of the list get theirs all the same.
 *  2. A sink with a bound on its time gets no more than that: what comes when its turn's time is used up is
 *     lost to it. A turn is one drain of the ring. A call cannot be interrupted, so time beyond the bound
 *     counts against the sink's next turns.
 *  3. A sink bounds its own memory: it returns a negative errno (-ENOBUFS) for what it has no room for.
 *  4. Nothing is allocated for an event or a span. Nothing has a thread of its own: all runs in the thread
 *     that drains the ring. A list changes only between events.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* What event sinks and span sinks have in common. Belongs to who adds it, and outlives its list's use. */
struct sink {
	const char *name; /* as messages say it */
	void *userdata;
	int64_t turn_ns; /* how long its calls may take in one turn; 0: as long as they need */
	/* The list's: */
	int64_t used_ns; /* of this turn, and what earlier ones took too much */
	uint64_t taken, lost; /* events or spans, ever */
	uint64_t unreported; /* of those lost: not yet reported to it */
};

/* May it be given one more? If not, that one is lost. */
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

/* @r: what the sink returned; negative: it did not take it. */
static inline void sink_leave(struct sink *sink, int r, int64_t begin_ns)
{
	if (sink->turn_ns != 0)
		sink->used_ns += clock_mono_ns() - begin_ns;
	if (r < 0)
		sink->lost++;
	else
		sink->taken++;
}

/* Another turn begins: how many to report to it as lost, for lack of time in the last one. */
static inline uint64_t sink_turn(struct sink *sink)
{
	uint64_t unreported = sink->unreported;

	sink->used_ns = sink->used_ns > sink->turn_ns ? sink->used_ns - sink->turn_ns : 0;
	sink->unreported = 0;
	return unreported;
}
