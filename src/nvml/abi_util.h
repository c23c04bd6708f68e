// SPDX-License-Identifier: Apache-2.0
#pragma once

/*
 * NVML: utilisation of a device's engines, sample buffers, encoder and frame capture sessions. See
 * nvml/abi.h.
 */

#include "nvml/abi_base.h"

enum nvml_sampling {
	NVML_TOTAL_POWER_SAMPLES = 0,
	NVML_GPU_UTILIZATION_SAMPLES = 1,
	NVML_MEMORY_UTILIZATION_SAMPLES = 2,
	NVML_ENC_UTILIZATION_SAMPLES = 3,
	NVML_DEC_UTILIZATION_SAMPLES = 4,
	NVML_PROCESSOR_CLK_SAMPLES = 5,
	NVML_MEMORY_CLK_SAMPLES = 6,
	NVML_MODULE_POWER_SAMPLES = 7,
	NVML_JPG_UTILIZATION_SAMPLES = 8,
	NVML_OFA_UTILIZATION_SAMPLES = 9,
	NVML_SAMPLINGTYPE_COUNT = 10,
};

enum nvml_encoder_codec {
	NVML_ENCODER_QUERY_H264 = 0,
	NVML_ENCODER_QUERY_HEVC = 1,
	NVML_ENCODER_QUERY_AV1 = 2,
	NVML_ENCODER_QUERY_UNKNOWN = 255,
};

enum nvml_fbc_session_type {
	NVML_FBC_SESSION_TYPE_UNKNOWN = 0,
	NVML_FBC_SESSION_TYPE_TOSYS = 1,
	NVML_FBC_SESSION_TYPE_CUDA = 2,
	NVML_FBC_SESSION_TYPE_VID = 3,
	NVML_FBC_SESSION_TYPE_HWENC = 4,
};

/* Percent of the last sample period. */
struct nvml_utilization { // nvmlUtilization_t
	uint32_t gpu;
	uint32_t memory;
};
_Static_assert(sizeof(struct nvml_utilization) == 8, "nvmlUtilization_t");

struct nvml_sample { // nvmlSample_t
	uint64_t timestamp; /* microseconds, CPU clock */
	union nvml_value value;
};
_Static_assert(sizeof(struct nvml_sample) == 16, "nvmlSample_t");

struct nvml_encoder_session { // nvmlEncoderSessionInfo_t
	uint32_t session;
	uint32_t pid;
	uint32_t vgpu;
	uint32_t codec;
	uint32_t width;
	uint32_t height;
	uint32_t average_fps;
	uint32_t average_latency; /* microseconds */
};
_Static_assert(sizeof(struct nvml_encoder_session) == 32, "nvmlEncoderSessionInfo_t");

struct nvml_fbc_stats { // nvmlFBCStats_t
	uint32_t sessions;
	uint32_t average_fps;
	uint32_t average_latency; /* microseconds */
};
_Static_assert(sizeof(struct nvml_fbc_stats) == 12, "nvmlFBCStats_t");

struct nvml_fbc_session { // nvmlFBCSessionInfo_t
	uint32_t session;
	uint32_t pid;
	uint32_t vgpu;
	uint32_t display;
	uint32_t type;
	uint32_t flags;
	uint32_t max_width;
	uint32_t max_height;
	uint32_t width;
	uint32_t height;
	uint32_t average_fps;
	uint32_t average_latency; /* microseconds */
};
_Static_assert(sizeof(struct nvml_fbc_session) == 48, "nvmlFBCSessionInfo_t");

enum nvml_return nvmlDeviceGetUtilizationRates(struct nvml_device *device,
					       struct nvml_utilization *utilization);
enum nvml_return nvmlDeviceGetEncoderUtilization(struct nvml_device *device, uint32_t *percent,
						 uint32_t *period_us);
enum nvml_return nvmlDeviceGetDecoderUtilization(struct nvml_device *device, uint32_t *percent,
						 uint32_t *period_us);
enum nvml_return nvmlDeviceGetJpgUtilization(struct nvml_device *device, uint32_t *percent,
					     uint32_t *period_us);
enum nvml_return nvmlDeviceGetOfaUtilization(struct nvml_device *device, uint32_t *percent,
					     uint32_t *period_us);
/* samples NULL asks for the count; NOT_FOUND where there is none newer than last_seen (microseconds). */
enum nvml_return nvmlDeviceGetSamples(struct nvml_device *device, uint32_t sampling, uint64_t last_seen,
				      uint32_t *value_type, uint32_t *count, struct nvml_sample *samples);
enum nvml_return nvmlDeviceGetEncoderCapacity(struct nvml_device *device, uint32_t codec, uint32_t *percent);
enum nvml_return nvmlDeviceGetEncoderStats(struct nvml_device *device, uint32_t *sessions,
					   uint32_t *average_fps, uint32_t *average_latency);
enum nvml_return nvmlDeviceGetEncoderSessions(struct nvml_device *device, uint32_t *count,
					      struct nvml_encoder_session *sessions);
enum nvml_return nvmlDeviceGetFBCStats(struct nvml_device *device, struct nvml_fbc_stats *stats);
enum nvml_return nvmlDeviceGetFBCSessions(struct nvml_device *device, uint32_t *count,
					  struct nvml_fbc_session *sessions);
