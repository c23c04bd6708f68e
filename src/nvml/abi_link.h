// SPDX-License-Identifier: Apache-2.0
#pragma once

/* NVML: PCIe, NVLink and the fabric behind it. See nvml/abi.h. */

#include "nvml/abi_base.h"
#include "nvml/abi_device.h"

#define NVML_NVLINK_MAX_LINKS 36

enum nvml_pcie_counter {
	NVML_PCIE_UTIL_TX_BYTES = 0,
	NVML_PCIE_UTIL_RX_BYTES = 1,
};

enum nvml_pcie_speed {
	NVML_PCIE_LINK_MAX_SPEED_INVALID = 0,
	NVML_PCIE_LINK_MAX_SPEED_2500MBPS = 1,
	NVML_PCIE_LINK_MAX_SPEED_5000MBPS = 2,
	NVML_PCIE_LINK_MAX_SPEED_8000MBPS = 3,
	NVML_PCIE_LINK_MAX_SPEED_16000MBPS = 4,
	NVML_PCIE_LINK_MAX_SPEED_32000MBPS = 5,
	NVML_PCIE_LINK_MAX_SPEED_64000MBPS = 6,
};

enum nvml_nvlink_capability {
	NVML_NVLINK_CAP_P2P_SUPPORTED = 0,
	NVML_NVLINK_CAP_SYSMEM_ACCESS = 1,
	NVML_NVLINK_CAP_P2P_ATOMICS = 2,
	NVML_NVLINK_CAP_SYSMEM_ATOMICS = 3,
	NVML_NVLINK_CAP_SLI_BRIDGE = 4,
	NVML_NVLINK_CAP_VALID = 5,
	NVML_NVLINK_CAP_COUNT = 6,
};

enum nvml_nvlink_error {
	NVML_NVLINK_ERROR_DL_REPLAY = 0,
	NVML_NVLINK_ERROR_DL_RECOVERY = 1,
	NVML_NVLINK_ERROR_DL_CRC_FLIT = 2,
	NVML_NVLINK_ERROR_DL_CRC_DATA = 3,
	NVML_NVLINK_ERROR_DL_ECC_DATA = 4,
	NVML_NVLINK_ERROR_COUNT = 5,
};

enum nvml_nvlink_device_type {
	NVML_NVLINK_DEVICE_TYPE_GPU = 0,
	NVML_NVLINK_DEVICE_TYPE_IBMNPU = 1,
	NVML_NVLINK_DEVICE_TYPE_SWITCH = 2,
	NVML_NVLINK_DEVICE_TYPE_UNKNOWN = 255,
};

/* Versions as nvmlDeviceGetNvLinkVersion numbers them. */
enum nvml_nvlink_version {
	NVML_NVLINK_VERSION_INVALID = 0,
	NVML_NVLINK_VERSION_1_0 = 1,
	NVML_NVLINK_VERSION_2_0 = 2,
	NVML_NVLINK_VERSION_2_2 = 3,
	NVML_NVLINK_VERSION_3_0 = 4,
	NVML_NVLINK_VERSION_3_1 = 5,
	NVML_NVLINK_VERSION_4_0 = 6,
	NVML_NVLINK_VERSION_5_0 = 7,
	NVML_NVLINK_VERSION_6_0 = 8,
};

enum nvml_nvlink_state {
	NVML_NVLINK_STATE_INACTIVE = 0,
	NVML_NVLINK_STATE_ACTIVE = 1,
	NVML_NVLINK_STATE_SLEEP = 2,
};

enum nvml_fabric_state {
	NVML_GPU_FABRIC_STATE_NOT_SUPPORTED = 0,
	NVML_GPU_FABRIC_STATE_NOT_STARTED = 1,
	NVML_GPU_FABRIC_STATE_IN_PROGRESS = 2,
	NVML_GPU_FABRIC_STATE_COMPLETED = 3,
};

enum nvml_fabric_health {
	NVML_GPU_FABRIC_HEALTH_SUMMARY_NOT_SUPPORTED = 0,
	NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY = 1,
	NVML_GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY = 2,
	NVML_GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY = 3,
};

struct nvml_fabric_info { // nvmlGpuFabricInfo_t
	uint8_t cluster_uuid[16];
	uint32_t status;
	uint32_t clique;
	uint8_t state;
};
_Static_assert(sizeof(struct nvml_fabric_info) == 28, "nvmlGpuFabricInfo_t");

struct nvml_fabric_info_v2 { // nvmlGpuFabricInfo_v2_t
	uint32_t version;
	uint8_t cluster_uuid[16];
	uint32_t status;
	uint32_t clique;
	uint8_t state;
	uint32_t health_mask;
};
_Static_assert(sizeof(struct nvml_fabric_info_v2) == 36, "nvmlGpuFabricInfo_v2_t");

struct nvml_fabric_info_v3 { // nvmlGpuFabricInfo_v3_t
	uint32_t version;
	uint8_t cluster_uuid[16];
	uint32_t status;
	uint32_t clique;
	uint8_t state;
	uint32_t health_mask;
	uint8_t health_summary;
};
_Static_assert(sizeof(struct nvml_fabric_info_v3) == 40, "nvmlGpuFabricInfo_v3_t");

enum nvml_return nvmlDeviceGetMaxPcieLinkGeneration(struct nvml_device *device, uint32_t *generation);
enum nvml_return nvmlDeviceGetGpuMaxPcieLinkGeneration(struct nvml_device *device, uint32_t *generation);
enum nvml_return nvmlDeviceGetMaxPcieLinkWidth(struct nvml_device *device, uint32_t *lanes);
enum nvml_return nvmlDeviceGetCurrPcieLinkGeneration(struct nvml_device *device, uint32_t *generation);
enum nvml_return nvmlDeviceGetCurrPcieLinkWidth(struct nvml_device *device, uint32_t *lanes);
enum nvml_return nvmlDeviceGetPcieLinkMaxSpeed(struct nvml_device *device, uint32_t *speed);
enum nvml_return nvmlDeviceGetPcieSpeed(struct nvml_device *device, uint32_t *mbps);
/* Kilobytes a second over the last 20 ms. */
enum nvml_return nvmlDeviceGetPcieThroughput(struct nvml_device *device, uint32_t counter, uint32_t *kbps);
enum nvml_return nvmlDeviceGetPcieReplayCounter(struct nvml_device *device, uint32_t *replays);

enum nvml_return nvmlDeviceGetNvLinkState(struct nvml_device *device, uint32_t link, uint32_t *active);
enum nvml_return nvmlDeviceGetNvLinkVersion(struct nvml_device *device, uint32_t link, uint32_t *version);
enum nvml_return nvmlDeviceGetNvLinkCapability(struct nvml_device *device, uint32_t link, uint32_t capability,
					       uint32_t *result);
enum nvml_return nvmlDeviceGetNvLinkRemotePciInfo(struct nvml_device *device, uint32_t link,
						  struct nvml_pci_info *pci);
enum nvml_return nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvml_device *device, uint32_t link,
						     struct nvml_pci_info *pci);
enum nvml_return nvmlDeviceGetNvLinkRemoteDeviceType(struct nvml_device *device, uint32_t link,
						     uint32_t *type);
enum nvml_return nvmlDeviceGetNvLinkErrorCounter(struct nvml_device *device, uint32_t link, uint32_t error,
						 uint64_t *count);
enum nvml_return nvmlDeviceGetNvLinkUtilizationCounter(struct nvml_device *device, uint32_t link,
						       uint32_t counter, uint64_t *rx, uint64_t *tx);
enum nvml_return nvmlDeviceGetGpuFabricInfo(struct nvml_device *device, struct nvml_fabric_info *info);
enum nvml_return nvmlDeviceGetGpuFabricInfoV(struct nvml_device *device, struct nvml_fabric_info_v3 *info);
