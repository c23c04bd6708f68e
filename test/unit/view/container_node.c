// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "container_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

enum { MOST = 32 };

struct container_node t;

int container_node_up(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	t.s.boot_ns = NOW_BOOT;
	t.s.real_ns = NOW_REAL;
	t.s.period_ns = NSEC_PER_SEC;
	t.s.fresh = true;
	strcpy(t.s.hostname, "host-1");
	t.s.entities = calloc(MOST, sizeof(*t.s.entities));
	t.s.workloads = calloc(MOST, sizeof(*t.s.workloads));
	t.s.allocated = calloc(MOST, sizeof(*t.s.allocated));
	t.s.processes = calloc(MOST, sizeof(*t.s.processes));
	t.s.xids = calloc(MOST, sizeof(*t.s.xids));
	t.scraped = calloc(1, sizeof(*t.scraped) + MOST * sizeof(t.scraped->rows[0]));
	assert_non_null(t.scraped);
	t.scraped->stale_after_ns = 25 * NSEC_PER_SEC;
	return 0;
}

int container_node_down(void **state)
{
	(void)state;
	container_rows_free(t.rows);
	free(t.s.entities);
	free(t.s.workloads);
	free(t.s.allocated);
	free(t.s.processes);
	free(t.s.xids);
	free(t.scraped);
	owners_unref(t.s.owners);
	return 0;
}

struct entity *add_gpu(uint32_t index)
{
	struct entity *e = &t.s.entities[t.s.entities_n++];

	snprintf(e->id.uuid, sizeof(e->id.uuid), "GPU-%u", index);
	strcpy(e->id.name, "NVIDIA A100");
	e->id.index = index;
	e->id.gi = e->id.ci = UINT32_MAX;
	e->id.parent = READING_NONE;
	e->id.process_list = e->id.process_util = PRESENCE_PRESENT;
	e->present = true;
	e->sampled_boot_ns = NOW_BOOT - NSEC_PER_SEC / 2;
	e->sampled_real_ns = NOW_REAL - NSEC_PER_SEC / 2;
	return e;
}

struct entity *add_instance(uint16_t parent, uint32_t gi, uint32_t ci, const char *profile)
{
	struct entity *e = add_gpu(t.s.entities[parent].id.index);

	e->id.parent = parent;
	e->id.gi = gi;
	e->id.ci = ci;
	strcpy(e->id.mig_profile, profile);
	return e;
}

void set(struct entity *e, enum gpu_slot slot, double value)
{
	e->id.v[slot] = value;
	e->id.p[slot] = PRESENCE_PRESENT;
}

void give(uint16_t entity, const char *namespace, const char *pod, const char *container)
{
	struct allocated *a = &t.s.allocated[t.s.allocated_n++];

	*a = (struct allocated){ .kind = WORKLOAD_CONTAINER, .entity = entity, .count = 1 };
	snprintf(a->id, sizeof(a->id), "id-%s-%s", pod, container);
	strcpy(a->namespace, namespace);
	strcpy(a->pod, pod);
	strcpy(a->container, container);
}

void add_job(uint16_t entity, const char *id)
{
	struct allocated *a = &t.s.allocated[t.s.allocated_n++];

	*a = (struct allocated){ .kind = WORKLOAD_JOB, .entity = entity, .count = 1 };
	strcpy(a->id, id);
}

/* A process of the allocation. */
void run(uint32_t allocated, double utilization, double used_mib)
{
	struct allocated *a = &t.s.allocated[allocated];
	struct workload *w = &t.s.workloads[t.s.workloads_n];
	struct process *p = &t.s.processes[t.s.processes_n++];

	*w = (struct workload){
		.kind = a->kind, .entity = a->entity, .allocated = (uint16_t)(allocated + 1), .live = 1
	};
	strcpy(w->id, a->id);
	p->entity = a->entity;
	p->workload = (uint16_t)t.s.workloads_n++;
	p->v[PROCESS_UTILIZATION] = utilization;
	p->v[PROCESS_MEMORY] = used_mib * MIB;
	p->p[PROCESS_UTILIZATION] = p->p[PROCESS_MEMORY] = PRESENCE_PRESENT;
}

struct scraped_row *add_scraped(const char *uuid, const char *gi, const char *gpu)
{
	struct scraped_row *row = &t.scraped->rows[t.scraped->n++];

	strcpy(row->uuid, uuid);
	strcpy(row->gi, gi);
	strcpy(row->gpu, gpu);
	row->real_ns = NOW_REAL - 3 * NSEC_PER_SEC;
	row->boot_ns = NOW_BOOT - 3 * NSEC_PER_SEC;
	t.s.scraped = t.scraped;
	return row;
}

void set_scraped(struct scraped_row *row, enum contract_metric metric, double value)
{
	row->v[metric] = value;
	row->present |= 1u << metric;
}

json_t *load_view(int (*view)(const struct snapshot *, int64_t, struct strbuf *))
{
	struct strbuf out;
	json_t *json;

	strbuf_init(&out, 0);
	assert_int_equal(view(&t.s, NOW_BOOT, &out), 0);
	json = json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	strbuf_done(&out);
	return json;
}
