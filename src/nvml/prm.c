// SPDX-License-Identifier: Apache-2.0
#include "nvml/getters.h"
#include "nvml/report.h"

/* Rows of physical layer retransmission are in the order of NVML's counter numbers. */
enum { FIRST = NVML_PRM_COUNTER_ID_PPCNT_PLR_RCV_CODES, COUNTERS = 7 };
_Static_assert(GPU_NVLINK_LINK_PLR_SYNC_EVENTS - GPU_NVLINK_LINK_PLR_RX_CODES == COUNTERS - 1 &&
		       GPU_NVLINK_LINK_PLR_TX_CODES - GPU_NVLINK_LINK_PLR_RX_CODES ==
			       NVML_PRM_COUNTER_ID_PPCNT_PLR_XMIT_CODES - FIRST,
	       "rows of retransmission stand in the order of NVML's counters");

static enum nvml_return read_port(struct reader *reader, struct device *device, uint32_t port,
				  struct nvml_prm_counter counters[COUNTERS])
{
	struct nvml_prm_counters list = { .count = COUNTERS, .counters = counters };

	for (uint32_t i = 0; i < COUNTERS; i++)
		counters[i] = (struct nvml_prm_counter){ .id = FIRST + i, .input.port = port };
	return NVML_CALL(reader, nvmlDeviceReadPRMCounters_v1, device->handle, &list);
}

static void report(struct reader *reader, struct device *device, uint32_t link, uint32_t i,
		   enum nvml_return overall, const struct nvml_prm_counter *counter)
{
	enum nvml_return result = overall == NVML_SUCCESS ? counter->value.result : overall;
	unsigned row = GPU_NVLINK_LINK_PLR_RX_CODES + i;
	uint64_t raw = counter->value.type == NVML_VALUE_TYPE_UNSIGNED_INT ? counter->value.value.as_uint :
									     counter->value.value.as_u64;

	reader_report_u64(reader, device, row, gpu_metrics[row].slot + link, result, raw, 1);
}

/*
 * Ports are links. NVIDIA does not document whether they are numbered from 0 or 1: from 1 if there is no port
 * 0. For Blackwell and later; needs root.
 */
enum nvml_return plr_read(struct reader *reader, struct device *device)
{
	struct nvml_prm_counter counters[COUNTERS];
	enum nvml_return first = NVML_ERROR_NOT_SUPPORTED;
	uint32_t base = 0;

	for (uint32_t link = 0; link < MIN(device->nvlinks, (uint32_t)NVLINKS_MAX) && !reader->lost; link++) {
		enum nvml_return result = read_port(reader, device, base + link, counters);

		if (link == 0 &&
		    (result == NVML_ERROR_INVALID_ARGUMENT ||
		     (result == NVML_SUCCESS && counters[0].value.result == NVML_ERROR_INVALID_ARGUMENT))) {
			base = 1;
			result = read_port(reader, device, base, counters);
		}
		if (link == 0)
			first = result;
		for (uint32_t i = 0; i < COUNTERS; i++)
			report(reader, device, link, i, result, &counters[i]);
		if (nvml_unsupported(first))
			break;
	}
	return first;
}
