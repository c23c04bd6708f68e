// SPDX-License-Identifier: Apache-2.0
/*
 * From the sources' rows to allocations: devices are found among the model's, names and IDs by the owners,
 * and what several sources say of one workload becomes one allocation for each device. Done again only when
 * rows, owners or devices have changed; sums go on where the same workload still has the same device.
 *
 * Of the sources that know a workload the one with the highest priority decides what it was given: kubelet
 * knows which of all GPUs it gave to a container whose image asks for "all".
 */
#include "model/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

#define OTHER_ID "other"

/* ---- whose ---- */

static bool is_named(const struct allocated *a)
{
	return a->namespace[0] && a->pod[0];
}

static int compare_names(const struct allocated *a, const struct allocated *b)
{
	int order = strcmp(a->namespace, b->namespace);

	if (order == 0)
		order = strcmp(a->pod, b->pod);
	return order ? order : strcmp(a->container, b->container);
}

/* By names where they are known, since not every source knows the ID. */
static int compare_whose(const struct allocated *a, const struct allocated *b)
{
	if (is_named(a) != is_named(b))
		return is_named(a) ? -1 : 1;
	if (is_named(a))
		return compare_names(a, b);
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return strcmp(a->id, b->id);
}

static int compare_device(const void *a, const void *b)
{
	const struct tracked_allocation *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return compare_whose(&x->a, &y->a);
}

/* Within a workload the best source's first, and what is claimed last. */
static int compare_source(const void *a, const void *b)
{
	const struct tracked_allocation *x = a, *y = b;
	int order = compare_whose(&x->a, &y->a);

	if (order != 0)
		return order;
	if (x->a.claimed != y->a.claimed)
		return x->a.claimed ? 1 : -1;
	if (x->a.source != y->a.source)
		return source_before(NULL, x->a.source, y->a.source) ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return strcmp(x->a.resource, y->a.resource);
}

static bool owner_names(const struct owner *owner, const struct allocated *a)
{
	return STRV_EQ(owner->pod, a->pod) && STRV_EQ(owner->namespace, a->namespace) &&
	       STRV_EQ(owner->container, a->container);
}

/* The ID of a container or pod whose names alone are known: one that has processes before others. */
static void find_id(const struct model *model, struct allocated *a)
{
	enum workload_kind kind = a->container[0] ? WORKLOAD_CONTAINER : WORKLOAD_POD;
	const struct owner *found;

	for (uint32_t i = 0; i < model->workloads_n; i++) {
		const struct workload *w = &model->workloads[i].w;

		if (w->kind == kind && w->live > 0 && w->owner && owner_names(w->owner, a)) {
			memcpy(a->id, w->id, sizeof(a->id));
			memcpy(a->pod_uid, w->pod_uid, sizeof(a->pod_uid));
			return;
		}
	}
	/* Of a container that was started again several are known. */
	found = owner_of_names(model, kind, a->namespace, a->pod, a->container);
	if (found)
		memcpy(a->id, found->id, sizeof(a->id));
}

/* The UID of the pod of a container of which the source does not tell it: its workload's, or by the names. */
static void fill_pod_uid(const struct model *model, struct allocated *a)
{
	const struct owner *found;

	for (uint32_t i = 0; a->id[0] && i < model->workloads_n; i++) {
		const struct workload *w = &model->workloads[i].w;

		if (w->kind == WORKLOAD_CONTAINER && w->pod_uid[0] && STRV_EQ(w->id, a->id)) {
			memcpy(a->pod_uid, w->pod_uid, sizeof(a->pod_uid));
			return;
		}
	}
	found = is_named(a) ? owner_of_names(model, WORKLOAD_POD, a->namespace, a->pod, "") : NULL;
	if (found)
		memcpy(a->pod_uid, found->id, sizeof(a->pod_uid) - 1);
}

static void fill_names(const struct model *model, struct allocated *a)
{
	const struct owner *owner = owner_find(model, a->kind, a->id, a->pod_uid);

	if (!owner || (a->kind == WORKLOAD_CONTAINER && !owner->container[0]))
		return;
	memcpy(a->namespace, owner->namespace, sizeof(a->namespace));
	memcpy(a->pod, owner->pod, sizeof(a->pod));
	if (a->kind == WORKLOAD_CONTAINER)
		memcpy(a->container, owner->container, sizeof(a->container));
}

static struct allocated allocated_of(const struct model *model, const struct allocation *row)
{
	struct allocated a = { .kind = row->workload,
			       .source = row->source,
			       .claimed = row->claimed,
			       .slots = row->slots,
			       .estimated = row->estimated != 0,
			       .count = 1,
			       .idle_p = PRESENCE_ABSENT };

	memcpy(a.id, row->id, sizeof(a.id));
	memcpy(a.pod_uid, row->pod_uid, sizeof(a.pod_uid));
	memcpy(a.namespace, row->namespace, sizeof(a.namespace));
	memcpy(a.pod, row->pod, sizeof(a.pod));
	memcpy(a.container, row->container, sizeof(a.container));
	memcpy(a.resource, row->resource, sizeof(a.resource));
	if (a.kind == WORKLOAD_NONE) {
		find_id(model, &a);
		a.kind = a.container[0] ? WORKLOAD_CONTAINER : WORKLOAD_POD;
	} else if (!is_named(&a)) {
		fill_names(model, &a);
	}
	if (a.kind == WORKLOAD_CONTAINER && !a.pod_uid[0])
		fill_pod_uid(model, &a);
	return a;
}

/* ---- which device ---- */

static bool is_instance_number(const struct model *model, const struct device *device, uint32_t number)
{
	uint32_t before = 0;

	if (device->e.id.mig_number > 0)
		return device->e.id.mig_number == number + 1;
	for (uint16_t rank = 0; rank < device->rank; rank++)
		before += model->devices[model->order[rank]]->parent == device->parent;
	return before == number;
}

static bool is_uuid(const struct device *device, const struct device_ref *ref)
{
	const struct reading_entity *id = &device->e.id;
	const char *own = device->parent == NO_INDEX ? id->uuid : id->mig_uuid;

	if (ref->gi != DEVICE_REF_NO)
		return device->parent != NO_INDEX && STRV_EQ(id->uuid, ref->uuid) && id->gi == ref->gi &&
		       id->ci == ref->ci;
	return strncmp(own, ref->uuid, strlen(ref->uuid)) == 0;
}

bool device_is_meant(const struct model *model, const struct device *device, const struct device_ref *ref)
{
	const struct device *gpu = device->parent == NO_INDEX ? device : model->devices[device->parent];
	bool is_gpu = device == gpu;

	switch (ref->kind) {
	case DEVICE_ALL:
		return is_gpu;
	case DEVICE_BY_UUID:
		return is_uuid(device, ref);
	case DEVICE_BY_INDEX:
		if (ref->gi != DEVICE_REF_NO)
			return gpu->e.id.index == ref->index && !is_gpu && device->e.id.gi == ref->gi;
		return gpu->e.id.index == ref->index && is_gpu == (ref->mig == DEVICE_REF_NO) &&
		       (is_gpu || is_instance_number(model, device, ref->mig));
	case DEVICE_BY_MINOR:
		return gpu->e.id.minor == ref->index && is_gpu == (ref->gi == DEVICE_REF_NO) &&
		       (is_gpu || device->e.id.gi == ref->gi);
	case DEVICE_NOT:
	case DEVICE_CLAIMED:
		break;
	}
	return false;
}

/* The beginning of a UUID is one that only one device has, of those that are there; else of the others. */
static bool is_ambiguous(const struct model *model, const struct device_ref *ref)
{
	unsigned present = 0, absent = 0;

	for (uint16_t i = 0; ref->kind == DEVICE_BY_UUID && i < model->devices_n; i++) {
		const struct device *device = model->devices[model->order[i]];

		if (device_is_meant(model, device, ref))
			*(device->e.present ? &present : &absent) += 1;
	}
	return present > 1 || (present == 0 && absent > 1);
}

/* ---- the list ---- */

struct resolving {
	struct model *model;
	struct tracked_allocation *list;
	uint32_t n, room;
	uint32_t unresolved; /* rows of no known device */
	uint32_t dropped; /* above the limit, and so in their device's "other" */
	uint32_t beyond; /* above what is looked at */
};

static bool resolving_grow(struct resolving *to)
{
	uint32_t room = MAX(64u, to->room * 2);
	struct tracked_allocation *list;

	if (to->n < to->room)
		return true;
	if (room > ALLOCATIONS_TRACKED_MAX)
		return false;
	list = realloc(to->list, room * sizeof(*list));
	if (!list)
		return false;
	to->list = list;
	to->room = room;
	return true;
}

/* @present: whether the devices are looked for among those that are listed now, or among the others. */
static bool add_devices(struct resolving *to, const struct allocation *row, const struct allocated *a,
			bool present)
{
	bool any = false;

	for (uint16_t i = 0; i < to->model->devices_n; i++) {
		const struct device *device = to->model->devices[to->model->order[i]];

		if (device->e.present != present || !device_is_meant(to->model, device, &row->device))
			continue;
		any = true;
		if (resolving_grow(to))
			to->list[to->n++] =
				(struct tracked_allocation){ .a = *a, .device = to->model->order[i] };
		else
			to->beyond++;
	}
	return any;
}

static void add_row(struct resolving *to, const struct allocation *row)
{
	struct allocated a;

	if (is_ambiguous(to->model, &row->device)) {
		to->unresolved++;
		return;
	}
	a = allocated_of(to->model, row);
	if (row->device.kind == DEVICE_ALL) {
		bool any = add_devices(to, row, &a, true);

		if (!add_devices(to, row, &a, false) && !any)
			to->unresolved++;
	} else if (!add_devices(to, row, &a, true) && !add_devices(to, row, &a, false)) {
		to->unresolved++;
	}
}

/* Leaves of each workload the best source's, and of each device of it one. */
static void merge_rows(struct resolving *to)
{
	uint32_t kept = 0;

	qsort(to->list, to->n, sizeof(to->list[0]), compare_source);
	for (uint32_t i = 0; i < to->n; i++) {
		struct allocated *last = kept > 0 ? &to->list[kept - 1].a : NULL;
		const struct tracked_allocation *t = &to->list[i];

		if (!last || compare_whose(last, &t->a) != 0) {
			to->list[kept++] = *t;
			continue;
		}
		if (!last->id[0])
			memcpy(last->id, t->a.id, sizeof(last->id));
		if (!last->pod_uid[0])
			memcpy(last->pod_uid, t->a.pod_uid, sizeof(last->pod_uid));
		if (last->source != t->a.source || last->claimed != t->a.claimed)
			continue;
		if (to->list[kept - 1].device == t->device) {
			last->slots += t->a.slots;
			last->estimated &= t->a.estimated;
		} else {
			to->list[kept++] = *t;
		}
	}
	to->n = kept;
	qsort(to->list, to->n, sizeof(to->list[0]), compare_device);
}

/* ---- what was before ---- */

static void carry_over(struct tracked_allocation *t, struct tracked_allocation *old)
{
	struct allocated now = t->a;

	old->taken = true;
	*t = *old;
	t->taken = t->fresh = false;
	t->a = now;
	t->a.stale = old->a.stale;
	t->a.seconds = old->a.seconds;
	t->a.idle_seconds = old->a.idle_seconds;
	t->a.idle_p = old->a.idle_p;
	t->a.since_real_ns = old->a.since_real_ns;
}

/* The same, also if its names have become known only now. */
static struct tracked_allocation *find_old(struct allocations *all, const struct tracked_allocation *t)
{
	size_t at = LOWER_BOUND(all->n, k, compare_device(&all->list[k], t) < 0);

	if (at < all->n && compare_device(&all->list[at], t) == 0)
		return all->list[at].taken ? NULL : &all->list[at];
	for (uint32_t i = 0; t->a.id[0] && i < all->n; i++)
		if (!all->list[i].taken && all->list[i].device == t->device &&
		    all->list[i].a.kind == t->a.kind && STRV_EQ(all->list[i].a.id, t->a.id))
			return &all->list[i];
	return NULL;
}

static void continue_one(struct allocations *all, struct tracked_allocation *t, int64_t now_ns)
{
	struct tracked_allocation *old = find_old(all, t);

	if (old) {
		carry_over(t, old);
		return;
	}
	t->fresh = true;
	t->counted_ns = t->watched_ns = now_ns;
	t->a.since_real_ns = clock_real_ns() - (clock_boot_ns() - now_ns);
}

/* ---- what does not fit ---- */

/* Adds @t to the list's "other" of its device. */
static void fold(struct resolving *to, uint32_t kept, const struct tracked_allocation *t)
{
	struct tracked_allocation other = { .device = t->device };

	for (uint32_t i = kept; i < to->n; i++)
		if (to->list[i].device == t->device) {
			to->list[i].a.count++;
			to->list[i].a.slots += t->a.slots;
			return;
		}
	other.a = (struct allocated){ .kind = WORKLOAD_NONE,
				      .id = OTHER_ID,
				      .source = t->a.source,
				      .slots = t->a.slots,
				      .count = 1,
				      .idle_p = PRESENCE_ABSENT };
	to->list[to->n++] = other;
}

/*
 * Those that have been there stay, then as many more as the limit allows; the rest of each device is one row.
 */
static void fold_rest(struct allocations *all, struct resolving *to, uint32_t limit, int64_t now_ns)
{
	uint32_t old = 0, kept = 0, n = to->n, fresh = 0;
	_cleanup_free_ struct tracked_allocation *rest = NULL;

	to->dropped = n > limit ? n - limit : 0;
	if (n <= limit)
		return;
	rest = calloc(n, sizeof(*rest));
	if (!rest) {
		to->n = limit;
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		old += !to->list[i].fresh;
	fresh = limit > old ? limit - old : 0;
	old = limit - fresh;
	memcpy(rest, to->list, n * sizeof(*rest));
	to->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *room = rest[i].fresh ? &fresh : &old;

		if (*room == 0)
			continue;
		--*room;
		rest[i].taken = true;
		to->list[to->n++] = rest[i];
	}
	kept = to->n;
	for (uint32_t i = 0; i < n; i++)
		if (!rest[i].taken)
			fold(to, kept, &rest[i]);
	for (uint32_t i = 0; i < kept; i++)
		to->list[i].taken = false;
	for (uint32_t i = kept; i < to->n; i++)
		continue_one(all, &to->list[i], now_ns);
	qsort(to->list, to->n, sizeof(to->list[0]), compare_device);
}

static void count_dropped(struct model *model, uint32_t dropped)
{
	if (dropped > model->allocations.dropped)
		model_agent_add(model, AGENT_DROPPED_ALLOCATIONS, dropped - model->allocations.dropped);
	model->allocations.dropped = dropped;
}

/* ---- joining with use ---- */

static bool is_whose(const struct allocated *a, const struct workload *w)
{
	const char *pod_uid = w->kind == WORKLOAD_POD ? w->id : w->pod_uid;

	if (a->kind == WORKLOAD_NONE)
		return false;
	if (a->kind == w->kind && a->id[0] && STRV_EQ(a->id, w->id))
		return true;
	/* The whole pod's, or a container's that was started again. */
	if (a->kind == WORKLOAD_POD && a->id[0] && STRV_EQ(a->id, pod_uid))
		return true;
	return is_named(a) && w->owner && STRV_EQ(a->pod, w->owner->pod) &&
	       STRV_EQ(a->namespace, w->owner->namespace) &&
	       (!a->container[0] || STRV_EQ(a->container, w->owner->container));
}

static uint16_t allocation_on(const struct model *model, uint16_t device, const struct workload *w)
{
	for (uint32_t i = 0; device != NO_INDEX && i < model->allocations.n; i++)
		if (model->allocations.list[i].device == device && is_whose(&model->allocations.list[i].a, w))
			return (uint16_t)i;
	return NO_INDEX;
}

static void join_one(const struct model *model, struct tracked_workload *t)
{
	const struct device *device = model->devices[t->device];

	t->allocations[0] = allocation_on(model, t->device, &t->w);
	t->allocations[1] = allocation_on(model, device->parent, &t->w);
}

void allocations_join(struct model *model, struct tracked_workload *t)
{
	join_one(model, t);
	for (unsigned k = 0; k < ARRAY_SIZE(t->allocations); k++) {
		const struct allocated *a =
			t->allocations[k] == NO_INDEX ? NULL : &model->allocations.list[t->allocations[k]].a;

		/* It tells what the sources did not. */
		if (a && a->kind == t->w.kind && (!a->id[0] || (!a->pod_uid[0] && t->w.pod_uid[0])))
			model->allocations.changed = true;
	}
}

static void join_all(struct model *model)
{
	for (uint32_t i = 0; i < model->workloads_n; i++)
		if (model->workloads[i].w.kind != WORKLOAD_KINDS)
			join_one(model, &model->workloads[i]);
}

/* ---- all of it ---- */

/* Whether a device has come or gone since the last call. */
static bool presence_changed(struct model *model)
{
	bool changed = false;

	for (uint16_t i = 0; i < model->devices_n; i++) {
		struct device *device = model->devices[model->order[i]];

		changed |= device->was_present != device->e.present;
		device->was_present = device->e.present;
	}
	return changed;
}

void allocations_resolve(struct model *model, int64_t now_ns)
{
	struct allocations *all = &model->allocations;
	struct resolving to = { .model = model };

	if (!presence_changed(model) && !all->changed)
		return;
	all->changed = false;
	for (unsigned source = 0; source < SOURCES; source++)
		for (uint32_t i = 0; i < all->tables[source].n; i++)
			add_row(&to, &all->tables[source].rows[i]);
	if (to.n > 0)
		merge_rows(&to);
	for (uint32_t i = 0; i < to.n; i++)
		continue_one(all, &to.list[i], now_ns);
	fold_rest(all, &to, model->limits.workloads, now_ns);
	free(all->list);
	all->list = to.list;
	all->n = to.n;
	count_dropped(model, to.dropped + to.beyond);
	model_agent_set(model, AGENT_ALLOCATIONS_UNRESOLVED, to.unresolved);
	join_all(model);
}

void allocations_forget_device(struct model *model, uint16_t device)
{
	struct allocations *all = &model->allocations;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < all->n; i++)
		if (all->list[i].device != device)
			all->list[kept++] = all->list[i];
	all->n = kept;
	all->changed = true;
	join_all(model);
}
