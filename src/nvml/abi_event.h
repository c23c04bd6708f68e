// SPDX-License-Identifier: Apache-2.0
#pragma once

/* NVML: events of devices, such as XIDs. See nvml/abi.h. */

#include "nvml/abi_base.h"

struct nvml_event_set;

enum nvml_event_type {
	NVML_EVENT_NONE = 0x0000, // nvmlEventTypeNone
	NVML_EVENT_SINGLE_BIT_ECC_ERROR = 0x0001, // nvmlEventTypeSingleBitEccError
	NVML_EVENT_DOUBLE_BIT_ECC_ERROR = 0x0002, // nvmlEventTypeDoubleBitEccError
	NVML_EVENT_PSTATE = 0x0004, // nvmlEventTypePState
	NVML_EVENT_XID_CRITICAL_ERROR = 0x0008, // nvmlEventTypeXidCriticalError
	NVML_EVENT_CLOCK = 0x0010, // nvmlEventTypeClock
	NVML_EVENT_POWER_SOURCE_CHANGE = 0x0080, // nvmlEventTypePowerSourceChange
	NVML_EVENT_MIG_CONFIG_CHANGE = 0x0100, // nvmlEventMigConfigChange
	NVML_EVENT_SINGLE_BIT_ECC_ERROR_STORM = 0x0200, // nvmlEventTypeSingleBitEccErrorStorm
	NVML_EVENT_DRAM_RETIREMENT = 0x0400, // nvmlEventTypeDramRetirementEvent
	NVML_EVENT_DRAM_RETIREMENT_FAILURE = 0x0800, // nvmlEventTypeDramRetirementFailure
	NVML_EVENT_NON_FATAL_POISON = 0x1000, // nvmlEventTypeNonFatalPoisonError
	NVML_EVENT_FATAL_POISON = 0x2000, // nvmlEventTypeFatalPoisonError
	NVML_EVENT_GPU_UNAVAILABLE = 0x4000, // nvmlEventTypeGpuUnavailableError
	NVML_EVENT_GPU_RECOVERY_ACTION = 0x8000, // nvmlEventTypeGpuRecoveryAction
};

struct nvml_event_data { // nvmlEventData_t
	struct nvml_device *device;
	uint64_t type;
	uint64_t data; /* the XID for NVML_EVENT_XID_CRITICAL_ERROR */
	uint32_t gpu_instance; /* NVML_NONE_U32 where not known; _v2 only */
	uint32_t compute_instance;
};
_Static_assert(sizeof(struct nvml_event_data) == 32, "nvmlEventData_t");

enum nvml_return nvmlEventSetCreate(struct nvml_event_set **set);
enum nvml_return nvmlEventSetFree(struct nvml_event_set *set);
enum nvml_return nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, uint64_t *types);
enum nvml_return nvmlDeviceRegisterEvents(struct nvml_device *device, uint64_t types,
					  struct nvml_event_set *set);
/* Waits at most timeout_ms, then NVML_ERROR_TIMEOUT. */
enum nvml_return nvmlEventSetWait(struct nvml_event_set *set, struct nvml_event_data *data,
				  uint32_t timeout_ms);
enum nvml_return nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data,
				     uint32_t timeout_ms);
