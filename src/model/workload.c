// SPDX-License-Identifier: Apache-2.0
/*
 * Workloads per device. Their number is limited (limits.workloads), and that of users' own more so (share.h).
 * At the limit the workload that has been without processes for longest is replaced by the new one, and its
 * sums are added to the device's "other" (kind WORKLOAD_NONE), so that no increment is lost; if all have
 * processes, the new one is credited to "other" until there is a place. Both cases are counted as dropped.
 */
#include "model/private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

#define OTHER_ID "other"

struct workload_ref workload_ref_of(const struct process_identity *identity)
{
	return (struct workload_ref){
		.kind = identity->kind < WORKLOAD_KINDS ? identity->kind : WORKLOAD_NONE,
		.id = identity->workload_id,
		.pod_uid = identity->pod_uid,
		.user = identity->user,
	};
}

uint64_t workload_key(enum workload_kind kind, const char *id, uint16_t device)
{
	char text[sizeof(((struct workload *)0)->id) + 4] = { (char)kind, (char)(device >> 8), (char)device };
	size_t length = strnlen(id, sizeof(text) - 4);

	memcpy(text + 3, id, length);
	return hash_bytes_secret(text, length + 3);
}

static bool workload_is(const struct tracked_workload *t, enum workload_kind kind, const char *id,
			uint16_t device)
{
	return t->w.kind == kind && t->device == device && STRV_EQ(t->w.id, id);
}

/* A free index, lowest first; grows the array, at most to the limit plus the devices' own. */
static uint16_t place_new(struct model *model)
{
	uint32_t room = MAX(16u, model->workloads_room * 2);
	struct tracked_workload *workloads;
	uint16_t *rank;

	for (uint32_t i = 0; i < model->workloads_n; i++)
		if (model->workloads[i].w.kind == WORKLOAD_KINDS)
			return (uint16_t)i;
	if (model->workloads_n < model->workloads_room)
		return (uint16_t)model->workloads_n++;
	if (model->workloads_n >= NO_INDEX)
		return NO_INDEX;
	room = MIN(room, (uint32_t)NO_INDEX);
	workloads = realloc(model->workloads, room * sizeof(*workloads));
	if (!workloads)
		return NO_INDEX;
	model->workloads = workloads;
	rank = realloc(model->workload_rank, room * sizeof(*rank));
	if (!rank)
		return NO_INDEX;
	model->workload_rank = rank;
	model->workloads_room = room;
	return (uint16_t)model->workloads_n++;
}

static uint16_t workload_add(struct model *model, const struct workload_ref *ref, uint16_t device)
{
	uint16_t place = place_new(model);
	struct tracked_workload *t;

	if (place == NO_INDEX)
		return NO_INDEX;
	t = &model->workloads[place];
	memset(t, 0, sizeof(*t));
	t->w.kind = ref->kind;
	t->w.user = ref->user;
	strncpy(t->w.id, ref->id, sizeof(t->w.id) - 1);
	strncpy(t->w.pod_uid, ref->pod_uid, sizeof(t->w.pod_uid) - 1);
	t->w.owner = owner_find(model, ref->kind, t->w.id, t->w.pod_uid);
	model->unnamed += owner_is_wanted(ref->kind, ref->user, t->w.owner);
	t->w.job = JOB_NONE;
	t->w.uid = UINT32_MAX;
	t->device = device;
	allocations_join(model, t);
	return place;
}

static uint16_t workload_other(struct model *model, uint16_t device)
{
	static const struct workload_ref ref = { .kind = WORKLOAD_NONE, .id = OTHER_ID, .pod_uid = "" };
	uint16_t *other = &model->devices[device]->other_workload;

	if (*other == NO_INDEX)
		*other = workload_add(model, &ref, device);
	return *other;
}

static void workload_remove(struct model *model, uint16_t place)
{
	struct tracked_workload *t = &model->workloads[place];

	if (t->w.kind != WORKLOAD_NONE) {
		hashmap_del(&model->workload_map, workload_key(t->w.kind, t->w.id, t->device));
		model->workloads_named--;
	}
	t->w.kind = WORKLOAD_KINDS;
	job_unref(model, t->w.job);
	for (uint32_t i = 0; i < model->exits_n; i++)
		if (exit_at(model, i)->workload == place)
			exit_at(model, i)->workload = NO_INDEX;
	model->exits_tag++;
}

static bool workload_is_named(const struct tracked_workload *t)
{
	return t->w.kind != WORKLOAD_KINDS && t->w.kind != WORKLOAD_NONE;
}

static struct share workloads_count(const struct model *model, uint32_t user)
{
	struct share share = { .user = user };

	for (uint32_t i = 0; i < model->workloads_n; i++) {
		const struct tracked_workload *t = &model->workloads[i];

		if (workload_is_named(t))
			share_count(&share, t->w.user, t->w.live == 0);
	}
	return share;
}

/* Removes the one that has been idle for longest of those that may make room; false if all have processes. */
static bool workload_evict(struct model *model, const struct share *share, enum share_room room)
{
	uint16_t found = NO_INDEX, other;

	for (uint32_t i = 0; i < model->workloads_n; i++) {
		const struct tracked_workload *t = &model->workloads[i];

		if (!workload_is_named(t) || t->w.live > 0 || !share_may_take(share, room, t->w.user))
			continue;
		if (found == NO_INDEX || t->idle_ns < model->workloads[found].idle_ns)
			found = (uint16_t)i;
	}
	if (found == NO_INDEX)
		return false;
	other = workload_other(model, model->workloads[found].device);
	if (other == NO_INDEX)
		return false;
	for (unsigned row = 0; row < PROCESS_METRICS; row++)
		if (process_metrics[row].kind == METRIC_INCREMENT)
			workload_credit(model, other, row, model->workloads[found].w.v[row],
					model->workloads[found].w.p[row]);
	model->workloads[other].w.exited += model->workloads[found].w.exited;
	workload_remove(model, found);
	return true;
}

void workload_count_dropped(struct model *model, enum share_room room)
{
	model_agent_add(model, room == SHARE_OF_ANY ? AGENT_DROPPED_WORKLOADS : AGENT_DROPPED_USER_WORKLOADS,
			1);
}

static bool workloads_make_room(struct model *model, uint32_t user)
{
	struct share share = workloads_count(model, user);
	enum share_room room;

	while ((room = share_room(&share, model->limits.workloads)) != SHARE_FREE) {
		workload_count_dropped(model, room);
		if (!workload_evict(model, &share, room))
			return false;
		share = workloads_count(model, user);
	}
	return true;
}

bool workload_has_place(const struct model *model, uint64_t wanted, uint32_t user)
{
	struct share share = workloads_count(model, user);
	uint32_t place;

	return hashmap_get(&model->workload_map, wanted, &place) ||
	       share_has_place(&share, model->limits.workloads);
}

/* NO_INDEX: there is no place, or no memory. */
static uint16_t workload_new(struct model *model, const struct workload_ref *ref, uint16_t device,
			     uint64_t key)
{
	uint16_t place = workloads_make_room(model, ref->user) ? workload_add(model, ref, device) : NO_INDEX;

	if (place == NO_INDEX)
		return NO_INDEX;
	if (hashmap_put(&model->workload_map, key, place) < 0) {
		model->workloads[place].w.kind = WORKLOAD_KINDS;
		return NO_INDEX;
	}
	model->workloads_named++;
	return place;
}

uint16_t workload_find(struct model *model, const struct workload_ref *ref, uint16_t device,
		       uint64_t *ret_wanted)
{
	uint64_t key = workload_key(ref->kind, ref->id, device);
	uint16_t found = NO_INDEX;
	uint32_t place;

	*ret_wanted = 0;
	if (!hashmap_get(&model->workload_map, key, &place))
		found = workload_new(model, ref, device, key);
	else if (workload_is(&model->workloads[place], ref->kind, ref->id, device))
		found = (uint16_t)place;
	/* else a hash collision of two names: not mixed with the other's sums */
	if (found != NO_INDEX)
		return found;
	*ret_wanted = key;
	return workload_other(model, device);
}

void workload_credit(struct model *model, uint16_t workload, enum process_metric row, double increment,
		     uint8_t presence)
{
	struct workload *w;

	if (workload == NO_INDEX || !presence_is(presence))
		return;
	w = &model->workloads[workload].w;
	w->v[row] += increment;
	w->p[row] |= PRESENCE_PRESENT | (presence & PRESENCE_ESTIMATED);
}

void workload_enter(struct model *model, uint16_t workload)
{
	if (workload != NO_INDEX)
		model->workloads[workload].w.live++;
}

void workload_move(struct model *model, uint16_t from, uint16_t to)
{
	workload_enter(model, to);
	if (from != NO_INDEX)
		model->workloads[from].w.live--;
}

void workload_leave(struct model *model, uint16_t workload, int64_t now_ns)
{
	struct tracked_workload *t;

	if (workload == NO_INDEX)
		return;
	t = &model->workloads[workload];
	t->w.exited++;
	if (--t->w.live == 0)
		t->idle_ns = now_ns;
}

void workloads_forget_device(struct model *model, uint16_t device)
{
	for (uint32_t i = 0; i < model->workloads_n; i++)
		if (model->workloads[i].w.kind != WORKLOAD_KINDS && model->workloads[i].device == device)
			workload_remove(model, (uint16_t)i);
}
