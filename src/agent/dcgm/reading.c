// SPDX-License-Identifier: Apache-2.0
#include "agent/dcgm/reading.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"

/* The entity of the GPU, or of its instance; READING_NONE: it is not there. */
static uint16_t find_entity(const struct reading *reading, const char *uuid, uint32_t gi)
{
	for (uint32_t i = 0; i < reading->entities_n; i++)
		if (reading->entities[i].gi == gi && STRV_EQ(reading->entities[i].uuid, uuid))
			return (uint16_t)i;
	return READING_NONE;
}

static void copy_identity(struct reading_entity *e, const struct dcgm_device *d, uint32_t nth)
{
	memset(e, 0, sizeof(*e));
	snprintf(e->uuid, sizeof(e->uuid), "%s", d->uuid);
	snprintf(e->name, sizeof(e->name), "%s", d->name);
	snprintf(e->pci_bus_id, sizeof(e->pci_bus_id), "%s", d->pci_bus_id);
	snprintf(e->mig_profile, sizeof(e->mig_profile), "%s", d->mig_profile);
	e->index = d->index != UINT32_MAX ? d->index : nth;
	e->minor = d->minor;
	e->numa_node = -1;
	e->gi = d->gi;
	/* DCGM has no compute instances: the driver's first one stands for its GPU instance. */
	e->ci = d->gi == UINT32_MAX ? UINT32_MAX : 0;
	e->parent = READING_NONE;
}

static void copy_numbers(struct reading_entity *e, const struct dcgm_device *d)
{
	for (unsigned row = 0; row < GPU_METRICS; row++) {
		e->v[gpu_metrics[row].slot] = d->v[row];
		e->p[gpu_metrics[row].slot] = d->p[row];
	}
}

static void add_entity(struct reading *reading, const struct dcgm_device *d, bool current)
{
	struct reading_entity *e;
	uint16_t parent = READING_NONE;

	if (find_entity(reading, d->uuid, d->gi) != READING_NONE)
		return;
	if (d->gi != UINT32_MAX) {
		parent = find_entity(reading, d->uuid, UINT32_MAX);
		if (parent == READING_NONE)
			return;
	}
	if (reading->entities_n == READING_ENTITIES_MAX) {
		reading->entities_dropped++;
		return;
	}
	e = &reading->entities[reading->entities_n];
	copy_identity(e, d, reading->entities_n);
	e->parent = parent;
	if (current)
		copy_numbers(e, d);
	reading->entities_n++;
	if (!reading->driver_version[0])
		snprintf(reading->driver_version, sizeof(reading->driver_version), "%s", d->driver_version);
}

/* GPUs first, and of two pages that know a device one that was read just now. */
static void add_all_of(struct reading *reading, const struct dcgm_targets *targets, bool current, bool gpus)
{
	for (uint32_t i = 0; i < targets->n; i++) {
		const struct exporter *e = &targets->list[i];

		if ((e->failure == SCRAPE_READ) != current)
			continue;
		for (uint32_t k = 0; k < e->devices_n; k++)
			if ((e->devices[k].gi == UINT32_MAX) == gpus)
				add_entity(reading, &e->devices[k], current);
	}
}

static const struct dcgm_device *find_before(const struct exporter *e, const char *uuid)
{
	for (uint32_t i = 0; i < e->before_n; i++)
		if (e->before[i].gi == UINT32_MAX && STRV_EQ(e->before[i].uuid, uuid))
			return &e->before[i];
	return NULL;
}

/* What is there already with the first page may be days old. */
static void add_xids(struct reading *reading, const struct exporter *e)
{
	for (uint32_t i = 0; i < e->devices_n; i++) {
		const struct dcgm_device *d = &e->devices[i], *before = find_before(e, d->uuid);
		uint16_t entity = find_entity(reading, d->uuid, UINT32_MAX);

		if (d->gi != UINT32_MAX || d->xid == 0 || d->xid == UINT32_MAX || !d->pci_bus_id[0] ||
		    !before || before->xid == UINT32_MAX || before->xid == d->xid || entity == READING_NONE ||
		    reading->events_n == READING_EVENTS_MAX)
			continue;
		reading->events[reading->events_n++] = (struct reading_event){
			.entity = entity, .gi = UINT32_MAX, .ci = UINT32_MAX, .xid = d->xid
		};
	}
}

void dcgm_reading_make(struct reading *reading, const struct dcgm_targets *targets, bool xids)
{
	memset(reading, 0, offsetof(struct reading, entities));
	reading->state = READING_OK;
	for (unsigned stale = 0; stale < 2; stale++) {
		add_all_of(reading, targets, !stale, true);
		add_all_of(reading, targets, !stale, false);
	}
	for (uint32_t i = 0; i < targets->n; i++) {
		if (targets->list[i].failure != SCRAPE_READ)
			continue;
		reading->simulated |= targets->list[i].simulated && targets->list[i].devices_n > 0;
		if (xids)
			add_xids(reading, &targets->list[i]);
	}
}
