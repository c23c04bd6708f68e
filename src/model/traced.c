// SPDX-License-Identifier: Apache-2.0
/*
 * Workloads of traced processes. Each process is identified once: as NVML's process, if it is one, else by
 * the callback that reads /proc. The result is stored while tracing shows the process.
 *
 * A process that ended before it was identified, or whose PID has been reused, has no workload. Workloads of
 * traced processes have names only (struct workload_name); the use of devices by workloads is in workload.c.
 */
#include "model/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

enum { LOOKS_PER_VIEW = 256 }; /* /proc look-ups per view; the others wait for the next view */

struct traced_known {
	struct process_id id;
	uint16_t name; /* NO_INDEX: none */
	uint64_t view; /* number of the newest view that contained it */
};

static struct traced_known *known_find(const struct traced_table *table, struct process_id id)
{
	uint32_t index;

	if (!hashmap_get(&table->by_id, process_id_hash(id), &index))
		return NULL;
	return process_id_equal(table->known[index].id, id) ? &table->known[index] : NULL;
}

/* A free index; NO_INDEX at the limit or without memory. */
static uint16_t name_place(struct traced_table *table, uint32_t limit)
{
	uint32_t room = MIN(MAX(16u, table->names_room * 2), MIN(limit, (uint32_t)NO_INDEX));
	struct traced_name *names;

	for (uint32_t i = 0; i < table->names_n; i++)
		if (!name_is_used(&table->names[i]))
			return (uint16_t)i;
	if (table->names_n == table->names_room) {
		if (room <= table->names_room)
			return NO_INDEX;
		names = reallocarray(table->names, room, sizeof(*names));
		if (!names)
			return NO_INDEX;
		table->names = names;
		table->names_room = room;
	}
	return (uint16_t)table->names_n++;
}

static uint16_t name_of(struct model *model, enum workload_kind kind, const char *id, const char *pod_uid)
{
	struct traced_table *table = &model->traced;
	struct workload_name *name;
	uint16_t place;

	if (kind == WORKLOAD_NONE || kind >= WORKLOAD_KINDS)
		return NO_INDEX;
	for (uint32_t i = 0; i < table->names_n; i++)
		if (name_is_used(&table->names[i]) && table->names[i].name.kind == kind &&
		    STRV_EQ(table->names[i].name.id, id))
			return (uint16_t)i;
	while ((place = name_place(table, model->limits.workloads)) == NO_INDEX && traced_evict_use(model))
		model_agent_add(model, AGENT_DROPPED_WORKLOADS, 1);
	if (place == NO_INDEX) {
		model_agent_add(model, AGENT_DROPPED_WORKLOADS, 1);
		return NO_INDEX;
	}
	table->names[place] = (struct traced_name){ .name.kind = kind };
	name = &table->names[place].name;
	strncpy(name->id, id, sizeof(name->id) - 1);
	strncpy(name->pod_uid, pod_uid, sizeof(name->pod_uid) - 1);
	name->owner = owner_find(model, kind, name->id, name->pod_uid);
	model->unnamed += owner_is_wanted(kind, name->owner);
	return place;
}

/* -EAGAIN: try again with the next view. */
static int workload_of(struct model *model, const struct traced_process *process, unsigned *looks,
		       uint16_t *ret_name)
{
	const struct workload *listed = process_workload(model, process->id);
	struct process_identity identity;
	int r;

	*ret_name = NO_INDEX;
	if (listed) {
		*ret_name = name_of(model, listed->kind, listed->id, listed->pod_uid);
		return 0;
	}
	if (process->exited)
		return 0;
	if (*looks == 0)
		return -EAGAIN;
	(*looks)--;
	r = process_identify(model, process->id.pid, true, &identity);
	if (r == -EMFILE || r == -ENFILE || r == -ENOMEM)
		return -EAGAIN;
	if (r < 0 || !process_id_equal(identity.id, process->id))
		return 0;
	*ret_name = name_of(model, identity.kind, identity.workload_id, identity.pod_uid);
	return 0;
}

uint16_t traced_name_of(const struct model *model, struct process_id id)
{
	const struct traced_known *known = known_find(&model->traced, id);

	return known ? known->name : NO_INDEX;
}

const struct workload_name *traced_workload_of(const struct model *model, struct process_id id)
{
	const struct traced_known *known = known_find(&model->traced, id);

	return known && known->name != NO_INDEX ? &model->traced.names[known->name].name : NULL;
}

static bool known_grow(struct traced_table *table)
{
	uint32_t room = MIN(MAX(64u, table->known_room * 2), (uint32_t)TRACED_PROCESSES_MAX);
	struct traced_known *known;

	if (table->known_n < table->known_room)
		return true;
	if (room <= table->known_room)
		return false;
	known = reallocarray(table->known, room, sizeof(*known));
	if (!known)
		return false;
	table->known = known;
	table->known_room = room;
	return true;
}

static void known_remove(struct traced_table *table, uint32_t index)
{
	struct traced_known *gone = &table->known[index], *last = &table->known[--table->known_n];

	if (gone->name != NO_INDEX)
		table->names[gone->name].users--;
	hashmap_del(&table->by_id, process_id_hash(gone->id));
	if (gone == last)
		return;
	*gone = *last;
	hashmap_put(&table->by_id, process_id_hash(gone->id), index); /* replaces */
}

static void take_process(struct model *model, const struct traced_process *process, unsigned *looks)
{
	struct traced_table *table = &model->traced;
	struct traced_known *known = known_find(table, process->id);
	uint32_t index;
	uint16_t name;

	if (known || process->id.start_ticks == 0)
		return;
	/* Of two processes with equal hashes only the first is stored. */
	if (!known_grow(table) || hashmap_get(&table->by_id, process_id_hash(process->id), &index) ||
	    workload_of(model, process, looks, &name) < 0 ||
	    hashmap_put(&table->by_id, process_id_hash(process->id), table->known_n) < 0)
		return;
	table->known[table->known_n++] =
		(struct traced_known){ .id = process->id, .name = name, .view = table->views };
	if (name != NO_INDEX)
		table->names[name].users++;
}

void traced_take_view(struct model *model, const struct trace_view *view)
{
	struct traced_table *table = &model->traced;
	unsigned looks = LOOKS_PER_VIEW;

	table->views++;
	/* Removes ended processes first, to free space for new ones. */
	for (uint32_t i = 0; view && i < view->processes_n; i++) {
		struct traced_known *known = known_find(table, view->processes[i].id);

		if (known)
			known->view = table->views;
	}
	for (uint32_t i = table->known_n; i-- > 0;)
		if (table->known[i].view != table->views)
			known_remove(table, i);
	for (uint32_t i = 0; view && i < view->processes_n; i++)
		take_process(model, &view->processes[i], &looks);
}

void traced_find_owners(struct model *model)
{
	struct traced_table *table = &model->traced;

	for (uint32_t i = 0; i < table->names_n; i++) {
		struct workload_name *name = &table->names[i].name;

		name->owner = owner_find(model, name->kind, name->id, name->pod_uid);
	}
}

bool traced_wants_owners(const struct model *model)
{
	const struct traced_table *table = &model->traced;

	for (uint32_t i = 0; i < table->names_n; i++)
		if (table->names[i].users > 0 &&
		    owner_is_wanted(table->names[i].name.kind, table->names[i].name.owner))
			return true;
	return false;
}

void traced_publish(const struct model *model, struct snapshot *s)
{
	const struct traced_table *table = &model->traced;

	s->workload_names_n = table->names_n;
	for (uint32_t i = 0; i < table->names_n; i++)
		s->workload_names[i] =
			name_is_used(&table->names[i]) ? table->names[i].name : (struct workload_name){ 0 };
	for (uint32_t i = 0; s->trace && i < s->trace->processes_n; i++) {
		const struct traced_known *known = known_find(table, s->trace->processes[i].id);

		s->traced_workloads[i] = known && known->name != NO_INDEX ? known->name : READING_NONE;
	}
	traced_publish_uses(model, s);
	snapshot_join_trace(s);
}

void traced_done(struct traced_table *table)
{
	hashmap_done(&table->by_id);
	free(table->known);
	free(table->names);
	free(table->uses);
}
