// SPDX-License-Identifier: Apache-2.0
/* What containers, pods and jobs were given, whether they use it or not. */
#include "view/walk/private.h"

#include "view/names.h"
#include "view/shown.h"

/* Kind, ID, the pod's UID, the names, and whether it is claimed. */
enum { ALLOCATION_LABELS = 4 + OWNER_LABELS };

static const struct label_set *allocation_set(struct walk *walk, const struct allocated *a)
{
	struct label labels[ALLOCATION_LABELS] = { { "kind", workload_kind_name(a->kind) } };
	uint32_t n = 1;

	if (a->id[0])
		labels[n++] = (struct label){ workload_id_name(a->kind), a->id };
	if (a->kind == WORKLOAD_CONTAINER && a->pod_uid[0])
		labels[n++] = (struct label){ "pod_uid", a->pod_uid };
	if (a->pod[0]) {
		labels[n++] = (struct label){ "namespace", a->namespace };
		labels[n++] = (struct label){ "pod", a->pod };
	}
	if (a->container[0])
		labels[n++] = (struct label){ "container", a->container };
	if (a->claimed)
		labels[n++] = (struct label){ "claimed", "true" };
	return walk_set(walk, true, labels, n);
}

enum figure { ALLOCATED, SLOTS, SECONDS, IDLE_SECONDS, FIGURES };

static const struct {
	const char *name, *help;
	enum family_type type;
	enum metric_unit unit;
} families[FIGURES] = {
	[ALLOCATED] = { "container_gpu_allocated",
			"1 for a GPU or MIG instance that a container, pod or job was given, whether it "
			"uses it or "
			"not, by whom and as what; more where several did not fit.",
			FAMILY_GAUGE, UNIT_NONE },
	[SLOTS] = { "container_gpu_slots",
		    "Logical slots of a shared GPU that are the container's (time slicing, MPS).",
		    FAMILY_GAUGE, UNIT_NONE },
	[SECONDS] = { "container_gpu_allocated_seconds_total",
		      "For how long it has been allocated, since the agent saw it first.", FAMILY_COUNTER,
		      UNIT_SECONDS },
	[IDLE_SECONDS] = { "container_gpu_idle_seconds_total",
			   "Of that, the time in which no process of it worked on the GPU, or it had none "
			   "there. "
			   "Absent while the driver does not tell whether its processes work.",
			   FAMILY_COUNTER, UNIT_SECONDS },
};

/* False: it has no such figure. */
static bool figure_of(const struct allocated *a, enum figure figure, double *ret_value, uint8_t *ret_presence)
{
	*ret_presence = PRESENCE_PRESENT;
	switch (figure) {
	case ALLOCATED:
		*ret_value = a->count;
		return true;
	case SLOTS:
		*ret_value = a->slots;
		return a->slots > 0;
	case SECONDS:
		*ret_value = a->seconds;
		return true;
	case IDLE_SECONDS:
		*ret_value = a->idle_seconds;
		*ret_presence = a->idle_p;
		return presence_is(a->idle_p);
	case FIGURES:
		break;
	}
	return false;
}

static void walk_figure(struct walk *walk, const struct label_set *const *sets, enum figure figure)
{
	const struct snapshot *s = walk->s;

	for (uint32_t i = 0; i < s->allocated_n; i++) {
		const struct allocated *a = &s->allocated[i];
		const struct label_set *more = NULL;
		uint8_t presence;
		double value;

		if (!entity_shown(&s->entities[a->entity]) || !figure_of(a, figure, &value, &presence))
			continue;
		/* Only here: what was asked for and who says so may change, and are not whose it is. */
		if (figure == ALLOCATED)
			more = WALK_SET(walk, false, { "resource", a->resource },
					{ "source", source_rows[a->source].name });
		walk_series(walk, &(struct series){ .sets = { walk->entities[a->entity], sets[i], more },
						    .value = value,
						    .presence = presence,
						    .created_real_ns = a->since_real_ns,
						    .entity = a->entity });
	}
}

static void walk_estimates_of(struct walk *walk, const struct label_set *const *sets, enum figure figure)
{
	const struct label_set *metric = walk_metric_set(walk, WALK_PREFIX, families[figure].name);
	const struct snapshot *s = walk->s;

	for (uint32_t i = 0; i < s->allocated_n; i++) {
		const struct allocated *a = &s->allocated[i];

		if (entity_shown(&s->entities[a->entity]) &&
		    (figure == ALLOCATED ? a->estimated : presence_estimated(a->idle_p)))
			walk_series(walk,
				    &(struct series){ .sets = { walk->entities[a->entity], sets[i], metric },
						      .value = 1,
						      .presence = PRESENCE_PRESENT,
						      .entity = a->entity });
	}
}

/* The idle time is one where some of the time is not known. */
static void walk_estimated(struct walk *walk, const struct label_set *const *sets)
{
	if (!walk_family_named(
		    walk, "container_gpu_estimated", FAMILY_GAUGE, UNIT_NONE,
		    "1 for an allocation that is likely, and not confirmed; and for a counter that lacks "
		    "time of which it was not known whether it was idle."))
		return;
	walk_estimates_of(walk, sets, ALLOCATED);
	walk_estimates_of(walk, sets, IDLE_SECONDS);
}

void walk_allocations(struct walk *walk)
{
	const struct label_set **sets = walk_zeroes(walk, walk->s->allocated_n, sizeof(*sets));

	for (uint32_t i = 0; sets && i < walk->s->allocated_n; i++)
		sets[i] = allocation_set(walk, &walk->s->allocated[i]);
	for (unsigned i = 0; sets && i < FIGURES; i++)
		if (walk_family_named(walk, families[i].name, families[i].type, families[i].unit,
				      families[i].help))
			walk_figure(walk, sets, i);
	if (sets)
		walk_estimated(walk, sets);
}
