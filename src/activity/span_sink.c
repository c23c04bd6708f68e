// SPDX-License-Identifier: Apache-2.0
#include "activity/span_sink.h"

#include <errno.h>
#include <string.h>

int span_sinks_add(struct span_sinks *list, struct span_sink *sink)
{
	if (list->n == SPAN_SINKS_MAX)
		return -ENOSPC;
	for (uint32_t i = 0; i < list->n; i++)
		if (list->sinks[i] == sink)
			return -EEXIST;
	list->sinks[list->n++] = sink;
	return 0;
}

void span_sinks_remove(struct span_sinks *list, struct span_sink *sink)
{
	for (uint32_t i = 0; i < list->n; i++) {
		if (list->sinks[i] != sink)
			continue;
		list->n--;
		memmove(&list->sinks[i], &list->sinks[i + 1], (list->n - i) * sizeof(list->sinks[0]));
		return;
	}
}

void span_sinks_turn(struct span_sinks *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		struct span_sink *s = list->sinks[i];
		uint64_t lost = sink_turn(&s->sink);

		if (lost > 0 && s->lost)
			s->lost(lost, s->sink.userdata);
	}
}

void span_sinks_span(struct span_sinks *list, const struct span *span)
{
	for (uint32_t i = 0; i < list->n; i++) {
		struct span_sink *s = list->sinks[i];
		int64_t begin_ns;

		if (sink_enter(&s->sink, &begin_ns))
			sink_leave(&s->sink, s->span(span, s->sink.userdata), begin_ns);
	}
}

void span_sinks_process_over(struct span_sinks *list, uint32_t tgid, uint64_t incarnation)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->sinks[i]->process_over)
			list->sinks[i]->process_over(tgid, incarnation, list->sinks[i]->sink.userdata);
}

uint64_t span_sinks_not_taken(const struct span_sinks *list)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < list->n; i++)
		lost += list->sinks[i]->sink.lost;
	return lost;
}
