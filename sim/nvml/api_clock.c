// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/getter.h"

enum { LISTED_CLOCKS = 64, CLOCK_STEP_MHZ = 15 };

static uint32_t current_mhz(const struct call *call, uint32_t clock)
{
	const struct tick *now = gpu_now(call->gpu);

	switch (clock) {
	case NVML_CLOCK_MEM:
		return now->memory_mhz;
	case NVML_CLOCK_VIDEO:
		return now->video_mhz;
	default:
		return now->sm_mhz;
	}
}

static uint32_t max_mhz(const struct model *model, uint32_t clock)
{
	switch (clock) {
	case NVML_CLOCK_MEM:
		return model->memory_mhz;
	case NVML_CLOCK_VIDEO:
		return model->video_mhz;
	default:
		return model->sm_mhz;
	}
}

/* What applications ask for; GeForce boards have no such setting. */
static enum nvml_return application_mhz(const struct call *call, uint32_t clock, bool target, uint32_t *mhz)
{
	const struct scenario_gpu *what = call->gpu->what;
	uint32_t value = max_mhz(&what->model, clock);

	NEED(mhz && clock < NVML_CLOCK_COUNT);
	NEED_SUPPORT(what->model.ecc && clock != NVML_CLOCK_VIDEO);
	if (target && clock != NVML_CLOCK_MEM && what->application_sm_mhz > 0)
		value = what->application_sm_mhz;
	put_u32(call, mhz, value);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetClockInfo(struct nvml_device *device, uint32_t clock, uint32_t *mhz)
{
	CALL(nvmlDeviceGetClockInfo, device);

	NEED(mhz && clock < NVML_CLOCK_COUNT);
	put_u32(call, mhz, current_mhz(call, clock));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetMaxClockInfo(struct nvml_device *device, uint32_t clock, uint32_t *mhz)
{
	CALL(nvmlDeviceGetMaxClockInfo, device);

	NEED(mhz && clock < NVML_CLOCK_COUNT);
	put_u32(call, mhz, max_mhz(&call->gpu->what->model, clock));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetClock(struct nvml_device *device, uint32_t clock, uint32_t id, uint32_t *mhz)
{
	CALL(nvmlDeviceGetClock, device);

	NEED(mhz && clock < NVML_CLOCK_COUNT && id < NVML_CLOCK_ID_COUNT);
	if (id == NVML_CLOCK_ID_APP_CLOCK_TARGET || id == NVML_CLOCK_ID_APP_CLOCK_DEFAULT)
		return application_mhz(call, clock, id == NVML_CLOCK_ID_APP_CLOCK_TARGET, mhz);
	put_u32(call, mhz,
		id == NVML_CLOCK_ID_CURRENT ? current_mhz(call, clock) :
					      max_mhz(&call->gpu->what->model, clock));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetApplicationsClock(struct nvml_device *device, uint32_t clock, uint32_t *mhz)
{
	CALL(nvmlDeviceGetApplicationsClock, device);

	return application_mhz(call, clock, true, mhz);
}

enum nvml_return nvmlDeviceGetDefaultApplicationsClock(struct nvml_device *device, uint32_t clock,
						       uint32_t *mhz)
{
	CALL(nvmlDeviceGetDefaultApplicationsClock, device);

	return application_mhz(call, clock, false, mhz);
}

enum nvml_return nvmlDeviceGetMaxCustomerBoostClock(struct nvml_device *device, uint32_t clock, uint32_t *mhz)
{
	CALL(nvmlDeviceGetMaxCustomerBoostClock, device);

	NEED(mhz && clock < NVML_CLOCK_COUNT);
	NEED_SUPPORT(call->gpu->what->model.ecc);
	put_u32(call, mhz, max_mhz(&call->gpu->what->model, clock));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetSupportedMemoryClocks(struct nvml_device *device, uint32_t *count,
						    uint32_t *mhz)
{
	CALL(nvmlDeviceGetSupportedMemoryClocks, device);
	const struct model *model = &call->gpu->what->model;
	uint32_t clocks = model->memory_mhz == model->memory_idle_mhz ? 1 : 2, capacity;

	NEED(count);
	capacity = *count;
	*count = clocks;
	if (capacity < clocks || !mhz)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	mhz[0] = model->memory_mhz;
	if (clocks > 1)
		mhz[1] = model->memory_idle_mhz;
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetSupportedGraphicsClocks(struct nvml_device *device, uint32_t memory_mhz,
						      uint32_t *count, uint32_t *mhz)
{
	CALL(nvmlDeviceGetSupportedGraphicsClocks, device);
	const struct model *model = &call->gpu->what->model;
	uint32_t clocks = MIN((model->sm_mhz - model->sm_idle_mhz) / CLOCK_STEP_MHZ + 1,
			      (uint32_t)LISTED_CLOCKS),
		 capacity;

	NEED(count);
	if (memory_mhz != model->memory_mhz && memory_mhz != model->memory_idle_mhz)
		return NVML_ERROR_NOT_FOUND;
	capacity = *count;
	*count = clocks;
	if (capacity < clocks || !mhz)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (uint32_t i = 0; i < clocks; i++)
		mhz[i] = model->sm_mhz - i * CLOCK_STEP_MHZ;
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetAutoBoostedClocksEnabled(struct nvml_device *device, uint32_t *enabled,
						       uint32_t *default_enabled)
{
	CALL(nvmlDeviceGetAutoBoostedClocksEnabled, device);

	/* Kepler had it. */
	NEED(enabled && default_enabled);
	return NVML_ERROR_NOT_SUPPORTED;
}

DEVICE_U32(nvmlDeviceGetAdaptiveClockInfoStatus, true, 1)

enum nvml_return nvmlDeviceGetMinMaxClockOfPState(struct nvml_device *device, uint32_t clock, uint32_t pstate,
						  uint32_t *min_mhz, uint32_t *max_mhz_out)
{
	CALL(nvmlDeviceGetMinMaxClockOfPState, device);
	const struct model *model = &call->gpu->what->model;
	bool memory = clock == NVML_CLOCK_MEM;

	NEED(min_mhz && max_mhz_out && clock < NVML_CLOCK_COUNT && pstate <= NVML_PSTATE_15);
	NEED(pstate == 0 || pstate == model->idle_pstate);
	put_u32(call, min_mhz,
		memory ? (pstate == 0 ? model->memory_mhz : model->memory_idle_mhz) : model->sm_idle_mhz);
	put_u32(call, max_mhz_out,
		pstate == 0 ? max_mhz(model, clock) :
		memory      ? model->memory_idle_mhz :
			      model->sm_idle_mhz);
	return NVML_SUCCESS;
}

static uint64_t known_reasons(void)
{
	return call_generation()->reasons | call_generation()->more_reasons;
}

static uint64_t current_reasons(const struct tick *now)
{
	return (now->reasons & call_generation()->reasons) | call_generation()->more_reasons;
}

DEVICE_U64(nvmlDeviceGetCurrentClocksEventReasons, true, current_reasons(now))
DEVICE_U64(nvmlDeviceGetCurrentClocksThrottleReasons, true, current_reasons(now))
DEVICE_U64(nvmlDeviceGetSupportedClocksEventReasons, true, known_reasons())
DEVICE_U64(nvmlDeviceGetSupportedClocksThrottleReasons, true, known_reasons())
DEVICE_U32(nvmlDeviceGetPerformanceState, true, now->pstate)
DEVICE_U32(nvmlDeviceGetPowerState, true, now->pstate)

enum nvml_return nvmlDeviceGetSupportedPerformanceStates(struct nvml_device *device, uint32_t *pstates,
							 uint32_t size)
{
	CALL(nvmlDeviceGetSupportedPerformanceStates, device);
	uint32_t idle = call->gpu->what->model.idle_pstate, known = idle > 0 ? 2 : 1,
		 capacity = size / sizeof(*pstates);

	NEED(pstates);
	for (uint32_t i = 0; i < capacity; i++)
		pstates[i] = NVML_PSTATE_UNKNOWN;
	if (capacity < known)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	pstates[0] = 0;
	if (idle > 0)
		pstates[1] = idle;
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetDynamicPstatesInfo(struct nvml_device *device,
						 struct nvml_dynamic_pstates *info)
{
	CALL(nvmlDeviceGetDynamicPstatesInfo, device);
	const struct tick *last = gpu_last(call->gpu);

	NEED(info);
	NEED_SUPPORT(!call->gpu->what->mig);
	*info = (struct nvml_dynamic_pstates){ 0 };
	info->utilization[NVML_GPU_UTILIZATION_DOMAIN_GPU].present = 1;
	put_u32(call, &info->utilization[NVML_GPU_UTILIZATION_DOMAIN_GPU].percent, last->load[ENGINE_GPU]);
	info->utilization[NVML_GPU_UTILIZATION_DOMAIN_FB].present = 1;
	put_u32(call, &info->utilization[NVML_GPU_UTILIZATION_DOMAIN_FB].percent, last->load[ENGINE_MEMORY]);
	info->utilization[NVML_GPU_UTILIZATION_DOMAIN_VID].present = 1;
	put_u32(call, &info->utilization[NVML_GPU_UTILIZATION_DOMAIN_VID].percent,
		last->load[ENGINE_DECODER]);
	return NVML_SUCCESS;
}
