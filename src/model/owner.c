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

static const struct owner *owner_in(const struct owners *owners, enum workload_kind workload, const char *id)
{
	size_t at = LOWER_BOUND(owners->n, i, compare_key(&owners->list[i], workload, id) < 0);

	return at < owners->n && compare_key(&owners->list[at], workload, id) == 0 ? &owners->list[at] : NULL;
}

const struct owner *owner_find(const struct model *model, const struct workload *w)
{
	const struct owner *found;

	if (!model->owners)
		return NULL;
	found = owner_in(model->owners, w->kind, w->id);
	if (!found && w->pod_uid[0])
		found = owner_in(model->owners, WORKLOAD_POD, w->pod_uid);
	return found;
}

/* Zeroes the rest of `to`, so that equal rows have equal bytes. */
static void copy_text(char *to, size_t size, const char *from)
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

int model_set_owners(struct model *model, enum source_id source, const struct owner *owners, uint32_t n)
{
	uint32_t taken = MIN(n, (uint32_t)OWNERS_MAX), before = model->owners ? model->owners->n : 0;
	uint64_t dropped = n - taken;
	struct owners *table;

	table = malloc(sizeof(*table) + ((size_t)before + taken) * sizeof(table->list[0]));
	if (!table)
		return -ENOMEM;
	atomic_init(&table->refs, 1);
	table->n = 0;
	for (uint32_t i = 0; i < before; i++)
		if (model->owners->list[i].source != source)
			table->list[table->n++] = model->owners->list[i];
	for (uint32_t i = 0; i < taken; i++) {
		if (copy_owner(&table->list[table->n], &owners[i], source))
			table->n++;
		else
			dropped++;
	}
	dropped += sort_owners(table);
	owners_unref(model->owners);
	model->owners = table;
	model_set_source(model, source, READING_OK, "");
	model->sources[source].s.dropped += dropped;
	for (uint32_t i = 0; i < model->workloads_n; i++)
		model->workloads[i].w.owner = owner_find(model, &model->workloads[i].w);
	return 0;
}
