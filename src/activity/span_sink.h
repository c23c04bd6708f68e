// SPDX-License-Identifier: Apache-2.0
/* Those who get finished spans. See activity/sink.h for what a sink may rely on. */
#pragma once

#include <stdint.h>

#include "activity/sink.h"
#include "activity/span.h"

enum { SPAN_SINKS_MAX = 8 };

/* Every callback but `span` may be NULL. */
struct span_sink {
	struct sink sink;
	/* In the order in which they turned out to be over. Valid during the call. -errno: not taken. */
	int (*span)(const struct span *span, void *userdata);
	/* This sink had no time for so many, in the turn that has ended. */
	void (*lost)(uint64_t spans, void *userdata);
	/* A process is over: none of its spans will come. */
	void (*process_over)(uint32_t tgid, uint64_t incarnation, void *userdata);
};

struct span_sinks {
	struct span_sink *sinks[SPAN_SINKS_MAX];
	uint32_t n;
};

/* The sink stays the caller's. -ENOSPC: there are SPAN_SINKS_MAX; -EEXIST. Not from within a callback. */
int span_sinks_add(struct span_sinks *list, struct span_sink *sink);
/* One that is not there is no error. */
void span_sinks_remove(struct span_sinks *list, struct span_sink *sink);

void span_sinks_turn(struct span_sinks *list);
void span_sinks_span(struct span_sinks *list, const struct span *span);
void span_sinks_process_over(struct span_sinks *list, uint32_t tgid, uint64_t incarnation);
/* Spans that some sink of the list did not take. */
uint64_t span_sinks_not_taken(const struct span_sinks *list);
