// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/getter.h"

#include <stdio.h>

/* How many, and the handle of each. */
static enum nvml_return get_count(struct call *call, uint32_t *count)
{
	uint8_t gpus[SCENARIO_MAX_GPUS];

	NEED(count);
	*count = present_gpus(call, gpus);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetCount(uint32_t *count)
{
	CALL_NODE(nvmlDeviceGetCount);

	return get_count(call, count);
}

enum nvml_return nvmlDeviceGetCount_v2(uint32_t *count)
{
	CALL_NODE(nvmlDeviceGetCount_v2);

	return get_count(call, count);
}

static enum nvml_return get_by_index(struct call *call, uint32_t index, struct nvml_device **device)
{
	uint8_t gpus[SCENARIO_MAX_GPUS];

	NEED(device && index < present_gpus(call, gpus));
	*device = device_handle(gpus[index], -1);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetHandleByIndex(uint32_t index, struct nvml_device **device)
{
	CALL_NODE(nvmlDeviceGetHandleByIndex);

	return get_by_index(call, index, device);
}

enum nvml_return nvmlDeviceGetHandleByIndex_v2(uint32_t index, struct nvml_device **device)
{
	CALL_NODE(nvmlDeviceGetHandleByIndex_v2);

	return get_by_index(call, index, device);
}

enum nvml_return nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **device)
{
	CALL_NODE(nvmlDeviceGetHandleBySerial);
	uint8_t gpus[SCENARIO_MAX_GPUS];

	NEED(serial && device);
	for (uint32_t i = 0, count = present_gpus(call, gpus); i < count; i++) {
		if (STRV_EQ(serial, call_node()->scenario->gpus[gpus[i]].serial)) {
			*device = device_handle(gpus[i], -1);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

enum nvml_return nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device)
{
	CALL_NODE(nvmlDeviceGetHandleByUUID);
	uint8_t gpus[SCENARIO_MAX_GPUS];

	NEED(uuid && device);
	for (uint32_t i = 0, count = present_gpus(call, gpus); i < count; i++) {
		const struct scenario_gpu *what = &call_node()->scenario->gpus[gpus[i]];

		for (int instance = -1; instance < (int)what->instance_count; instance++) {
			if (STRV_EQ(uuid, instance < 0 ? what->uuid : what->instances[instance].uuid)) {
				*device = device_handle(gpus[i], instance);
				return NVML_SUCCESS;
			}
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

/* "00000000:1B:00.0", with a domain of eight, four or no digits, and with or without the function */
static enum nvml_return get_by_bus_id(struct call *call, const char *bus_id, struct nvml_device **device)
{
	unsigned domain = 0, bus, slot;
	uint8_t gpus[SCENARIO_MAX_GPUS];

	NEED(bus_id && device);
	if (sscanf(bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
		domain = 0;
		NEED(sscanf(bus_id, "%x:%x", &bus, &slot) == 2);
	}
	for (uint32_t i = 0, count = present_gpus(call, gpus); i < count; i++) {
		const struct scenario_gpu *what = &call_node()->scenario->gpus[gpus[i]];

		if (what->pci_domain == domain && what->pci_bus == bus && slot == 0) {
			*device = device_handle(gpus[i], -1);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

enum nvml_return nvmlDeviceGetHandleByPciBusId(const char *bus_id, struct nvml_device **device)
{
	CALL_NODE(nvmlDeviceGetHandleByPciBusId);

	return get_by_bus_id(call, bus_id, device);
}

enum nvml_return nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device)
{
	CALL_NODE(nvmlDeviceGetHandleByPciBusId_v2);

	return get_by_bus_id(call, bus_id, device);
}

/* Its names */
enum nvml_return nvmlDeviceGetName(struct nvml_device *device, char *name, uint32_t length)
{
	CALL(nvmlDeviceGetName, device);
	char text[128];

	snprintf(text, sizeof(text), "%s%s%s", call->gpu->what->model.name, call->mig ? " MIG " : "",
		 call->mig ? call->mig->name : "");
	return put_text(name, length, text);
}

enum nvml_return nvmlDeviceGetUUID(struct nvml_device *device, char *uuid, uint32_t length)
{
	CALL(nvmlDeviceGetUUID, device);

	return put_text(uuid, length, call->mig ? call->mig->uuid : call->gpu->what->uuid);
}

enum nvml_return nvmlDeviceGetSerial(struct nvml_device *device, char *serial, uint32_t length)
{
	CALL(nvmlDeviceGetSerial, device);

	NEED_SUPPORT(call->gpu->what->model.ecc);
	return put_text(serial, length, call->gpu->what->serial);
}

enum nvml_return nvmlDeviceGetBoardPartNumber(struct nvml_device *device, char *part, uint32_t length)
{
	CALL(nvmlDeviceGetBoardPartNumber, device);

	NEED_SUPPORT(*call->gpu->what->model.part_number);
	return put_text(part, length, call->gpu->what->model.part_number);
}

enum nvml_return nvmlDeviceGetVbiosVersion(struct nvml_device *device, char *version, uint32_t length)
{
	CALL(nvmlDeviceGetVbiosVersion, device);

	return put_text(version, length, call->gpu->what->model.vbios);
}

enum nvml_return nvmlDeviceGetInforomVersion(struct nvml_device *device, uint32_t object, char *version,
					     uint32_t length)
{
	CALL(nvmlDeviceGetInforomVersion, device);
	static const char *const versions[] = { [NVML_INFOROM_OEM] = "2.1", [NVML_INFOROM_ECC] = "7.16" };

	NEED(object <= NVML_INFOROM_DEN);
	NEED_SUPPORT(call->gpu->what->model.ecc && object < ARRAY_SIZE(versions));
	return put_text(version, length, versions[object]);
}

enum nvml_return nvmlDeviceGetInforomImageVersion(struct nvml_device *device, char *version, uint32_t length)
{
	CALL(nvmlDeviceGetInforomImageVersion, device);

	NEED_SUPPORT(call->gpu->what->model.ecc);
	return put_text(version, length, "G520.0200.00.05");
}

enum nvml_return nvmlDeviceGetGspFirmwareVersion(struct nvml_device *device, char *version)
{
	CALL(nvmlDeviceGetGspFirmwareVersion, device);

	NEED_SUPPORT(call->gpu->what->model.gsp);
	return put_text(version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE, call_node()->scenario->driver_version);
}

enum nvml_return nvmlDeviceValidateInforom(struct nvml_device *device)
{
	CALL(nvmlDeviceValidateInforom, device);

	NEED_SUPPORT(call->gpu->what->model.ecc);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetGspFirmwareMode(struct nvml_device *device, uint32_t *enabled,
					      uint32_t *default_mode)
{
	CALL(nvmlDeviceGetGspFirmwareMode, device);

	NEED(enabled && default_mode);
	put_u32(call, enabled, call->gpu->what->model.gsp);
	put_u32(call, default_mode, call->gpu->what->model.gsp);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor)
{
	CALL(nvmlDeviceGetCudaComputeCapability, device);

	NEED(major && minor);
	put_u32(call, (uint32_t *)major, call->gpu->what->model.compute_major);
	put_u32(call, (uint32_t *)minor, call->gpu->what->model.compute_minor);
	return NVML_SUCCESS;
}

/* The position among those that are there; of a MIG device, on its GPU. */
enum nvml_return nvmlDeviceGetIndex(struct nvml_device *device, uint32_t *index)
{
	CALL(nvmlDeviceGetIndex, device);
	uint8_t gpus[SCENARIO_MAX_GPUS];

	NEED(index);
	for (uint32_t i = 0, count = present_gpus(call, gpus); i < count; i++) {
		if (gpus[i] == call->gpu->index)
			*index = i;
	}
	if (call->mig)
		*index = (uint32_t)call->instance;
	return NVML_SUCCESS;
}

DEVICE_U32(nvmlDeviceGetBrand, true, model->brand)
DEVICE_U32(nvmlDeviceGetArchitecture, true,
	   call_generation()->architecture ? call_generation()->architecture : model->architecture)
DEVICE_U32(nvmlDeviceGetMinorNumber, true, what->minor)
DEVICE_U32(nvmlDeviceGetModuleId, model->nvlinks > 0, call->gpu->index)
DEVICE_U32(nvmlDeviceGetBoardId, true, what->pci_bus << 8)
DEVICE_U32(nvmlDeviceGetMultiGpuBoard, true, 0)
DEVICE_U32(nvmlDeviceGetInforomConfigurationChecksum, model->ecc, mix32(call->gpu->index))
DEVICE_U32(nvmlDeviceGetNumGpuCores, !call->mig, model->cores)
DEVICE_U32(nvmlDeviceGetComputeMode, true, what->compute_mode)
DEVICE_U32(nvmlDeviceGetPersistenceMode, true, what->persistence)
DEVICE_U32(nvmlDeviceGetDisplayMode, true, what->display_active)
DEVICE_U32(nvmlDeviceGetDisplayActive, true, what->display_active)
DEVICE_U32(nvmlDeviceGetVirtualizationMode, true, NVML_GPU_VIRTUALIZATION_MODE_NONE)
DEVICE_U32(nvmlDeviceGetBusType, true, NVML_BUS_TYPE_PCIE)
DEVICE_U32(nvmlDeviceGetIrqNum, true, 64 + call->gpu->index)
DEVICE_U32(nvmlDeviceGetMemoryBusWidth, true, model->bus_width)

enum nvml_return nvmlDeviceGetC2cModeInfoV(struct nvml_device *device, struct nvml_c2c_mode *mode)
{
	CALL(nvmlDeviceGetC2cModeInfoV, device);

	NEED(mode);
	NEED_SUPPORT(call->gpu->what->model.architecture >= NVML_DEVICE_ARCH_HOPPER);
	put_u32(call, &mode->enabled, 0);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetAddressingMode(struct nvml_device *device, struct nvml_addressing *mode)
{
	CALL(nvmlDeviceGetAddressingMode, device);

	NEED(mode);
	NEED_VERSION(mode, 1);
	put_u32(call, &mode->mode, NVML_DEVICE_ADDRESSING_MODE_HMM);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetPlatformInfo(struct nvml_device *device, struct nvml_platform_info_v2 *info)
{
	CALL(nvmlDeviceGetPlatformInfo, device);

	NEED(info);
	NEED_SUPPORT(call->gpu->what->model.fabric);
	NEED_VERSION(info, 2);
	*info = (struct nvml_platform_info_v2){
		.version = info->version,
		.slot = 1,
		.host = 1,
		.peer_type = 1,
		.module = (uint8_t)(call->gpu->index + 1),
	};
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetGpuUptime_v1(struct nvml_device *device, struct nvml_gpu_uptime *uptime)
{
	CALL(nvmlDeviceGetGpuUptime_v1, device);

	NEED(uptime);
	put_u32(call, &uptime->seconds, (uint32_t)((call->now_ms - call->gpu->driver_ms) / 1000));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetGridLicensableFeatures_v4(struct nvml_device *device,
							struct nvml_licensable_features *features)
{
	CALL(nvmlDeviceGetGridLicensableFeatures_v4, device);
	const enum vgpu_license license = call->gpu->what->vgpu_license;
	struct nvml_licensable_feature *vgpu;

	NEED(features);
	*features = (struct nvml_licensable_features){ .supported = license != VGPU_LICENSE_NONE };
	if (license == VGPU_LICENSE_NONE)
		return NVML_SUCCESS;
	vgpu = &features->features[features->count++];
	vgpu->code = NVML_GRID_LICENSE_FEATURE_CODE_VGPU;
	vgpu->enabled = 1;
	put_u32(call, &vgpu->state, license == VGPU_LICENSE_VALID);
	return put_text(vgpu->product, sizeof(vgpu->product), "NVIDIA Virtual Compute Server");
}
