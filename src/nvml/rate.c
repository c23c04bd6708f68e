// SPDX-License-Identifier: Apache-2.0
#include "nvml/report.h"

#include "base/clock.h"

void rate_derive(struct reader *reader, struct device *device, double *last, unsigned counter_slot,
		 unsigned row, unsigned slot)
{
	struct reading_entity *e = device->entity;
	double before = *last, seconds = (double)device->elapsed_ns / NSEC_PER_SEC;

	*last = device_has(device, counter_slot) ? e->v[counter_slot] : -1;
	if (device->gpm_works && device_has(device, slot))
		return; /* GPM delivers it */
	/* A counter that fell has restarted: no rate this time. */
	if (before < 0 || *last < before || seconds <= 0)
		return;
	reader_report(reader, device, row, slot, NVML_SUCCESS, (*last - before) / seconds);
	if (device_has(device, slot))
		e->p[slot] |= e->p[counter_slot] & PRESENCE_ESTIMATED;
}
