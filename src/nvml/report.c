// SPDX-License-Identifier: Apache-2.0
#include "nvml/report.h"

#include <time.h>

#include "base/clock.h"

void reader_call_begin(struct reader *reader, enum nvml_function function)
{
	struct timespec now;

	/* Coarse: five times cheaper, and 4 ms do not matter for the age of a hanging call. */
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	atomic_store_explicit(&reader->shared->since_ns, now.tv_sec * NSEC_PER_SEC + now.tv_nsec,
			      memory_order_relaxed);
	atomic_store_explicit(&reader->shared->function, function, memory_order_release);
}

void reader_call_end(struct reader *reader, enum nvml_return result)
{
	unsigned function = atomic_load_explicit(&reader->shared->function, memory_order_relaxed);

	atomic_store_explicit(&reader->shared->function, NVML_FUNCTION_NONE, memory_order_release);
	if (result != NVML_SUCCESS)
		unrecognised_call(reader, function, result);
	if (result == NVML_ERROR_GPU_IS_LOST) {
		reader->lost = true;
	} else if (result == NVML_ERROR_UNINITIALIZED || result == NVML_ERROR_DRIVER_NOT_LOADED) {
		reader->gone = true;
		reader->gone_result = result;
	}
}

bool nvml_unsupported(enum nvml_return result)
{
	switch (result) {
	case NVML_ERROR_NOT_SUPPORTED:
	case NVML_ERROR_FUNCTION_NOT_FOUND:
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
	case NVML_ERROR_DEPRECATED:
	case NVML_ERROR_INVALID_ARGUMENT: /* a constant that this driver does not know yet */
		return true;
	default:
		return false;
	}
}

uint8_t nvml_presence(enum nvml_return result)
{
	if (nvml_unsupported(result))
		return PRESENCE_UNSUPPORTED;
	switch (result) {
	case NVML_SUCCESS:
		return PRESENCE_PRESENT;
	case NVML_ERROR_NO_PERMISSION:
		return PRESENCE_NO_PERMISSION;
	case NVML_ERROR_NOT_FOUND:
	case NVML_ERROR_NO_DATA:
	case NVML_ERROR_NOT_READY:
	case NVML_ERROR_GPU_IS_LOST:
		return PRESENCE_ABSENT;
	default:
		return PRESENCE_FAILED;
	}
}

/* The "blank" values of DCGM and of some drivers: the top 16 of the signed range. */
bool nvml_garbage_u32(uint32_t raw)
{
	return raw == UINT32_MAX || (raw >= 0x7ffffff0 && raw <= 0x7fffffff);
}

bool nvml_garbage_u64(uint64_t raw)
{
	return raw == UINT64_MAX || raw == UINT32_MAX ||
	       (raw >= UINT64_C(0x7ffffffffffffff0) && raw <= UINT64_C(0x7fffffffffffffff));
}

void reader_reject(struct reader *reader, struct device *device, unsigned row, unsigned slot)
{
	device->entity->p[slot] = PRESENCE_REJECTED;
	reader->reading->rejected[row]++;
}

void reader_report(struct reader *reader, struct device *device, unsigned row, unsigned slot,
		   enum nvml_return result, double value)
{
	if (result != NVML_SUCCESS) {
		device->entity->p[slot] = nvml_presence(result);
		return;
	}
	if (!metric_plausible(&gpu_metrics[row], value)) {
		reader_reject(reader, device, row, slot);
		return;
	}
	device->entity->v[slot] = value;
	device->entity->p[slot] = PRESENCE_PRESENT;
}

void reader_report_u32(struct reader *reader, struct device *device, unsigned row, unsigned slot,
		       enum nvml_return result, uint32_t raw, double scale)
{
	if (result == NVML_SUCCESS && nvml_garbage_u32(raw))
		reader_reject(reader, device, row, slot);
	else
		reader_report(reader, device, row, slot, result, raw * scale);
}

void reader_report_u64(struct reader *reader, struct device *device, unsigned row, unsigned slot,
		       enum nvml_return result, uint64_t raw, double scale)
{
	if (result == NVML_SUCCESS && nvml_garbage_u64(raw))
		reader_reject(reader, device, row, slot);
	else
		reader_report(reader, device, row, slot, result, (double)raw * scale);
}

void reader_report_s32(struct reader *reader, struct device *device, unsigned row, unsigned slot,
		       enum nvml_return result, int32_t value)
{
	if (result == NVML_SUCCESS && nvml_garbage_u32((uint32_t)value))
		reader_reject(reader, device, row, slot);
	else
		reader_report(reader, device, row, slot, result, value);
}
