// SPDX-License-Identifier: Apache-2.0
#include "view/json/json.h"

#include <errno.h>

#include "base/macro.h"
#include "view/groups.h"
#include "view/shown.h"
#include "view/traced.h"
#include "view/view.h"

static const char *const figure_names[GROUP_FIGURES] = {
	[GROUP_UTILIZATION] = "utilization_ratio",
	[GROUP_MEMORY] = "memory_bytes",
	[GROUP_BUSY] = "busy_seconds_total",
};

static const char *const call_names[GROUP_CALLS] = {
	[GROUP_LAUNCHES] = "launches_total",
	[GROUP_ERRORS] = "errors_total",
};

/* The members by which a process of the document tells whose it is: those that all of the group share. */
static void add_names(struct json_maker *j, json_t *object, const struct group *group, enum group_by by)
{
	const struct group_names names = group_names(j->s, group, by);

	json_put(j, object, "uid", json_unsigned_or_null(names.uid));
	json_put(j, object, "container_id", json_text_or_null(names.container_id));
	json_put(j, object, "pod_uid", json_text_or_null(names.pod_uid));
	json_put(j, object, "job", json_text_or_null(names.job));
	json_put(j, object, "job_name", json_text_or_null(names.job_name));
	json_put(j, object, "claimed", json_boolean(names.claimed));
	json_put(j, object, "name_claimed", json_boolean(*names.job_name != '\0'));
	json_put(j, object, "namespace", json_text_or_null(names.namespace));
	json_put(j, object, "pod", json_text_or_null(names.pod));
	json_put(j, object, "container", json_text_or_null(names.container));
}

/* null: not all of its processes are traced. */
static json_t *json_calls_of(struct json_maker *j, const struct group *group)
{
	json_t *object, *estimated;

	if (!group->calls_known[GROUP_LAUNCHES] && !group->calls_known[GROUP_ERRORS])
		return json_null();
	object = json_object();
	estimated = json_array();
	for (unsigned i = 0; i < GROUP_CALLS; i++) {
		json_put(j, object, call_names[i],
			 group->calls_known[i] ? json_number(group->calls[i]) : json_null());
		if (group->calls_estimated[i])
			json_push(j, estimated, json_string(call_names[i]));
	}
	json_put(j, object, "estimated", estimated);
	return object;
}

/* null: nobody says that it was given anything, or what it did with it is not known. */
static void add_allocations(struct json_maker *j, json_t *object, const struct group *group,
			    json_t *estimated)
{
	bool given = group->allocations > 0, idle = given && group->idle_known;

	json_put(j, object, "allocations", json_integer(group->allocations));
	json_put(j, object, "allocations_claimed", json_integer(group->allocations_claimed));
	json_put(j, object, "allocated_seconds_total",
		 given ? json_number(group->allocated_seconds) : json_null());
	json_put(j, object, "idle_seconds_total", idle ? json_number(group->idle_seconds) : json_null());
	if (idle && group->idle_estimated)
		json_push(j, estimated, json_string("idle_seconds_total"));
}

static json_t *json_group(struct json_maker *j, const struct group *group, enum group_by by)
{
	json_t *object = json_object(), *gpus = json_array(), *estimated = json_array();

	add_names(j, object, group, by);
	json_put(j, object, "processes", json_integer(group->processes));
	json_put(j, object, "processes_exited", group->workload ? json_integer(group->exited) : json_null());
	for (uint32_t i = 0; i < group->gpus_n; i++)
		json_push(j, gpus, json_integer(group->gpus[i]));
	json_put(j, object, "gpus", gpus);
	if (group->gpus_estimated)
		json_push(j, estimated, json_string("gpus"));
	for (unsigned i = 0; i < GROUP_FIGURES; i++) {
		json_put(j, object, figure_names[i],
			 group->known[i] ? json_number(group->v[i]) : json_null());
		if (group->estimated[i])
			json_push(j, estimated, json_string(figure_names[i]));
	}
	json_put(j, object, "cuda", json_calls_of(j, group));
	add_allocations(j, object, group, estimated);
	json_put(j, object, "estimated", estimated);
	json_put(j, object, "stale", json_boolean(group->stale));
	return object;
}

/* What may be missing in the sums. */
static json_t *json_left_out(struct json_maker *j)
{
	const struct snapshot *s = j->s;
	struct traced_apart apart = { .s = s };
	json_t *object = json_object(), *gpus = json_array();
	uint32_t traced = s->trace ? s->trace->left_out : 0;

	while (traced_apart_next(&apart))
		traced++;
	for (uint32_t i = 0; i < s->entities_n; i++)
		if (gpu_unlisted(s, i))
			json_push(j, gpus, json_integer(s->entities[i].id.index));
	json_put(j, object, "traced", json_integer(traced));
	json_put(j, object, "unlisted_gpus", gpus);
	json_put(j, object, "allocations", json_integer(groups_left_out(s)));
	return object;
}

int json_groups(const struct snapshot *s, enum group_by by, json_t *document, struct strbuf *out)
{
	static const char *const replaced[] = { "gpus",        "processes", "traced", "traced_left_out",
						"allocations", "node" };
	struct json_maker j = { .s = s };
	_cleanup_free_ struct group *groups = NULL;
	json_t *list = json_array();
	uint32_t n = 0;
	int r = groups_make(s, by, &groups, &n);

	for (uint32_t i = 0; i < n; i++)
		json_push(&j, list, json_group(&j, &groups[i], by));
	for (size_t i = 0; i < ARRAY_SIZE(replaced); i++)
		json_object_del(document, replaced[i]);
	json_put(&j, document, "by", json_string(group_by_name(by)));
	json_put(&j, document, "groups", list);
	json_put(&j, document, "left_out", json_left_out(&j));
	if (r < 0 || j.failed)
		return -ENOMEM;
	return json_write(json_incref(document), 0, out);
}
