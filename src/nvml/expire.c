// SPDX-License-Identifier: Apache-2.0
#include "nvml/column.h"
#include "nvml/report.h"

#include "base/clock.h"

/* A ratio holds for this long when readings come more often than what it is made of. */
#define HOLD_NS (3 * NSEC_PER_SEC)

/* Does the newest value still say something, though this pass may find none? */
static bool holds(const struct reader *reader, const struct device *device, unsigned row)
{
	const uint8_t *p = device->entity->p;

	if (nvml_columns[row].gpm && device->gpm_works)
		return reader->now_ns - device->gpm_ns[device->gpm_newest] < HOLD_NS;
	if (row >= GPU_UTILIZATION_GPU && row <= GPU_UTILIZATION_MAX_MEMORY)
		return !device->work_due || reader->now_ns - device->utilized_ns < HOLD_NS;
	/* Where these have no counter they are asked for more rarely. */
	if (row == GPU_PCIE_TX_RATE)
		return p[SLOT_PCIE_TX_BYTES] == PRESENCE_UNSUPPORTED && !device->due[CADENCE_SLOW];
	if (row == GPU_PCIE_RX_RATE)
		return p[SLOT_PCIE_RX_BYTES] == PRESENCE_UNSUPPORTED && !device->due[CADENCE_SLOW];
	return false;
}

/*
 * Values that are read in each pass start the pass as absent: otherwise the value of a failed call would be
 * shown as current. Counters and increments remain, because the model uses only their differences.
 */
void values_expire(struct reader *reader, struct device *device)
{
	for (unsigned row = 0; row < GPU_METRICS; row++) {
		const struct metric *metric = &gpu_metrics[row];

		if (metric->kind != METRIC_GAUGE || metric->cadence != CADENCE_TICK ||
		    holds(reader, device, row))
			continue;
		for (unsigned slot = metric->slot; slot < metric->slot + metric->count; slot++)
			if (device_has(device, slot))
				device->entity->p[slot] = PRESENCE_ABSENT;
	}
}
