// SPDX-License-Identifier: Apache-2.0
#include "nvml/getters.h"

#include <math.h>

#include "base/clock.h"
#include "nvml/counter.h"
#include "nvml/report.h"

/*
 * Bytes per second of one lane in each direction, by generation, without the encoding's overhead (PCI Express
 * specification).
 */
static const double lane_bytes[] = { 0, 250e6, 500e6, 984.6e6, 1969.2e6, 3938.5e6, 7563e6, 15126e6 };

enum nvml_return pcie_generation_read(struct reader *reader, struct device *device)
{
	uint32_t generation = 0;
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetCurrPcieLinkGeneration, device->handle, &generation);

	REPORT_U32(reader, device, PCIE_LINK_GENERATION_CURRENT, result, generation, 1);
	return result;
}

enum nvml_return pcie_width_read(struct reader *reader, struct device *device)
{
	uint32_t lanes = 0;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetCurrPcieLinkWidth, device->handle, &lanes);

	REPORT_U32(reader, device, PCIE_LINK_WIDTH_CURRENT, result, lanes, 1);
	return result;
}

enum nvml_return pcie_max_read(struct reader *reader, struct device *device)
{
	uint32_t generation = 0, lanes = 0;
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetMaxPcieLinkGeneration, device->handle, &generation);
	enum nvml_return width = NVML_CALL(reader, nvmlDeviceGetMaxPcieLinkWidth, device->handle, &lanes);

	REPORT_U32(reader, device, PCIE_LINK_GENERATION_MAX, result, generation, 1);
	REPORT_U32(reader, device, PCIE_LINK_WIDTH_MAX, width, lanes, 1);
	return nvml_unsupported(width) ? result : width;
}

enum nvml_return pcie_replay_read(struct reader *reader, struct device *device)
{
	uint32_t replays = 0;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetPcieReplayCounter, device->handle, &replays);

	REPORT_U32(reader, device, PCIE_REPLAY, result, replays, 1);
	return result;
}

/* The maximum that the link can have transferred in this time; 0: the link is unknown. */
static double link_bytes(const struct device *device, double seconds)
{
	const struct reading_entity *e = device->entity;
	unsigned generation;

	if (!device_has(device, SLOT_PCIE_LINK_GENERATION_MAX) ||
	    !device_has(device, SLOT_PCIE_LINK_WIDTH_MAX))
		return 0;
	generation = (unsigned)e->v[SLOT_PCIE_LINK_GENERATION_MAX];
	if (generation >= ARRAY_SIZE(lane_bytes))
		return 0;
	return lane_bytes[generation] * e->v[SLOT_PCIE_LINK_WIDTH_MAX] * seconds;
}

/*
 * The field counts bytes in 32 bits: at full speed it wraps several times a second. GPM's rate yields the
 * number of wraps; without it the count is an estimate if the link could have caused more than one wrap.
 */
static void derive_counter(struct device *device, enum direction d, unsigned slot, unsigned rate_slot)
{
	struct reading_entity *e = device->entity;
	double seconds = (double)device->elapsed_ns / NSEC_PER_SEC, expected = NAN;

	if (!device_has(device, slot))
		return;
	if (device->gpm_read && device_has(device, rate_slot))
		expected = e->v[rate_slot] * seconds;
	e->v[slot] = counter_unwrap(&device->work.pcie[d], e->v[slot], expected);
	if (isnan(expected) && !device->work.pcie[d].wide) {
		double most = link_bytes(device, seconds);

		if (most == 0 || most >= COUNTER_ROUND)
			e->p[slot] |= PRESENCE_ESTIMATED;
	}
}

/* Blocks for 20 ms in the driver, so it is only used if there is no other source, and rarely. */
static void ask_throughput(struct reader *reader, struct device *device, uint32_t which,
			   unsigned counter_slot, unsigned row, unsigned slot)
{
	uint32_t kib = 0;
	enum nvml_return result;

	if (!device->due[CADENCE_SLOW] || device->entity->p[counter_slot] != PRESENCE_UNSUPPORTED ||
	    (device->gpm_works && device_has(device, slot)))
		return;
	result = NVML_CALL(reader, nvmlDeviceGetPcieThroughput, device->handle, which, &kib);
	reader_report_u32(reader, device, row, slot, result, kib, 1024);
}

void pcie_derive(struct reader *reader, struct device *device)
{
	if (device->parent != READING_NONE)
		return;
	derive_counter(device, DIRECTION_TX, SLOT_PCIE_TX_BYTES, SLOT_PCIE_TX_RATE);
	derive_counter(device, DIRECTION_RX, SLOT_PCIE_RX_BYTES, SLOT_PCIE_RX_RATE);
	rate_derive(reader, device, &device->pcie_last[DIRECTION_TX], SLOT_PCIE_TX_BYTES, GPU_PCIE_TX_RATE,
		    SLOT_PCIE_TX_RATE);
	rate_derive(reader, device, &device->pcie_last[DIRECTION_RX], SLOT_PCIE_RX_BYTES, GPU_PCIE_RX_RATE,
		    SLOT_PCIE_RX_RATE);
	ask_throughput(reader, device, NVML_PCIE_UTIL_TX_BYTES, SLOT_PCIE_TX_BYTES, GPU_PCIE_TX_RATE,
		       SLOT_PCIE_TX_RATE);
	ask_throughput(reader, device, NVML_PCIE_UTIL_RX_BYTES, SLOT_PCIE_RX_BYTES, GPU_PCIE_RX_RATE,
		       SLOT_PCIE_RX_RATE);
}
