// SPDX-License-Identifier: Apache-2.0
/*
 * Joins traced processes with those that the driver lists: by device (UUID) and by process (PID and start
 * time). A reused PID does not match. If a start time is unknown, as for a process in another PID namespace,
 * an equal PID is sufficient, unless another process matches exactly.
 */
#include "model/private.h"

#include <string.h>

#include "base/macro.h"

static bool has_uuid(const struct entity *e, const char *uuid)
{
	return STRV_EQ(e->id.parent != READING_NONE ? e->id.mig_uuid : e->id.uuid, uuid);
}

/* Most traced processes use the same device as the previous one: @hint is tried first. */
static uint16_t entity_of(const struct snapshot *s, const char *uuid, uint16_t hint)
{
	if (!*uuid)
		return READING_NONE;
	if (hint < s->entities_n && has_uuid(&s->entities[hint], uuid))
		return hint;
	for (uint32_t i = 0; i < s->entities_n; i++)
		if (has_uuid(&s->entities[i], uuid))
			return (uint16_t)i;
	return READING_NONE;
}

/* The driver's process with this PID on the device, or NULL. Processes are sorted by entity and PID. */
static struct process *listed_there(const struct snapshot *s, uint16_t entity, uint32_t pid)
{
	const struct process *all = s->processes;
	uint32_t at = LOWER_BOUND(s->processes_n, middle,
				  all[middle].entity < entity ||
					  (all[middle].entity == entity && all[middle].id.pid < pid));

	return at < s->processes_n && all[at].entity == entity && all[at].id.pid == pid ? &s->processes[at] :
											  NULL;
}

typedef bool same_process_fn(struct process_id a, struct process_id b);

static void join_processes(struct snapshot *s, same_process_fn *same)
{
	const struct trace_view *view = s->trace;

	for (uint32_t i = 0; i < view->devices_n; i++) {
		const struct traced_process *traced = &view->processes[view->devices[i].process];
		struct traced_place *place = &s->traced_places[i];
		struct process *process;

		if (traced->exited || place->listed || place->entity == READING_NONE)
			continue;
		process = listed_there(s, place->entity, traced->id.pid);
		if (!process || process->traced != TRACED_NONE || !same(process->id, traced->id))
			continue;
		process->traced = i;
		place->listed = true;
	}
}

void snapshot_join_trace(struct snapshot *s)
{
	uint16_t hint = READING_NONE;

	for (uint32_t i = 0; i < s->processes_n; i++)
		s->processes[i].traced = TRACED_NONE;
	if (!s->trace)
		return;
	for (uint32_t i = 0; i < s->trace->devices_n; i++) {
		uint16_t entity = entity_of(s, s->trace->devices[i].uuid, hint);

		s->traced_places[i] = (struct traced_place){ .entity = entity };
		hint = entity == READING_NONE ? hint : entity;
	}
	join_processes(s, process_id_equal);
	join_processes(s, process_id_may_equal);
}
