// SPDX-License-Identifier: Apache-2.0
#include "view/json/json.h"

#include "view/names.h"
#include "view/shown.h"

/* As of a workload: json_workload() has those of its owner. */
static void add_whose(struct json_maker *j, json_t *object, const struct allocated *a)
{
	struct owner owner = { .workload = a->kind };

	memcpy(owner.namespace, a->namespace, sizeof(owner.namespace));
	memcpy(owner.pod, a->pod, sizeof(owner.pod));
	memcpy(owner.container, a->container, sizeof(owner.container));
	json_put(j, object, "kind", json_string(workload_kind_name(a->kind)));
	json_workload(j, object, a->kind, a->id, a->pod_uid, &owner);
}

static json_t *json_allocation(struct json_maker *j, const struct allocated *a)
{
	json_t *object = json_object(), *estimated = json_array();

	json_place(j, object, a->entity);
	add_whose(j, object, a);
	json_put(j, object, "count", json_integer(a->count));
	json_put(j, object, "resource", json_text_or_null(a->resource));
	json_put(j, object, "source", json_string(source_rows[a->source].name));
	json_put(j, object, "claimed", json_boolean(a->claimed));
	json_put(j, object, "slots", json_positive_or_null(a->slots));
	json_put(j, object, "processes", json_integer(a->processes));
	json_put(j, object, "since", json_time(a->since_real_ns));
	json_put(j, object, "stale", json_boolean(a->stale));
	json_put(j, object, "allocated_seconds_total", json_number(a->seconds));
	json_put(j, object, "idle_seconds_total",
		 presence_is(a->idle_p) ? json_number(a->idle_seconds) : json_null());
	if (a->estimated)
		json_push(j, estimated, json_string("gpu"));
	if (presence_is(a->idle_p) && (a->idle_p & PRESENCE_ESTIMATED))
		json_push(j, estimated, json_string("idle_seconds_total"));
	json_put(j, object, "estimated", estimated);
	return object;
}

json_t *json_allocations(struct json_maker *j)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < j->s->allocated_n; i++)
		if (entity_shown(&j->s->entities[j->s->allocated[i].entity]))
			json_push(j, list, json_allocation(j, &j->s->allocated[i]));
	return list;
}
