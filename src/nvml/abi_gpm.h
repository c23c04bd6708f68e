// SPDX-License-Identifier: Apache-2.0
#pragma once

/*
 * NVML: GPM, the hardware's own counters on Hopper and later, read as the difference of two samples. See
 * nvml/abi.h.
 */

#include "nvml/abi_base.h"

struct nvml_gpm_sample;

/* Percentages 0..100, rates in MiB/s unless the name says cycles or bytes. */
enum nvml_gpm_metric_id {
	NVML_GPM_METRIC_GRAPHICS_UTIL = 1,
	NVML_GPM_METRIC_SM_UTIL = 2,
	NVML_GPM_METRIC_SM_OCCUPANCY = 3,
	NVML_GPM_METRIC_INTEGER_UTIL = 4,
	NVML_GPM_METRIC_ANY_TENSOR_UTIL = 5,
	NVML_GPM_METRIC_DFMA_TENSOR_UTIL = 6,
	NVML_GPM_METRIC_HMMA_TENSOR_UTIL = 7,
	NVML_GPM_METRIC_DMMA_TENSOR_UTIL = 8,
	NVML_GPM_METRIC_IMMA_TENSOR_UTIL = 9,
	NVML_GPM_METRIC_DRAM_BW_UTIL = 10,
	NVML_GPM_METRIC_FP64_UTIL = 11,
	NVML_GPM_METRIC_FP32_UTIL = 12,
	NVML_GPM_METRIC_FP16_UTIL = 13,
	NVML_GPM_METRIC_PCIE_TX_PER_SEC = 20,
	NVML_GPM_METRIC_PCIE_RX_PER_SEC = 21,
	NVML_GPM_METRIC_NVDEC_0_UTIL = 30, /* .. 37 */
	NVML_GPM_METRIC_NVDEC_7_UTIL = 37,
	NVML_GPM_METRIC_NVJPG_0_UTIL = 40, /* .. 47 */
	NVML_GPM_METRIC_NVJPG_7_UTIL = 47,
	NVML_GPM_METRIC_NVOFA_0_UTIL = 50,
	NVML_GPM_METRIC_NVOFA_1_UTIL = 51,
	NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC = 60,
	NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC = 61,
	NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC = 62, /* then TX, then link 1; up to link 17 */
	NVML_GPM_METRIC_NVLINK_L0_TX_PER_SEC = 63,
	NVML_GPM_METRIC_NVLINK_L17_RX_PER_SEC = 96,
	NVML_GPM_METRIC_NVLINK_L17_TX_PER_SEC = 97,
	NVML_GPM_METRIC_C2C_TOTAL_TX_PER_SEC = 100,
	NVML_GPM_METRIC_C2C_TOTAL_RX_PER_SEC = 101,
	NVML_GPM_METRIC_C2C_DATA_TX_PER_SEC = 102,
	NVML_GPM_METRIC_C2C_DATA_RX_PER_SEC = 103,
	NVML_GPM_METRIC_HOSTMEM_CACHE_HIT = 160,
	NVML_GPM_METRIC_HOSTMEM_CACHE_MISS = 161,
	NVML_GPM_METRIC_PEERMEM_CACHE_HIT = 162,
	NVML_GPM_METRIC_PEERMEM_CACHE_MISS = 163,
	NVML_GPM_METRIC_DRAM_CACHE_HIT = 164,
	NVML_GPM_METRIC_DRAM_CACHE_MISS = 165,
	NVML_GPM_METRIC_NVENC_0_UTIL = 166, /* .. 169 */
	NVML_GPM_METRIC_NVENC_3_UTIL = 169,
	NVML_GPM_METRIC_SM_CYCLES_ELAPSED = 248,
	NVML_GPM_METRIC_SM_CYCLES_ACTIVE = 249,
	NVML_GPM_METRIC_MMA_CYCLES_ACTIVE = 250,
	NVML_GPM_METRIC_PCIE_TX = 255,
	NVML_GPM_METRIC_PCIE_RX = 256,
	NVML_GPM_METRIC_INTEGER_CYCLES_ACTIVE = 257,
	NVML_GPM_METRIC_FP64_CYCLES_ACTIVE = 258,
	NVML_GPM_METRIC_FP32_CYCLES_ACTIVE = 259,
	NVML_GPM_METRIC_FP16_CYCLES_ACTIVE = 260,
};

#define NVML_GPM_METRICS_GET_VERSION 1
#define NVML_GPM_SUPPORT_VERSION 1

/*
 * More slots than any header declares (13.5: 477), for libraries that write all of theirs, whatever the
 * caller asked.
 */
#define NVML_GPM_METRICS_MAX 1024

struct nvml_gpm_metric { // nvmlGpmMetric_t
	uint32_t id;
	uint32_t result; /* enum nvml_return of this metric alone */
	double value;
	struct { // nvmlGpmMetric_t.metricInfo
		char *short_name;
		char *long_name;
		char *unit;
	} info; /* the library's own strings */
};
_Static_assert(sizeof(struct nvml_gpm_metric) == 40, "nvmlGpmMetric_t");

struct nvml_gpm_metrics_get { // nvmlGpmMetricsGet_t to its metrics
	uint32_t version; /* NVML_GPM_METRICS_GET_VERSION, not a size */
	uint32_t count;
	struct nvml_gpm_sample *sample1; /* the older one */
	struct nvml_gpm_sample *sample2;
	struct nvml_gpm_metric metrics[];
};
_Static_assert(sizeof(struct nvml_gpm_metrics_get) == 24, "nvmlGpmMetricsGet_t without its metrics");

struct nvml_gpm_support { // nvmlGpmSupport_t
	uint32_t version; /* NVML_GPM_SUPPORT_VERSION, not a size */
	uint32_t supported;
};
_Static_assert(sizeof(struct nvml_gpm_support) == 8, "nvmlGpmSupport_t");

enum nvml_return nvmlGpmQueryDeviceSupport(struct nvml_device *device, struct nvml_gpm_support *support);
enum nvml_return nvmlGpmQueryIfStreamingEnabled(struct nvml_device *device, uint32_t *state);
enum nvml_return nvmlGpmSampleAlloc(struct nvml_gpm_sample **sample);
enum nvml_return nvmlGpmSampleFree(struct nvml_gpm_sample *sample);
enum nvml_return nvmlGpmSampleGet(struct nvml_device *device, struct nvml_gpm_sample *sample);
enum nvml_return nvmlGpmMigSampleGet(struct nvml_device *device, uint32_t gpu_instance,
				     struct nvml_gpm_sample *sample);
enum nvml_return nvmlGpmMetricsGet(struct nvml_gpm_metrics_get *get);
