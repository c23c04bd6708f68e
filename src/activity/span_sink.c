// SPDX-License-Identifier: Apache-2.0
#include "activity/span_sink.h"

int span_sinks_add(struct span_sinks *list, struct span_sink *sink)
{
	return sink_list_add(&list->list, &sink->sink, list->list.n);
}

void span_sinks_remove(struct span_sinks *list, struct span_sink *sink)
{
	sink_list_remove(&list->list, &sink->sink);
}

void span_sinks_turn(struct span_sinks *list)
{
	for (uint32_t i = 0; i < list->list.n; i++) {
		struct span_sink *s = span_sink_at(list, i);
		uint64_t lost = sink_turn(&s->sink);

		if (lost > 0 && s->lost)
			s->lost(lost, s->sink.userdata);
	}
}

void span_sinks_span(struct span_sinks *list, const struct span *span)
{
	for (uint32_t i = 0; i < list->list.n; i++) {
		struct span_sink *s = span_sink_at(list, i);
		int64_t begin_ns;

		if (sink_enter(&s->sink, &begin_ns))
			sink_leave(&s->sink, s->span(span, s->sink.userdata), begin_ns);
	}
}

void span_sinks_process_over(struct span_sinks *list, uint32_t tgid, uint64_t incarnation)
{
	for (uint32_t i = 0; i < list->list.n; i++)
		if (span_sink_at(list, i)->process_over)
			span_sink_at(list, i)->process_over(tgid, incarnation,
							    span_sink_at(list, i)->sink.userdata);
}

uint64_t span_sinks_not_taken(const struct span_sinks *list)
{
	return sink_list_lost(&list->list);
}
