// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/getter.h"

#include <string.h>

#include "sim/nvml/counters.h"

enum { NS_PER_MS = 1000000, UJ_PER_MJ = 1000, MIN_FAN_PERCENT = 30 };

/* Power and energy */
DEVICE_U32(nvmlDeviceGetPowerUsage, true, now->power_mw)
DEVICE_U32(nvmlDeviceGetPowerSource, true, NVML_POWER_SOURCE_AC)
DEVICE_U32(nvmlDeviceGetPowerManagementMode, true, NVML_FEATURE_ENABLED)
DEVICE_U32(nvmlDeviceGetPowerManagementLimit, true, model->limit_mw)
DEVICE_U32(nvmlDeviceGetEnforcedPowerLimit, true, model->limit_mw)
DEVICE_U32(nvmlDeviceGetPowerManagementDefaultLimit, true, model_find(model->id)->limit_mw)

enum nvml_return nvmlDeviceGetPowerManagementLimitConstraints(struct nvml_device *device,
							      uint32_t *min_milliwatt,
							      uint32_t *max_milliwatt)
{
	CALL(nvmlDeviceGetPowerManagementLimitConstraints, device);

	NEED(min_milliwatt && max_milliwatt);
	put_u32(call, min_milliwatt, call->gpu->what->model.limit_min_mw);
	put_u32(call, max_milliwatt, call->gpu->what->model.limit_max_mw);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, uint64_t *millijoule)
{
	CALL(nvmlDeviceGetTotalEnergyConsumption, device);
	struct totals totals;

	NEED(millijoule);
	NEED_SUPPORT(call->gpu->what->model.energy);
	call_totals(call, &totals);
	put_u64(call, millijoule, totals.energy_uj / UJ_PER_MJ);
	return NVML_SUCCESS;
}

/* Time for which the scenario's windows were open, since the driver was loaded. */
static uint64_t given_ms(const struct call *call, uint64_t mask)
{
	const struct scenario *scenario = call_node()->scenario;
	int64_t ms = 0;

	for (uint32_t i = 0; i < scenario->reason_count; i++) {
		const struct scenario_reason *reason = &scenario->reasons[i];

		if (reason->bit & mask && reason->gpus >> call->gpu->index & 1)
			ms += window_open_ms(&reason->window, call->now_ms) -
			      window_open_ms(&reason->window, call->gpu->driver_ms);
	}
	return (uint64_t)ms;
}

uint64_t reason_ns(const struct call *call, uint64_t mask)
{
	uint64_t ms = given_ms(call, mask);
	struct totals totals;

	call_totals(call, &totals);
	if (mask & NVML_CLOCKS_EVENT_REASON_SW_POWER_CAP)
		ms += totals.power_capped_ms;
	if (mask & NVML_CLOCKS_EVENT_REASON_SW_THERMAL_SLOWDOWN)
		ms += totals.thermal_ms;
	return ms * NS_PER_MS;
}

uint64_t violation_ns(const struct call *call, uint32_t policy)
{
	const uint64_t thermal =
		NVML_CLOCKS_EVENT_REASON_SW_THERMAL_SLOWDOWN | NVML_CLOCKS_EVENT_REASON_HW_THERMAL_SLOWDOWN;
	const uint64_t masks[NVML_PERF_POLICY_COUNT] = {
		[NVML_PERF_POLICY_POWER] = NVML_CLOCKS_EVENT_REASON_SW_POWER_CAP,
		[NVML_PERF_POLICY_THERMAL] = thermal,
		[NVML_PERF_POLICY_SYNC_BOOST] = NVML_CLOCKS_EVENT_REASON_SYNC_BOOST,
		[NVML_PERF_POLICY_BOARD_LIMIT] = NVML_CLOCKS_EVENT_REASON_BOARD_LIMIT,
		[NVML_PERF_POLICY_RELIABILITY] = NVML_CLOCKS_EVENT_REASON_RELIABILITY,
		[NVML_PERF_POLICY_TOTAL_APP_CLOCKS] = thermal | NVML_CLOCKS_EVENT_REASON_SW_POWER_CAP,
		[NVML_PERF_POLICY_TOTAL_BASE_CLOCKS] = thermal,
	};

	return reason_ns(call, masks[policy]);
}

enum nvml_return nvmlDeviceGetViolationStatus(struct nvml_device *device, uint32_t policy,
					      struct nvml_violation_time *time)
{
	CALL(nvmlDeviceGetViolationStatus, device);

	NEED(time && policy < NVML_PERF_POLICY_COUNT);
	NEED(policy <= NVML_PERF_POLICY_RELIABILITY || policy >= NVML_PERF_POLICY_TOTAL_APP_CLOCKS);
	NEED_SUPPORT(call->gpu->what->model.ecc);
	put_u64(call, &time->reference_time, stamp_us(call->now_ms));
	put_u64(call, &time->violation_time, violation_ns(call, policy));
	return NVML_SUCCESS;
}

/* Temperature */
uint32_t temperature_c(const struct call *call)
{
	return (uint32_t)MAX((gpu_now(call->gpu)->temperature_mc + 500) / 1000, 0);
}

/* Stacks of memory are hotter than the chip beside them, the more so the warmer it is. */
uint32_t memory_temperature_c(const struct call *call)
{
	int32_t above = gpu_now(call->gpu)->temperature_mc - call->gpu->what->model.ambient_c * 1000;

	return (uint32_t)MAX((gpu_now(call->gpu)->temperature_mc + 3000 + above / 5 + 500) / 1000, 0);
}

enum nvml_return nvmlDeviceGetTemperature(struct nvml_device *device, uint32_t sensor, uint32_t *celsius)
{
	CALL(nvmlDeviceGetTemperature, device);

	NEED(celsius && sensor == NVML_TEMPERATURE_GPU);
	put_u32(call, celsius, temperature_c(call));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetTemperatureV(struct nvml_device *device, struct nvml_temperature *temperature)
{
	CALL(nvmlDeviceGetTemperatureV, device);

	NEED(temperature);
	NEED_VERSION(temperature, 1);
	NEED(temperature->sensor == NVML_TEMPERATURE_GPU);
	put_u32(call, (uint32_t *)&temperature->celsius, temperature_c(call));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetTemperatureThreshold(struct nvml_device *device, uint32_t threshold,
						   uint32_t *celsius)
{
	CALL(nvmlDeviceGetTemperatureThreshold, device);
	const struct model *model = &call->gpu->what->model;
	const uint32_t thresholds[NVML_TEMPERATURE_THRESHOLD_COUNT] = {
		[NVML_TEMPERATURE_THRESHOLD_SHUTDOWN] = model->shutdown_c,
		[NVML_TEMPERATURE_THRESHOLD_SLOWDOWN] = model->slowdown_c,
		[NVML_TEMPERATURE_THRESHOLD_MEM_MAX] = model->memory_temperature ? model->memory_max_c : 0,
		[NVML_TEMPERATURE_THRESHOLD_GPU_MAX] = model->gpu_max_c,
	};

	NEED(celsius && threshold < NVML_TEMPERATURE_THRESHOLD_COUNT);
	NEED_SUPPORT(thresholds[threshold] > 0);
	put_u32(call, celsius, thresholds[threshold]);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetMarginTemperature(struct nvml_device *device,
						struct nvml_margin_temperature *margin)
{
	CALL(nvmlDeviceGetMarginTemperature, device);

	NEED(margin);
	NEED_SUPPORT(call->gpu->what->model.architecture >= NVML_DEVICE_ARCH_ADA);
	NEED_VERSION(margin, 1);
	put_u32(call, (uint32_t *)&margin->celsius, call->gpu->what->model.slowdown_c - temperature_c(call));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetThermalSettings(struct nvml_device *device, uint32_t sensor,
					      struct nvml_thermal_settings *settings)
{
	CALL(nvmlDeviceGetThermalSettings, device);

	NEED(settings);
	NEED(sensor == 0 || sensor == NVML_THERMAL_TARGET_ALL);
	*settings = (struct nvml_thermal_settings){ .count = 1 };
	settings->sensor[0].controller = 1;
	settings->sensor[0].default_min = -40;
	settings->sensor[0].default_max = (int32_t)call->gpu->what->model.slowdown_c;
	settings->sensor[0].target = NVML_THERMAL_TARGET_GPU;
	put_u32(call, (uint32_t *)&settings->sensor[0].current, temperature_c(call));
	return NVML_SUCCESS;
}

/* Fans follow the temperature, each a little differently; boards for servers have none. */
static uint32_t fan_percent(const struct call *call, uint32_t fan)
{
	int64_t percent =
		MIN_FAN_PERCENT + ((int64_t)gpu_now(call->gpu)->temperature_mc - 40000) * 3 / 2000 + fan;

	return (uint32_t)CLAMP(percent, (int64_t)MIN_FAN_PERCENT, INT64_C(100));
}

DEVICE_U32(nvmlDeviceGetNumFans, true, model->fans)
DEVICE_U32(nvmlDeviceGetFanSpeed, model->fans > 0, fan_percent(call, 0))

static enum nvml_return get_fan(const struct call *call, uint32_t fan, uint32_t *percent)
{
	NEED_SUPPORT(call->gpu->what->model.fans > 0);
	NEED(percent && fan < call->gpu->what->model.fans);
	put_u32(call, percent, fan_percent(call, fan));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetFanSpeed_v2(struct nvml_device *device, uint32_t fan, uint32_t *percent)
{
	CALL(nvmlDeviceGetFanSpeed_v2, device);

	return get_fan(call, fan, percent);
}

enum nvml_return nvmlDeviceGetTargetFanSpeed(struct nvml_device *device, uint32_t fan, uint32_t *percent)
{
	CALL(nvmlDeviceGetTargetFanSpeed, device);

	return get_fan(call, fan, percent);
}

enum nvml_return nvmlDeviceGetFanSpeedRPM(struct nvml_device *device, struct nvml_fan_speed *speed)
{
	CALL(nvmlDeviceGetFanSpeedRPM, device);
	uint32_t percent;

	NEED(speed);
	NEED_VERSION(speed, 1);
	NEED_SUPPORT(call->gpu->what->model.fans > 0);
	NEED(speed->fan < call->gpu->what->model.fans);
	percent = fan_percent(call, speed->fan);
	put_u32(call, &speed->rpm, call->gpu->what->model.fan_rpm * percent / 100);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetMinMaxFanSpeed(struct nvml_device *device, uint32_t *min_percent,
					     uint32_t *max_percent)
{
	CALL(nvmlDeviceGetMinMaxFanSpeed, device);

	NEED(min_percent && max_percent);
	NEED_SUPPORT(call->gpu->what->model.fans > 0);
	put_u32(call, min_percent, MIN_FAN_PERCENT);
	put_u32(call, max_percent, 100);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetFanControlPolicy_v2(struct nvml_device *device, uint32_t fan, uint32_t *policy)
{
	CALL(nvmlDeviceGetFanControlPolicy_v2, device);

	NEED_SUPPORT(call->gpu->what->model.fans > 0);
	NEED(policy && fan < call->gpu->what->model.fans);
	put_u32(call, policy, NVML_FAN_POLICY_TEMPERATURE_CONTINOUS_SW);
	return NVML_SUCCESS;
}
