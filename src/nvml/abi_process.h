// SPDX-License-Identifier: Apache-2.0
#pragma once

/* NVML: the processes on a device, their utilisation, accounting of past ones. See nvml/abi.h. */

#include "nvml/abi_base.h"

enum nvml_process_mode {
	NVML_PROCESS_MODE_COMPUTE = 0,
	NVML_PROCESS_MODE_GRAPHICS = 1,
	NVML_PROCESS_MODE_MPS = 2,
	NVML_PROCESS_MODE_ALL = 3,
};

struct nvml_process_info_v1 { // nvmlProcessInfo_v1_t
	uint32_t pid;
	uint64_t used_memory; /* bytes; NVML_NONE_U64 where the driver does not say */
};
_Static_assert(sizeof(struct nvml_process_info_v1) == 16, "nvmlProcessInfo_v1_t");

/* Both the _v2 and the _v3 calls fill this; some 535 drivers write struct nvml_process_detail instead. */
struct nvml_process_info_v2 { // nvmlProcessInfo_v2_t
	uint32_t pid;
	uint64_t used_memory;
	uint32_t gpu_instance; /* NVML_NONE_U32 outside MIG */
	uint32_t compute_instance;
};
_Static_assert(sizeof(struct nvml_process_info_v2) == 24, "nvmlProcessInfo_v2_t");

struct nvml_process_detail { // nvmlProcessDetail_v1_t
	uint32_t pid;
	uint64_t used_memory;
	uint32_t gpu_instance;
	uint32_t compute_instance;
	uint64_t used_protected_memory;
};
_Static_assert(sizeof(struct nvml_process_detail) == 32, "nvmlProcessDetail_v1_t");

struct nvml_process_detail_list { // nvmlProcessDetailList_v1_t
	uint32_t version;
	uint32_t mode;
	uint32_t count;
	struct nvml_process_detail *processes;
};
_Static_assert(sizeof(struct nvml_process_detail_list) == 24, "nvmlProcessDetailList_v1_t");

struct nvml_process_utilization { // nvmlProcessUtilizationSample_t
	uint32_t pid;
	uint64_t timestamp; /* microseconds, CPU clock */
	uint32_t sm;
	uint32_t memory;
	uint32_t encoder;
	uint32_t decoder;
};
_Static_assert(sizeof(struct nvml_process_utilization) == 32, "nvmlProcessUtilizationSample_t");

struct nvml_process_utilization_v1 { // nvmlProcessUtilizationInfo_v1_t
	uint64_t timestamp; /* microseconds, CPU clock */
	uint32_t pid;
	uint32_t sm;
	uint32_t memory;
	uint32_t encoder;
	uint32_t decoder;
	uint32_t jpeg;
	uint32_t ofa;
};
_Static_assert(sizeof(struct nvml_process_utilization_v1) == 40, "nvmlProcessUtilizationInfo_v1_t");

struct nvml_processes_utilization { // nvmlProcessesUtilizationInfo_v1_t
	uint32_t version;
	uint32_t count;
	uint64_t last_seen; /* microseconds */
	struct nvml_process_utilization_v1 *processes;
};
_Static_assert(sizeof(struct nvml_processes_utilization) == 24, "nvmlProcessesUtilizationInfo_v1_t");

struct nvml_accounting_stats { // nvmlAccountingStats_t
	uint32_t gpu_utilization;
	uint32_t memory_utilization;
	uint64_t max_memory;
	uint64_t time_ms; /* 0 while the process runs */
	uint64_t start_us;
	uint32_t running;
	uint32_t reserved[5];
};
_Static_assert(sizeof(struct nvml_accounting_stats) == 56, "nvmlAccountingStats_t");

enum nvml_return nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, uint32_t *count,
						      struct nvml_process_info_v1 *infos);
enum nvml_return nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device, uint32_t *count,
							 struct nvml_process_info_v2 *infos);
enum nvml_return nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, uint32_t *count,
							 struct nvml_process_info_v2 *infos);
enum nvml_return nvmlDeviceGetGraphicsRunningProcesses(struct nvml_device *device, uint32_t *count,
						       struct nvml_process_info_v1 *infos);
enum nvml_return nvmlDeviceGetGraphicsRunningProcesses_v2(struct nvml_device *device, uint32_t *count,
							  struct nvml_process_info_v2 *infos);
enum nvml_return nvmlDeviceGetGraphicsRunningProcesses_v3(struct nvml_device *device, uint32_t *count,
							  struct nvml_process_info_v2 *infos);
enum nvml_return nvmlDeviceGetMPSComputeRunningProcesses(struct nvml_device *device, uint32_t *count,
							 struct nvml_process_info_v1 *infos);
enum nvml_return nvmlDeviceGetMPSComputeRunningProcesses_v2(struct nvml_device *device, uint32_t *count,
							    struct nvml_process_info_v2 *infos);
enum nvml_return nvmlDeviceGetMPSComputeRunningProcesses_v3(struct nvml_device *device, uint32_t *count,
							    struct nvml_process_info_v2 *infos);
enum nvml_return nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device,
						       struct nvml_process_detail_list *list);
enum nvml_return nvmlDeviceGetProcessUtilization(struct nvml_device *device,
						 struct nvml_process_utilization *samples, uint32_t *count,
						 uint64_t last_seen);
enum nvml_return nvmlDeviceGetProcessesUtilizationInfo(struct nvml_device *device,
						       struct nvml_processes_utilization *info);
enum nvml_return nvmlDeviceGetAccountingMode(struct nvml_device *device, uint32_t *mode);
enum nvml_return nvmlDeviceGetAccountingBufferSize(struct nvml_device *device, uint32_t *size);
enum nvml_return nvmlDeviceGetAccountingPids(struct nvml_device *device, uint32_t *count, uint32_t *pids);
enum nvml_return nvmlDeviceGetAccountingStats(struct nvml_device *device, uint32_t pid,
					      struct nvml_accounting_stats *stats);
