// SPDX-License-Identifier: Apache-2.0
#include "nvml/getters.h"

#include <math.h>

#include "base/clock.h"
#include "nvml/counter.h"
#include "nvml/report.h"

enum nvml_return nvlink_state_read(struct reader *reader, struct device *device)
{
	uint32_t active = 0, links = 0;
	enum nvml_return first = NVML_ERROR_NOT_SUPPORTED;

	/* If the driver does not report their number, the links that answer are counted. */
	for (uint32_t i = 0;
	     i < (device->nvlinks ? MIN(device->nvlinks, (uint32_t)NVLINKS_MAX) : NVLINKS_MAX); i++) {
		uint32_t state = 0;
		enum nvml_return result =
			NVML_CALL(reader, nvmlDeviceGetNvLinkState, device->handle, i, &state);

		if (i == 0)
			first = result;
		if (!device->nvlinks && result != NVML_SUCCESS)
			break;
		reader_report_u32(reader, device, GPU_NVLINK_LINK_UP, SLOT_NVLINK_LINK_UP + i, result,
				  state != 0, 1);
		links += result == NVML_SUCCESS;
		active += result == NVML_SUCCESS && state != 0;
	}
	REPORT(reader, device, NVLINK_LINKS_ACTIVE, first, active);
	if (!device->nvlinks)
		device->nvlinks = links;
	return first;
}

/* The driver's own total, in KiB; a 32-bit counter wraps after 4 TiB. */
static void unwrap_total(struct device *device, enum direction d, unsigned slot, unsigned rate_slot)
{
	struct reading_entity *e = device->entity;
	double seconds = (double)device->elapsed_ns / NSEC_PER_SEC, expected = NAN;

	if (!device_has(device, slot))
		return;
	if (device->gpm_read && device_has(device, rate_slot))
		expected = e->v[rate_slot] * seconds / 1024;
	e->v[slot] = 1024 * counter_unwrap(&device->work.nvlink[d], e->v[slot] / 1024, expected);
}

/* The sum of all links, for drivers that only have a counter for each link. */
static void sum_links(struct reader *reader, struct device *device, enum direction d, unsigned link_slot,
		      unsigned row, unsigned slot)
{
	double raw[NVLINKS_MAX];
	bool any = false;

	for (unsigned i = 0; i < NVLINKS_MAX; i++) {
		bool has = device_has(device, link_slot + i);

		raw[i] = has ? device->entity->v[link_slot + i] : -1;
		any |= has;
	}
	if (any)
		reader_report(reader, device, row, slot, NVML_SUCCESS,
			      counter_sum(&device->work.nvlink_total[d], device->work.nvlink_raw[d], raw,
					  NVLINKS_MAX));
	else if (device_has(device, slot))
		device->entity->p[slot] =
			device->entity->p[link_slot]; /* without any link, the old sum is not valid */
}

static void derive_total(struct reader *reader, struct device *device, enum direction d, unsigned link_slot,
			 unsigned row, unsigned slot, unsigned rate_slot)
{
	if (fields_has(device, row))
		unwrap_total(device, d, slot, rate_slot);
	else
		sum_links(reader, device, d, link_slot, row, slot);
}

/* Of each link, both directions together. */
static void derive_links(struct reader *reader, struct device *device)
{
	const struct reading_entity *e = device->entity;
	double seconds = (double)device->elapsed_ns / NSEC_PER_SEC;

	for (unsigned i = 0; i < NVLINKS_MAX; i++) {
		unsigned tx = SLOT_NVLINK_LINK_TX_BYTES + i, rx = SLOT_NVLINK_LINK_RX_BYTES + i;
		double before = device->link_last[i];
		bool has = device_has(device, tx) && device_has(device, rx);

		device->link_last[i] = has ? e->v[tx] + e->v[rx] : -1;
		/* A counter that fell has restarted: no rate this time. */
		if (before >= 0 && device->link_last[i] >= before && seconds > 0)
			reader_report(reader, device, GPU_NVLINK_LINK_RATE, SLOT_NVLINK_LINK_RATE + i,
				      NVML_SUCCESS, (device->link_last[i] - before) / seconds);
	}
}

void nvlink_derive(struct reader *reader, struct device *device)
{
	if (device->parent != READING_NONE)
		return;
	derive_total(reader, device, DIRECTION_TX, SLOT_NVLINK_LINK_TX_BYTES, GPU_NVLINK_TX_BYTES,
		     SLOT_NVLINK_TX_BYTES, SLOT_NVLINK_TX_RATE);
	derive_total(reader, device, DIRECTION_RX, SLOT_NVLINK_LINK_RX_BYTES, GPU_NVLINK_RX_BYTES,
		     SLOT_NVLINK_RX_BYTES, SLOT_NVLINK_RX_RATE);
	rate_derive(reader, device, &device->nvlink_last[DIRECTION_TX], SLOT_NVLINK_TX_BYTES,
		    GPU_NVLINK_TX_RATE, SLOT_NVLINK_TX_RATE);
	rate_derive(reader, device, &device->nvlink_last[DIRECTION_RX], SLOT_NVLINK_RX_BYTES,
		    GPU_NVLINK_RX_RATE, SLOT_NVLINK_RX_RATE);
	derive_links(reader, device);
}
