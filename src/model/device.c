// SPDX-License-Identifier: Apache-2.0
/*
 * Who is there. A GPU is found again by its UUID, an instance by that and its GI and CI, in whatever order
 * the driver lists them.
 */
#include "model/private.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

static bool device_is(const struct device *device, const struct reading_entity *id, const char *uuid)
{
	return STRV_EQ(device->e.id.uuid, uuid) && device->e.id.gi == id->gi && device->e.id.ci == id->ci;
}

static int gpu_compare(const struct device *a, const struct device *b)
{
	if (a->e.id.index != b->e.id.index)
		return a->e.id.index < b->e.id.index ? -1 : 1;
	/* After a change of boards two may have had the same index: the one that is there comes first. */
	if (a->listed != b->listed)
		return a->listed ? -1 : 1;
	return strcmp(a->e.id.uuid, b->e.id.uuid);
}

static bool device_before(const struct model *model, const struct device *a, const struct device *b)
{
	const struct device *gpu_a = a->parent == NO_INDEX ? a : model->devices[a->parent];
	const struct device *gpu_b = b->parent == NO_INDEX ? b : model->devices[b->parent];
	int order = gpu_a == gpu_b ? 0 : gpu_compare(gpu_a, gpu_b);

	if (order != 0)
		return order < 0;
	if ((a->parent == NO_INDEX) != (b->parent == NO_INDEX))
		return a->parent == NO_INDEX;
	if (a->e.id.gi != b->e.id.gi)
		return a->e.id.gi < b->e.id.gi;
	return a->e.id.ci < b->e.id.ci;
}

/* Insertion sort: the order hardly ever changes. */
static void devices_order(struct model *model)
{
	bool moved = false;

	for (unsigned i = 1; i < model->devices_n; i++) {
		uint16_t device = model->order[i];
		unsigned at = i;

		for (; at > 0 &&
		       device_before(model, model->devices[device], model->devices[model->order[at - 1]]);
		     at--)
			model->order[at] = model->order[at - 1];
		model->order[at] = device;
	}
	for (uint16_t rank = 0; rank < model->devices_n; rank++) {
		struct device *device = model->devices[model->order[rank]];

		moved |= device->rank != rank;
		device->rank = rank;
	}
	if (moved) {
		model->sorted_valid = false;
		model->exits_tag++;
	}
}

static void device_forget(struct model *model, uint16_t index, int64_t now_ns)
{
	unsigned at = model->devices[index]->rank;

	processes_forget_device(model, index, now_ns);
	workloads_forget_device(model, index);
	memmove(&model->order[at], &model->order[at + 1],
		(model->devices_n - at - 1u) * sizeof(model->order[0]));
	model->devices_n--;
	free(model->devices[index]);
	model->devices[index] = NULL;
	for (uint16_t rank = 0; rank < model->devices_n; rank++)
		model->devices[model->order[rank]]->rank = rank;
}

/* The one that has been gone longest; never one that is there, nor the GPU of a known instance. */
static uint16_t longest_gone(const struct model *model)
{
	bool has_instance[DEVICES_MAX] = { false };
	uint16_t found = NO_INDEX;

	for (unsigned i = 0; i < DEVICES_MAX; i++)
		if (model->devices[i] && model->devices[i]->parent != NO_INDEX)
			has_instance[model->devices[i]->parent] = true;
	for (uint16_t i = 0; i < DEVICES_MAX; i++) {
		const struct device *device = model->devices[i];

		if (!device || device->listed || has_instance[i])
			continue;
		if (found == NO_INDEX || device->e.sampled_boot_ns < model->devices[found]->e.sampled_boot_ns)
			found = i;
	}
	return found;
}

static uint16_t device_add(struct model *model, const struct reading_entity *id, const char *uuid,
			   uint16_t parent)
{
	struct device *device;
	uint16_t index = 0;

	if (model->devices_n == DEVICES_MAX) {
		uint16_t gone = longest_gone(model);

		model_agent_add(model, AGENT_DROPPED_ENTITIES, 1);
		if (gone == NO_INDEX)
			return NO_INDEX;
		device_forget(model, gone, model->reading_ns);
	}
	while (model->devices[index])
		index++;
	device = calloc(1, sizeof(*device));
	if (!device) {
		model_agent_add(model, AGENT_DROPPED_ENTITIES, 1);
		return NO_INDEX;
	}
	memcpy(device->e.id.uuid, uuid, strlen(uuid) + 1);
	device->e.id.index = id->index;
	device->e.id.minor = UINT32_MAX;
	device->e.id.numa_node = -1;
	device->e.id.gi = id->gi;
	device->e.id.ci = id->ci;
	device->parent = parent;
	device->other_workload = NO_INDEX;
	device->rank = model->devices_n;
	model->devices[index] = device;
	model->order[model->devices_n++] = index;
	return index;
}

/* What it is found again by: its UUID, else its place on the bus. */
static const char *identity(const struct reading_entity *id)
{
	return id->uuid[0] ? id->uuid : id->pci_bus_id;
}

static uint16_t device_find(const struct model *model, const struct reading_entity *id)
{
	const char *uuid = identity(id);

	for (unsigned i = 0; i < model->devices_n; i++)
		if (device_is(model->devices[model->order[i]], id, uuid))
			return model->order[i];
	return NO_INDEX;
}

/* Keeps what is last known where a lost GPU's identity could not be read again. */
static void device_identify(struct device *device, const struct reading_entity *id)
{
	char uuid[sizeof(device->e.id.uuid)];

	memcpy(uuid, device->e.id.uuid, sizeof(uuid));
	memcpy(&device->e.id, id, offsetof(struct reading_entity, v));
	memcpy(device->e.id.uuid, uuid, sizeof(uuid));
}

/* The device of the GPU that entities[i] lies on, NO_INDEX on a GPU. False when that GPU is no good. */
static bool device_of_parent(const struct reading_entity *id, uint32_t i, const uint16_t *devices,
			     uint16_t *ret_parent)
{
	*ret_parent = id->parent < i ? devices[id->parent] : NO_INDEX;
	return (id->parent == READING_NONE) == (*ret_parent == NO_INDEX);
}

/* It is in the reading at hand. */
static void device_listed(struct device *device, const struct reading_entity *id, uint16_t parent)
{
	device->listed = true;
	device->parent = parent;
	if (!id->lost)
		device_identify(device, id);
}

/* Those that are known come first, so that who is gone is known when a new one needs room. */
static void match_known(struct model *model, const struct reading *reading, uint32_t n, uint16_t *ret_devices)
{
	for (unsigned i = 0; i < model->devices_n; i++)
		model->devices[model->order[i]]->listed = false;

	for (uint32_t i = 0; i < n; i++) {
		const struct reading_entity *id = &reading->entities[i];
		uint16_t device = device_find(model, id), parent;

		ret_devices[i] = NO_INDEX;
		/* Listed already: the same twice. */
		if (device == NO_INDEX || model->devices[device]->listed ||
		    !device_of_parent(id, i, ret_devices, &parent))
			continue;
		ret_devices[i] = device;
		device_listed(model->devices[device], id, parent);
	}
	for (unsigned i = 0; i < model->devices_n; i++) {
		struct device *device = model->devices[model->order[i]];

		if (!device->listed)
			device_gone(device);
	}
}

void devices_match(struct model *model, const struct reading *reading, uint32_t n, uint16_t *ret_devices)
{
	match_known(model, reading, n, ret_devices);
	for (uint32_t i = 0; i < n; i++) {
		const struct reading_entity *id = &reading->entities[i];
		uint16_t parent;

		if (ret_devices[i] != NO_INDEX || !identity(id)[0] || device_find(model, id) != NO_INDEX ||
		    !device_of_parent(id, i, ret_devices, &parent))
			continue;
		ret_devices[i] = device_add(model, id, identity(id), parent);
		if (ret_devices[i] != NO_INDEX)
			device_listed(model->devices[ret_devices[i]], id, parent);
	}
	devices_order(model);
}

void device_gone(struct device *device)
{
	struct reading_entity *now = &device->e.id;

	device->e.present = false;
	for (unsigned row = 0; row < GPU_METRICS; row++)
		if (gpu_metrics[row].kind == METRIC_GAUGE)
			memset(now->p + gpu_metrics[row].slot, PRESENCE_ABSENT, gpu_metrics[row].count);
}
