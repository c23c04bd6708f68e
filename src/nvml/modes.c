// SPDX-License-Identifier: Apache-2.0
#include "nvml/getters.h"
#include "nvml/report.h"

enum nvml_return mig_mode_read(struct reader *reader, struct device *device)
{
	uint32_t current = 0, pending = 0;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetMigMode, device->handle, &current, &pending);

	REPORT_U32(reader, device, MIG_MODE_CURRENT, result, current, 1);
	REPORT_U32(reader, device, MIG_MODE_PENDING, result, pending, 1);
	return result;
}

enum nvml_return persistence_read(struct reader *reader, struct device *device)
{
	uint32_t mode = 0;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetPersistenceMode, device->handle, &mode);

	REPORT_U32(reader, device, PERSISTENCE_MODE, result, mode, 1);
	return result;
}

enum nvml_return compute_mode_read(struct reader *reader, struct device *device)
{
	uint32_t mode = 0;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetComputeMode, device->handle, &mode);

	REPORT_U32(reader, device, COMPUTE_MODE, result, mode, 1);
	return result;
}

enum nvml_return cores_read(struct reader *reader, struct device *device)
{
	uint32_t cores = 0;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetNumGpuCores, device->handle, &cores);

	REPORT_U32(reader, device, CORES, result, cores, 1);
	return result;
}

enum nvml_return attributes_read(struct reader *reader, struct device *device)
{
	struct nvml_device_attributes attributes = { .multiprocessors = 0 };
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetAttributes_v2, device->handle, &attributes);

	REPORT_U32(reader, device, SM_COUNT, result, attributes.multiprocessors, 1);
	return result;
}

/*
 * Whether a vGPU is licensed is what DCGM says of it: no, where no licence is needed; nothing, where the list
 * of what needs one has no vGPU.
 */
static enum nvml_return vgpu_licensed(const struct nvml_licensable_features *features, bool *ret)
{
	*ret = false;
	if (!features->supported)
		return NVML_SUCCESS;
	for (uint32_t i = 0; i < features->count && i < ARRAY_SIZE(features->features); i++) {
		if (features->features[i].code == NVML_GRID_LICENSE_FEATURE_CODE_VGPU) {
			*ret = features->features[i].state > 0;
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NO_DATA;
}

enum nvml_return license_read(struct reader *reader, struct device *device)
{
	struct nvml_licensable_features features = { .count = 0 };
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetGridLicensableFeatures_v4, device->handle, &features);
	bool licensed = false;
	enum nvml_return told = result == NVML_SUCCESS ? vgpu_licensed(&features, &licensed) : result;

	REPORT_U32(reader, device, VGPU_LICENSE_SUPPORTED, result, features.supported != 0, 1);
	REPORT_U32(reader, device, VGPU_LICENSED, told, licensed, 1);
	return result;
}

/* Without sessions there is no average: the driver's 0 is not a latency of 0. */
static enum nvml_return averages_of(enum nvml_return result, uint32_t sessions)
{
	return result == NVML_SUCCESS && sessions == 0 ? NVML_ERROR_NO_DATA : result;
}

enum nvml_return encoder_read(struct reader *reader, struct device *device)
{
	uint32_t sessions = 0, fps = 0, latency_us = 0;
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetEncoderStats, device->handle, &sessions, &fps, &latency_us);
	enum nvml_return averages = averages_of(result, sessions);

	REPORT_U32(reader, device, ENCODER_SESSIONS, result, sessions, 1);
	REPORT_U32(reader, device, ENCODER_FPS, averages, fps, 1);
	REPORT_U32(reader, device, ENCODER_LATENCY, averages, latency_us, 1e-6);
	return result;
}

enum nvml_return fbc_read(struct reader *reader, struct device *device)
{
	struct nvml_fbc_stats stats = { .sessions = 0 };
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetFBCStats, device->handle, &stats);
	enum nvml_return averages = averages_of(result, stats.sessions);

	REPORT_U32(reader, device, FBC_SESSIONS, result, stats.sessions, 1);
	REPORT_U32(reader, device, FBC_FPS, averages, stats.average_fps, 1);
	REPORT_U32(reader, device, FBC_LATENCY, averages, stats.average_latency, 1e-6);
	return result;
}
