// SPDX-License-Identifier: Apache-2.0
#include "activity/event_sink.h"

int event_sinks_add(struct event_sinks *list, struct event_sink *sink)
{
	int r = sink_list_add(&list->list, &sink->sink, sink->event ? list->with_event : list->list.n);

	if (r == 0)
		list->with_event += sink->event ? 1 : 0;
	return r;
}

void event_sinks_remove(struct event_sinks *list, struct event_sink *sink)
{
	list->with_event -= sink_list_remove(&list->list, &sink->sink) < list->with_event;
}

void event_sinks_turn(struct event_sinks *list)
{
	for (uint32_t i = 0; i < list->list.n; i++) {
		struct event_sink *s = event_sink_at(list, i);
		uint64_t lost = sink_turn(&s->sink);

		if (lost > 0 && s->lost)
			s->lost(lost, s->sink.userdata);
		if (s->turn)
			s->turn(s->sink.userdata);
	}
}

void event_sinks_lost(struct event_sinks *list, uint64_t events)
{
	for (uint32_t i = 0; i < list->list.n; i++)
		if (event_sink_at(list, i)->lost)
			event_sink_at(list, i)->lost(events, event_sink_at(list, i)->sink.userdata);
}

void event_sinks_incomplete(struct event_sinks *list, uint32_t tgid, uint64_t incarnation, unsigned bits)
{
	for (uint32_t i = 0; i < list->list.n; i++)
		if (event_sink_at(list, i)->incomplete)
			event_sink_at(list, i)->incomplete(tgid, incarnation, bits,
							   event_sink_at(list, i)->sink.userdata);
}

void event_sinks_process_over(struct event_sinks *list, uint32_t tgid, uint64_t incarnation)
{
	for (uint32_t i = 0; i < list->list.n; i++)
		if (event_sink_at(list, i)->process_over)
			event_sink_at(list, i)->process_over(tgid, incarnation,
							     event_sink_at(list, i)->sink.userdata);
}

uint64_t event_sinks_not_taken(const struct event_sinks *list)
{
	return sink_list_lost(&list->list);
}
