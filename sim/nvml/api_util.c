// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/getter.h"

#include "sim/node/guest.h"
#include "sim/nvml/counters.h"

/* The newest complete sample; GPUs in MIG mode have none of the whole. */
enum nvml_return nvmlDeviceGetUtilizationRates(struct nvml_device *device,
					       struct nvml_utilization *utilization)
{
	CALL(nvmlDeviceGetUtilizationRates, device);
	uint32_t load;

	NEED(utilization);
	NEED_SUPPORT(!call->gpu->what->mig);
	load = gpu_last(call->gpu)->load[ENGINE_GPU] + guests_percent(call->gpu->index, call->now_ms);
	put_u32(call, &utilization->gpu, MIN(load, 100u));
	put_u32(call, &utilization->memory, gpu_last(call->gpu)->load[ENGINE_MEMORY]);
	return NVML_SUCCESS;
}

static uint32_t engine_units(const struct model *model, enum engine engine)
{
	switch (engine) {
	case ENGINE_ENCODER:
		return model->encoders;
	case ENGINE_DECODER:
		return model->decoders;
	case ENGINE_JPEG:
		return model->jpegs;
	case ENGINE_OFA:
		return model->ofas;
	default:
		return 1;
	}
}

/*
 * Datacenter boards without an encoder still answer, with 0, as real ones do; an engine that came with
 * later chips is not supported where it is not there.
 */
static bool engine_supported(const struct call *call, enum engine engine)
{
	if (call->gpu->what->mig)
		return false;
	return engine <= ENGINE_DECODER || engine_units(&call->gpu->what->model, engine) > 0;
}

static enum nvml_return get_engine(const struct call *call, enum engine engine, uint32_t *percent,
				   uint32_t *period_us)
{
	NEED(percent && period_us);
	NEED_SUPPORT(engine_supported(call, engine));
	put_u32(call, percent, gpu_last(call->gpu)->load[engine]);
	*period_us = SCENARIO_TICK_MS * 1000;
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetEncoderUtilization(struct nvml_device *device, uint32_t *percent,
						 uint32_t *period_us)
{
	CALL(nvmlDeviceGetEncoderUtilization, device);

	return get_engine(call, ENGINE_ENCODER, percent, period_us);
}

enum nvml_return nvmlDeviceGetDecoderUtilization(struct nvml_device *device, uint32_t *percent,
						 uint32_t *period_us)
{
	CALL(nvmlDeviceGetDecoderUtilization, device);

	return get_engine(call, ENGINE_DECODER, percent, period_us);
}

enum nvml_return nvmlDeviceGetJpgUtilization(struct nvml_device *device, uint32_t *percent,
					     uint32_t *period_us)
{
	CALL(nvmlDeviceGetJpgUtilization, device);

	return get_engine(call, ENGINE_JPEG, percent, period_us);
}

enum nvml_return nvmlDeviceGetOfaUtilization(struct nvml_device *device, uint32_t *percent,
					     uint32_t *period_us)
{
	CALL(nvmlDeviceGetOfaUtilization, device);

	return get_engine(call, ENGINE_OFA, percent, period_us);
}

/* What a buffer holds of one tick; every one of unsigned integers. */
static uint32_t sample_of(uint32_t sampling, const struct tick *tick)
{
	switch (sampling) {
	case NVML_GPU_UTILIZATION_SAMPLES:
		return tick->load[ENGINE_GPU];
	case NVML_MEMORY_UTILIZATION_SAMPLES:
		return tick->load[ENGINE_MEMORY];
	case NVML_ENC_UTILIZATION_SAMPLES:
		return tick->load[ENGINE_ENCODER];
	case NVML_DEC_UTILIZATION_SAMPLES:
		return tick->load[ENGINE_DECODER];
	case NVML_JPG_UTILIZATION_SAMPLES:
		return tick->load[ENGINE_JPEG];
	case NVML_OFA_UTILIZATION_SAMPLES:
		return tick->load[ENGINE_OFA];
	case NVML_PROCESSOR_CLK_SAMPLES:
		return tick->sm_mhz;
	case NVML_MEMORY_CLK_SAMPLES:
		return tick->memory_mhz;
	default:
		return tick->power_mw;
	}
}

static bool sampling_supported(const struct call *call, uint32_t sampling)
{
	if (!call->gpu->what->model.samples || sampling == NVML_MODULE_POWER_SAMPLES)
		return false;
	switch (sampling) {
	case NVML_TOTAL_POWER_SAMPLES:
	case NVML_PROCESSOR_CLK_SAMPLES:
	case NVML_MEMORY_CLK_SAMPLES:
		return true;
	case NVML_JPG_UTILIZATION_SAMPLES:
		return engine_supported(call, ENGINE_JPEG);
	case NVML_OFA_UTILIZATION_SAMPLES:
		return engine_supported(call, ENGINE_OFA);
	default:
		return !call->gpu->what->mig;
	}
}

/*
 * Complete ticks that ended after last_seen, at most as many as the buffer is deep, the oldest first. The
 * time stamp is the end of the tick. Without a buffer, returns their number; with one that is too small, as
 * many as fit.
 */
enum nvml_return nvmlDeviceGetSamples(struct nvml_device *device, uint32_t sampling, uint64_t last_seen,
				      uint32_t *value_type, uint32_t *count, struct nvml_sample *samples)
{
	CALL(nvmlDeviceGetSamples, device);
	const struct gpu *gpu = call->gpu;
	int64_t first = MAX(gpu->tick - SAMPLES_KEPT, gpu->driver_ms / SCENARIO_TICK_MS), fresh;
	uint32_t capacity;

	NEED(value_type && count && sampling < call_generation()->samplings);
	NEED_SUPPORT(sampling_supported(call, sampling));
	first = MAX(first, (unstamp_ms(last_seen) - sample_skew_ms(gpu)) / SCENARIO_TICK_MS);
	fresh = gpu->tick - first;
	if (fresh <= 0)
		return NVML_ERROR_NOT_FOUND;
	*value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
	if (!samples) {
		*count = SAMPLES_KEPT;
		return NVML_SUCCESS;
	}
	capacity = MIN(*count, (uint32_t)fresh);
	for (uint32_t i = 0; i < capacity; i++) {
		int64_t tick = first + i;

		samples[i].timestamp = stamp_us((tick + 1) * SCENARIO_TICK_MS + sample_skew_ms(gpu));
		samples[i].value.as_u64 = 0;
		put_u32(call, &samples[i].value.as_uint, sample_of(sampling, &gpu->ticks[tick % TICKS_KEPT]));
	}
	*count = capacity;
	return NVML_SUCCESS;
}

/* Encoder sessions: one for each running process that has them. */
enum nvml_return nvmlDeviceGetEncoderCapacity(struct nvml_device *device, uint32_t codec, uint32_t *percent)
{
	CALL(nvmlDeviceGetEncoderCapacity, device);

	NEED(percent && codec <= NVML_ENCODER_QUERY_AV1);
	NEED_SUPPORT(call->gpu->what->model.encoders > 0);
	put_u32(call, percent, 100u - gpu_last(call->gpu)->load[ENGINE_ENCODER]);
	return NVML_SUCCESS;
}

static bool has_session(const struct gpu *gpu, uint32_t slot)
{
	return gpu->slots[slot].process->encoder_fps > 0 && gpu->slots_now[slot].running &&
	       gpu->slots_now[slot].pid > 0;
}

enum { ENCODER_LATENCY_US = 6200 };

enum nvml_return nvmlDeviceGetEncoderStats(struct nvml_device *device, uint32_t *sessions,
					   uint32_t *average_fps, uint32_t *average_latency)
{
	CALL(nvmlDeviceGetEncoderStats, device);
	uint32_t count = 0, fps = 0;

	NEED(sessions && average_fps && average_latency);
	for (uint32_t i = 0; i < call->gpu->slot_count; i++) {
		if (has_session(call->gpu, i)) {
			count++;
			fps += call->gpu->slots[i].process->encoder_fps;
		}
	}
	put_u32(call, sessions, count);
	put_u32(call, average_fps, count > 0 ? fps / count : 0);
	put_u32(call, average_latency, count > 0 ? ENCODER_LATENCY_US : 0);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetEncoderSessions(struct nvml_device *device, uint32_t *count,
					      struct nvml_encoder_session *sessions)
{
	CALL(nvmlDeviceGetEncoderSessions, device);
	uint32_t capacity, found = 0;

	NEED(count);
	capacity = sessions ? *count : 0;
	for (uint32_t i = 0; i < call->gpu->slot_count; i++) {
		if (!has_session(call->gpu, i))
			continue;
		if (found < capacity)
			sessions[found] = (struct nvml_encoder_session){
				.session = i + 1,
				.pid = call->gpu->slots_now[i].pid,
				.codec = NVML_ENCODER_QUERY_HEVC,
				.width = 1920,
				.height = 1080,
				.average_fps = call->gpu->slots[i].process->encoder_fps,
				.average_latency = ENCODER_LATENCY_US,
			};
		found++;
	}
	*count = found;
	return sessions && found > capacity ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetFBCStats(struct nvml_device *device, struct nvml_fbc_stats *stats)
{
	CALL(nvmlDeviceGetFBCStats, device);

	NEED(stats);
	put_u32(call, &stats->sessions, 0);
	put_u32(call, &stats->average_fps, 0);
	put_u32(call, &stats->average_latency, 0);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetFBCSessions(struct nvml_device *device, uint32_t *count,
					  _unused_ struct nvml_fbc_session *sessions)
{
	CALL(nvmlDeviceGetFBCSessions, device);

	NEED(count);
	*count = 0;
	return NVML_SUCCESS;
}
