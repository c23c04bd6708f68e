// SPDX-License-Identifier: Apache-2.0
#pragma once

/* NVML: finding devices, their identity, versions and bus. See nvml/abi.h. */

#include "nvml/abi_base.h"

#define NVML_DEVICE_UUID_BUFFER_SIZE 80
#define NVML_DEVICE_UUID_V2_BUFFER_SIZE 96
#define NVML_DEVICE_PART_NUMBER_BUFFER_SIZE 80
#define NVML_DEVICE_NAME_BUFFER_SIZE 64
#define NVML_DEVICE_NAME_V2_BUFFER_SIZE 96
#define NVML_DEVICE_SERIAL_BUFFER_SIZE 30
#define NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE 32
#define NVML_DEVICE_INFOROM_VERSION_BUFFER_SIZE 16
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE 32
#define NVML_GSP_FIRMWARE_VERSION_BUF_SIZE 64

enum nvml_brand {
	NVML_BRAND_UNKNOWN = 0,
	NVML_BRAND_QUADRO = 1,
	NVML_BRAND_TESLA = 2,
	NVML_BRAND_NVS = 3,
	NVML_BRAND_GRID = 4,
	NVML_BRAND_GEFORCE = 5,
	NVML_BRAND_TITAN = 6,
	NVML_BRAND_NVIDIA_VAPPS = 7,
	NVML_BRAND_NVIDIA_VPC = 8,
	NVML_BRAND_NVIDIA_VCS = 9,
	NVML_BRAND_NVIDIA_VWS = 10,
	NVML_BRAND_NVIDIA_CLOUD_GAMING = 11,
	NVML_BRAND_QUADRO_RTX = 12,
	NVML_BRAND_NVIDIA_RTX = 13,
	NVML_BRAND_NVIDIA = 14,
	NVML_BRAND_GEFORCE_RTX = 15,
	NVML_BRAND_TITAN_RTX = 16,
};

enum nvml_architecture {
	NVML_DEVICE_ARCH_KEPLER = 2,
	NVML_DEVICE_ARCH_MAXWELL = 3,
	NVML_DEVICE_ARCH_PASCAL = 4,
	NVML_DEVICE_ARCH_VOLTA = 5,
	NVML_DEVICE_ARCH_TURING = 6,
	NVML_DEVICE_ARCH_AMPERE = 7,
	NVML_DEVICE_ARCH_ADA = 8,
	NVML_DEVICE_ARCH_HOPPER = 9,
	NVML_DEVICE_ARCH_BLACKWELL = 10,
	NVML_DEVICE_ARCH_RUBIN = 13,
};
#define NVML_DEVICE_ARCH_UNKNOWN UINT32_MAX

enum nvml_compute_mode {
	NVML_COMPUTEMODE_DEFAULT = 0,
	NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1,
	NVML_COMPUTEMODE_PROHIBITED = 2,
	NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
};

enum nvml_inforom {
	NVML_INFOROM_OEM = 0,
	NVML_INFOROM_ECC = 1,
	NVML_INFOROM_POWER = 2,
	NVML_INFOROM_DEN = 3,
};

enum nvml_bus_type {
	NVML_BUS_TYPE_UNKNOWN = 0,
	NVML_BUS_TYPE_PCI = 1,
	NVML_BUS_TYPE_PCIE = 2,
	NVML_BUS_TYPE_FPCI = 3,
	NVML_BUS_TYPE_AGP = 4,
};

enum nvml_virtualization_mode {
	NVML_GPU_VIRTUALIZATION_MODE_NONE = 0,
	NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH = 1,
	NVML_GPU_VIRTUALIZATION_MODE_VGPU = 2,
	NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU = 3,
	NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA = 4,
};

enum nvml_addressing_mode {
	NVML_DEVICE_ADDRESSING_MODE_NONE = 0,
	NVML_DEVICE_ADDRESSING_MODE_HMM = 1,
	NVML_DEVICE_ADDRESSING_MODE_ATS = 2,
};

/* bus_id_legacy has a 4-digit domain, bus_id an 8-digit one. */
struct nvml_pci_info { // nvmlPciInfo_t
	char bus_id_legacy[16];
	uint32_t domain;
	uint32_t bus;
	uint32_t device;
	uint32_t device_id; /* device << 16 | vendor */
	uint32_t subsystem_id;
	char bus_id[32];
};
_Static_assert(sizeof(struct nvml_pci_info) == 68, "nvmlPciInfo_t");

/* Bytes of it that nvmlDeviceGetPciInfo and nvmlDeviceGetPciInfo_v2 fill. */
#define NVML_PCI_INFO_V1_SIZE 32
#define NVML_PCI_INFO_V2_SIZE 36

struct nvml_pci_info_ext { // nvmlPciInfoExt_v1_t
	uint32_t version;
	uint32_t domain;
	uint32_t bus;
	uint32_t device;
	uint32_t device_id;
	uint32_t subsystem_id;
	uint32_t base_class;
	uint32_t sub_class;
	char bus_id[32];
};
_Static_assert(sizeof(struct nvml_pci_info_ext) == 64, "nvmlPciInfoExt_v1_t");

struct nvml_c2c_mode { // nvmlC2cModeInfo_v1_t
	uint32_t enabled;
};
_Static_assert(sizeof(struct nvml_c2c_mode) == 4, "nvmlC2cModeInfo_v1_t");

struct nvml_addressing { // nvmlDeviceAddressingMode_v1_t
	uint32_t version;
	uint32_t mode;
};
_Static_assert(sizeof(struct nvml_addressing) == 8, "nvmlDeviceAddressingMode_v1_t");

struct nvml_platform_info_v1 { // nvmlPlatformInfo_v1_t
	uint32_t version;
	uint8_t ib_guid[16];
	uint8_t rack_guid[16];
	uint8_t chassis_slot;
	uint8_t compute_slot;
	uint8_t node;
	uint8_t peer_type;
	uint8_t module;
};
_Static_assert(sizeof(struct nvml_platform_info_v1) == 44, "nvmlPlatformInfo_v1_t");

struct nvml_platform_info_v2 { // nvmlPlatformInfo_v2_t
	uint32_t version;
	uint8_t ib_guid[16];
	uint8_t chassis_serial[16];
	uint8_t slot;
	uint8_t tray;
	uint8_t host;
	uint8_t peer_type;
	uint8_t module;
};
_Static_assert(sizeof(struct nvml_platform_info_v2) == 44, "nvmlPlatformInfo_v2_t");

struct nvml_gpu_uptime { // nvmlGpuUptime_v1_t
	uint32_t seconds;
};
_Static_assert(sizeof(struct nvml_gpu_uptime) == 4, "nvmlGpuUptime_v1_t");

enum nvml_return nvmlDeviceGetCount(uint32_t *count);
enum nvml_return nvmlDeviceGetCount_v2(uint32_t *count);
enum nvml_return nvmlDeviceGetHandleByIndex(uint32_t index, struct nvml_device **device);
enum nvml_return nvmlDeviceGetHandleByIndex_v2(uint32_t index, struct nvml_device **device);
enum nvml_return nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **device);
enum nvml_return nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device);
enum nvml_return nvmlDeviceGetHandleByPciBusId(const char *bus_id, struct nvml_device **device);
enum nvml_return nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device);

enum nvml_return nvmlDeviceGetName(struct nvml_device *device, char *name, uint32_t length);
enum nvml_return nvmlDeviceGetBrand(struct nvml_device *device, uint32_t *brand);
enum nvml_return nvmlDeviceGetArchitecture(struct nvml_device *device, uint32_t *architecture);
enum nvml_return nvmlDeviceGetIndex(struct nvml_device *device, uint32_t *index);
enum nvml_return nvmlDeviceGetSerial(struct nvml_device *device, char *serial, uint32_t length);
enum nvml_return nvmlDeviceGetUUID(struct nvml_device *device, char *uuid, uint32_t length);
enum nvml_return nvmlDeviceGetMinorNumber(struct nvml_device *device, uint32_t *minor);
enum nvml_return nvmlDeviceGetModuleId(struct nvml_device *device, uint32_t *module);
enum nvml_return nvmlDeviceGetBoardId(struct nvml_device *device, uint32_t *board);
enum nvml_return nvmlDeviceGetBoardPartNumber(struct nvml_device *device, char *part, uint32_t length);
enum nvml_return nvmlDeviceGetMultiGpuBoard(struct nvml_device *device, uint32_t *multi);
enum nvml_return nvmlDeviceGetVbiosVersion(struct nvml_device *device, char *version, uint32_t length);
enum nvml_return nvmlDeviceGetInforomVersion(struct nvml_device *device, uint32_t object, char *version,
					     uint32_t length);
enum nvml_return nvmlDeviceGetInforomImageVersion(struct nvml_device *device, char *version, uint32_t length);
enum nvml_return nvmlDeviceGetInforomConfigurationChecksum(struct nvml_device *device, uint32_t *checksum);
enum nvml_return nvmlDeviceValidateInforom(struct nvml_device *device);
enum nvml_return nvmlDeviceGetGspFirmwareVersion(struct nvml_device *device, char *version);
enum nvml_return nvmlDeviceGetGspFirmwareMode(struct nvml_device *device, uint32_t *enabled,
					      uint32_t *default_mode);
enum nvml_return nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor);
enum nvml_return nvmlDeviceGetNumGpuCores(struct nvml_device *device, uint32_t *cores);
enum nvml_return nvmlDeviceGetComputeMode(struct nvml_device *device, uint32_t *mode);
enum nvml_return nvmlDeviceGetPersistenceMode(struct nvml_device *device, uint32_t *mode);
enum nvml_return nvmlDeviceGetDisplayMode(struct nvml_device *device, uint32_t *display);
enum nvml_return nvmlDeviceGetDisplayActive(struct nvml_device *device, uint32_t *active);
enum nvml_return nvmlDeviceGetVirtualizationMode(struct nvml_device *device, uint32_t *mode);
enum nvml_return nvmlDeviceGetBusType(struct nvml_device *device, uint32_t *type);
enum nvml_return nvmlDeviceGetIrqNum(struct nvml_device *device, uint32_t *irq);
enum nvml_return nvmlDeviceGetC2cModeInfoV(struct nvml_device *device, struct nvml_c2c_mode *mode);
enum nvml_return nvmlDeviceGetAddressingMode(struct nvml_device *device, struct nvml_addressing *mode);
enum nvml_return nvmlDeviceGetPlatformInfo(struct nvml_device *device, struct nvml_platform_info_v2 *info);
enum nvml_return nvmlDeviceGetGpuUptime_v1(struct nvml_device *device, struct nvml_gpu_uptime *uptime);

enum nvml_return nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_info *pci);
enum nvml_return nvmlDeviceGetPciInfo_v2(struct nvml_device *device, struct nvml_pci_info *pci);
enum nvml_return nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci);
enum nvml_return nvmlDeviceGetPciInfoExt(struct nvml_device *device, struct nvml_pci_info_ext *pci);
