// SPDX-License-Identifier: Apache-2.0
/*
 * Workloads of traced processes. Each process is identified once: as NVML's process, if it is one, else by
 * the callback that reads /proc. The result is stored while tracing shows the process.
 *
 * A process that ended before it was identified, or whose PID has been reused, has no workload. Workloads of
 * traced processes have names only (struct workload_name); the use of devices by workloads is in workload.c.
 *
 * One whose workload has no place is tried again while it is shown; when it has ended its figures are
 * "other"'s.
 */
#include "model/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

enum {
	LOOKS_PER_VIEW = 256, /* /proc look-ups per view; the others wait for the next view */
	RETRIES_PER_VIEW = 64, /* of processes whose workload has no place */
};

struct traced_known {
	struct process_id id;
	uint16_t name; /* NO_INDEX: none */
	/* key and user of the workload that there was no place for; 0: none */
	uint64_t wanted;
	uint32_t wanted_user;
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

static struct share names_count(const struct traced_table *table, uint32_t user)
{
	struct share share = { .user = user };

	for (uint32_t i = 0; i < table->names_n; i++)
		if (name_is_used(&table->names[i]))
			share_count(&share, table->names[i].name.user, table->names[i].users == 0);
	return share;
}

static bool names_make_room(struct model *model, uint32_t user)
{
	struct share share = names_count(&model->traced, user);
	enum share_room room;

	while ((room = share_room(&share, model->limits.workloads)) != SHARE_FREE) {
		workload_count_dropped(model, room);
		if (!traced_evict_use(model, &share, room))
			return false;
		share = names_count(&model->traced, user);
	}
	return true;
}

/* *ret_wanted: the key of a workload that has no place, else 0. */
static uint16_t name_of(struct model *model, const struct workload_ref *ref, uint64_t *ret_wanted)
{
	uint64_t key = workload_key(ref->kind, ref->id, NO_INDEX);
	struct traced_table *table = &model->traced;
	struct workload_name *name;
	uint16_t place;

	*ret_wanted = 0;
	if (ref->kind == WORKLOAD_NONE)
		return NO_INDEX;
	for (uint32_t i = 0; i < table->names_n; i++)
		if (name_is_used(&table->names[i]) && table->names[i].name.kind == ref->kind &&
		    STRV_EQ(table->names[i].name.id, ref->id))
			return (uint16_t)i;
	place = names_make_room(model, ref->user) ? name_place(table, model->limits.workloads) : NO_INDEX;
	if (place == NO_INDEX) {
		*ret_wanted = key;
		return NO_INDEX;
	}
	table->names[place] = (struct traced_name){ .key = key };
	name = &table->names[place].name;
	name->kind = ref->kind;
	name->user = ref->user;
	strncpy(name->id, ref->id, sizeof(name->id) - 1);
	strncpy(name->pod_uid, ref->pod_uid, sizeof(name->pod_uid) - 1);
	name->owner = owner_find(model, ref->kind, name->id, name->pod_uid);
	model->unnamed += owner_is_wanted(ref->kind, ref->user, name->owner);
	return place;
}

static void set_name(struct model *model, struct traced_known *known, const struct workload_ref *ref)
{
	known->wanted_user = ref->user;
	known->name = name_of(model, ref, &known->wanted);
}

/* Finds the workload of @known. -EAGAIN: try again with the next view. */
static int find_workload(struct model *model, const struct traced_process *process, unsigned *looks,
			 struct traced_known *known)
{
	const struct workload *listed = process_workload(model, process->id);
	struct process_identity identity;
	struct workload_ref ref;
	int r;

	if (listed) {
		ref = (struct workload_ref){ listed->kind, listed->id, listed->pod_uid, listed->user };
		set_name(model, known, &ref);
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
	ref = workload_ref_of(&identity);
	set_name(model, known, &ref);
	return 0;
}

uint16_t traced_name_of(const struct model *model, struct process_id id, bool *ret_wants)
{
	const struct traced_known *known = known_find(&model->traced, id);

	*ret_wants = known && known->wanted != 0;
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
	struct traced_known known = { .id = process->id, .name = NO_INDEX, .view = table->views };
	uint32_t index;

	if (known_find(table, process->id) || process->id.start_ticks == 0)
		return;
	/* Of two processes with equal hashes only the first is stored. */
	if (!known_grow(table) || hashmap_get(&table->by_id, process_id_hash(process->id), &index) ||
	    find_workload(model, process, looks, &known) < 0 ||
	    hashmap_put(&table->by_id, process_id_hash(process->id), table->known_n) < 0)
		return;
	table->known[table->known_n++] = known;
	if (known.name != NO_INDEX)
		table->names[known.name].users++;
}

static bool has_place(const struct model *model, const struct traced_known *known)
{
	const struct traced_table *table = &model->traced;
	struct share share = names_count(table, known->wanted_user);

	for (uint32_t i = 0; i < table->names_n; i++)
		if (name_is_used(&table->names[i]) && table->names[i].key == known->wanted)
			return true;
	return share_has_place(&share, model->limits.workloads);
}

/* Tries processes without a place again, in turns. */
static void retry(struct model *model, const struct trace_view *view, unsigned *looks)
{
	struct traced_table *table = &model->traced;
	unsigned tries = RETRIES_PER_VIEW;

	for (uint32_t n = 0; n < view->processes_n && tries > 0 && *looks > 0; n++) {
		const struct traced_process *process =
			&view->processes[table->retry_at++ % view->processes_n];
		struct traced_known *known = known_find(table, process->id);

		if (!known || known->wanted == 0 || process->exited)
			continue;
		tries--;
		if (has_place(model, known) && find_workload(model, process, looks, known) == 0 &&
		    known->name != NO_INDEX)
			table->names[known->name].users++;
	}
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
	if (view)
		retry(model, view, &looks);
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
		    owner_is_wanted(table->names[i].name.kind, table->names[i].name.user,
				    table->names[i].name.owner))
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
