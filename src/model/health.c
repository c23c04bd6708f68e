// SPDX-License-Identifier: Apache-2.0
/*
 * Healths of devices, found for each snapshot anew: there are as many rows as devices. A device that was
 * once in kubelet's list and is not any more is bad; of one that never was nothing is known, since it need
 * not be kubelet's to give. A GPU with instances is not: its plugin lists these in its place.
 */
#include "model/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

int model_set_health(struct model *model, enum health_teller teller, const struct device_health *rows,
		     uint32_t n)
{
	struct health_table *table = &model->health[teller];
	struct device_health *copy = NULL;

	n = MIN(n, (uint32_t)DEVICE_HEALTH_MAX);
	if (rows) {
		copy = calloc(MAX(n, 1u), sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		memcpy(copy, rows, n * sizeof(*copy));
	}
	for (uint32_t i = 0; i < n && copy; i++)
		copy[i].device.uuid[sizeof(copy[i].device.uuid) - 1] = '\0';
	free(table->rows);
	*table = (struct health_table){ copy, copy ? n : 0 };
	return 0;
}

static enum health health_in(const struct model *model, const struct health_table *table,
			     const struct device *device)
{
	enum health found = HEALTH_UNKNOWN;

	for (uint32_t i = 0; i < table->n; i++)
		if (table->rows[i].health > (uint32_t)found && table->rows[i].health <= HEALTH_BAD &&
		    table->rows[i].device.kind != DEVICE_ALL &&
		    device_is_meant(model, device, &table->rows[i].device))
			found = (enum health)table->rows[i].health;
	return found;
}

static bool has_instances(const struct model *model, uint16_t index)
{
	for (uint16_t i = 0; i < model->devices_n; i++) {
		const struct device *device = model->devices[model->order[i]];

		if (device->parent == index && device->e.present)
			return true;
	}
	return false;
}

static enum health listed_health(const struct model *model, uint16_t index)
{
	const struct health_table *table = &model->health[HEALTH_KUBELET_LIST];
	struct device *device = model->devices[index];
	enum health found = health_in(model, table, device);

	if (!table->rows)
		return HEALTH_UNKNOWN;
	/* An instance that is gone was taken away, not broken. */
	if (found == HEALTH_UNKNOWN &&
	    (has_instances(model, index) || (device->parent != NO_INDEX && !device->e.present)))
		device->offered = false;
	device->offered |= found != HEALTH_UNKNOWN;
	return found == HEALTH_UNKNOWN && device->offered ? HEALTH_BAD : found;
}

void health_resolve(struct model *model)
{
	for (uint16_t i = 0; i < model->devices_n; i++) {
		struct device *device = model->devices[model->order[i]];
		enum health pods = health_in(model, &model->health[HEALTH_KUBELET_PODS], device);

		if (pods == HEALTH_UNKNOWN)
			pods = health_in(model, &model->health[HEALTH_API_PODS], device);
		device->e.health[HEALTH_POD_STATUS] = (uint8_t)pods;
		device->e.health[HEALTH_ALLOCATABLE] = (uint8_t)listed_health(model, model->order[i]);
	}
}

void health_done(struct model *model)
{
	for (unsigned i = 0; i < HEALTH_TELLERS; i++)
		free(model->health[i].rows);
}
