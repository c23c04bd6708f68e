// SPDX-License-Identifier: Apache-2.0
#include "nvml/getters.h"
#include "nvml/report.h"

_Static_assert(SLOT_CLOCK_VIDEO - SLOT_CLOCK_GRAPHICS == NVML_CLOCK_VIDEO &&
		       SLOT_CLOCK_MEMORY - SLOT_CLOCK_GRAPHICS == NVML_CLOCK_MEM &&
		       SLOT_CLOCK_MAX_VIDEO - SLOT_CLOCK_MAX_GRAPHICS == NVML_CLOCK_VIDEO &&
		       SLOT_CLOCK_MAX_MEMORY - SLOT_CLOCK_MAX_GRAPHICS == NVML_CLOCK_MEM,
	       "rows of clocks stand in the order of NVML's numbers");

enum nvml_return clocks_read(struct reader *reader, struct device *device)
{
	enum nvml_return overall = NVML_ERROR_NOT_SUPPORTED;

	for (uint32_t i = 0; i < NVML_CLOCK_COUNT; i++) {
		uint32_t mhz = 0;
		enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetClockInfo, device->handle, i, &mhz);

		reader_report_u32(reader, device, GPU_CLOCK_GRAPHICS + i, SLOT_CLOCK_GRAPHICS + i, result,
				  mhz, 1e6);
		if (!nvml_unsupported(result))
			overall = result;
	}
	return overall;
}

enum nvml_return clocks_max_read(struct reader *reader, struct device *device)
{
	enum nvml_return overall = NVML_ERROR_NOT_SUPPORTED;

	for (uint32_t i = 0; i < NVML_CLOCK_COUNT; i++) {
		uint32_t mhz = 0;
		enum nvml_return result =
			NVML_CALL(reader, nvmlDeviceGetMaxClockInfo, device->handle, i, &mhz);

		reader_report_u32(reader, device, GPU_CLOCK_MAX_GRAPHICS + i, SLOT_CLOCK_MAX_GRAPHICS + i,
				  result, mhz, 1e6);
		if (!nvml_unsupported(result))
			overall = result;
	}
	return overall;
}

enum nvml_return clocks_application_read(struct reader *reader, struct device *device)
{
	uint32_t graphics_mhz = 0, memory_mhz = 0;
	enum nvml_return graphics = NVML_CALL(reader, nvmlDeviceGetApplicationsClock, device->handle,
					      NVML_CLOCK_GRAPHICS, &graphics_mhz);
	enum nvml_return memory = NVML_CALL(reader, nvmlDeviceGetApplicationsClock, device->handle,
					    NVML_CLOCK_MEM, &memory_mhz);

	REPORT_U32(reader, device, CLOCK_APPLICATION_GRAPHICS, graphics, graphics_mhz, 1e6);
	REPORT_U32(reader, device, CLOCK_APPLICATION_MEMORY, memory, memory_mhz, 1e6);
	return nvml_unsupported(memory) ? graphics : memory;
}

enum nvml_return performance_state_read(struct reader *reader, struct device *device)
{
	uint32_t state = 0;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetPerformanceState, device->handle, &state);

	if (result == NVML_SUCCESS && state == NVML_PSTATE_UNKNOWN)
		result = NVML_ERROR_NO_DATA;
	REPORT_U32(reader, device, PERFORMANCE_STATE, result, state, 1);
	return result;
}

/* Rows of the reasons, from EVENT_REASON_GPU_IDLE on, are bits 0, 1, 2 ... of the mask. */
#define EVENT_REASONS (SLOT_EVENT_REASON_RELIABILITY - SLOT_EVENT_REASON_GPU_IDLE + 1)
_Static_assert(1 << (SLOT_EVENT_REASON_SW_POWER_CAP - SLOT_EVENT_REASON_GPU_IDLE) ==
			       NVML_CLOCKS_EVENT_REASON_SW_POWER_CAP &&
		       1 << (SLOT_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN - SLOT_EVENT_REASON_GPU_IDLE) ==
			       NVML_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN &&
		       1 << (EVENT_REASONS - 1) == NVML_CLOCKS_EVENT_REASON_RELIABILITY,
	       "rows of event reasons stand in the order of the bits");

static void ask_known_reasons(struct reader *reader, struct device *device)
{
	uint64_t known = 0;

	if (NVML_CALL(reader, nvmlDeviceGetSupportedClocksEventReasons, device->handle, &known) !=
		    NVML_SUCCESS ||
	    !known)
		known = UINT64_MAX;
	device->reasons_known = known;
}

enum nvml_return event_reasons_read(struct reader *reader, struct device *device)
{
	uint64_t mask = 0;
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetCurrentClocksEventReasons, device->handle, &mask);

	REPORT_U64(reader, device, EVENT_REASONS, result, mask, 1);
	if (result == NVML_SUCCESS && !device_has(device, SLOT_EVENT_REASONS))
		result = NVML_ERROR_NO_DATA;
	if (device->due[CADENCE_STATIC])
		ask_known_reasons(reader, device);
	if (result == NVML_SUCCESS && mask >> EVENT_REASONS)
		reader_unrecognised(reader, "clocks event reasons %#llx",
				    (unsigned long long)(mask >> EVENT_REASONS << EVENT_REASONS));
	for (unsigned i = 0; i < EVENT_REASONS; i++) {
		/* A reason that this driver never reports is unknown, not inactive. */
		if (result == NVML_SUCCESS && !(device->reasons_known >> i & 1))
			reader_report(reader, device, GPU_EVENT_REASON_GPU_IDLE + i,
				      SLOT_EVENT_REASON_GPU_IDLE + i, NVML_ERROR_NOT_SUPPORTED, 0);
		else
			reader_report(reader, device, GPU_EVENT_REASON_GPU_IDLE + i,
				      SLOT_EVENT_REASON_GPU_IDLE + i, result, mask >> i & 1);
	}
	return result;
}

enum nvml_return violations_read(struct reader *reader, struct device *device)
{
	static const struct {
		unsigned row, slot;
		uint32_t policy;
	} policies[] = {
		{ GPU_THROTTLE_POWER, SLOT_THROTTLE_POWER, NVML_PERF_POLICY_POWER },
		{ GPU_THROTTLE_THERMAL, SLOT_THROTTLE_THERMAL, NVML_PERF_POLICY_THERMAL },
		{ GPU_THROTTLE_SYNC_BOOST, SLOT_THROTTLE_SYNC_BOOST, NVML_PERF_POLICY_SYNC_BOOST },
		{ GPU_THROTTLE_BOARD_LIMIT, SLOT_THROTTLE_BOARD_LIMIT, NVML_PERF_POLICY_BOARD_LIMIT },
		{ GPU_THROTTLE_LOW_UTILIZATION, SLOT_THROTTLE_LOW_UTILIZATION,
		  NVML_PERF_POLICY_LOW_UTILIZATION },
		{ GPU_THROTTLE_RELIABILITY, SLOT_THROTTLE_RELIABILITY, NVML_PERF_POLICY_RELIABILITY },
		{ GPU_THROTTLE_APPLICATION_CLOCKS, SLOT_THROTTLE_APPLICATION_CLOCKS,
		  NVML_PERF_POLICY_TOTAL_APP_CLOCKS },
		{ GPU_THROTTLE_BASE_CLOCKS, SLOT_THROTTLE_BASE_CLOCKS, NVML_PERF_POLICY_TOTAL_BASE_CLOCKS },
	};
	enum nvml_return overall = NVML_ERROR_NOT_SUPPORTED;

	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct nvml_violation_time time = { .violation_time = 0 };
		enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetViolationStatus, device->handle,
						    policies[i].policy, &time);

		reader_report_u64(reader, device, policies[i].row, policies[i].slot, result,
				  time.violation_time, 1e-9);
		if (!nvml_unsupported(result))
			overall = result;
	}
	return overall;
}
