// SPDX-License-Identifier: Apache-2.0
#include "activity/event_sink.h"

#include <errno.h>
#include <string.h>

int event_sinks_add(struct event_sinks *list, struct event_sink *sink)
{
	uint32_t at = sink->event ? list->with_event : list->n;

	if (list->n == EVENT_SINKS_MAX)
		return -ENOSPC;
	for (uint32_t i = 0; i < list->n; i++)
		if (list->sinks[i] == sink)
			return -EEXIST;
	memmove(&list->sinks[at + 1], &list->sinks[at], (list->n - at) * sizeof(list->sinks[0]));
	list->sinks[at] = sink;
	list->n++;
	list->with_event += sink->event != NULL;
	return 0;
}

void event_sinks_remove(struct event_sinks *list, struct event_sink *sink)
{
	for (uint32_t i = 0; i < list->n; i++) {
		if (list->sinks[i] != sink)
			continue;
		list->with_event -= i < list->with_event;
		list->n--;
		memmove(&list->sinks[i], &list->sinks[i + 1], (list->n - i) * sizeof(list->sinks[0]));
		return;
	}
}

void event_sinks_turn(struct event_sinks *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		struct event_sink *s = list->sinks[i];
		uint64_t lost = sink_turn(&s->sink);

		if (lost > 0 && s->lost)
			s->lost(lost, s->sink.userdata);
		if (s->turn)
			s->turn(s->sink.userdata);
	}
}

void event_sinks_lost(struct event_sinks *list, uint64_t events)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->sinks[i]->lost)
			list->sinks[i]->lost(events, list->sinks[i]->sink.userdata);
}

void event_sinks_incomplete(struct event_sinks *list, uint32_t tgid, uint64_t incarnation, unsigned bits)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->sinks[i]->incomplete)
			list->sinks[i]->incomplete(tgid, incarnation, bits, list->sinks[i]->sink.userdata);
}

void event_sinks_process_over(struct event_sinks *list, uint32_t tgid, uint64_t incarnation)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->sinks[i]->process_over)
			list->sinks[i]->process_over(tgid, incarnation, list->sinks[i]->sink.userdata);
}

uint64_t event_sinks_not_taken(const struct event_sinks *list)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < list->n; i++)
		lost += list->sinks[i]->sink.lost;
	return lost;
}
