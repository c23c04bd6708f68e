// SPDX-License-Identifier: Apache-2.0
#include "nvml/getters.h"
#include "nvml/report.h"

static enum nvml_return memory_v1_read(struct reader *reader, struct device *device)
{
	struct nvml_memory memory = { .total = 0 };
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetMemoryInfo, device->handle, &memory);

	REPORT_U64(reader, device, MEMORY_TOTAL, result, memory.total, 1);
	REPORT_U64(reader, device, MEMORY_USED, result, memory.used, 1);
	REPORT_U64(reader, device, MEMORY_FREE, result, memory.free, 1);
	REPORT(reader, device, MEMORY_RESERVED, NVML_ERROR_NOT_SUPPORTED, 0);
	return result;
}

enum nvml_return memory_read(struct reader *reader, struct device *device)
{
	struct nvml_memory_v2 memory = { .version = NVML_VERSION_WORD(struct nvml_memory_v2, 2) };
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetMemoryInfo_v2, device->handle, &memory);

	if (nvml_unsupported(result)) {
		result = memory_v1_read(reader, device);
	} else {
		REPORT_U64(reader, device, MEMORY_TOTAL, result, memory.total, 1);
		REPORT_U64(reader, device, MEMORY_USED, result, memory.used, 1);
		REPORT_U64(reader, device, MEMORY_FREE, result, memory.free, 1);
		REPORT_U64(reader, device, MEMORY_RESERVED, result, memory.reserved, 1);
	}
	/* The handle is invalid, so the instance was destroyed: enumerate again. */
	if (device->parent != READING_NONE && device->memory_known && result != NVML_SUCCESS)
		reader->changed = true;
	device->memory_known = result == NVML_SUCCESS;
	return result;
}

enum nvml_return bar1_read(struct reader *reader, struct device *device)
{
	struct nvml_bar1_memory memory = { .total = 0 };
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetBAR1MemoryInfo, device->handle, &memory);

	REPORT_U64(reader, device, BAR1_TOTAL, result, memory.total, 1);
	REPORT_U64(reader, device, BAR1_USED, result, memory.used, 1);
	REPORT_U64(reader, device, BAR1_FREE, result, memory.free, 1);
	return result;
}

enum nvml_return memory_bus_read(struct reader *reader, struct device *device)
{
	uint32_t bits = 0;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetMemoryBusWidth, device->handle, &bits);

	REPORT_U32(reader, device, MEMORY_BUS_WIDTH, result, bits, 1);
	return result;
}
