// SPDX-License-Identifier: Apache-2.0
#include "pipeline/work_sink.h"

int work_sinks_add(struct work_sinks *list, struct work_sink *sink)
{
	return sink_list_add(&list->list, &sink->sink, list->list.n);
}

void work_sinks_remove(struct work_sinks *list, const struct work_sink *sink)
{
	sink_list_remove(&list->list, &sink->sink);
}

void work_sinks_turn(struct work_sinks *list)
{
	for (uint32_t i = 0; i < list->list.n; i++)
		sink_turn(&work_sink_at(list, i)->sink);
}

void work_sinks_work(struct work_sinks *list, const struct measured_work *work)
{
	for (uint32_t i = 0; i < list->list.n; i++) {
		struct work_sink *s = work_sink_at(list, i);
		int64_t begin_ns;

		if (sink_enter(&s->sink, &begin_ns))
			sink_leave(&s->sink, s->work(work, s->sink.userdata), begin_ns);
	}
}

void work_sinks_measured(struct work_sinks *list, uint32_t tgid, struct time_part part)
{
	for (uint32_t i = 0; i < list->list.n; i++)
		if (work_sink_at(list, i)->measured)
			work_sink_at(list, i)->measured(tgid, part, work_sink_at(list, i)->sink.userdata);
}

uint64_t work_sinks_not_taken(const struct work_sinks *list)
{
	return sink_list_lost(&list->list);
}
