// SPDX-License-Identifier: Apache-2.0
/*
 * Receivers of the tracing engine's events. activity/sink.h has the guarantees.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "activity/sink_list.h"
#include "bpf/event.h"

/* Every callback may be NULL. */
struct event_sink {
	struct sink sink;
	/*
	 * An event in ring order; @size bytes of it are valid, during the call only. -errno: the sink drops
	 * it.
	 */
	int (*event)(const struct trace_header *event, uint32_t size, void *userdata);
	/*
	 * Events are missing since the last one: the ring was full, or this sink used up its time. Does not
	 * include events that the sink itself dropped.
	 */
	void (*lost)(uint64_t events, void *userdata);
	/*
	 * Data of a process are incomplete (enum trace_incomplete, all bits); called before the process's
	 * next event.
	 */
	void (*incomplete)(uint32_t tgid, uint64_t incarnation, unsigned bits, void *userdata);
	/*
	 * A process has ended and its sums are final. TRACE_EVENT_EXIT may not have been delivered, if it was
	 * lost.
	 */
	void (*process_over)(uint32_t tgid, uint64_t incarnation, void *userdata);
	/* Draining of the ring begins. */
	void (*turn)(void *userdata);
};

/* In the order of addition, except that sinks with an event callback come first. */
struct event_sinks {
	struct sink_list list;
	uint32_t with_event;
};

static inline struct event_sink *event_sink_at(const struct event_sinks *list, uint32_t i)
{
	return (struct event_sink *)(void *)list->list.at[i];
}

/*
 * The caller still owns the sink. -ENOSPC: there are SINKS_MAX; -EEXIST. Not to be called from a
 * callback.
 */
int event_sinks_add(struct event_sinks *list, struct event_sink *sink);
/* Removing a sink that is not in the list has no effect. */
void event_sinks_remove(struct event_sinks *list, struct event_sink *sink);

void event_sinks_turn(struct event_sinks *list);
void event_sinks_lost(struct event_sinks *list, uint64_t events);
void event_sinks_incomplete(struct event_sinks *list, uint32_t tgid, uint64_t incarnation, unsigned bits);
void event_sinks_process_over(struct event_sinks *list, uint32_t tgid, uint64_t incarnation);
/* Number of events dropped by any sink of the list. */
uint64_t event_sinks_not_taken(const struct event_sinks *list);

static inline void event_sinks_event(struct event_sinks *list, const struct trace_header *event,
				     uint32_t size)
{
	for (uint32_t i = 0; i < list->with_event; i++) {
		struct event_sink *s = event_sink_at(list, i);
		int64_t begin_ns;

		if (sink_enter(&s->sink, &begin_ns))
			sink_leave(&s->sink, s->event(event, size, s->sink.userdata), begin_ns);
	}
}
