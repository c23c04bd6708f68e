// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "lab.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

static int look(uint32_t pid, bool full, struct process_identity *ret_identity, void *userdata)
{
	struct lab *lab = userdata;

	lab->looks++;
	if (pid >= LAB_PIDS || !lab->proc[pid].exists)
		return -ESRCH;
	if (full)
		*ret_identity = lab->proc[pid].identity;
	else
		ret_identity->id = lab->proc[pid].identity.id;
	return 0;
}

static void empty_reading(struct lab *lab)
{
	struct reading *r = lab->reading;

	/* Not all of its megabytes: what counts do not cover is never read. */
	memset(r, 0, offsetof(struct reading, entities));
	r->attach = 1;
	r->begin_ns = clock_boot_ns();
	snprintf(r->driver_version, sizeof(r->driver_version), "570.1");
}

struct lab *lab_new(const struct model_limits *limits)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	assert_non_null(lab);
	clock_freeze(true);
	assert_int_equal(model_new(limits, &lab->model), 0);
	assert_int_equal(publisher_new(&lab->publisher), 0);
	lab->reading = calloc(1, sizeof(*lab->reading));
	assert_non_null(lab->reading);
	model_set_identify(lab->model, look, lab);
	empty_reading(lab);
	return lab;
}

void lab_free(struct lab *lab)
{
	snapshot_unref(lab->s);
	model_free(lab->model);
	publisher_free(lab->publisher);
	free(lab->reading);
	free(lab);
}

int lab_setup(void **state)
{
	*state = lab_new(NULL);
	return 0;
}

int lab_teardown(void **state)
{
	lab_free(*state);
	return 0;
}

static struct reading_entity *add_entity(struct lab *lab)
{
	struct reading_entity *e = &lab->reading->entities[lab->reading->entities_n++];

	memset(e, 0, sizeof(*e));
	e->minor = e->gi = e->ci = UINT32_MAX;
	e->parent = READING_NONE;
	e->numa_node = -1;
	e->process_list = e->process_util = PRESENCE_PRESENT;
	return e;
}

struct reading_entity *lab_gpu(struct lab *lab, unsigned index)
{
	struct reading_entity *e = add_entity(lab);

	snprintf(e->uuid, sizeof(e->uuid), "GPU-%04u", index);
	snprintf(e->name, sizeof(e->name), "Test %u", index);
	snprintf(e->pci_bus_id, sizeof(e->pci_bus_id), "00000000:%02X:00.0", index + 1);
	e->index = index;
	return e;
}

struct reading_entity *lab_mig(struct lab *lab, const struct reading_entity *gpu, unsigned gi, unsigned ci)
{
	struct reading_entity *e = add_entity(lab);

	snprintf(e->uuid, sizeof(e->uuid), "%s", gpu->uuid);
	snprintf(e->mig_uuid, sizeof(e->mig_uuid), "MIG-%u-%u", gi, ci);
	e->index = gpu->index;
	e->gi = gi;
	e->ci = ci;
	e->parent = (uint16_t)(gpu - lab->reading->entities);
	return e;
}

struct reading_process *lab_process(struct lab *lab, const struct reading_entity *entity, uint32_t pid)
{
	struct reading_process *p = &lab->reading->processes[lab->reading->processes_n++];

	memset(p, 0, sizeof(*p));
	p->pid = pid;
	p->entity = (uint16_t)(entity - lab->reading->entities);
	p->types = PROCESS_TYPE_COMPUTE;
	return p;
}

void lab_event(struct lab *lab, const struct reading_entity *entity, uint32_t xid)
{
	lab->reading->events[lab->reading->events_n++] = (struct reading_event){
		.entity = (uint16_t)(entity - lab->reading->entities),
		.gi = UINT32_MAX,
		.ci = UINT32_MAX,
		.xid = xid,
	};
}

void lab_kmsg(struct model *model, const char *pci_bus_id, uint32_t code, int64_t boot_ns, uint64_t sequence)
{
	model_kmsg_xid(model, &(struct xid_record){ .pci_bus_id = pci_bus_id,
						    .code = code,
						    .gi = UINT32_MAX,
						    .ci = UINT32_MAX,
						    .boot_ns = boot_ns,
						    .sequence = sequence,
						    .text = "" });
}

void lab_set(struct reading_entity *entity, unsigned slot, double value)
{
	entity->v[slot] = value;
	entity->p[slot] = PRESENCE_PRESENT;
}

void lab_set_process(struct reading_process *process, unsigned row, double value)
{
	process->v[row] = value;
	process->p[row] = PRESENCE_PRESENT;
}

void lab_exists(struct lab *lab, uint32_t pid, uint64_t ticks, enum workload_kind kind, const char *id)
{
	struct lab_process *p = &lab->proc[pid];

	memset(p, 0, sizeof(*p));
	p->exists = true;
	p->identity.id = (struct process_id){ .pid = pid, .start_ticks = ticks };
	p->identity.uid = 1000;
	p->identity.kind = kind;
	snprintf(p->identity.comm, sizeof(p->identity.comm), "proc%u", pid);
	snprintf(p->identity.workload_id, sizeof(p->identity.workload_id), "%s", id);
}

static void publish(struct lab *lab)
{
	snapshot_unref(lab->s);
	assert_int_equal(model_publish(lab->model, lab->publisher), 0);
	lab->s = publisher_get(lab->publisher);
}

int lab_step(struct lab *lab, int64_t ns)
{
	return lab_step_of(lab, SOURCE_NVML, ns);
}

int lab_step_of(struct lab *lab, enum source_id source, int64_t ns)
{
	int r;

	clock_advance(ns);
	lab->reading->end_ns = clock_boot_ns();
	assert_int_equal(reading_check(lab->reading), 0);
	r = model_apply(lab->model, source, lab->reading);
	publish(lab);
	empty_reading(lab);
	return r;
}

void lab_wait(struct lab *lab, int64_t ns)
{
	clock_advance(ns);
	lab->reading->begin_ns = clock_boot_ns();
	publish(lab);
}

const struct process *lab_find(const struct lab *lab, uint32_t pid)
{
	for (uint32_t i = 0; i < lab->s->processes_n; i++)
		if (lab->s->processes[i].id.pid == pid)
			return &lab->s->processes[i];
	return NULL;
}

const struct process *lab_exited(const struct lab *lab, uint32_t pid)
{
	for (uint32_t i = lab->s->exited_n; i-- > 0;)
		if (lab->s->exited[i].id.pid == pid)
			return &lab->s->exited[i];
	return NULL;
}

const struct entity *lab_entity(const struct lab *lab, const char *uuid)
{
	for (uint32_t i = 0; i < lab->s->entities_n; i++)
		if (strcmp(lab->s->entities[i].id.uuid, uuid) == 0 &&
		    lab->s->entities[i].id.parent == READING_NONE)
			return &lab->s->entities[i];
	return NULL;
}

const struct workload *lab_workload(const struct lab *lab, const char *id)
{
	for (uint32_t i = 0; i < lab->s->workloads_n; i++)
		if (STRV_EQ(lab->s->workloads[i].id, id))
			return &lab->s->workloads[i];
	return NULL;
}
