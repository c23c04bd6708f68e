// SPDX-License-Identifier: Apache-2.0
#include "nvml/getters.h"
#include "nvml/report.h"

#include "base/clock.h"

/* A longer gap between two readings of power is too long to estimate the energy in between. */
#define ENERGY_BRIDGE_NS (120 * NSEC_PER_SEC)

enum nvml_return power_read(struct reader *reader, struct device *device)
{
	uint32_t milliwatt = 0;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetPowerUsage, device->handle, &milliwatt);

	REPORT_U32(reader, device, POWER, result, milliwatt, 1e-3);
	return result;
}

enum nvml_return energy_read(struct reader *reader, struct device *device)
{
	int64_t begin_ns = reader_work_begin(device);
	enum nvml_return result;
	uint64_t millijoule = 0;

	if (begin_ns < 0)
		return NVML_SUCCESS;
	result = NVML_CALL(reader, nvmlDeviceGetTotalEnergyConsumption, device->handle, &millijoule);
	reader_work_end(device, begin_ns);
	REPORT_U64(reader, device, ENERGY, result, millijoule, 1e-3);
	device->energy_estimated = nvml_unsupported(result);
	return result;
}

/* A device without an energy counter gets the integral of its power, which is marked as an estimate. */
void energy_derive(struct reader *reader, struct device *device)
{
	struct persistent_state *work = &device->work;
	int64_t elapsed = reader->now_ns - work->energy_boot_ns;
	double watts = device->entity->v[SLOT_POWER];

	if (device->parent != READING_NONE || !device->energy_estimated || !device_has(device, SLOT_POWER))
		return;
	if (work->energy_boot_ns && elapsed > 0 && elapsed <= ENERGY_BRIDGE_NS)
		work->energy_joules += (work->energy_watts + watts) / 2 * ((double)elapsed / NSEC_PER_SEC);
	work->energy_watts = watts;
	work->energy_boot_ns = reader->now_ns;
	REPORT(reader, device, ENERGY, NVML_SUCCESS, work->energy_joules);
	device->entity->p[SLOT_ENERGY] |= PRESENCE_ESTIMATED;
}

enum nvml_return power_limit_enforced_read(struct reader *reader, struct device *device)
{
	uint32_t milliwatt = 0;
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetEnforcedPowerLimit, device->handle, &milliwatt);

	REPORT_U32(reader, device, POWER_LIMIT_ENFORCED, result, milliwatt, 1e-3);
	return result;
}

enum nvml_return power_limit_management_read(struct reader *reader, struct device *device)
{
	uint32_t milliwatt = 0;
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetPowerManagementLimit, device->handle, &milliwatt);

	REPORT_U32(reader, device, POWER_LIMIT_MANAGEMENT, result, milliwatt, 1e-3);
	return result;
}

enum nvml_return power_limit_default_read(struct reader *reader, struct device *device)
{
	uint32_t milliwatt = 0;
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetPowerManagementDefaultLimit, device->handle, &milliwatt);

	REPORT_U32(reader, device, POWER_LIMIT_DEFAULT, result, milliwatt, 1e-3);
	return result;
}

enum nvml_return power_limit_range_read(struct reader *reader, struct device *device)
{
	uint32_t min = 0, max = 0;
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetPowerManagementLimitConstraints, device->handle, &min, &max);

	REPORT_U32(reader, device, POWER_LIMIT_MIN, result, min, 1e-3);
	REPORT_U32(reader, device, POWER_LIMIT_MAX, result, max, 1e-3);
	return result;
}

enum nvml_return temperature_read(struct reader *reader, struct device *device)
{
	struct nvml_temperature temperature = {
		.version = NVML_VERSION_WORD(struct nvml_temperature, 1),
		.sensor = NVML_TEMPERATURE_GPU,
	};
	uint32_t celsius = 0;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetTemperatureV, device->handle, &temperature);

	if (nvml_unsupported(result)) {
		result = NVML_CALL(reader, nvmlDeviceGetTemperature, device->handle, NVML_TEMPERATURE_GPU,
				   &celsius);
		temperature.celsius = (int32_t)celsius;
	}
	REPORT_S32(reader, device, TEMPERATURE, result, temperature.celsius);
	return result;
}

enum nvml_return temperature_margin_read(struct reader *reader, struct device *device)
{
	struct nvml_margin_temperature margin = { .version = NVML_VERSION_WORD(struct nvml_margin_temperature,
									       1) };
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetMarginTemperature, device->handle, &margin);

	REPORT_S32(reader, device, TEMPERATURE_MARGIN, result, margin.celsius);
	return result;
}

enum nvml_return temperature_limits_read(struct reader *reader, struct device *device)
{
	static const struct {
		unsigned row, slot;
		uint32_t threshold;
	} limits[] = {
		{ GPU_TEMPERATURE_LIMIT_SHUTDOWN, SLOT_TEMPERATURE_LIMIT_SHUTDOWN,
		  NVML_TEMPERATURE_THRESHOLD_SHUTDOWN },
		{ GPU_TEMPERATURE_LIMIT_SLOWDOWN, SLOT_TEMPERATURE_LIMIT_SLOWDOWN,
		  NVML_TEMPERATURE_THRESHOLD_SLOWDOWN },
		{ GPU_TEMPERATURE_LIMIT_MEMORY_MAX, SLOT_TEMPERATURE_LIMIT_MEMORY_MAX,
		  NVML_TEMPERATURE_THRESHOLD_MEM_MAX },
		{ GPU_TEMPERATURE_LIMIT_GPU_MAX, SLOT_TEMPERATURE_LIMIT_GPU_MAX,
		  NVML_TEMPERATURE_THRESHOLD_GPU_MAX },
	};
	enum nvml_return overall = NVML_ERROR_NOT_SUPPORTED;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		uint32_t celsius = 0;
		enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetTemperatureThreshold, device->handle,
						    limits[i].threshold, &celsius);

		reader_report_u32(reader, device, limits[i].row, limits[i].slot, result, celsius, 1);
		if (!nvml_unsupported(result))
			overall = result;
	}
	return overall;
}

enum nvml_return fans_read(struct reader *reader, struct device *device)
{
	uint32_t fans = 0, percent = 0;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetNumFans, device->handle, &fans);

	if (result == NVML_SUCCESS && fans == 0)
		result = NVML_ERROR_NOT_SUPPORTED;
	for (uint32_t i = 0; result == NVML_SUCCESS && i < MIN(fans, (uint32_t)FANS_MAX); i++) {
		enum nvml_return one =
			NVML_CALL(reader, nvmlDeviceGetFanSpeed_v2, device->handle, i, &percent);

		if (i == 0 && nvml_unsupported(one))
			result = one;
		else
			reader_report_u32(reader, device, GPU_FAN_SPEED, SLOT_FAN_SPEED + i, one, percent,
					  1e-2);
	}
	if (!nvml_unsupported(result)) {
		if (result != NVML_SUCCESS)
			REPORT(reader, device, FAN_SPEED, result, 0); /* the number of fans is unknown */
		return result;
	}
	result = NVML_CALL(reader, nvmlDeviceGetFanSpeed, device->handle, &percent);
	REPORT_U32(reader, device, FAN_SPEED, result, percent, 1e-2);
	return result;
}
