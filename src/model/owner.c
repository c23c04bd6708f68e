// SPDX-License-Identifier: Apache-2.0
/*
 * Owners of workloads. The table is one allocation, sorted by workload and then by the source's priority, and
 * replaced as a whole. Snapshots hold references to it, so publishing does not copy it.
 */
#include "model/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

struct owners {
	atomic_uint refs;
	uint32_t n;
	struct owner list[];
};

struct owners *owners_new(uint32_t n, struct owner **ret_list)
{
	struct owners *owners = calloc(1, sizeof(*owners) + (size_t)n * sizeof(owners->list[0]));

	if (!owners)
		return NULL;
	atomic_init(&owners->refs, 1);
	owners->n = n;
	*ret_list = owners->list;
	return owners;
}

struct owners *owners_ref(struct owners *owners)
{
	if (owners)
		atomic_fetch_add_explicit(&owners->refs, 1, memory_order_relaxed);
	return owners;
}

void owners_unref(struct owners *owners)
{
	if (owners && atomic_fetch_sub_explicit(&owners->refs, 1, memory_order_acq_rel) == 1)
		free(owners);
}

const struct owner *owners_list(const struct owners *owners, uint32_t *ret_n)
{
	*ret_n = owners ? owners->n : 0;
	return owners ? owners->list : NULL;
}

static int compare_key(const struct owner *owner, enum workload_kind workload, const char *id)
{
	if (owner->workload != workload)
		return owner->workload < workload ? -1 : 1;
	return strcmp(owner->id, id);
}

static int compare_claim(const struct owner *a, const struct owner *b)
{
	int order = compare_key(a, b->workload, b->id);

	if (order != 0 || a->source == b->source)
		return order;
	return source_before(NULL, a->source, b->source) ? -1 : 1;
}

/* qsort() is not stable: compares all fields, so that the same rows in any order give the same table. */
static int compare(const void *a, const void *b)
{
	int order = compare_claim(a, b);

	return order ? order : memcmp(a, b, sizeof(struct owner));
}

static const struct owner *owner_in(const struct owner *list, uint32_t n, enum workload_kind workload,
				    const char *id)
{
	size_t at = LOWER_BOUND(n, i, compare_key(&list[i], workload, id) < 0);

	return at < n && compare_key(&list[at], workload, id) == 0 ? &list[at] : NULL;
}

/* Of the workload's rows the first that names a run or group. */
static const struct owner *run_in(const struct owners *owners, enum workload_kind kind, const char *id)
{
	const struct owner *at = owner_in(owners->list, owners->n, kind, id), *end = owners->list + owners->n;

	while (at && at < end && compare_key(at, kind, id) == 0 && !at->run[0] && !at->group[0])
		at++;
	return at && at < end && compare_key(at, kind, id) == 0 ? at : NULL;
}

const struct owner *owners_run(const struct owners *owners, enum workload_kind kind, const char *id,
			       const char *pod_uid)
{
	const struct owner *found = owners ? run_in(owners, kind, id) : NULL;

	return found || !owners || !*pod_uid ? found : run_in(owners, WORKLOAD_POD, pod_uid);
}

/* Of the workload itself, else of its pod. */
static const struct owner *owner_of(const struct owner *list, uint32_t n, enum workload_kind kind,
				    const char *id, const char *pod_uid)
{
	const struct owner *found = owner_in(list, n, kind, id);

	return found || !*pod_uid ? found : owner_in(list, n, WORKLOAD_POD, pod_uid);
}

const struct owner *owner_find(const struct model *model, enum workload_kind kind, const char *id,
			       const char *pod_uid)
{
	const struct owners *owners = model->owners;

	return owners ? owner_of(owners->list, owners->n, kind, id, pod_uid) : NULL;
}

const struct owner *owner_of_names(const struct model *model, enum workload_kind kind, const char *namespace,
				   const char *pod, const char *container)
{
	const struct owners *owners = model->owners;
	const struct owner *found = NULL;

	for (uint32_t i = 0; owners && i < owners->n; i++) {
		const struct owner *owner = &owners->list[i];

		if (owner->workload != kind || !STRV_EQ(owner->pod, pod) ||
		    !STRV_EQ(owner->container, container) || !STRV_EQ(owner->namespace, namespace))
			continue;
		if (found && !STRV_EQ(found->id, owner->id))
			return NULL;
		found = owner;
	}
	return found;
}

void copy_text(char *to, size_t size, const char *from)
{
	strncpy(to, from, size - 1);
	utf8_sanitize(to);
}

#define COPY(member_) copy_text(to->member_, sizeof(to->member_), from->member_)

/* False: the row has no workload ID or kind. */
static bool copy_owner(struct owner *to, const struct owner *from, enum source_id source)
{
	memset(to, 0, sizeof(*to));
	to->workload = from->workload;
	to->source = source;
	COPY(id);
	COPY(namespace);
	COPY(pod);
	COPY(container);
	COPY(owner_kind);
	COPY(owner_name);
	COPY(run);
	COPY(group);
	return to->workload > WORKLOAD_NONE && to->workload < WORKLOAD_KINDS && to->id[0];
}

/* Sorts, and removes duplicates of a workload and source. Returns the number removed. */
static uint32_t sort_owners(struct owners *owners)
{
	uint32_t kept = 0, n = owners->n;

	qsort(owners->list, n, sizeof(owners->list[0]), compare);
	for (uint32_t i = 0; i < n; i++)
		if (kept == 0 || compare_claim(&owners->list[kept - 1], &owners->list[i]) != 0)
			owners->list[kept++] = owners->list[i];
	owners->n = kept;
	return n - kept;
}

/*
 * Adds @old, which the workload has had, unless the first @sorted rows know a newer one: it outlives its
 * pod's files, and its figures are that pod's.
 */
static void keep_owner(struct owners *table, uint32_t sorted, enum workload_kind kind, const char *id,
		       const char *pod_uid, const struct owner *old)
{
	const struct owner *found = owner_of(table->list, sorted, kind, id, pod_uid);

	/* Of a container that has ended the pod alone may still be known. */
	if (!old || (found && (found->container[0] || !old->container[0] || !STRV_EQ(found->pod, old->pod))))
		return;
	table->list[table->n++] = *old;
}

static void keep_owners(const struct model *model, struct owners *table)
{
	uint32_t sorted = table->n;

	for (uint32_t i = 0; i < model->workloads_n; i++) {
		const struct workload *w = &model->workloads[i].w;

		if (w->kind != WORKLOAD_KINDS)
			keep_owner(table, sorted, w->kind, w->id, w->pod_uid, w->owner);
	}
	for (uint32_t i = 0; i < model->traced.names_n; i++) {
		const struct traced_name *name = &model->traced.names[i];

		if (name_is_used(name))
			keep_owner(table, sorted, name->name.kind, name->name.id, name->name.pod_uid,
				   name->name.owner);
	}
	/* Of a workload on several devices there is one row for each. */
	if (table->n > sorted)
		(void)sort_owners(table);
}

int model_set_owners(struct model *model, enum source_id source, const struct owner *owners, uint32_t n)
{
	uint32_t taken = MIN(n, (uint32_t)OWNERS_MAX), before = model->owners ? model->owners->n : 0;
	uint64_t dropped = n - taken;
	struct owner *list;
	struct owners *table = owners_new(before + taken + model->workloads_n + model->traced.names_n, &list);

	if (!table)
		return -ENOMEM;
	table->n = 0;
	for (uint32_t i = 0; i < before; i++)
		if (model->owners->list[i].source != source)
			list[table->n++] = model->owners->list[i];
	for (uint32_t i = 0; i < taken; i++) {
		if (copy_owner(&list[table->n], &owners[i], source))
			table->n++;
		else
			dropped++;
	}
	dropped += sort_owners(table);
	keep_owners(model, table);
	owners_unref(model->owners);
	model->owners = table;
	model_set_source(model, source, READING_OK, "");
	model->sources[source].s.dropped += dropped;
	for (uint32_t i = 0; i < model->workloads_n; i++) {
		struct workload *w = &model->workloads[i].w;

		w->owner = owner_find(model, w->kind, w->id, w->pod_uid);
	}
	traced_find_owners(model);
	model->allocations.changed = true;
	return 0;
}

/* Only containers and pods have names beside their IDs, and root's files name none of a user's. */
bool owner_is_wanted(enum workload_kind kind, uint32_t user, const struct owner *owner)
{
	if (user != 0)
		return false;
	return (kind == WORKLOAD_POD && !owner) ||
	       (kind == WORKLOAD_CONTAINER && (!owner || !owner->container[0]));
}

uint64_t model_unnamed(const struct model *model)
{
	return model->unnamed;
}

bool model_wants_owners(const struct model *model)
{
	for (uint32_t i = 0; i < model->workloads_n; i++) {
		const struct workload *w = &model->workloads[i].w;

		if (w->live > 0 && owner_is_wanted(w->kind, w->user, w->owner))
			return true;
	}
	return traced_wants_owners(model);
}
