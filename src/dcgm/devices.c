// SPDX-License-Identifier: Apache-2.0
#include "dcgm/devices.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

/*
 * dcgm-exporter repeats a device's number for each of its pods or jobs, or, for the two that its virtual GPUs
 * divide, has each pod's own beside a label `vgpu`; gpusonde's page has each user's own, and the rest without
 * any user.
 */
static const enum gpu_metric shared_numbers[SHARED_NUMBERS] = {
	GPU_UTILIZATION_GPU,     GPU_UTILIZATION_MEMORY, GPU_UTILIZATION_ENCODER,
	GPU_UTILIZATION_DECODER, GPU_MEMORY_USED,
};

struct share {
	uint32_t users, rests; /* samples with and without a user */
	double first, sum; /* of those with a user; rests are part of the sum */
	bool differ;
	bool own; /* a virtual GPU's: it is not known what the device's is */
};

struct page_device {
	struct dcgm_device d;
	uint16_t parent; /* of an instance: its GPU */
	struct share shares[SHARED_NUMBERS];
	uint32_t links[GPU_METRICS]; /* not 0: the number is these links' sum */
};

void devices_done(struct page_devices *devices)
{
	free(TAKE_PTR(devices->list));
	devices->n = devices->room = 0;
}

static bool label_equals(const struct page_labels *labels, enum page_label label, const char *text)
{
	return strlen(text) == labels->v[label].n &&
	       memcmp(text, labels->v[label].p, labels->v[label].n) == 0;
}

static void copy_label(char *to, const struct page_labels *labels, enum page_label label)
{
	/* labels_read() has seen to the length. */
	if (labels->v[label].n)
		memcpy(to, labels->v[label].p, labels->v[label].n);
	to[labels->v[label].n] = '\0';
}

/* A small whole number; UINT32_MAX: none. @prefix comes before it. */
static uint32_t number_of(const struct page_labels *labels, enum page_label label, const char *prefix)
{
	struct cursor c = cursor_over(labels->v[label].p, labels->v[label].n);
	uint64_t value;

	if (!labels->v[label].p || !cursor_literal(&c, prefix) || cursor_u64(&c, &value) < 0 ||
	    !cursor_eof(&c))
		return UINT32_MAX;
	return value < UINT16_MAX ? (uint32_t)value : UINT32_MAX;
}

static uint16_t find_device(const struct page_devices *devices, const struct page_labels *labels, uint32_t gi)
{
	for (uint32_t i = 0; i < devices->n; i++)
		if (devices->list[i].d.gi == gi && label_equals(labels, LABEL_UUID, devices->list[i].d.uuid))
			return (uint16_t)i;
	return DEVICE_NONE;
}

static uint16_t devices_add(struct page_devices *devices, const struct page_labels *labels, uint32_t gi)
{
	struct page_device *device;

	if (devices->n == READING_ENTITIES_MAX)
		return DEVICE_NONE;
	if (devices->n == devices->room) {
		uint32_t room = MIN(MAX(devices->room * 2, 8u), (uint32_t)READING_ENTITIES_MAX);
		struct page_device *list = realloc(devices->list, room * sizeof(*list));

		if (!list)
			return DEVICE_NONE;
		devices->list = list;
		devices->room = room;
	}
	device = &devices->list[devices->n];
	memset(device, 0, sizeof(*device));
	copy_label(device->d.uuid, labels, LABEL_UUID);
	copy_label(device->d.name, labels, LABEL_MODEL);
	copy_label(device->d.pci_bus_id, labels, LABEL_BUS);
	copy_label(device->d.driver_version, labels, LABEL_DRIVER);
	if (gi != UINT32_MAX)
		copy_label(device->d.mig_profile, labels, LABEL_PROFILE);
	device->d.index = number_of(labels, LABEL_GPU, "");
	device->d.minor = number_of(labels, LABEL_DEVICE, "nvidia");
	device->d.gi = gi;
	device->d.xid = UINT32_MAX;
	device->parent = DEVICE_NONE;
	return (uint16_t)devices->n++;
}

uint16_t devices_get(struct page_devices *devices, const struct page_labels *labels)
{
	uint32_t gi = UINT32_MAX;
	uint16_t gpu, device;

	if (!label_is_set(labels, LABEL_UUID))
		return DEVICE_NONE;
	gpu = find_device(devices, labels, UINT32_MAX);
	if (gpu == DEVICE_NONE)
		gpu = devices_add(devices, labels, UINT32_MAX);
	if (gpu == DEVICE_NONE || !label_is_set(labels, LABEL_GI))
		return gpu;
	gi = number_of(labels, LABEL_GI, "");
	if (gi == UINT32_MAX)
		return DEVICE_NONE;
	device = find_device(devices, labels, gi);
	if (device == DEVICE_NONE)
		device = devices_add(devices, labels, gi);
	if (device != DEVICE_NONE)
		devices->list[device].parent = gpu;
	return device;
}

/* An exporter repeats the GPU's numbers on its instances. */
static struct page_device *device_of(struct page_devices *devices, uint16_t index,
				     const struct metric *metric)
{
	struct page_device *device = &devices->list[index];

	if (device->parent != DEVICE_NONE && !(metric->levels & LEVEL_MIG))
		device = &devices->list[device->parent];
	return metric->levels & (device->parent == DEVICE_NONE ? LEVEL_GPU : LEVEL_MIG) ? device : NULL;
}

static struct share *share_of(struct page_device *device, const struct metric *metric)
{
	for (size_t i = 0; i < SHARED_NUMBERS; i++)
		if (metric == &gpu_metrics[shared_numbers[i]])
			return &device->shares[i];
	return NULL;
}

static void add_share(struct share *share, const struct metric *metric, double value,
		      const struct page_labels *labels)
{
	bool user = label_is_set(labels, LABEL_POD) || label_is_set(labels, LABEL_CONTAINER) ||
		    label_is_set(labels, LABEL_NAMESPACE) || label_is_set(labels, LABEL_JOB);

	if (label_is_set(labels, LABEL_VGPU) &&
	    (metric == &gpu_metrics[GPU_UTILIZATION_GPU] || metric == &gpu_metrics[GPU_MEMORY_USED])) {
		share->own = true;
		return;
	}
	share->sum += value;
	if (!user) {
		share->rests++;
		return;
	}
	if (share->users++ == 0)
		share->first = value;
	share->differ |= share->first != value;
}

/* A number of one link: they add up, each once, unless the page has the GPU's own. */
static void put_link(struct page_device *device, ptrdiff_t row, double value,
		     const struct page_labels *labels)
{
	uint32_t link = number_of(labels, LABEL_NVLINK, "");
	bool own = presence_is(device->d.p[row]) && device->links[row] == 0;

	if (own || link >= 32 || device->links[row] >> link & 1)
		return;
	device->d.v[row] += value;
	device->d.p[row] = PRESENCE_PRESENT;
	device->links[row] |= 1u << link;
}

void devices_put(struct page_devices *devices, uint16_t index, const struct family *family, double value,
		 const struct page_labels *labels)
{
	const struct metric *metric = family->metric;
	struct page_device *device = device_of(devices, index, metric);
	struct share *share;
	ptrdiff_t row = metric - gpu_metrics;

	/* Increments and peaks are the model's own. */
	if (!device || (metric->kind != METRIC_GAUGE && metric->kind != METRIC_COUNTER))
		return;
	share = share_of(device, metric);
	if (share) {
		add_share(share, metric, value, labels);
		return;
	}
	if (label_is_set(labels, LABEL_NVLINK)) {
		put_link(device, row, value, labels);
		return;
	}
	device->d.v[row] = value;
	device->d.p[row] = PRESENCE_PRESENT;
	device->links[row] = 0;
}

void devices_mark_estimated(struct page_devices *devices, uint16_t index, const struct family *family)
{
	struct page_device *device = device_of(devices, index, family->metric);
	ptrdiff_t row = family->metric - gpu_metrics;

	/* The presence of what is shared comes at the page's end. */
	if (device && (presence_is(device->d.p[row]) || share_of(device, family->metric)))
		device->d.p[row] |= PRESENCE_ESTIMATED;
}

void devices_put_xid(struct page_devices *devices, uint16_t index, double code)
{
	struct page_device *device = &devices->list[index];

	if (device->parent != DEVICE_NONE)
		device = &devices->list[device->parent];
	if (code >= 0 && code < UINT16_MAX)
		device->d.xid = (uint32_t)code;
}

/* False: it is not known what the device's number is. */
static bool end_share(const struct share *share, double *ret_value)
{
	if (share->own || (share->users == 0 && share->rests != 1))
		return false;
	if (share->users > 0 && share->rests == 0) {
		*ret_value = share->first;
		return !share->differ;
	}
	*ret_value = share->sum;
	return share->rests == 1;
}

void devices_end(struct page_devices *devices)
{
	for (uint32_t i = 0; i < devices->n; i++) {
		struct dcgm_device *d = &devices->list[i].d;

		for (size_t k = 0; k < SHARED_NUMBERS; k++) {
			enum gpu_metric row = shared_numbers[k];
			double value;

			if (!end_share(&devices->list[i].shares[k], &value)) {
				d->p[row] = PRESENCE_ABSENT;
				continue;
			}
			d->v[row] = value;
			d->p[row] |= PRESENCE_PRESENT;
		}
	}
}

const struct dcgm_device *devices_at(const struct page_devices *devices, uint32_t i)
{
	return &devices->list[i].d;
}
