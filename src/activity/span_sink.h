// SPDX-License-Identifier: Apache-2.0
/*
 * Receivers of finished spans. activity/sink.h has the guarantees.
 */
#pragma once

#include <stdint.h>

#include "activity/sink_list.h"
#include "activity/span.h"

/* Every callback but `span` may be NULL. */
struct span_sink {
	struct sink sink;
	/* In the order in which their ends became known. Valid during the call. -errno: the sink drops it. */
	int (*span)(const struct span *span, void *userdata);
	/* Number of spans dropped for lack of time in the previous turn. */
	void (*lost)(uint64_t spans, void *userdata);
	/* A process has ended: it has no further spans. */
	void (*process_over)(uint32_t tgid, uint64_t incarnation, void *userdata);
};

struct span_sinks {
	struct sink_list list;
};

static inline struct span_sink *span_sink_at(const struct span_sinks *list, uint32_t i)
{
	return (struct span_sink *)(void *)list->list.at[i];
}

/*
 * The caller still owns the sink. -ENOSPC: there are SINKS_MAX; -EEXIST. Not to be called from a
 * callback.
 */
int span_sinks_add(struct span_sinks *list, struct span_sink *sink);
/* Removing a sink that is not in the list has no effect. */
void span_sinks_remove(struct span_sinks *list, struct span_sink *sink);

void span_sinks_turn(struct span_sinks *list);
void span_sinks_span(struct span_sinks *list, const struct span *span);
void span_sinks_process_over(struct span_sinks *list, uint32_t tgid, uint64_t incarnation);
/* Number of spans dropped by any sink of the list. */
uint64_t span_sinks_not_taken(const struct span_sinks *list);
