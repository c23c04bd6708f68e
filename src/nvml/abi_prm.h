// SPDX-License-Identifier: Apache-2.0
#pragma once

/*
 * NVML: counters of the NVLink ports' registers (PRM). Not part of nvml/abi.h, because the simulated driver
 * does not implement them. See there.
 */

#include "nvml/abi_base.h"

enum nvml_prm_counter_id {
	NVML_PRM_COUNTER_ID_PPCNT_PLR_RCV_CODES = 301,
	NVML_PRM_COUNTER_ID_PPCNT_PLR_RCV_CODE_ERR = 302,
	NVML_PRM_COUNTER_ID_PPCNT_PLR_RCV_UNCORRECTABLE_CODE = 303,
	NVML_PRM_COUNTER_ID_PPCNT_PLR_XMIT_CODES = 304,
	NVML_PRM_COUNTER_ID_PPCNT_PLR_XMIT_RETRY_CODES = 305,
	NVML_PRM_COUNTER_ID_PPCNT_PLR_XMIT_RETRY_EVENTS = 306,
	NVML_PRM_COUNTER_ID_PPCNT_PLR_SYNC_EVENTS = 307,
};

struct nvml_prm_input { // nvmlPRMCounterInput_v1_t
	uint32_t port;
};
_Static_assert(sizeof(struct nvml_prm_input) == 4, "nvmlPRMCounterInput_v1_t");

struct nvml_prm_value { // nvmlPRMCounterValue_v1_t
	uint32_t result; /* enum nvml_return of this counter alone */
	uint32_t type; /* enum nvml_value_type */
	union nvml_value value;
};
_Static_assert(sizeof(struct nvml_prm_value) == 16, "nvmlPRMCounterValue_v1_t");

struct nvml_prm_counter { // nvmlPRMCounter_v1_t
	uint32_t id;
	struct nvml_prm_input input;
	struct nvml_prm_value value;
};
_Static_assert(sizeof(struct nvml_prm_counter) == 24, "nvmlPRMCounter_v1_t");

struct nvml_prm_counters { // nvmlPRMCounterList_v1_t
	uint32_t count;
	struct nvml_prm_counter *counters;
};
_Static_assert(sizeof(struct nvml_prm_counters) == 16, "nvmlPRMCounterList_v1_t");

enum nvml_return nvmlDeviceReadPRMCounters_v1(struct nvml_device *device, struct nvml_prm_counters *list);
