// SPDX-License-Identifier: Apache-2.0
#include "view/snapshot/read.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "view/json/host.h"
#include "view/json/server.h"
#include "view/names.h"
#include "view/snapshot/read_clock.h"
#include "view/snapshot/read_job.h"
#include "view/shown.h"
#include "view/snapshot/values.h"

enum {
	XIDS_MAX = 1024, /* the model's limit */
	TRACED_MAX = 2 * READING_PROCESSES_MAX,
	REJECTED_LOOK_MAX = 2048,
};

/*
 * Substitutes for start times, which documents lack. They separate traced data of a listed process from those
 * of others with its PID.
 */
enum { START_OF_LISTED = 1, START_OF_TRACED, START_OF_BOTH };

/* Boot time of every decoded snapshot; its ages are subtracted from it. */
#define DECODED_BOOT_NS INT64_C(1000000000000000000)

struct reader {
	struct snapshot *s;
	uint32_t entities_cap, workloads_cap, xids_cap;
	/* owners of workloads, in their order, then of workload_names; those without any are zero */
	struct owner *owners;
	uint16_t *traced_workloads; /* by a traced process's devices_first, which sorting does not change */
	int error;
};

/* ---- GPUs ---- */

/* The list with room for one more, which is zero; NULL: it is as long as an agent's, or out of memory. */
static void *with_room(struct reader *reader, void *list, uint32_t n, uint32_t *cap, uint32_t max,
		       size_t size)
{
	uint32_t wanted = MIN(MAX(2 * *cap, 8u), max);
	char *larger;

	if (n < *cap)
		return list;
	larger = n < max ? reallocarray(list, wanted, size) : NULL;
	if (!larger) {
		reader->error = n < max ? -ENOMEM : -E2BIG;
		return NULL;
	}
	memset(larger + n * size, 0, (wanted - n) * size);
	*cap = wanted;
	return larger;
}

/* Those before may move. */
static struct entity *add_entity(struct reader *reader)
{
	struct snapshot *s = reader->s;
	struct entity *list = with_room(reader, s->entities, s->entities_n, &reader->entities_cap,
					READING_ENTITIES_MAX, sizeof(*list)),
		      *e;

	if (!list)
		return NULL;
	s->entities = list;
	e = &s->entities[s->entities_n++];
	e->id.parent = READING_NONE;
	e->id.gi = e->id.ci = e->id.minor = UINT32_MAX;
	e->id.numa_node = -1;
	return e;
}

static uint8_t read_health(const json_t *bad)
{
	return !json_is_boolean(bad) ? HEALTH_UNKNOWN : json_is_true(bad) ? HEALTH_BAD : HEALTH_GOOD;
}

static uint32_t read_sources(const json_t *names)
{
	uint32_t sources = 0;
	const json_t *name;
	size_t i;

	json_array_foreach(names, i, name)
		for (unsigned k = 0; k < SOURCES && json_is_string(name); k++)
			if (STRV_EQ(source_rows[k].name, json_string_value(name)))
				sources |= 1u << k;
	return sources;
}

static void read_state(struct reader *reader, struct entity *e, const json_t *object)
{
	const json_t *live = json_object_get(object, "processes_live");
	double age = read_double(object, "age_seconds", -1);

	e->present = !json_is_false(json_object_get(object, "present"));
	e->stale = json_is_true(json_object_get(object, "stale"));
	e->sampled_real_ns = read_time(object, "sampled_at");
	if (age >= 0)
		e->sampled_boot_ns = reader->s->boot_ns - llround(fmin(age, 9e8) * 1e9);
	e->numbers_from = read_sources(json_object_get(object, "sources"));
	e->processes_live = read_u32(object, "processes_live", UINT32_MAX);
	e->health[HEALTH_ALLOCATABLE] = read_health(json_object_get(object, "unhealthy_by_allocatable"));
	e->health[HEALTH_POD_STATUS] = read_health(json_object_get(object, "unhealthy_by_pod_status"));
	/* null is a list that could not be read; a missing member is unknown. */
	e->id.process_list = json_is_null(live) ? PRESENCE_FAILED : PRESENCE_ABSENT;
	read_rows(object, gpu_metrics, GPU_METRICS, "gpu_", NULL, e->id.v, e->id.p);
}

static void read_instance(struct reader *reader, uint32_t parent, const json_t *object)
{
	struct entity *e = add_entity(reader);

	if (!e)
		return;
	e->id.parent = (uint16_t)parent;
	e->id.index = reader->s->entities[parent].id.index;
	memcpy(e->id.uuid, reader->s->entities[parent].id.uuid, sizeof(e->id.uuid));
	READ_TEXT(e->id.mig_uuid, object, "mig_uuid");
	READ_TEXT(e->id.mig_profile, object, "profile");
	e->id.gi = read_u32(object, "gi", UINT32_MAX);
	e->id.ci = read_u32(object, "ci", UINT32_MAX);
	read_state(reader, e, object);
}

static void read_xid(struct reader *reader, uint32_t entity, const json_t *object)
{
	struct snapshot *s = reader->s;
	struct xid *xid, *list;

	if (!json_is_object(object))
		return;
	list = with_room(reader, s->xids, s->xids_n, &reader->xids_cap, XIDS_MAX, sizeof(*list));
	if (!list)
		return;
	s->xids = list;
	xid = &s->xids[s->xids_n++];
	memcpy(xid->pci_bus_id, s->entities[entity].id.pci_bus_id, sizeof(xid->pci_bus_id));
	xid->entity = (uint16_t)entity;
	xid->code = read_u32(object, "xid", 0);
	xid->count = read_count(object, "count");
	xid->last_real_ns = read_time(object, "last_seen");
}

static void read_gpu(struct reader *reader, const json_t *object)
{
	struct entity *e = json_is_object(object) ? add_entity(reader) : NULL;
	uint32_t index = reader->s->entities_n - 1;
	json_t *member;
	size_t i;

	if (!e)
		return;
	e->id.index = read_u32(object, "gpu", 0);
	READ_TEXT(e->id.uuid, object, "uuid");
	READ_TEXT(e->id.name, object, "name");
	READ_TEXT(e->id.pci_bus_id, object, "pci_bus_id");
	READ_TEXT(e->id.serial, object, "serial");
	READ_TEXT(e->id.vbios, object, "vbios");
	READ_TEXT(e->id.architecture, object, "architecture");
	READ_TEXT(e->id.compute_capability, object, "compute_capability");
	e->id.minor = read_u32(object, "minor", UINT32_MAX);
	e->id.numa_node = (int32_t)read_u32(object, "numa_node", UINT32_MAX);
	read_state(reader, e, object);
	snapshot_read_clock(e, json_object_get(object, "driver_clock"));
	json_array_foreach(json_object_get(object, "mig"), i, member)
		read_instance(reader, index, member);
	json_array_foreach(json_object_get(object, "xids"), i, member)
		read_xid(reader, index, member);
}

/* Finds the GPU by its UUID, or by number if the entry has no UUID. */
static uint32_t find_gpu(const struct snapshot *s, const json_t *object)
{
	const char *uuid = json_string_value(json_object_get(object, "uuid"));
	uint32_t index = read_u32(object, "gpu", UINT32_MAX);

	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *e = &s->entities[i];

		if (!entity_is_mig(e) && (uuid ? STRV_EQ(e->id.uuid, uuid) : e->id.index == index))
			return i;
	}
	return UINT32_MAX;
}

/*
 * The entity of a process or workload; UINT32_MAX if its GPU is not in the document. A missing instance is
 * added as gone.
 */
static uint32_t read_place(struct reader *reader, const json_t *object)
{
	struct snapshot *s = reader->s;
	uint32_t gpu = find_gpu(s, object), gi = read_u32(object, "gi", UINT32_MAX),
		 ci = read_u32(object, "ci", UINT32_MAX);
	struct entity *e;

	if (gpu == UINT32_MAX || gi == UINT32_MAX || ci == UINT32_MAX)
		return gpu;
	for (uint32_t i = 0; i < s->entities_n; i++)
		if (s->entities[i].id.parent == gpu && s->entities[i].id.gi == gi &&
		    s->entities[i].id.ci == ci)
			return i;
	e = add_entity(reader);
	if (!e)
		return UINT32_MAX;
	e->id.parent = (uint16_t)gpu;
	e->id.index = s->entities[gpu].id.index;
	memcpy(e->id.uuid, s->entities[gpu].id.uuid, sizeof(e->id.uuid));
	e->id.gi = gi;
	e->id.ci = ci;
	return s->entities_n - 1;
}

/* ---- workloads ---- */

/* Kind WORKLOAD_NONE if the entry has no known workload. */
static void read_workload_id(const json_t *object, struct workload *workload)
{
	static const enum workload_kind kinds[] = { WORKLOAD_CONTAINER, WORKLOAD_JOB, WORKLOAD_POD,
						    WORKLOAD_UNIT };

	workload->kind = WORKLOAD_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && workload->kind == WORKLOAD_NONE; i++)
		if (json_is_string(json_object_get(object, workload_id_name(kinds[i])))) {
			workload->kind = kinds[i];
			READ_TEXT(workload->id, object, workload_id_name(kinds[i]));
		}
	if (workload->kind == WORKLOAD_CONTAINER)
		READ_TEXT(workload->pod_uid, object, workload_id_name(WORKLOAD_POD));
}

static enum workload_kind read_workload_kind(const json_t *object)
{
	const char *name = json_string_value(json_object_get(object, "kind"));

	for (unsigned kind = WORKLOAD_NONE; name && kind < WORKLOAD_KINDS; kind++)
		if (STRV_EQ(workload_kind_name(kind), name))
			return (enum workload_kind)kind;
	return WORKLOAD_NONE;
}

/* As read_workload_id(). */
static void read_owner(const json_t *object, struct owner *owner)
{
	READ_TEXT(owner->namespace, object, "namespace");
	READ_TEXT(owner->pod, object, "pod");
	READ_TEXT(owner->container, object, "container");
	if (owner->pod[0] || owner->container[0])
		owner->workload = WORKLOAD_CONTAINER;
}

static struct workload *add_workload(struct reader *reader, const json_t *object,
				     const struct workload *workload)
{
	struct snapshot *s = reader->s;

	if (s->workloads_n >= reader->workloads_cap) {
		reader->error = -E2BIG;
		return NULL;
	}
	read_owner(object, &reader->owners[s->workloads_n]);
	s->workloads[s->workloads_n] = *workload;
	return &s->workloads[s->workloads_n++];
}

static void read_workload(struct reader *reader, const json_t *object)
{
	struct workload read = { .job = JOB_NONE, .uid = UINT32_MAX }, *workload;
	uint32_t place = read_place(reader, object);

	read_workload_id(object, &read);
	read.entity = (uint16_t)place;
	workload = place != UINT32_MAX ? add_workload(reader, object, &read) : NULL;
	if (!workload)
		return;
	workload->job = snapshot_read_job(reader->s, reader->workloads_cap, object);
	workload->uid = read_u32(object, "uid", UINT32_MAX);
	workload->live = read_u32(object, "processes_live", 0);
	workload->exited = read_u32(object, "processes_exited", 0);
	read_rows(object, process_metrics, PROCESS_METRICS, "process_gpu_", "process_", workload->v,
		  workload->p);
}

static uint16_t workload_of(struct reader *reader, const json_t *object, uint16_t entity)
{
	struct workload read = { .entity = entity, .job = JOB_NONE, .uid = UINT32_MAX };
	const struct workload *found = NULL;
	struct snapshot *s = reader->s;

	read_workload_id(object, &read);
	if (read.kind == WORKLOAD_NONE)
		return READING_NONE;
	for (uint32_t i = 0; !found && i < s->workloads_n; i++)
		if (s->workloads[i].entity == entity && s->workloads[i].kind == read.kind &&
		    STRV_EQ(s->workloads[i].id, read.id))
			found = &s->workloads[i];
	if (!found)
		found = add_workload(reader, object, &read);
	return found ? (uint16_t)(found - s->workloads) : READING_NONE;
}

/* ---- allocations ---- */

static enum source_id source_named(const char *name)
{
	for (unsigned i = 0; name && i < SOURCES; i++)
		if (STRV_EQ(source_rows[i].name, name))
			return (enum source_id)i;
	return SOURCE_FILES;
}

static bool is_estimated(const json_t *object, const char *name)
{
	const json_t *names = json_object_get(object, "estimated");

	for (size_t i = 0; i < MIN(json_array_size(names), (size_t)32); i++) {
		const char *text = json_string_value(json_array_get(names, i));

		if (text && STRV_EQ(text, name))
			return true;
	}
	return false;
}

static void read_allocation(struct reader *reader, const json_t *object)
{
	uint32_t place = json_is_object(object) ? read_place(reader, object) : UINT32_MAX;
	const json_t *idle = json_object_get(object, "idle_seconds_total");
	struct snapshot *s = reader->s;
	struct allocated *a;

	if (place == UINT32_MAX)
		return;
	a = &s->allocated[s->allocated_n++];
	a->kind = read_workload_kind(object);
	if (a->kind != WORKLOAD_NONE)
		READ_TEXT(a->id, object, workload_id_name(a->kind));
	else
		strcpy(a->id, "other");
	if (a->kind == WORKLOAD_CONTAINER)
		READ_TEXT(a->pod_uid, object, workload_id_name(WORKLOAD_POD));
	READ_TEXT(a->namespace, object, "namespace");
	READ_TEXT(a->pod, object, "pod");
	READ_TEXT(a->container, object, "container");
	READ_TEXT(a->resource, object, "resource");
	a->entity = (uint16_t)place;
	a->source = source_named(json_string_value(json_object_get(object, "source")));
	a->claimed = json_is_true(json_object_get(object, "claimed"));
	a->count = read_u32(object, "count", 1);
	a->slots = read_u32(object, "slots", 0);
	a->processes = read_u32(object, "processes", 0);
	a->since_real_ns = read_time(object, "since");
	a->stale = json_is_true(json_object_get(object, "stale"));
	a->seconds = read_double(object, "allocated_seconds_total", 0);
	a->idle_seconds = json_number_value(idle);
	a->idle_p = json_is_number(idle) ? PRESENCE_PRESENT : PRESENCE_ABSENT;
	if (json_is_number(idle) && is_estimated(object, "idle_seconds_total"))
		a->idle_p |= PRESENCE_ESTIMATED;
	a->estimated = is_estimated(object, "gpu");
}

/* ---- processes ---- */

static uint8_t read_unplaced(const json_t *name)
{
	const char *text = json_string_value(name);

	for (unsigned i = TRACED_PLACED + 1; text && i < TRACED_UNPLACEDS; i++)
		if (STRV_EQ(traced_unplaced_name(i), text))
			return (uint8_t)i;
	return TRACED_PLACED;
}

static unsigned read_bits(const json_t *names, const char *(*name_of)(unsigned bit))
{
	unsigned bits = 0;
	const char *name;

	for (size_t i = 0; i < MIN(json_array_size(names), (size_t)32); i++) {
		const char *text = json_string_value(json_array_get(names, i));

		for (unsigned bit = 0; text && (name = name_of(bit)); bit++)
			if (STRV_EQ(name, text))
				bits |= 1u << bit;
	}
	return bits;
}

/* Of a traced process that the driver does not list. */
static void read_traced_workload(struct reader *reader, const json_t *object, uint32_t device)
{
	struct snapshot *s = reader->s;
	struct workload_name *name = &s->workload_names[s->workload_names_n];
	struct owner *owner = &reader->owners[reader->workloads_cap + s->workload_names_n];
	struct workload read = { .job = JOB_NONE, .uid = UINT32_MAX };

	read_workload_id(object, &read);
	if (read.kind == WORKLOAD_NONE || s->workload_names_n >= READING_NONE)
		return;
	name->kind = read.kind;
	memcpy(name->id, read.id, sizeof(name->id));
	memcpy(name->pod_uid, read.pod_uid, sizeof(name->pod_uid));
	read_owner(object, owner);
	if (owner->workload != WORKLOAD_NONE)
		name->owner = owner;
	reader->traced_workloads[device] = (uint16_t)s->workload_names_n++;
}

/* Reads the traced data of a process on a device. */
static void read_traced(struct reader *reader, const json_t *object, uint32_t entity, uint64_t start)
{
	struct trace_view *view = reader->s->trace;
	const json_t *cuda = json_object_get(object, "cuda");
	struct traced_process *process;
	struct traced_device *device;

	/* Not every process that the driver lists is traced. */
	if (!view || !json_is_object(object) || (start != START_OF_TRACED && !json_is_object(cuda)))
		return;
	process = &view->processes[view->processes_n];
	process->id.pid = read_u32(object, "pid", 0);
	process->ns_pid = read_u32(object, "ns_pid", 0);
	process->id.start_ticks = start;
	READ_TEXT(process->comm, object, "comm");
	process->first_real_ns = read_time(object, "first_seen");
	process->incomplete = read_bits(json_object_get(cuda, "incomplete"), traced_incomplete_name);
	process->unplaced = read_unplaced(json_object_get(cuda, "device_unknown"));
	process->overhead = read_double(cuda, "overhead_ratio", 0);
	process->devices_first = view->devices_n;
	process->devices_n = 1;
	device = &view->devices[view->devices_n++];
	device->process = view->processes_n++;
	if (entity != UINT32_MAX) {
		const struct reading_entity *id = &reader->s->entities[entity].id;

		memcpy(device->uuid, id->parent == READING_NONE ? id->uuid : id->mig_uuid,
		       sizeof(device->uuid));
	} else {
		READ_TEXT(device->uuid, object, "uuid");
	}
	read_rows(cuda, traced_metrics, TRACED_METRICS, "process_cuda_", NULL, device->v, device->p);
	if (start == START_OF_TRACED)
		read_traced_workload(reader, object, process->devices_first);
}

static void read_recent(const json_t *list, struct process *process)
{
	const json_t *object;
	size_t i;

	json_array_foreach(list, i, object) {
		uint32_t window = read_u32(object, "window_seconds", 0);

		for (unsigned k = 0; k < RECENTS; k++) {
			struct recent *recent = &process->recent[k];

			if (window != recent_seconds[k])
				continue;
			recent->seconds = json_number_value(json_object_get(object, "seconds"));
			for (unsigned f = 0; f < RECENT_FIGURES; f++) {
				const json_t *number = json_object_get(object, recent_names[f]);

				recent->v[f] = json_number_value(number);
				recent->p[f] = json_is_number(number) ? PRESENCE_PRESENT : PRESENCE_ABSENT;
			}
		}
	}
}

/* Of a process's pod. */
static void read_run(struct reader *reader, const json_t *object, uint16_t workload)
{
	struct owner *owner = workload < reader->s->workloads_n ? &reader->owners[workload] : NULL;

	if (!owner || !json_is_false(json_object_get(object, "run_claimed")))
		return;
	READ_TEXT(owner->run, object, "run");
	READ_TEXT(owner->group, object, "run_group");
}

static void read_process(struct reader *reader, const json_t *object)
{
	bool traced = json_is_object(json_object_get(object, "cuda"));
	uint32_t place = read_place(reader, object);
	struct snapshot *s = reader->s;
	struct process *process;

	if (place == UINT32_MAX)
		return;
	process = &s->processes[s->processes_n++];
	process->id.pid = read_u32(object, "pid", 0);
	process->ns_pid = read_u32(object, "ns_pid", 0);
	process->id.start_ticks = traced ? START_OF_BOTH : START_OF_LISTED;
	READ_TEXT(process->comm, object, "comm");
	process->uid = read_u32(object, "uid", UINT32_MAX);
	process->entity = (uint16_t)place;
	process->types = (uint8_t)read_bits(json_object_get(object, "types"), process_type_name);
	process->first_real_ns = read_time(object, "first_seen");
	process->last_real_ns = read_time(object, "last_seen");
	process->exit_seq = s->processes_n; /* its place in the document, until all are joined */
	process->workload = workload_of(reader, object, process->entity);
	process->job = snapshot_read_job(s, reader->workloads_cap, object);
	read_run(reader, object, process->workload);
	process->rank = (struct rank){ read_u32(object, "rank", RANK_UNKNOWN),
				       read_u32(object, "local_rank", RANK_UNKNOWN),
				       read_u32(object, "world_size", RANK_UNKNOWN) };
	read_rows(object, process_metrics, PROCESS_METRICS, "process_gpu_", "process_", process->v,
		  process->p);
	read_recent(json_object_get(object, "recent"), process);
	read_traced(reader, object, place, START_OF_BOTH);
}

static int by_place(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	if (x->entity != y->entity)
		return x->entity < y->entity ? -1 : 1;
	return x->id.pid < y->id.pid ? -1 : x->id.pid > y->id.pid;
}

static int by_pid(const void *a, const void *b)
{
	const struct traced_process *x = a, *y = b;

	if (x->id.pid != y->id.pid)
		return x->id.pid < y->id.pid ? -1 : 1;
	return x->devices_first < y->devices_first ? -1 : 1;
}

/* Sorts as struct snapshot requires. */
static void sort_processes(struct reader *reader)
{
	struct snapshot *s = reader->s;
	struct trace_view *view = s->trace;

	qsort(s->processes, s->processes_n, sizeof(*s->processes), by_place);
	if (!view)
		return;
	qsort(view->processes, view->processes_n, sizeof(*view->processes), by_pid);
	for (uint32_t i = 0; i < view->processes_n; i++) {
		uint32_t device = view->processes[i].devices_first;

		view->devices[device].process = i;
		s->traced_workloads[i] = reader->traced_workloads[device];
	}
}

static int by_document(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return x->exit_seq < y->exit_seq ? -1 : x->exit_seq > y->exit_seq;
}

/* That of the document: an agent's, or one that the user asked for (view/fields/select.h). */
static void restore_order(struct snapshot *s)
{
	qsort(s->processes, s->processes_n, sizeof(*s->processes), by_document);
	for (uint32_t i = 0; i < s->processes_n; i++)
		s->processes[i].exit_seq = 0;
}

static void read_processes(struct reader *reader, const json_t *document)
{
	json_t *process;
	size_t i;

	json_array_foreach(json_object_get(document, "processes"), i, process)
		read_process(reader, process);
	json_array_foreach(json_object_get(document, "traced"), i, process)
		read_traced(reader, process, read_place(reader, process), START_OF_TRACED);
	json_array_foreach(json_object_get(document, "allocations"), i, process)
		read_allocation(reader, process);
	if (reader->s->trace)
		reader->s->trace->left_out = read_u32(document, "traced_left_out", 0);
	sort_processes(reader);
	snapshot_join_trace(reader->s);
	restore_order(reader->s);
}

/* ---- the node ---- */

static void read_rejected(struct snapshot *s, const json_t *object)
{
	if (json_object_size(object) > REJECTED_LOOK_MAX)
		return;
	for (unsigned i = 0; i < GPU_METRICS + PROCESS_METRICS; i++) {
		bool process = i >= GPU_METRICS;
		unsigned row = process ? i - GPU_METRICS : i;
		char name[FIELD_NAME_MAX];

		rejected_field_name(process ? &process_metrics[row] : &gpu_metrics[row], process, name);
		(process ? s->rejected_process : s->rejected)[row] = read_count(object, name);
	}
}

static void read_source(struct snapshot *s, const json_t *node)
{
	struct source *driver = &s->sources[s->device_source];
	const char *cuda = json_string_value(json_object_get(node, "cuda_version"));
	const char *state = json_string_value(json_object_get(node, "state"));
	unsigned major, minor;

	driver->in_use = true;
	driver->state = READING_STATES;
	for (unsigned i = 0; state && i < READING_STATES; i++)
		if (STRV_EQ(state_name((enum reading_state)i), state))
			driver->state = (enum reading_state)i;
	READ_TEXT(driver->error, node, "error");
	READ_TEXT(driver->driver_version, node, "driver_version");
	READ_TEXT(driver->library_version, node, "nvml_version");
	READ_TEXT(driver->library, node, "library");
	READ_TEXT(driver->unrecognised, node, "unrecognised");
	if (cuda && sscanf(cuda, "%3u.%2u", &major, &minor) == 2)
		driver->cuda_version = major * 1000 + minor * 10;
}

/* Those that were given to the node; the others are made of what is known of its GPUs. */
static void read_tags(struct snapshot *s, const json_t *list)
{
	const json_t *member;
	size_t i;

	json_array_foreach(list, i, member) {
		const char *text = json_string_value(member);
		struct node_tag tags[NODE_TAGS_MAX];
		uint32_t n;

		if (text && s->tags_n < NODE_TAGS_MAX && node_tags_parse(text, tags, &n) == 0 && n == 1)
			s->tags[s->tags_n++] = tags[0];
	}
}

static void read_node(struct reader *reader, const json_t *document)
{
	const json_t *node = json_object_get(document, "node"), *agent = json_object_get(node, "agent");
	struct snapshot *s = reader->s;
	json_t *workload;
	size_t i;

	if (!json_is_object(node)) {
		/* The reason is the document's only information about the outage. */
		s->fresh = !json_is_string(json_object_get(document, "error"));
		READ_TEXT(s->not_fresh_reason, document, "error");
		return;
	}
	READ_TEXT(s->hostname, node, "hostname");
	read_tags(s, json_object_get(node, "tags"));
	s->fresh = json_is_true(json_object_get(node, "fresh"));
	READ_TEXT(s->not_fresh_reason, node, "reason");
	s->period_ns = llround(fmin(fmax(read_double(node, "period_seconds", 0), 0), 9e8) * 1e9);
	read_source(s, node);
	/* The document has the number without the absent ones. */
	s->gpus_unidentified = read_u32(json_object_get(node, "gpus"), "unidentified", 0);
	if (s->gpus_unidentified > 0)
		s->gpus_unidentified += read_u32(json_object_get(node, "gpus"), "absent", 0);
	json_read_topology(json_object_get(node, "topology"), s);
	json_read_host(json_object_get(node, "host"), &s->host);
	json_read_inference(json_object_get(node, "inference"), s);
	READ_TEXT(s->agent_version, agent, "version");
	read_rows(agent, agent_metrics, AGENT_METRICS, NULL, NULL, s->agent, s->agent_p);
	read_rejected(s, json_object_get(node, "rejected"));
	json_array_foreach(json_object_get(node, "workloads"), i, workload)
		read_workload(reader, workload);
}

/* ---- the document ---- */

/* Counts the entries of an array; more than an agent's limit is rejected. */
static int entries_of(const json_t *array, size_t max, uint32_t *ret_n)
{
	size_t n = json_array_size(array);

	if (n > max)
		return -E2BIG;
	*ret_n = (uint32_t)n;
	return 0;
}

/* @n indexes of nothing. */
static uint16_t *none_of(uint32_t n)
{
	uint16_t *list = malloc((n + 1) * sizeof(*list));

	for (uint32_t i = 0; list && i < n; i++)
		list[i] = READING_NONE;
	return list;
}

static int allocate_arrays(struct reader *reader, const json_t *document)
{
	struct snapshot *s = reader->s;
	uint32_t processes, traced, workloads, allocations;
	int r = entries_of(json_object_get(document, "processes"), READING_PROCESSES_MAX, &processes);

	if (r == 0)
		r = entries_of(json_object_get(document, "traced"), TRACED_MAX - READING_PROCESSES_MAX,
			       &traced);
	if (r == 0)
		r = entries_of(json_object_get(json_object_get(document, "node"), "workloads"),
			       SNAPSHOT_WORKLOADS_MAX, &workloads);
	if (r == 0)
		r = entries_of(json_object_get(document, "allocations"), SNAPSHOT_WORKLOADS_MAX,
			       &allocations);
	if (r < 0)
		return r;
	reader->workloads_cap = workloads + processes;
	s->processes = calloc(processes + 1, sizeof(*s->processes));
	s->workloads = calloc(reader->workloads_cap + 1, sizeof(*s->workloads));
	s->jobs = calloc(reader->workloads_cap + 1, sizeof(*s->jobs));
	s->owners = owners_new(reader->workloads_cap + traced, &reader->owners);
	s->allocated = calloc(allocations + 1, sizeof(*s->allocated));
	if (!s->allocated || !s->processes || !s->workloads || !s->owners || !s->jobs)
		return -ENOMEM;
	if (!json_is_array(json_object_get(document, "traced")))
		return 0;
	s->traced_places = calloc(processes + traced + 1, sizeof(*s->traced_places));
	s->workload_names = calloc(traced + 1, sizeof(*s->workload_names));
	s->traced_workloads = none_of(processes + traced);
	reader->traced_workloads = none_of(processes + traced);
	r = s->traced_places && s->workload_names && s->traced_workloads && reader->traced_workloads ?
		    trace_view_new(processes + traced, processes + traced, 0, 0, 0, 0, 0, &s->trace) :
		    -ENOMEM;
	if (r == 0)
		s->trace->enabled = true;
	return r;
}

static int read_document(struct reader *reader, const json_t *document)
{
	struct snapshot *s = reader->s;
	json_t *gpu;
	size_t i;

	s->boot_ns = DECODED_BOOT_NS;
	s->real_ns = read_time(document, "time");
	s->simulated = json_is_true(json_object_get(document, "simulated"));
	json_array_foreach(json_object_get(document, "gpus"), i, gpu)
		read_gpu(reader, gpu);
	read_node(reader, document);
	read_processes(reader, document);
	if (reader->error < 0)
		return reader->error;
	for (uint32_t w = 0; w < s->workloads_n; w++)
		if (reader->owners[w].workload != WORKLOAD_NONE)
			s->workloads[w].owner = &reader->owners[w];
	return 0;
}

int snapshot_read(const json_t *document, struct snapshot **ret_snapshot)
{
	_cleanup_(snapshot_read_freep) struct snapshot *s = calloc(1, sizeof(*s));
	struct reader reader = { .s = s };
	int r;

	if (!s)
		return -ENOMEM;
	if (!json_is_object(document))
		return -EBADMSG;
	r = allocate_arrays(&reader, document);
	if (r == 0)
		r = read_document(&reader, document);
	free(reader.traced_workloads);
	if (r < 0)
		return r;
	*ret_snapshot = TAKE_PTR(s);
	return 0;
}

void snapshot_read_free(struct snapshot *s)
{
	if (!s)
		return;
	trace_view_unref(s->trace);
	free(s->traced_places);
	free(s->traced_workloads);
	free(s->workload_names);
	free(s->entities);
	free(s->processes);
	free(s->workloads);
	free(s->jobs);
	owners_unref(s->owners);
	free(s->xids);
	free(s->allocated);
	free(s);
}
