// SPDX-License-Identifier: Apache-2.0
/*
 * The known devices. A GPU is identified by its UUID, an instance by the GPU's UUID and its GI and CI,
 * independent of the order in which the driver lists them.
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

/* In the newest good reading of any source. */
static bool device_listed(const struct device *device)
{
	for (unsigned i = 0; i < SOURCES; i++)
		if (device->reports[i] && device->reports[i]->listed)
			return true;
	return false;
}

static int gpu_compare(const struct device *a, const struct device *b)
{
	if (a->e.id.index != b->e.id.index)
		return a->e.id.index < b->e.id.index ? -1 : 1;
	/* After an exchange of boards two devices may have the same index: the listed one comes first. */
	if (device_listed(a) != device_listed(b))
		return device_listed(a) ? -1 : 1;
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

/* Insertion sort, since the order hardly ever changes. */
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

void device_free(struct device *device)
{
	if (!device)
		return;
	for (unsigned i = 0; i < SOURCES; i++) {
		if (device->reports[i])
			free(device->reports[i]->own);
		free(device->reports[i]);
	}
	free(device->from);
	free(device->clock_window);
	free(device);
}

static void device_forget(struct model *model, uint16_t index, int64_t now_ns)
{
	unsigned at = model->devices[index]->rank;

	processes_forget_device(model, index, now_ns);
	workloads_forget_device(model, index);
	allocations_forget_device(model, index);
	memmove(&model->order[at], &model->order[at + 1],
		(model->devices_n - at - 1u) * sizeof(model->order[0]));
	model->devices_n--;
	device_free(model->devices[index]);
	model->devices[index] = NULL;
	for (uint16_t rank = 0; rank < model->devices_n; rank++)
		model->devices[model->order[rank]]->rank = rank;
}

/*
 * Whether the device may be replaced by a new one of this source: not if a source of higher priority knows
 * it.
 */
static bool device_gives_way(const struct device *device, enum source_id source)
{
	enum source_id first = device_first_source(device);

	if (first == source)
		return !device_listed(device);
	return first == SOURCES || source_before(NULL, source, first);
}

/* The device that has been unlisted for longest; never the GPU of a known instance. */
static uint16_t longest_gone(const struct model *model, enum source_id source)
{
	bool has_instance[DEVICES_MAX] = { false };
	uint16_t found = NO_INDEX;

	for (unsigned i = 0; i < DEVICES_MAX; i++)
		if (model->devices[i] && model->devices[i]->parent != NO_INDEX)
			has_instance[model->devices[i]->parent] = true;
	for (uint16_t i = 0; i < DEVICES_MAX; i++) {
		const struct device *device = model->devices[i];

		if (!device || has_instance[i] || !device_gives_way(device, source))
			continue;
		if (found == NO_INDEX || device->e.sampled_boot_ns < model->devices[found]->e.sampled_boot_ns)
			found = i;
	}
	return found;
}

static uint16_t device_add(struct model *model, enum source_id source, const struct reading_entity *id,
			   const char *uuid, uint16_t parent)
{
	struct device *device;
	uint16_t index = 0;

	if (model->devices_n == DEVICES_MAX) {
		uint16_t gone = longest_gone(model, source);

		model_agent_add(model, AGENT_DROPPED_ENTITIES, 1);
		model->sources[source].s.dropped++;
		if (gone == NO_INDEX)
			return NO_INDEX;
		device_forget(model, gone, model->reading_ns);
	}
	while (model->devices[index])
		index++;
	device = calloc(1, sizeof(*device));
	if (!device || !device_report_get(device, source)) {
		device_free(device);
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
	device->process_source = source;
	device->rank = model->devices_n;
	model->devices[index] = device;
	model->order[model->devices_n++] = index;
	model->allocations.changed = true;
	return index;
}

/* The device's key: its UUID, else its PCI address. */
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

/*
 * Retains the last known identity where a lost GPU's identity can no longer be read. True: it has other
 * numbers than before.
 */
static bool device_identify(struct device *device, const struct reading_entity *id)
{
	const struct reading_entity *old = &device->e.id;
	bool same = old->index == id->index && old->minor == id->minor && old->mig_number == id->mig_number &&
		    STRV_EQ(old->mig_uuid, id->mig_uuid);
	char uuid[sizeof(device->e.id.uuid)];

	memcpy(uuid, device->e.id.uuid, sizeof(uuid));
	memcpy(&device->e.id, id, offsetof(struct reading_entity, v));
	memcpy(device->e.id.uuid, uuid, sizeof(uuid));
	return !same;
}

/*
 * Finds the device of the GPU that contains entities[i]; NO_INDEX if that is a GPU itself. False: that GPU's
 * device is unknown.
 */
static bool device_of_parent(const struct reading_entity *id, uint32_t i, const uint16_t *devices,
			     uint16_t *ret_parent)
{
	*ret_parent = id->parent < i ? devices[id->parent] : NO_INDEX;
	return (id->parent == READING_NONE) == (*ret_parent == NO_INDEX);
}

/*
 * Records that the reading contains the device. Its identity is that of the highest-priority source that
 * lists it, whether or not that source is current, so that the identity does not change with each failure.
 * False: no memory for this source's values.
 */
static bool device_seen(struct model *model, uint16_t index, enum source_id source,
			const struct reading_entity *id, uint16_t parent)
{
	struct device *device = model->devices[index];
	struct device_report *report = device_report_get(device, source);

	if (!report)
		return false;
	report->listed = true;
	if (device_first_source(device) != source)
		return true;
	device->parent = parent;
	if (!id->lost && device_identify(device, id))
		model->allocations.changed = true;
	return true;
}

static bool listed_by(const struct device *device, enum source_id source)
{
	return device->reports[source] && device->reports[source]->listed;
}

/* Matches known devices first, so that it is clear which are unlisted when a new one needs space. */
static void match_known(struct model *model, enum source_id source, const struct reading *reading, uint32_t n,
			uint16_t *ret_devices)
{
	for (unsigned i = 0; i < model->devices_n; i++)
		if (model->devices[model->order[i]]->reports[source])
			model->devices[model->order[i]]->reports[source]->listed = false;

	for (uint32_t i = 0; i < n; i++) {
		const struct reading_entity *id = &reading->entities[i];
		uint16_t device = device_find(model, id), parent;

		ret_devices[i] = NO_INDEX;
		/* A duplicate in the same reading. */
		if (device == NO_INDEX || listed_by(model->devices[device], source) ||
		    !device_of_parent(id, i, ret_devices, &parent))
			continue;
		if (device_seen(model, device, source, id, parent))
			ret_devices[i] = device;
	}
}

void devices_match(struct model *model, enum source_id source, const struct reading *reading, uint32_t n,
		   int64_t end_ns, uint16_t *ret_devices)
{
	match_known(model, source, reading, n, ret_devices);
	for (unsigned i = 0; i < model->devices_n; i++) {
		struct device *device = model->devices[model->order[i]];

		if (!device->reports[source] || device->reports[source]->listed)
			continue;
		device_gone(device, source, end_ns);
		device_merge(model, device, end_ns);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct reading_entity *id = &reading->entities[i];
		uint16_t parent;

		if (ret_devices[i] != NO_INDEX || !identity(id)[0] || device_find(model, id) != NO_INDEX ||
		    !device_of_parent(id, i, ret_devices, &parent))
			continue;
		ret_devices[i] = device_add(model, source, id, identity(id), parent);
		if (ret_devices[i] != NO_INDEX)
			device_seen(model, ret_devices[i], source, id, parent);
	}
	devices_order(model);
}

void device_gone(struct device *device, enum source_id source, int64_t end_ns)
{
	struct device_report *report = device->reports[source];

	report->there = false;
	report->said_ns = end_ns;
	for (unsigned row = 0; row < GPU_METRICS; row++)
		if (gpu_metrics[row].kind == METRIC_GAUGE)
			memset(report->p + gpu_metrics[row].slot, PRESENCE_ABSENT, gpu_metrics[row].count);
}

uint64_t model_gpu_minors(const struct model *model, bool *ret_instances)
{
	uint64_t minors = 0;

	*ret_instances = false;
	for (uint16_t i = 0; i < model->devices_n; i++) {
		const struct device *device = model->devices[model->order[i]];

		if (device->parent != NO_INDEX)
			*ret_instances |= device->e.present;
		else if (device->e.id.minor < 64)
			minors |= UINT64_C(1) << device->e.id.minor;
	}
	return minors;
}
