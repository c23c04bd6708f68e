// SPDX-License-Identifier: Apache-2.0
#pragma once

/*
 * NVML: multi-instance GPU: GPU instances, compute instances in them, and the device handle of each. See
 * nvml/abi.h.
 */

#include "nvml/abi_base.h"

struct nvml_gpu_instance;
struct nvml_compute_instance;

#define NVML_DEVICE_MIG_DISABLE 0
#define NVML_DEVICE_MIG_ENABLE 1

/* Arguments of the profile calls. The ids of profiles, in their info, are other numbers. */
enum nvml_gpu_instance_profile {
	NVML_GPU_INSTANCE_PROFILE_1_SLICE = 0x0,
	NVML_GPU_INSTANCE_PROFILE_2_SLICE = 0x1,
	NVML_GPU_INSTANCE_PROFILE_3_SLICE = 0x2,
	NVML_GPU_INSTANCE_PROFILE_4_SLICE = 0x3,
	NVML_GPU_INSTANCE_PROFILE_7_SLICE = 0x4,
	NVML_GPU_INSTANCE_PROFILE_8_SLICE = 0x5,
	NVML_GPU_INSTANCE_PROFILE_6_SLICE = 0x6,
	NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1 = 0x7,
	NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1 = 0x8,
	NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2 = 0x9,
	NVML_GPU_INSTANCE_PROFILE_COUNT = 0x12,
};

enum nvml_compute_instance_profile {
	NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE = 0x0,
	NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE = 0x1,
	NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE = 0x2,
	NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE = 0x3,
	NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE = 0x4,
	NVML_COMPUTE_INSTANCE_PROFILE_COUNT = 0x9,
	NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED = 0x0,
};

/* What a device or MIG device has. */
struct nvml_device_attributes { // nvmlDeviceAttributes_t
	uint32_t multiprocessors;
	uint32_t copy_engines;
	uint32_t decoders;
	uint32_t encoders;
	uint32_t jpegs;
	uint32_t ofas;
	uint32_t gpu_instance_slices;
	uint32_t compute_instance_slices;
	uint64_t memory_mb;
};
_Static_assert(sizeof(struct nvml_device_attributes) == 40, "nvmlDeviceAttributes_t");

/* Memory slices that an instance occupies. */
struct nvml_placement { // nvmlGpuInstancePlacement_t
	uint32_t start;
	uint32_t size;
};
_Static_assert(sizeof(struct nvml_placement) == 8, "nvmlGpuInstancePlacement_t");

struct nvml_gpu_instance_profile_info { // nvmlGpuInstanceProfileInfo_t
	uint32_t id;
	uint32_t p2p_supported;
	uint32_t slices;
	uint32_t instances;
	uint32_t multiprocessors;
	uint32_t copy_engines;
	uint32_t decoders;
	uint32_t encoders;
	uint32_t jpegs;
	uint32_t ofas;
	uint64_t memory_mb;
};
_Static_assert(sizeof(struct nvml_gpu_instance_profile_info) == 48, "nvmlGpuInstanceProfileInfo_t");

struct nvml_gpu_instance_profile_info_v2 { // nvmlGpuInstanceProfileInfo_v2_t
	uint32_t version;
	uint32_t id;
	uint32_t p2p_supported;
	uint32_t slices;
	uint32_t instances;
	uint32_t multiprocessors;
	uint32_t copy_engines;
	uint32_t decoders;
	uint32_t encoders;
	uint32_t jpegs;
	uint32_t ofas;
	uint64_t memory_mb;
	char name[96];
};
_Static_assert(sizeof(struct nvml_gpu_instance_profile_info_v2) == 152, "nvmlGpuInstanceProfileInfo_v2_t");

struct nvml_gpu_instance_info { // nvmlGpuInstanceInfo_t
	struct nvml_device *device;
	uint32_t id;
	uint32_t profile;
	struct nvml_placement placement;
};
_Static_assert(sizeof(struct nvml_gpu_instance_info) == 24, "nvmlGpuInstanceInfo_t");

struct nvml_compute_instance_profile_info { // nvmlComputeInstanceProfileInfo_t
	uint32_t id;
	uint32_t slices;
	uint32_t instances;
	uint32_t multiprocessors;
	uint32_t copy_engines;
	uint32_t decoders;
	uint32_t encoders;
	uint32_t jpegs;
	uint32_t ofas;
};
_Static_assert(sizeof(struct nvml_compute_instance_profile_info) == 36, "nvmlComputeInstanceProfileInfo_t");

struct nvml_compute_instance_info { // nvmlComputeInstanceInfo_t
	struct nvml_device *device;
	struct nvml_gpu_instance *gpu_instance;
	uint32_t id;
	uint32_t profile;
	struct nvml_placement placement;
};
_Static_assert(sizeof(struct nvml_compute_instance_info) == 32, "nvmlComputeInstanceInfo_t");

enum nvml_return nvmlDeviceGetMigMode(struct nvml_device *device, uint32_t *current, uint32_t *pending);
enum nvml_return nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *device, uint32_t *count);
enum nvml_return nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, uint32_t index,
						     struct nvml_device **mig);
enum nvml_return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct nvml_device *mig,
							      struct nvml_device **device);
enum nvml_return nvmlDeviceIsMigDeviceHandle(struct nvml_device *device, uint32_t *is_mig);
enum nvml_return nvmlDeviceGetGpuInstanceId(struct nvml_device *device, uint32_t *id);
enum nvml_return nvmlDeviceGetComputeInstanceId(struct nvml_device *device, uint32_t *id);
enum nvml_return nvmlDeviceGetAttributes(struct nvml_device *device,
					 struct nvml_device_attributes *attributes);
enum nvml_return nvmlDeviceGetAttributes_v2(struct nvml_device *device,
					    struct nvml_device_attributes *attributes);

enum nvml_return nvmlDeviceGetGpuInstanceProfileInfo(struct nvml_device *device, uint32_t profile,
						     struct nvml_gpu_instance_profile_info *info);
enum nvml_return nvmlDeviceGetGpuInstanceProfileInfoV(struct nvml_device *device, uint32_t profile,
						      struct nvml_gpu_instance_profile_info_v2 *info);
enum nvml_return nvmlDeviceGetGpuInstances(struct nvml_device *device, uint32_t profile,
					   struct nvml_gpu_instance **instances, uint32_t *count);
enum nvml_return nvmlDeviceGetGpuInstanceById(struct nvml_device *device, uint32_t id,
					      struct nvml_gpu_instance **instance);
enum nvml_return nvmlDeviceGetGpuInstanceRemainingCapacity(struct nvml_device *device, uint32_t profile,
							   uint32_t *count);
enum nvml_return nvmlGpuInstanceGetInfo(struct nvml_gpu_instance *instance,
					struct nvml_gpu_instance_info *info);
enum nvml_return
nvmlGpuInstanceGetComputeInstanceProfileInfo(struct nvml_gpu_instance *instance, uint32_t profile,
					     uint32_t engine_profile,
					     struct nvml_compute_instance_profile_info *info);
enum nvml_return nvmlGpuInstanceGetComputeInstances(struct nvml_gpu_instance *instance, uint32_t profile,
						    struct nvml_compute_instance **instances,
						    uint32_t *count);
enum nvml_return nvmlGpuInstanceGetComputeInstanceById(struct nvml_gpu_instance *instance, uint32_t id,
						       struct nvml_compute_instance **compute);
enum nvml_return nvmlComputeInstanceGetInfo(struct nvml_compute_instance *instance,
					    struct nvml_compute_instance_info *info);
enum nvml_return nvmlComputeInstanceGetInfo_v2(struct nvml_compute_instance *instance,
					       struct nvml_compute_instance_info *info);
