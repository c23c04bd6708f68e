// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/getter.h"

#include <string.h>

/*
 * A GPU in MIG mode is cut into GPU instances; here each holds one compute instance, and both together are
 * one MIG device. The layout is the scenario's and does not change.
 */

/* Profiles of GPU instances as A100 and H100 number them. */
static const struct {
	uint32_t id, slices, memory_slices, instances;
} profiles[NVML_GPU_INSTANCE_PROFILE_COUNT] = {
	[NVML_GPU_INSTANCE_PROFILE_1_SLICE] = { 19, 1, 1, 7 },
	[NVML_GPU_INSTANCE_PROFILE_2_SLICE] = { 14, 2, 2, 3 },
	[NVML_GPU_INSTANCE_PROFILE_3_SLICE] = { 9, 3, 4, 2 },
	[NVML_GPU_INSTANCE_PROFILE_4_SLICE] = { 5, 4, 4, 1 },
	[NVML_GPU_INSTANCE_PROFILE_7_SLICE] = { 0, 7, 8, 1 },
	[NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2] = { 15, 1, 2, 4 },
};

/* Profiles of compute instances: all of the GPU instance's slices. */
static uint32_t compute_profile(const struct scenario_instance *instance)
{
	static const uint32_t numbers[] = { 0,
					    NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE,
					    NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE,
					    NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE,
					    NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE,
					    0,
					    0,
					    NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE };

	return numbers[instance->slices];
}

enum nvml_return nvmlDeviceGetMigMode(struct nvml_device *device, uint32_t *current, uint32_t *pending)
{
	CALL(nvmlDeviceGetMigMode, device);

	NEED(current && pending);
	NEED_SUPPORT(call->gpu->what->model.mig_slices > 0 && !call->mig);
	put_u32(call, current, call->gpu->what->mig);
	put_u32(call, pending, call->gpu->what->mig);
	return NVML_SUCCESS;
}

DEVICE_U32(nvmlDeviceGetMaxMigDeviceCount, true, call->mig ? 0 : model->mig_slices)
DEVICE_U32(nvmlDeviceIsMigDeviceHandle, true, call->mig != NULL)

enum nvml_return nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, uint32_t index,
						     struct nvml_device **mig)
{
	CALL(nvmlDeviceGetMigDeviceHandleByIndex, device);
	const struct scenario_gpu *what = call->gpu->what;

	NEED_SUPPORT(what->model.mig_slices > 0);
	NEED(mig && index < what->model.mig_slices);
	if (!what->mig || index >= what->instance_count)
		return NVML_ERROR_NOT_FOUND;
	*mig = device_handle(call->gpu->index, (int)index);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct nvml_device *mig,
							      struct nvml_device **device)
{
	CALL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, mig);

	NEED(device && call->mig);
	*device = device_handle(call->gpu->index, -1);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetGpuInstanceId(struct nvml_device *device, uint32_t *id)
{
	CALL(nvmlDeviceGetGpuInstanceId, device);

	NEED(id && call->mig);
	*id = call->mig->gpu_instance;
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetComputeInstanceId(struct nvml_device *device, uint32_t *id)
{
	CALL(nvmlDeviceGetComputeInstanceId, device);

	NEED(id && call->mig);
	*id = call->mig->compute_instance;
	return NVML_SUCCESS;
}

/* So much of a GPU's units as its slices are of all. */
static uint32_t part(uint32_t units, uint32_t slices, const struct model *model)
{
	return units * slices / MAX(model->mig_slices, 1u);
}

/* A driver keeps one multiprocessor in seven of the largest chips back in MIG mode; 132 become 7 times 16. */
static uint32_t multiprocessors(uint32_t slices, const struct model *model)
{
	return model->multiprocessors / (model->mig_slices + 1) * slices;
}

static enum nvml_return get_attributes(const struct call *call, struct nvml_device_attributes *attributes)
{
	const struct model *model = &call->gpu->what->model;
	const struct scenario_instance *mig = call->mig;

	NEED(attributes);
	NEED_SUPPORT(model->mig_slices > 0 && mig);
	*attributes = (struct nvml_device_attributes){
		.multiprocessors = multiprocessors(mig->slices, model),
		.copy_engines = mig->slices,
		.decoders = part(model->decoders, mig->slices, model),
		.jpegs = part(model->jpegs, mig->slices, model),
		.ofas = mig->slices == model->mig_slices ? model->ofas : 0,
		.gpu_instance_slices = mig->slices,
		.compute_instance_slices = mig->slices,
	};
	put_u64(call, &attributes->memory_mb, mig->memory_mib);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetAttributes(struct nvml_device *device,
					 struct nvml_device_attributes *attributes)
{
	CALL(nvmlDeviceGetAttributes, device);

	return get_attributes(call, attributes);
}

enum nvml_return nvmlDeviceGetAttributes_v2(struct nvml_device *device,
					    struct nvml_device_attributes *attributes)
{
	CALL(nvmlDeviceGetAttributes_v2, device);

	return get_attributes(call, attributes);
}

static enum nvml_return get_profile(const struct call *call, uint32_t profile,
				    struct nvml_gpu_instance_profile_info_v2 *info)
{
	const struct model *model = &call->gpu->what->model;
	static const char *const names[NVML_GPU_INSTANCE_PROFILE_COUNT] = {
		[NVML_GPU_INSTANCE_PROFILE_1_SLICE] = "MIG 1g",
		[NVML_GPU_INSTANCE_PROFILE_2_SLICE] = "MIG 2g",
		[NVML_GPU_INSTANCE_PROFILE_3_SLICE] = "MIG 3g",
		[NVML_GPU_INSTANCE_PROFILE_4_SLICE] = "MIG 4g",
		[NVML_GPU_INSTANCE_PROFILE_7_SLICE] = "MIG 7g",
		[NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2] = "MIG 1g double",
	};

	NEED(info && profile < NVML_GPU_INSTANCE_PROFILE_COUNT);
	NEED_SUPPORT(model->mig_slices > 0 && profiles[profile].slices > 0);
	info->id = profiles[profile].id;
	info->p2p_supported = 0;
	info->slices = profiles[profile].slices;
	info->instances = profiles[profile].instances;
	info->multiprocessors = multiprocessors(info->slices, model);
	info->copy_engines = info->slices;
	info->decoders = part(model->decoders, info->slices, model);
	info->encoders = 0;
	info->jpegs = part(model->jpegs, info->slices, model);
	info->ofas = info->slices == model->mig_slices ? model->ofas : 0;
	info->memory_mb = model->memory_mib / 8 * profiles[profile].memory_slices;
	memset(info->name, 0, sizeof(info->name));
	return put_text(info->name, sizeof(info->name), names[profile]);
}

enum nvml_return nvmlDeviceGetGpuInstanceProfileInfo(struct nvml_device *device, uint32_t profile,
						     struct nvml_gpu_instance_profile_info *info)
{
	CALL(nvmlDeviceGetGpuInstanceProfileInfo, device);
	struct nvml_gpu_instance_profile_info_v2 newer;
	enum nvml_return result = get_profile(call, profile, &newer);

	NEED(info);
	if (result != NVML_SUCCESS)
		return result;
	/* The same members behind the version, as far as they go. */
	memcpy(info, &newer.id, offsetof(struct nvml_gpu_instance_profile_info, memory_mb));
	info->memory_mb = newer.memory_mb;
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetGpuInstanceProfileInfoV(struct nvml_device *device, uint32_t profile,
						      struct nvml_gpu_instance_profile_info_v2 *info)
{
	CALL(nvmlDeviceGetGpuInstanceProfileInfoV, device);

	NEED(info);
	NEED_VERSION(info, 2);
	return get_profile(call, profile, info);
}

static bool has_profile(const struct scenario_instance *instance, uint32_t id)
{
	return profiles[instance->profile].id == id;
}

enum nvml_return nvmlDeviceGetGpuInstances(struct nvml_device *device, uint32_t profile,
					   struct nvml_gpu_instance **instances, uint32_t *count)
{
	CALL(nvmlDeviceGetGpuInstances, device);
	const struct scenario_gpu *what = call->gpu->what;

	NEED(instances && count);
	NEED_SUPPORT(what->mig);
	*count = 0;
	for (uint32_t i = 0; i < what->instance_count; i++) {
		if (has_profile(&what->instances[i], profile))
			instances[(*count)++] = gpu_instance_handle(call->gpu->index, i);
	}
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetGpuInstanceById(struct nvml_device *device, uint32_t id,
					      struct nvml_gpu_instance **instance)
{
	CALL(nvmlDeviceGetGpuInstanceById, device);
	const struct scenario_gpu *what = call->gpu->what;

	NEED(instance);
	NEED_SUPPORT(what->mig);
	for (uint32_t i = 0; i < what->instance_count; i++) {
		if (what->instances[i].gpu_instance == id) {
			*instance = gpu_instance_handle(call->gpu->index, i);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

enum nvml_return nvmlDeviceGetGpuInstanceRemainingCapacity(struct nvml_device *device, uint32_t profile,
							   uint32_t *count)
{
	CALL(nvmlDeviceGetGpuInstanceRemainingCapacity, device);
	const struct scenario_gpu *what = call->gpu->what;
	uint32_t slices = what->model.mig_slices, memory = 8;

	NEED(count);
	NEED_SUPPORT(what->mig);
	for (uint32_t i = 0; i < what->instance_count; i++) {
		slices -= what->instances[i].slices;
		memory -= what->instances[i].memory_slices;
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		if (profiles[i].slices > 0 && profiles[i].id == profile) {
			*count = MIN(slices / profiles[i].slices, memory / profiles[i].memory_slices);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_INVALID_ARGUMENT;
}

enum nvml_return nvmlGpuInstanceGetInfo(struct nvml_gpu_instance *instance,
					struct nvml_gpu_instance_info *info)
{
	CALL_NODE(nvmlGpuInstanceGetInfo);
	const struct scenario_instance *what;

	NEED(info && is_gpu_instance(instance));
	what = &call_node()->scenario->gpus[instance->gpu].instances[instance->instance];
	*info = (struct nvml_gpu_instance_info){
		.device = device_handle(instance->gpu, -1),
		.id = what->gpu_instance,
		.profile = profiles[what->profile].id,
		.placement = { .start = what->start, .size = what->memory_slices },
	};
	return NVML_SUCCESS;
}

enum nvml_return nvmlGpuInstanceGetComputeInstanceProfileInfo(struct nvml_gpu_instance *instance,
							      uint32_t profile, uint32_t engine_profile,
							      struct nvml_compute_instance_profile_info *info)
{
	CALL_NODE(nvmlGpuInstanceGetComputeInstanceProfileInfo);
	const struct scenario_gpu *gpu;
	const struct scenario_instance *what;

	NEED(info && is_gpu_instance(instance) &&
	     engine_profile == NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED);
	gpu = &call_node()->scenario->gpus[instance->gpu];
	what = &gpu->instances[instance->instance];
	NEED_SUPPORT(profile == compute_profile(what));
	*info = (struct nvml_compute_instance_profile_info){
		.id = profile,
		.slices = what->slices,
		.instances = 1,
		.multiprocessors = multiprocessors(what->slices, &gpu->model),
		.copy_engines = what->slices,
		.decoders = part(gpu->model.decoders, what->slices, &gpu->model),
		.jpegs = part(gpu->model.jpegs, what->slices, &gpu->model),
	};
	return NVML_SUCCESS;
}

enum nvml_return nvmlGpuInstanceGetComputeInstances(struct nvml_gpu_instance *instance, uint32_t profile,
						    struct nvml_compute_instance **instances, uint32_t *count)
{
	CALL_NODE(nvmlGpuInstanceGetComputeInstances);
	const struct scenario_instance *what;

	NEED(instances && count && is_gpu_instance(instance));
	what = &call_node()->scenario->gpus[instance->gpu].instances[instance->instance];
	*count = profile == compute_profile(what);
	if (*count > 0)
		instances[0] = compute_instance_handle(instance->gpu, instance->instance);
	return NVML_SUCCESS;
}

enum nvml_return nvmlGpuInstanceGetComputeInstanceById(struct nvml_gpu_instance *instance, uint32_t id,
						       struct nvml_compute_instance **compute)
{
	CALL_NODE(nvmlGpuInstanceGetComputeInstanceById);
	const struct scenario_instance *what;

	NEED(compute && is_gpu_instance(instance));
	what = &call_node()->scenario->gpus[instance->gpu].instances[instance->instance];
	if (what->compute_instance != id)
		return NVML_ERROR_NOT_FOUND;
	*compute = compute_instance_handle(instance->gpu, instance->instance);
	return NVML_SUCCESS;
}

static enum nvml_return compute_info(const struct nvml_compute_instance *instance,
				     struct nvml_compute_instance_info *info)
{
	const struct scenario_instance *what;

	NEED(info && is_compute_instance(instance));
	what = &call_node()->scenario->gpus[instance->gpu].instances[instance->instance];
	*info = (struct nvml_compute_instance_info){
		.device = device_handle(instance->gpu, -1),
		.gpu_instance = gpu_instance_handle(instance->gpu, instance->instance),
		.id = what->compute_instance,
		.profile = compute_profile(what),
		.placement = { .start = 0, .size = what->slices },
	};
	return NVML_SUCCESS;
}

enum nvml_return nvmlComputeInstanceGetInfo(struct nvml_compute_instance *instance,
					    struct nvml_compute_instance_info *info)
{
	CALL_NODE(nvmlComputeInstanceGetInfo);

	return compute_info(instance, info);
}

enum nvml_return nvmlComputeInstanceGetInfo_v2(struct nvml_compute_instance *instance,
					       struct nvml_compute_instance_info *info)
{
	CALL_NODE(nvmlComputeInstanceGetInfo_v2);

	return compute_info(instance, info);
}
