// SPDX-License-Identifier: Apache-2.0
/* Those who get the tracing engine's events. See activity/sink.h for what a sink may rely on. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "activity/sink.h"
#include "bpf/event.h"

enum { EVENT_SINKS_MAX = 8 };

/* Every callback may be NULL. */
struct event_sink {
	struct sink sink;
	/* An event in ring order; @size bytes of it are good, during the call only. -errno: not taken. */
	int (*event)(const struct trace_header *event, uint32_t size, void *userdata);
	/*
	 * Events are missing since the last one: the ring had no room, or this sink no time. What the sink
	 * itself refused is not among them.
	 */
	void (*lost)(uint64_t events, void *userdata);
	/*
	 * It turned out that something about a process is incomplete (enum trace_incomplete, all bits),
	 * before its next event is delivered.
	 */
	void (*incomplete)(uint32_t tgid, uint64_t incarnation, unsigned bits, void *userdata);
	/* A process is over, its sums are final. May come without a TRACE_EVENT_EXIT where that was lost. */
	void (*process_over)(uint32_t tgid, uint64_t incarnation, void *userdata);
	/* A drain of the ring begins. */
	void (*turn)(void *userdata);
};

/* In the order in which they were added, but that those with an event callback come first. */
struct event_sinks {
	struct event_sink *sinks[EVENT_SINKS_MAX];
	uint32_t n, with_event;
};

/* The sink stays the caller's. -ENOSPC: there are EVENT_SINKS_MAX; -EEXIST. Not from within a callback. */
int event_sinks_add(struct event_sinks *list, struct event_sink *sink);
/* One that is not there is no error. */
void event_sinks_remove(struct event_sinks *list, struct event_sink *sink);

void event_sinks_turn(struct event_sinks *list);
void event_sinks_lost(struct event_sinks *list, uint64_t events);
void event_sinks_incomplete(struct event_sinks *list, uint32_t tgid, uint64_t incarnation, unsigned bits);
void event_sinks_process_over(struct event_sinks *list, uint32_t tgid, uint64_t incarnation);
/* Events that some sink of the list did not take. */
uint64_t event_sinks_not_taken(const struct event_sinks *list);

static inline void event_sinks_event(struct event_sinks *list, const struct trace_header *event,
				     uint32_t size)
{
	for (uint32_t i = 0; i < list->with_event; i++) {
		struct event_sink *s = list->sinks[i];
		int64_t begin_ns;

		if (sink_enter(&s->sink, &begin_ns))
			sink_leave(&s->sink, s->event(event, size, s->sink.userdata), begin_ns);
	}
}
