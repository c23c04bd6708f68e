// SPDX-License-Identifier: Apache-2.0
#pragma once

/* NVML: clocks and what limits them, performance states, power, energy, temperature, fans. See nvml/abi.h. */

#include "nvml/abi_base.h"

enum nvml_clock {
	NVML_CLOCK_GRAPHICS = 0,
	NVML_CLOCK_SM = 1,
	NVML_CLOCK_MEM = 2,
	NVML_CLOCK_VIDEO = 3,
	NVML_CLOCK_COUNT = 4,
};

enum nvml_clock_id {
	NVML_CLOCK_ID_CURRENT = 0,
	NVML_CLOCK_ID_APP_CLOCK_TARGET = 1,
	NVML_CLOCK_ID_APP_CLOCK_DEFAULT = 2,
	NVML_CLOCK_ID_CUSTOMER_BOOST_MAX = 3,
	NVML_CLOCK_ID_COUNT = 4,
};

/* Bits of the clocks event (formerly throttle) reasons; 0: nothing limits the clocks. */
enum nvml_clocks_event_reason {
	NVML_CLOCKS_EVENT_REASON_NONE = 0x000, // nvmlClocksEventReasonNone
	NVML_CLOCKS_EVENT_REASON_GPU_IDLE = 0x001, // nvmlClocksEventReasonGpuIdle
	NVML_CLOCKS_EVENT_REASON_APPLICATIONS_CLOCKS_SETTING =
		0x002, // nvmlClocksEventReasonApplicationsClocksSetting
	NVML_CLOCKS_EVENT_REASON_SW_POWER_CAP = 0x004, // nvmlClocksEventReasonSwPowerCap
	NVML_CLOCKS_EVENT_REASON_HW_SLOWDOWN = 0x008, // nvmlClocksThrottleReasonHwSlowdown
	NVML_CLOCKS_EVENT_REASON_SYNC_BOOST = 0x010, // nvmlClocksEventReasonSyncBoost
	NVML_CLOCKS_EVENT_REASON_SW_THERMAL_SLOWDOWN = 0x020, // nvmlClocksEventReasonSwThermalSlowdown
	NVML_CLOCKS_EVENT_REASON_HW_THERMAL_SLOWDOWN = 0x040, // nvmlClocksThrottleReasonHwThermalSlowdown
	NVML_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN =
		0x080, // nvmlClocksThrottleReasonHwPowerBrakeSlowdown
	NVML_CLOCKS_EVENT_REASON_DISPLAY_CLOCK_SETTING = 0x100, // nvmlClocksEventReasonDisplayClockSetting
	NVML_CLOCKS_EVENT_REASON_BOARD_LIMIT = 0x200, // nvmlClocksEventReasonBoardLimit
	NVML_CLOCKS_EVENT_REASON_RELIABILITY = 0x400, // nvmlClocksEventReasonReliability
	NVML_CLOCKS_EVENT_REASON_ALL = 0x7ff, // nvmlClocksEventReasonAll
};

/* Performance states are 0 (fastest) to 15. */
#define NVML_PSTATE_0 0
#define NVML_PSTATE_15 15
#define NVML_PSTATE_UNKNOWN 32
#define NVML_MAX_GPU_PERF_PSTATES 16

enum nvml_perf_policy {
	NVML_PERF_POLICY_POWER = 0,
	NVML_PERF_POLICY_THERMAL = 1,
	NVML_PERF_POLICY_SYNC_BOOST = 2,
	NVML_PERF_POLICY_BOARD_LIMIT = 3,
	NVML_PERF_POLICY_LOW_UTILIZATION = 4,
	NVML_PERF_POLICY_RELIABILITY = 5,
	NVML_PERF_POLICY_TOTAL_APP_CLOCKS = 10,
	NVML_PERF_POLICY_TOTAL_BASE_CLOCKS = 11,
	NVML_PERF_POLICY_COUNT = 12,
};

enum nvml_temperature_sensor {
	NVML_TEMPERATURE_GPU = 0,
	NVML_TEMPERATURE_GPU_MAX = 1,
};

enum nvml_temperature_threshold {
	NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0,
	NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
	NVML_TEMPERATURE_THRESHOLD_MEM_MAX = 2,
	NVML_TEMPERATURE_THRESHOLD_GPU_MAX = 3,
	NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MIN = 4,
	NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR = 5,
	NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MAX = 6,
	NVML_TEMPERATURE_THRESHOLD_GPS_CURR = 7,
	NVML_TEMPERATURE_THRESHOLD_COUNT = 8,
};

enum nvml_thermal_target {
	NVML_THERMAL_TARGET_NONE = 0,
	NVML_THERMAL_TARGET_GPU = 1,
	NVML_THERMAL_TARGET_MEMORY = 2,
	NVML_THERMAL_TARGET_POWER_SUPPLY = 4,
	NVML_THERMAL_TARGET_BOARD = 8,
	NVML_THERMAL_TARGET_ALL = 15,
};

enum nvml_fan_policy {
	NVML_FAN_POLICY_TEMPERATURE_CONTINOUS_SW = 0,
	NVML_FAN_POLICY_MANUAL = 1,
};

enum nvml_power_source {
	NVML_POWER_SOURCE_AC = 0,
	NVML_POWER_SOURCE_BATTERY = 1,
	NVML_POWER_SOURCE_UNDERSIZED = 2,
};

/* Field values of power take one of these as their scope. */
#define NVML_POWER_SCOPE_GPU 0u
#define NVML_POWER_SCOPE_MODULE 1u
#define NVML_POWER_SCOPE_MEMORY 2u

struct nvml_violation_time { // nvmlViolationTime_t
	uint64_t reference_time; /* microseconds, CPU clock */
	uint64_t violation_time; /* nanoseconds */
};
_Static_assert(sizeof(struct nvml_violation_time) == 16, "nvmlViolationTime_t");

struct nvml_temperature { // nvmlTemperature_v1_t
	uint32_t version;
	uint32_t sensor;
	int32_t celsius;
};
_Static_assert(sizeof(struct nvml_temperature) == 12, "nvmlTemperature_v1_t");

struct nvml_margin_temperature { // nvmlMarginTemperature_v1_t
	uint32_t version;
	int32_t celsius;
};
_Static_assert(sizeof(struct nvml_margin_temperature) == 8, "nvmlMarginTemperature_v1_t");

#define NVML_MAX_THERMAL_SENSORS_PER_GPU 3

struct nvml_thermal_sensor { // nvmlGpuThermalSettings_t.sensor
	int32_t controller;
	int32_t default_min;
	int32_t default_max;
	int32_t current;
	int32_t target;
};

struct nvml_thermal_settings { // nvmlGpuThermalSettings_t
	uint32_t count;
	struct nvml_thermal_sensor sensor[NVML_MAX_THERMAL_SENSORS_PER_GPU];
};
_Static_assert(sizeof(struct nvml_thermal_settings) == 64, "nvmlGpuThermalSettings_t");

struct nvml_fan_speed { // nvmlFanSpeedInfo_v1_t
	uint32_t version;
	uint32_t fan;
	uint32_t rpm;
};
_Static_assert(sizeof(struct nvml_fan_speed) == 12, "nvmlFanSpeedInfo_v1_t");

#define NVML_MAX_GPU_UTILIZATIONS 8

enum nvml_utilization_domain {
	NVML_GPU_UTILIZATION_DOMAIN_GPU = 0,
	NVML_GPU_UTILIZATION_DOMAIN_FB = 1,
	NVML_GPU_UTILIZATION_DOMAIN_VID = 2,
	NVML_GPU_UTILIZATION_DOMAIN_BUS = 3,
};

struct nvml_dynamic_pstate { // nvmlGpuDynamicPstatesInfo_t.utilization
	uint32_t present;
	uint32_t percent;
	uint32_t inc_threshold;
	uint32_t dec_threshold;
};

struct nvml_dynamic_pstates { // nvmlGpuDynamicPstatesInfo_t
	uint32_t flags;
	struct nvml_dynamic_pstate utilization[NVML_MAX_GPU_UTILIZATIONS];
};
_Static_assert(sizeof(struct nvml_dynamic_pstates) == 132, "nvmlGpuDynamicPstatesInfo_t");

enum nvml_return nvmlDeviceGetClockInfo(struct nvml_device *device, uint32_t clock, uint32_t *mhz);
enum nvml_return nvmlDeviceGetMaxClockInfo(struct nvml_device *device, uint32_t clock, uint32_t *mhz);
enum nvml_return nvmlDeviceGetClock(struct nvml_device *device, uint32_t clock, uint32_t id, uint32_t *mhz);
enum nvml_return nvmlDeviceGetApplicationsClock(struct nvml_device *device, uint32_t clock, uint32_t *mhz);
enum nvml_return nvmlDeviceGetDefaultApplicationsClock(struct nvml_device *device, uint32_t clock,
						       uint32_t *mhz);
enum nvml_return nvmlDeviceGetMaxCustomerBoostClock(struct nvml_device *device, uint32_t clock,
						    uint32_t *mhz);
enum nvml_return nvmlDeviceGetSupportedMemoryClocks(struct nvml_device *device, uint32_t *count,
						    uint32_t *mhz);
enum nvml_return nvmlDeviceGetSupportedGraphicsClocks(struct nvml_device *device, uint32_t memory_mhz,
						      uint32_t *count, uint32_t *mhz);
enum nvml_return nvmlDeviceGetAutoBoostedClocksEnabled(struct nvml_device *device, uint32_t *enabled,
						       uint32_t *default_enabled);
enum nvml_return nvmlDeviceGetAdaptiveClockInfoStatus(struct nvml_device *device, uint32_t *status);
enum nvml_return nvmlDeviceGetMinMaxClockOfPState(struct nvml_device *device, uint32_t clock, uint32_t pstate,
						  uint32_t *min_mhz, uint32_t *max_mhz);
enum nvml_return nvmlDeviceGetCurrentClocksEventReasons(struct nvml_device *device, uint64_t *reasons);
enum nvml_return nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *device, uint64_t *reasons);
enum nvml_return nvmlDeviceGetSupportedClocksEventReasons(struct nvml_device *device, uint64_t *reasons);
enum nvml_return nvmlDeviceGetSupportedClocksThrottleReasons(struct nvml_device *device, uint64_t *reasons);
enum nvml_return nvmlDeviceGetPerformanceState(struct nvml_device *device, uint32_t *pstate);
enum nvml_return nvmlDeviceGetPowerState(struct nvml_device *device, uint32_t *pstate);
enum nvml_return nvmlDeviceGetSupportedPerformanceStates(struct nvml_device *device, uint32_t *pstates,
							 uint32_t size);
enum nvml_return nvmlDeviceGetDynamicPstatesInfo(struct nvml_device *device,
						 struct nvml_dynamic_pstates *info);
enum nvml_return nvmlDeviceGetViolationStatus(struct nvml_device *device, uint32_t policy,
					      struct nvml_violation_time *time);

enum nvml_return nvmlDeviceGetPowerUsage(struct nvml_device *device, uint32_t *milliwatt);
enum nvml_return nvmlDeviceGetPowerSource(struct nvml_device *device, uint32_t *source);
enum nvml_return nvmlDeviceGetPowerManagementMode(struct nvml_device *device, uint32_t *mode);
enum nvml_return nvmlDeviceGetPowerManagementLimit(struct nvml_device *device, uint32_t *milliwatt);
enum nvml_return nvmlDeviceGetPowerManagementLimitConstraints(struct nvml_device *device,
							      uint32_t *min_milliwatt,
							      uint32_t *max_milliwatt);
enum nvml_return nvmlDeviceGetPowerManagementDefaultLimit(struct nvml_device *device, uint32_t *milliwatt);
enum nvml_return nvmlDeviceGetEnforcedPowerLimit(struct nvml_device *device, uint32_t *milliwatt);
enum nvml_return nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, uint64_t *millijoule);

enum nvml_return nvmlDeviceGetTemperature(struct nvml_device *device, uint32_t sensor, uint32_t *celsius);
enum nvml_return nvmlDeviceGetTemperatureV(struct nvml_device *device, struct nvml_temperature *temperature);
enum nvml_return nvmlDeviceGetTemperatureThreshold(struct nvml_device *device, uint32_t threshold,
						   uint32_t *celsius);
enum nvml_return nvmlDeviceGetMarginTemperature(struct nvml_device *device,
						struct nvml_margin_temperature *margin);
enum nvml_return nvmlDeviceGetThermalSettings(struct nvml_device *device, uint32_t sensor,
					      struct nvml_thermal_settings *settings);
enum nvml_return nvmlDeviceGetNumFans(struct nvml_device *device, uint32_t *count);
enum nvml_return nvmlDeviceGetFanSpeed(struct nvml_device *device, uint32_t *percent);
enum nvml_return nvmlDeviceGetFanSpeed_v2(struct nvml_device *device, uint32_t fan, uint32_t *percent);
enum nvml_return nvmlDeviceGetFanSpeedRPM(struct nvml_device *device, struct nvml_fan_speed *speed);
enum nvml_return nvmlDeviceGetTargetFanSpeed(struct nvml_device *device, uint32_t fan, uint32_t *percent);
enum nvml_return nvmlDeviceGetMinMaxFanSpeed(struct nvml_device *device, uint32_t *min_percent,
					     uint32_t *max_percent);
enum nvml_return nvmlDeviceGetFanControlPolicy_v2(struct nvml_device *device, uint32_t fan, uint32_t *policy);
