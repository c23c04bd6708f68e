// SPDX-License-Identifier: Apache-2.0
#include "view/json/json.h"

#include "model/xid.h"
#include "view/shown.h"
#include "view/view.h"

/* Number of processes listed here; null if the list is incomplete. */
static json_t *processes_live(const struct entity *e)
{
	return e->present && processes_listed(e) ? json_integer(e->processes_live) : json_null();
}

/* In the eyes of those who give it to pods; null: they do not say. */
static json_t *unhealthy(const struct entity *e, enum health_kind kind)
{
	return e->health[kind] == HEALTH_UNKNOWN ? json_null() : json_boolean(e->health[kind] == HEALTH_BAD);
}

/* By priority, as in sources.def. */
static json_t *sources_of(struct json_maker *j, const struct entity *e)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < SOURCES; i++)
		if (e->numbers_from >> i & 1)
			json_push(j, list, json_text(source_rows[i].name));
	return list;
}

/* The first has the state that tables show; those of a GPU that is gone or stale are not current. */
static json_t *warnings_of(struct json_maker *j, const struct entity *e)
{
	json_t *list = json_array();
	struct gpu_warning warning;

	for (unsigned i = 0; i < GPU_WARNINGS; i++) {
		json_t *object;

		if (!gpu_warning(e, i, &warning))
			continue;
		object = json_object();
		json_put(j, object, "state", json_text(warning.state));
		json_put(j, object, "severe", json_boolean(warning.severe));
		json_put(j, object, "text", json_text(warning.text));
		json_push(j, list, object);
	}
	return list;
}

/* Whether the numbers that follow are current. */
static void add_state(struct json_maker *j, json_t *object, const struct entity *e)
{
	double age = entity_age_seconds(j->s, e);

	json_put(j, object, "present", json_boolean(e->present));
	json_put(j, object, "stale", json_boolean(e->stale));
	json_put(j, object, "age_seconds", age >= 0 ? json_number(age) : json_null());
	json_put(j, object, "sampled_at", json_time(e->sampled_real_ns));
	json_put(j, object, "sources", sources_of(j, e));
	json_put(j, object, "processes_live", processes_live(e));
	json_put(j, object, "unhealthy_by_allocatable", unhealthy(e, HEALTH_ALLOCATABLE));
	json_put(j, object, "unhealthy_by_pod_status", unhealthy(e, HEALTH_POD_STATUS));
	json_put(j, object, "warnings", warnings_of(j, e));
}

/* How the driver's clock goes, and how old by it numbers were when the newest reading ended. */
static json_t *driver_clock(struct json_maker *j, const struct entity *e)
{
	const struct reading_stamps *stamps = &e->id.stamps;
	json_t *object, *ages;

	if (!stamps->error_ns)
		return json_null();
	object = json_object();
	ages = json_object();
	json_put(j, object, "ahead_seconds", json_number((double)stamps->offset_ns * 1e-9));
	json_put(j, object, "error_seconds", json_number((double)stamps->error_ns * 1e-9));
	json_put(j, object, "usable", json_boolean(!stamps->unusable));
	for (unsigned i = 0; i < STAMPED_METRICS; i++)
		json_put(j, ages, stamped_rows[i].name,
			 stamps->at_ns[i] ?
				 json_number((double)(e->stamped_boot_ns - stamps->at_ns[i]) * 1e-9) :
				 json_null());
	json_put(j, object, "age_seconds", ages);
	return object;
}

static void add_numbers(struct json_maker *j, json_t *object, const struct entity *e)
{
	const struct json_rows rows = {
		.rows = gpu_metrics,
		.n = GPU_METRICS,
		.v = e->id.v,
		.p = e->id.p,
		.strip = "gpu_",
		.level = entity_is_mig(e) ? LEVEL_MIG : LEVEL_GPU,
		.counters_only = !e->present,
	};

	json_add_rows(j, object, &rows);
}

static json_t *json_instance(struct json_maker *j, const struct entity *e)
{
	json_t *object = json_object();

	json_put(j, object, "gi", json_unsigned_or_null(e->id.gi));
	json_put(j, object, "ci", json_unsigned_or_null(e->id.ci));
	json_put(j, object, "mig_uuid", json_text(e->id.mig_uuid));
	json_put(j, object, "profile", json_text(e->id.mig_profile));
	add_state(j, object, e);
	add_numbers(j, object, e);
	return object;
}

void json_add_xid(struct json_maker *j, json_t *object, uint32_t code,
		  const struct xid_description *description)
{
	json_put(j, object, "xid", json_integer(code));
	json_put(j, object, "severity", json_text(xid_severity_name(description->severity)));
	json_put(j, object, "origin", json_text(xid_origin_name(xid_origin(description))));
	json_put(j, object, "name", json_text(description->name));
	json_put(j, object, "meaning", json_text(description->meaning));
	json_put(j, object, "action", json_text(xid_action_text(description->action)));
}

static json_t *json_xid(struct json_maker *j, const struct xid *xid)
{
	const struct xid_description *description = xid_describe(xid->code);
	json_t *object = json_object();

	json_put(j, object, "count", json_integer((json_int_t)xid->count));
	json_put(j, object, "last_seen", json_time(xid->last_real_ns));
	json_add_xid(j, object, xid->code, description);
	return object;
}

static json_t *json_gpu(struct json_maker *j, uint32_t i)
{
	const struct snapshot *s = j->s;
	const struct reading_entity *id = &s->entities[i].id;
	json_t *object = json_object(), *mig = json_array(), *xids = json_array();

	json_put(j, object, "gpu", json_integer(id->index));
	json_put(j, object, "uuid", json_text(id->uuid));
	json_put(j, object, "vendor", json_string(GPU_VENDOR));
	json_put(j, object, "name", json_text(id->name));
	json_put(j, object, "pci_bus_id", json_text(id->pci_bus_id));
	json_put(j, object, "serial", json_text_or_null(id->serial));
	json_put(j, object, "vbios", json_text_or_null(id->vbios));
	json_put(j, object, "architecture", json_text_or_null(id->architecture));
	json_put(j, object, "compute_capability", json_text_or_null(id->compute_capability));
	json_put(j, object, "minor", json_unsigned_or_null(id->minor));
	json_put(j, object, "numa_node", id->numa_node >= 0 ? json_integer(id->numa_node) : json_null());
	add_state(j, object, &s->entities[i]);
	json_put(j, object, "driver_clock", driver_clock(j, &s->entities[i]));
	add_numbers(j, object, &s->entities[i]);
	for (uint32_t k = 0; k < s->entities_n; k++)
		if (s->entities[k].id.parent == i && entity_shown(&s->entities[k]))
			json_push(j, mig, json_instance(j, &s->entities[k]));
	json_put(j, object, "mig", mig);
	for (uint32_t k = 0; k < s->xids_n; k++)
		if (s->xids[k].entity == i)
			json_push(j, xids, json_xid(j, &s->xids[k]));
	json_put(j, object, "xids", xids);
	return object;
}

json_t *json_gpus(struct json_maker *j)
{
	json_t *gpus = json_array();

	for (uint32_t i = 0; i < j->s->entities_n; i++)
		if (!entity_is_mig(&j->s->entities[i]))
			json_push(j, gpus, json_gpu(j, i));
	return gpus;
}
