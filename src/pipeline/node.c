// SPDX-License-Identifier: Apache-2.0
/*
 * Passes data about the node to src/cuda: devices and NVML's figures from snapshots, environments and
 * container limits from /proc.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/text.h"
#include "pipeline/private.h"

enum { ENVIRONMENT_MAX = 128 << 10 };

/* ---- devices ---- */

static double slot(const struct entity *e, enum gpu_slot i)
{
	return presence_is(e->id.p[i]) ? e->id.v[i] : 0;
}

static const char *uuid_of(const struct entity *e)
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
		.sm = sm_of(snapshot, e),
		.speed = slot(e, SLOT_CLOCK_MAX_SM) * slot(e, SLOT_CORES),
	};
	snprintf(device->uuid, sizeof(device->uuid), "%.*s", (int)sizeof(device->uuid) - 1, uuid_of(e));
	if (e->id.parent != READING_NONE)
		snprintf(device->parent, sizeof(device->parent), "%.*s", (int)sizeof(device->parent) - 1,
			 e->id.uuid);
}

static void set_devices(struct pipeline *pipeline, const struct snapshot *snapshot)
{
	struct cuda_device devices[PIPELINE_DEVICES_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < snapshot->entities_n && n < PIPELINE_DEVICES_MAX; i++)
		if (snapshot->entities[i].present)
			describe(snapshot, &snapshot->entities[i], &devices[n++]);
	if (n == pipeline->devices_n && memcmp(devices, pipeline->devices, n * sizeof(devices[0])) == 0)
		return;
	if (cuda_set_devices(pipeline->cuda, devices, n) < 0)
		return; /* out of memory: tried again with the next snapshot */
	memcpy(pipeline->devices, devices, n * sizeof(devices[0]));
	pipeline->devices_n = n;
}

void pipeline_set_node(struct pipeline *pipeline, const struct snapshot *snapshot)
{
	set_devices(pipeline, snapshot);
	if (snapshot->seq == pipeline->node_seq || !snapshot->fresh)
		return;
	pipeline->node_seq = snapshot->seq;
	for (uint32_t i = 0; i < snapshot->processes_n; i++) {
		const struct process *p = &snapshot->processes[i];

		if (presence_is(p->p[PROCESS_BUSY]) && presence_is(p->p[PROCESS_OBSERVED]))
			cuda_nvml(pipeline->cuda, p->id, uuid_of(&snapshot->entities[p->entity]),
				  p->v[PROCESS_BUSY], p->v[PROCESS_OBSERVED],
				  presence_is(p->p[PROCESS_MEMORY]) ? p->v[PROCESS_MEMORY] : 0);
	}
}

/* ---- processes ---- */

/*
 * Whether one word of NVIDIA_VISIBLE_DEVICES names the device: an index, a UUID or its beginning,
 * GPU:INSTANCE for MIG.
 */
static bool named(const struct pipeline *pipeline, const struct cursor *word, uint32_t device)
{
	const struct cuda_device *d = &pipeline->devices[device];
	struct cursor rest = *word;
	uint64_t wanted = 0, index = 0;

	if (cursor_u64(&rest, &wanted) == 0 && cursor_eof(&rest)) {
		for (uint32_t i = 0; i < device; i++)
			index += pipeline->devices[i].parent[0] == 0;
		return d->parent[0] == 0 && index == wanted;
	}
	return cursor_left(word) > 4 && cursor_left(word) <= strlen(d->uuid) &&
	       memcmp(d->uuid, word->p, cursor_left(word)) == 0;
}

static int list_allowed(const struct pipeline *pipeline, struct cursor list, char (*uuids)[TRACED_UUID],
			size_t max, size_t *ret_n)
{
	size_t n = 0;

	if (cursor_equals(&list, "all"))
		return -ENOENT;
	if (cursor_eof(&list) || cursor_equals(&list, "none") || cursor_equals(&list, "void")) {
		*ret_n = 0;
		return 0;
	}
	while (!cursor_eof(&list)) {
		struct cursor word = list;

		if (cursor_until(&list, ',', &word) < 0)
			list.p = list.end;
		for (uint32_t i = 0; i < pipeline->devices_n && n < max; i++)
			if (named(pipeline, &word, i))
				memcpy(uuids[n++], pipeline->devices[i].uuid, TRACED_UUID);
	}
	*ret_n = n;
	return 0;
}

/*
 * NVIDIA's container runtime gives a container the devices in this variable of its environment. Outside of
 * containers nothing uses the variable, so it is ignored there.
 */
static int allowed(uint32_t tgid, char (*uuids)[TRACED_UUID], size_t max, size_t *ret_n, void *userdata)
{
	static const char name[] = "NVIDIA_VISIBLE_DEVICES=";
	_cleanup_free_ char *text = malloc(ENVIRONMENT_MAX);
	struct cursor all, variable;
	bool contained;
	size_t n;
	int r = pipeline_contained(userdata, tgid, &contained);

	if (r < 0)
		return r;
	if (!contained)
		return -ENOENT;
	if (!text)
		return -ENOMEM;
	r = pipeline_environment(tgid, text, ENVIRONMENT_MAX, &n, userdata);
	if (r < 0)
		return r;
	all = cursor_over(text, n);
	while (cursor_until(&all, 0, &variable) == 0)
		if (cursor_literal(&variable, name))
			return list_allowed(userdata, variable, uuids, max, ret_n);
	return -ENOENT;
}

const struct cuda_ops pipeline_cuda_ops = { .environment = pipeline_environment, .allowed = allowed };
