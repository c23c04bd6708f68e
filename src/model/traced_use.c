// SPDX-License-Identifier: Apache-2.0
/*
 * What traced processes did, added up by workload and device: those that run, as the newest view has them,
 * and those that have ended, whose figures are kept. A process's counters count from its beginning, so one
 * whose workload is found late is counted whole, and each once.
 *
 * Their number is limited as that of workloads is. At the limit the one that has been without processes for
 * longest is added to its device's "other", so that no sum falls. What has no place is added there when it
 * has ended, since until then it may get one.
 */
#include "model/private.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* Of the sums of one workload: counters, and memory held now, which only those that run have. */
static bool row_adds_up(unsigned row)
{
	return traced_metrics[row].kind == METRIC_COUNTER ||
	       (row >= TRACED_LIVE_DEVICE && row <= TRACED_LIVE_ARRAY);
}

static bool is_kept(unsigned row)
{
	return traced_metrics[row].kind == METRIC_COUNTER;
}

/* A sum that lacks a part is an estimate. */
static void sum_add(double *sum, uint8_t *presence, bool first, double value, uint8_t p)
{
	if (presence_is(p)) {
		*sum += value;
		if (!presence_is(*presence))
			*presence = PRESENCE_PRESENT | (first ? 0 : PRESENCE_ESTIMATED);
		*presence |= p & PRESENCE_ESTIMATED;
	} else if (presence_is(*presence)) {
		*presence |= PRESENCE_ESTIMATED;
	}
}

static struct tracked_use *use_find(struct traced_table *table, uint16_t name, const char *uuid)
{
	for (uint32_t i = 0; i < table->uses_n; i++)
		if (table->uses[i].u.name == name && STRV_EQ(table->uses[i].u.uuid, uuid))
			return &table->uses[i];
	return NULL;
}

static void use_fold(struct tracked_use *into, const struct tracked_use *from)
{
	for (unsigned row = 0; row < TRACED_METRICS; row++)
		if (is_kept(row) && presence_is(from->kept_p[row]))
			sum_add(&into->kept[row], &into->kept_p[row], true, from->kept[row],
				from->kept_p[row]);
}

static struct tracked_use *use_add(struct traced_table *table, uint16_t name, const char *uuid)
{
	uint32_t room = MAX(16u, table->uses_room * 2);
	struct tracked_use *use;

	if (table->uses_n == table->uses_room) {
		use = reallocarray(table->uses, room, sizeof(*use));
		if (!use)
			return NULL;
		table->uses = use;
		table->uses_room = room;
	}
	use = &table->uses[table->uses_n++];
	memset(use, 0, sizeof(*use));
	use->u.name = name;
	strncpy(use->u.uuid, uuid, sizeof(use->u.uuid) - 1);
	if (name != NO_INDEX)
		table->names[name].uses++;
	return use;
}

static void use_remove(struct traced_table *table, struct tracked_use *use)
{
	if (use->u.name != NO_INDEX)
		table->names[use->u.name].uses--;
	*use = table->uses[--table->uses_n];
}

static bool use_is_named(const struct tracked_use *use)
{
	return use->u.name != NO_INDEX;
}

static struct tracked_use *use_other(struct traced_table *table, const char *uuid)
{
	struct tracked_use *use = use_find(table, NO_INDEX, uuid);

	return use ? use : use_add(table, NO_INDEX, uuid);
}

bool traced_evict_use(struct model *model, const struct share *share, enum share_room room)
{
	struct traced_table *table = &model->traced;
	struct tracked_use *gone = NULL, copy;

	for (uint32_t i = 0; i < table->uses_n; i++) {
		struct tracked_use *use = &table->uses[i];

		if (use_is_named(use) && table->names[use->u.name].users == 0 &&
		    share_may_take(share, room, table->names[use->u.name].name.user) &&
		    (!gone || use->view < gone->view))
			gone = use;
	}
	if (!gone)
		return false;
	copy = *gone;
	use_remove(table, gone);
	gone = use_other(table, copy.u.uuid);
	if (gone)
		use_fold(gone, &copy);
	return gone != NULL;
}

static struct share uses_count(const struct traced_table *table, uint32_t user)
{
	struct share share = { .user = user };

	for (uint32_t i = 0; i < table->uses_n; i++) {
		const struct tracked_use *use = &table->uses[i];

		if (use_is_named(use))
			share_count(&share, table->names[use->u.name].name.user,
				    table->names[use->u.name].users == 0);
	}
	return share;
}

/* What has no place is counted when it has @ended. */
static bool uses_make_room(struct model *model, uint32_t user, bool ended)
{
	struct share share = uses_count(&model->traced, user);
	enum share_room room;

	while ((room = share_room(&share, model->limits.workloads)) != SHARE_FREE) {
		bool evicted = traced_evict_use(model, &share, room);

		if (evicted || ended)
			workload_count_dropped(model, room);
		if (!evicted)
			return false;
		share = uses_count(&model->traced, user);
	}
	return true;
}

/* NULL: there is no place. */
static struct tracked_use *use_of(struct model *model, uint16_t name, const char *uuid, bool ended)
{
	struct traced_table *table = &model->traced;
	struct tracked_use *use = use_find(table, name, uuid);

	if (!use && uses_make_room(model, table->names[name].name.user, ended))
		use = use_add(table, name, uuid);
	return use;
}

static bool has_process(const struct trace_view *view, struct process_id id)
{
	uint32_t at = view ? trace_view_find(view, view->processes_n, id.pid) : 0;

	for (; view && at < view->processes_n && view->processes[at].id.pid == id.pid; at++)
		if (process_id_equal(view->processes[at].id, id))
			return true;
	return false;
}

void traced_keep_ended(struct model *model, const struct trace_view *former, const struct trace_view *view)
{
	for (uint32_t i = 0; former && i < former->devices_n; i++) {
		const struct traced_device *device = &former->devices[i];
		const struct traced_process *process = &former->processes[device->process];
		bool wants;
		uint16_t name = traced_name_of(model, process->id, &wants);
		struct tracked_use *use;

		if ((name == NO_INDEX && !wants) || has_process(view, process->id))
			continue;
		use = name != NO_INDEX ? use_of(model, name, device->uuid, true) : NULL;
		if (!use)
			use = use_other(&model->traced, device->uuid);
		for (unsigned row = 0; use && row < TRACED_METRICS; row++)
			if (is_kept(row))
				sum_add(&use->kept[row], &use->kept_p[row], !use->any, device->v[row],
					device->p[row]);
		if (use)
			use->any = true;
	}
}

void traced_sum_uses(struct model *model, const struct trace_view *view)
{
	struct traced_table *table = &model->traced;

	for (uint32_t i = 0; i < table->uses_n; i++) {
		struct tracked_use *use = &table->uses[i];

		use->u.live = 0;
		memset(use->u.p, PRESENCE_ABSENT, sizeof(use->u.p));
		memcpy(use->u.v, use->kept, sizeof(use->u.v));
		memcpy(use->u.p, use->kept_p, sizeof(use->u.p));
	}
	for (uint32_t i = 0; view && i < view->devices_n; i++) {
		const struct traced_device *device = &view->devices[i];
		const struct traced_process *process = &view->processes[device->process];
		bool wants;
		uint16_t name = traced_name_of(model, process->id, &wants);
		struct tracked_use *use = name != NO_INDEX ? use_of(model, name, device->uuid, false) : NULL;

		if (!use)
			continue;
		for (unsigned row = 0; row < TRACED_METRICS; row++)
			if (row_adds_up(row) && (is_kept(row) || !process->exited))
				sum_add(&use->u.v[row], &use->u.p[row],
					use->u.live == 0 && (!is_kept(row) || !use->any), device->v[row],
					device->p[row]);
		use->u.live++;
		use->view = table->views;
	}
}

void traced_publish_uses(const struct model *model, struct snapshot *s)
{
	s->traced_uses_n = model->traced.uses_n;
	for (uint32_t i = 0; i < s->traced_uses_n; i++)
		s->traced_uses[i] = model->traced.uses[i].u;
}
