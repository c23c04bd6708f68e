// SPDX-License-Identifier: Apache-2.0
#include "view/dcgm/owners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "view/shown.h"
#include "view/walk/private.h"

/* What NVML tells of processes, too. */
static const struct {
	enum gpu_metric row;
	enum process_metric metric;
} by_process[] = {
	{ GPU_UTILIZATION_GPU, PROCESS_UTILIZATION },
	{ GPU_UTILIZATION_MEMORY, PROCESS_UTILIZATION_MEMORY },
	{ GPU_UTILIZATION_ENCODER, PROCESS_UTILIZATION_ENCODER },
	{ GPU_UTILIZATION_DECODER, PROCESS_UTILIZATION_DECODER },
	{ GPU_MEMORY_USED, PROCESS_MEMORY },
};

/* A claim on a device, before those of one owner are joined. */
struct claim {
	uint32_t entity, order; /* order: allocations, then workloads */
	uint32_t workload; /* UINT32_MAX: of an allocation */
	struct dcgm_sharer sharer;
};

static void add_label(struct dcgm_sharer *sharer, const char *name, const char *value)
{
	if (*value)
		sharer->labels[sharer->set.n++] = (struct label){ name, value };
}

/* In the exporter's order. A container without a name has its ID, so that no two have equal labels. */
static void make_labels(struct dcgm_sharer *sharer, enum workload_kind kind, const char *id,
			const char *pod_uid, const char *namespace, const char *pod, const char *container)
{
	add_label(sharer, "container", *container || kind != WORKLOAD_CONTAINER ? container : id);
	add_label(sharer, "hpc_job", kind == WORKLOAD_JOB ? id : "");
	add_label(sharer, "namespace", namespace);
	add_label(sharer, "pod", pod);
	add_label(sharer, "pod_uid", kind == WORKLOAD_POD ? id : pod_uid);
}

static struct claim claim_of_allocation(const struct allocated *a)
{
	struct claim claim = { .entity = a->entity, .workload = UINT32_MAX };

	make_labels(&claim.sharer, a->kind, a->id, a->pod_uid, a->namespace, a->pod, a->container);
	return claim;
}

/* Its allocation of the same device knows as much, or more. */
static struct claim claim_of_workload(const struct snapshot *s, uint32_t i)
{
	const struct workload *w = &s->workloads[i];
	const struct allocated *a = w->allocated > 0 ? &s->allocated[w->allocated - 1] : NULL;
	const struct owner *owner = w->owner;
	struct claim claim = { .entity = w->entity, .workload = i };

	if (a && a->kind != WORKLOAD_NONE && !a->claimed) {
		claim = claim_of_allocation(a);
		claim.entity = w->entity;
		claim.workload = i;
		return claim;
	}
	make_labels(&claim.sharer, w->kind, w->id, w->pod_uid, owner ? owner->namespace : "",
		    owner ? owner->pod : "", owner ? owner->container : "");
	return claim;
}

static bool is_claim(const struct workload *w)
{
	return w->live > 0 && w->kind != WORKLOAD_NONE && w->kind != WORKLOAD_UNIT;
}

static int compare_claims(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->entity != y->entity)
		return x->entity < y->entity ? -1 : 1;
	for (uint32_t i = 0; i < MIN(x->sharer.set.n, y->sharer.set.n); i++) {
		int order = strcmp(x->sharer.labels[i].name, y->sharer.labels[i].name);

		if (order == 0)
			order = strcmp(x->sharer.labels[i].value, y->sharer.labels[i].value);
		if (order != 0)
			return order;
	}
	if (x->sharer.set.n != y->sharer.set.n)
		return x->sharer.set.n < y->sharer.set.n ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static bool same_owner(const struct claim *a, const struct claim *b)
{
	struct claim c = *a;

	c.order = b->order;
	return compare_claims(&c, b) == 0;
}

/* The entity that stands for it on the page: several compute instances of a GPU instance are one. */
static uint32_t page_entity(const struct snapshot *s, uint32_t entity)
{
	const struct entity *e = &s->entities[entity];

	for (uint32_t k = 0; entity_is_mig(e) && k < entity; k++)
		if (s->entities[k].id.parent == e->id.parent && s->entities[k].id.gi == e->id.gi &&
		    s->entities[k].present)
			return k;
	return entity;
}

static uint32_t gather_claims(const struct snapshot *s, struct claim *claims)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->allocated_n; i++)
		if (s->allocated[i].kind != WORKLOAD_NONE && !s->allocated[i].claimed)
			claims[n++] = claim_of_allocation(&s->allocated[i]);
	for (uint32_t i = 0; i < s->workloads_n; i++)
		if (is_claim(&s->workloads[i]))
			claims[n++] = claim_of_workload(s, i);
	for (uint32_t i = 0; i < n; i++) {
		claims[i].entity = page_entity(s, claims[i].entity);
		claims[i].order = i;
	}
	qsort(claims, n, sizeof(*claims), compare_claims);
	return n;
}

/* Adds up what each sharer's processes have. */
static void add_processes(struct dcgm_owners *owners, const uint32_t *sharer_of)
{
	const struct snapshot *s = owners->s;

	for (uint32_t i = 0; i < s->processes_n; i++) {
		const struct process *p = &s->processes[i];
		struct dcgm_sharer *sharer;

		if (p->workload >= s->workloads_n || sharer_of[p->workload] == UINT32_MAX)
			continue;
		sharer = &owners->list[sharer_of[p->workload]];
		for (unsigned m = 0; m < PROCESS_METRICS; m++) {
			sharer->unknown[m] |= !presence_is(p->p[m]);
			sharer->v[m] += presence_is(p->p[m]) ? p->v[m] : 0;
		}
	}
}

/* One sharer for the claims of one owner on a device. */
static void join_claims(struct dcgm_owners *owners, const struct claim *claims, uint32_t n,
			uint32_t *sharer_of)
{
	const struct snapshot *s = owners->s;
	uint32_t kept = 0, entity = 0;

	for (uint32_t i = 0; i < s->workloads_n; i++)
		sharer_of[i] = UINT32_MAX;
	for (uint32_t i = 0; i < n; i++) {
		while (entity <= claims[i].entity)
			owners->first[entity++] = kept;
		if (i == 0 || !same_owner(&claims[i], &claims[i - 1]))
			owners->list[kept++] = claims[i].sharer;
		if (claims[i].workload != UINT32_MAX)
			sharer_of[claims[i].workload] = kept - 1;
	}
	while (entity <= s->entities_n)
		owners->first[entity++] = kept;
	for (uint32_t i = 0; i < kept; i++)
		owners->list[i].set.labels = owners->list[i].labels;
}

int dcgm_owners_init(struct dcgm_owners *owners, const struct snapshot *s)
{
	size_t most = (size_t)s->allocated_n + s->workloads_n;
	_cleanup_free_ struct claim *claims = calloc(most + 1, sizeof(*claims));
	_cleanup_free_ uint32_t *sharer_of = calloc(s->workloads_n + 1u, sizeof(*sharer_of));
	uint32_t n;

	*owners = (struct dcgm_owners){
		.s = s,
		.list = calloc(most + 1, sizeof(*owners->list)),
		.first = calloc(s->entities_n + 1u, sizeof(*owners->first)),
	};
	if (!claims || !sharer_of || !owners->list || !owners->first) {
		dcgm_owners_done(owners);
		return -ENOMEM;
	}
	n = gather_claims(s, claims);
	join_claims(owners, claims, n, sharer_of);
	add_processes(owners, sharer_of);
	return 0;
}

void dcgm_owners_done(struct dcgm_owners *owners)
{
	free(TAKE_PTR(owners->list));
	free(TAKE_PTR(owners->first));
}

static uint32_t sharers_n(const struct dcgm_owners *owners, uint32_t entity)
{
	return owners->first[entity + 1] - owners->first[entity];
}

/* Adds those of the entity to *@sole; false: it is not the same one. */
static bool join_sole(const struct dcgm_owners *owners, uint32_t entity, const struct label_set **sole)
{
	const struct label_set *set = &owners->list[owners->first[entity]].set;

	switch (sharers_n(owners, entity)) {
	case 0:
		return true;
	case 1:
		if (*sole && !label_set_equal(*sole, set))
			return false;
		*sole = set;
		return true;
	default:
		return false;
	}
}

/* An instance that was given to no owner of its own belongs to the owner of all of the GPU. */
const struct label_set *dcgm_sole_owner(const struct dcgm_owners *owners, uint32_t entity)
{
	const struct snapshot *s = owners->s;
	const struct entity *e = &s->entities[entity];
	const struct label_set *sole = NULL, *whole;

	if (!join_sole(owners, entity, &sole))
		return NULL;
	if (entity_is_mig(e))
		return sole || join_sole(owners, e->id.parent, &sole) ? sole : NULL;
	whole = sole;
	for (uint32_t i = 0; i < s->entities_n; i++) {
		if (s->entities[i].id.parent != entity || !s->entities[i].present || page_entity(s, i) != i)
			continue;
		/* The GPU is not that one's who has an instance, while another is nobody's. */
		if (!join_sole(owners, i, &sole) || (!whole && sharers_n(owners, i) == 0))
			return NULL;
	}
	return sole;
}

uint32_t dcgm_sharers(const struct dcgm_owners *owners, uint32_t entity, const struct metric *row,
		      const struct dcgm_sharer **ret_list, enum process_metric *ret_metric)
{
	const struct dcgm_sharer *list = &owners->list[owners->first[entity]];
	const struct reading_entity *id = &owners->s->entities[entity].id;
	uint32_t n = sharers_n(owners, entity), at = 0;

	while (at < ARRAY_SIZE(by_process) && row != &gpu_metrics[by_process[at].row])
		at++;
	if (n < 2 || at == ARRAY_SIZE(by_process) || !presence_is(id->process_list) ||
	    (by_process[at].metric != PROCESS_MEMORY && !presence_is(id->process_util)))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		if (list[i].unknown[by_process[at].metric])
			return 0;
	*ret_list = list;
	*ret_metric = by_process[at].metric;
	return n;
}
