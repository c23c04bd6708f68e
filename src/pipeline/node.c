// SPDX-License-Identifier: Apache-2.0
/* Passes data about the node to src/cuda: devices and NVML's figures, from snapshots. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "pipeline/private.h"

/* ---- devices ---- */

static double slot(const struct entity *e, enum gpu_slot i)
{
	return presence_is(e->id.p[i]) ? e->id.v[i] : 0;
}

const char *pipeline_uuid(const struct entity *e)
{
	return e->id.parent == READING_NONE ? e->id.uuid : e->id.mig_uuid;
}

/* 90 for "9.0", 121 for "12.1"; 0: unknown. A MIG instance has its GPU's. */
static uint16_t sm_of(const struct snapshot *snapshot, const struct entity *e)
{
	struct cursor text;
	uint64_t major_n, minor_n;

	if (e->id.compute_capability[0] == 0)
		e = snapshot_gpu(snapshot, e);
	text = cursor_over(e->id.compute_capability, strlen(e->id.compute_capability));
	if (cursor_u64(&text, &major_n) < 0 || !cursor_literal(&text, ".") ||
	    cursor_u64(&text, &minor_n) < 0 || major_n > 99 || minor_n > 9)
		return 0;
	return (uint16_t)(major_n * 10 + minor_n);
}

static void describe(const struct snapshot *snapshot, const struct entity *e, struct cuda_device *device)
{
	*device = (struct cuda_device){
		.mig = e->id.parent == READING_NONE && slot(e, SLOT_MIG_MODE_CURRENT) > 0,
		.cores = (uint32_t)slot(e, SLOT_CORES),
		.memory = (uint64_t)slot(e, SLOT_MEMORY_TOTAL),
		.sm = sm_of(snapshot, e),
		.speed = slot(e, SLOT_CLOCK_MAX_SM) * slot(e, SLOT_CORES),
		.minor = e->id.parent == READING_NONE ? e->id.minor : UINT32_MAX,
		.gi = e->id.gi,
		.ci = e->id.ci,
		.number = e->id.mig_number > 0 ? e->id.mig_number - 1u : UINT32_MAX,
	};
	snprintf(device->uuid, sizeof(device->uuid), "%.*s", (int)sizeof(device->uuid) - 1, pipeline_uuid(e));
	if (e->id.parent != READING_NONE)
		snprintf(device->parent, sizeof(device->parent), "%.*s", (int)sizeof(device->parent) - 1,
			 e->id.uuid);
}

static void set_devices(struct pipeline *pipeline, const struct snapshot *snapshot)
{
	const struct blas_peak *peaks[PIPELINE_DEVICES_MAX] = { NULL };
	struct cuda_device devices[PIPELINE_DEVICES_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < snapshot->entities_n && n < PIPELINE_DEVICES_MAX; i++)
		if (snapshot->entities[i].present) {
			/* A MIG instance is a part of its board. */
			peaks[n] = snapshot->entities[i].id.parent == READING_NONE ?
					   blas_peak_find(snapshot->entities[i].id.name) :
					   NULL;
			describe(snapshot, &snapshot->entities[i], &devices[n++]);
		}
	memcpy(pipeline->peaks, peaks, sizeof(peaks));
	if (n == pipeline->devices_n && memcmp(devices, pipeline->devices, n * sizeof(devices[0])) == 0)
		return;
	/* Before src/cuda, which asks for limits at once. */
	memcpy(pipeline->devices, devices, n * sizeof(devices[0]));
	pipeline->devices_n = n;
	if (cuda_set_devices(pipeline->cuda, devices, n) < 0)
		pipeline->devices_n = 0; /* out of memory: tried again with the next snapshot */
}

bool pipeline_has_device(const char *uuid, void *userdata)
{
	const struct pipeline *pipeline = userdata;

	for (uint32_t i = 0; i < pipeline->devices_n; i++)
		if (strcmp(pipeline->devices[i].uuid, uuid) == 0)
			return true;
	return false;
}

void pipeline_set_node(struct pipeline *pipeline, const struct snapshot *snapshot)
{
	set_devices(pipeline, snapshot);
	pipeline_set_limits(pipeline, snapshot);
	if (pipeline->torch)
		pipeline_torch_node(pipeline, snapshot);
	if (snapshot->seq == pipeline->node_seq || !snapshot->fresh)
		return;
	pipeline->node_seq = snapshot->seq;
	for (uint32_t i = 0; i < snapshot->processes_n; i++) {
		const struct process *p = &snapshot->processes[i];

		if (presence_is(p->p[PROCESS_BUSY]) && presence_is(p->p[PROCESS_OBSERVED]))
			cuda_nvml(pipeline->cuda, p->id, pipeline_uuid(&snapshot->entities[p->entity]),
				  p->v[PROCESS_BUSY], p->v[PROCESS_OBSERVED],
				  presence_is(p->p[PROCESS_MEMORY]) ? p->v[PROCESS_MEMORY] : -1);
	}
}
