// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/getter.h"

#include <math.h>
#include <stdlib.h>

/*
 * GPM: a sample is the state of sums over time, a metric the difference of two. What kernels do with the
 * multiprocessors is made up from how long they were busy, always in the same proportions.
 */
enum { SAMPLE_MAGIC = 0x67706d73 };

struct nvml_gpm_sample {
	uint32_t magic;
	uint32_t gpu;
	int instance; /* negative: the whole GPU */
	int64_t time_ms; /* negative: nothing in it yet */
	struct totals totals;
};

/* What a metric is the difference of, and by which factor. */
enum origin {
	ORIGIN_LOAD, /* percent; which: engine */
	ORIGIN_TRAFFIC, /* MiB/s; which: traffic */
	ORIGIN_CYCLES, /* counts since the driver was loaded; which: whether only busy ones */
};

struct metric {
	uint32_t first, last, step; /* ids: of units or links 0, 1, ... */
	enum origin origin;
	uint32_t which;
	float factor;
	const char *name, *unit;
};

#define LOAD(id, engine, factor, name)                            \
	{                                                         \
		id, id, 1, ORIGIN_LOAD, engine, factor, name, "%" \
	}
#define LOADS(from, to, engine, name)                          \
	{                                                      \
		from, to, 1, ORIGIN_LOAD, engine, 1, name, "%" \
	}
#define TRAFFIC(id, traffic, name)                                   \
	{                                                            \
		id, id, 1, ORIGIN_TRAFFIC, traffic, 1, name, "MiB/s" \
	}

static const struct metric metrics[] = {
	LOAD(NVML_GPM_METRIC_GRAPHICS_UTIL, ENGINE_GPU, 1, "Graphics Engine"),
	LOAD(NVML_GPM_METRIC_SM_UTIL, ENGINE_GPU, 0.87f, "SM Activity"),
	LOAD(NVML_GPM_METRIC_SM_OCCUPANCY, ENGINE_GPU, 0.55f, "SM Occupancy"),
	LOAD(NVML_GPM_METRIC_INTEGER_UTIL, ENGINE_GPU, 0.22f, "Integer Activity"),
	LOAD(NVML_GPM_METRIC_ANY_TENSOR_UTIL, ENGINE_GPU, 0.46f, "Tensor Activity"),
	LOAD(NVML_GPM_METRIC_DFMA_TENSOR_UTIL, ENGINE_GPU, 0, "DFMA Tensor Activity"),
	LOAD(NVML_GPM_METRIC_HMMA_TENSOR_UTIL, ENGINE_GPU, 0.44f, "HMMA Tensor Activity"),
	LOAD(NVML_GPM_METRIC_DMMA_TENSOR_UTIL, ENGINE_GPU, 0, "DMMA Tensor Activity"),
	LOAD(NVML_GPM_METRIC_IMMA_TENSOR_UTIL, ENGINE_GPU, 0.02f, "IMMA Tensor Activity"),
	LOAD(NVML_GPM_METRIC_DRAM_BW_UTIL, ENGINE_MEMORY, 1, "DRAM Activity"),
	LOAD(NVML_GPM_METRIC_FP64_UTIL, ENGINE_GPU, 0.01f, "FP64 Activity"),
	LOAD(NVML_GPM_METRIC_FP32_UTIL, ENGINE_GPU, 0.18f, "FP32 Activity"),
	LOAD(NVML_GPM_METRIC_FP16_UTIL, ENGINE_GPU, 0.08f, "FP16 Activity"),
	TRAFFIC(NVML_GPM_METRIC_PCIE_TX_PER_SEC, TRAFFIC_PCIE_TX, "PCIe TX"),
	TRAFFIC(NVML_GPM_METRIC_PCIE_RX_PER_SEC, TRAFFIC_PCIE_RX, "PCIe RX"),
	LOADS(NVML_GPM_METRIC_NVDEC_0_UTIL, NVML_GPM_METRIC_NVDEC_7_UTIL, ENGINE_DECODER, "NVDEC"),
	LOADS(NVML_GPM_METRIC_NVJPG_0_UTIL, NVML_GPM_METRIC_NVJPG_7_UTIL, ENGINE_JPEG, "NVJPG"),
	LOADS(NVML_GPM_METRIC_NVOFA_0_UTIL, NVML_GPM_METRIC_NVOFA_1_UTIL, ENGINE_OFA, "NVOFA"),
	LOADS(NVML_GPM_METRIC_NVENC_0_UTIL, NVML_GPM_METRIC_NVENC_3_UTIL, ENGINE_ENCODER, "NVENC"),
	TRAFFIC(NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, TRAFFIC_NVLINK_RX, "NVLink RX"),
	TRAFFIC(NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, TRAFFIC_NVLINK_TX, "NVLink TX"),
	{ NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC, NVML_GPM_METRIC_NVLINK_L17_RX_PER_SEC, 2, ORIGIN_TRAFFIC,
	  TRAFFIC_NVLINK_RX, 1, "NVLink RX of a link", "MiB/s" },
	{ NVML_GPM_METRIC_NVLINK_L0_TX_PER_SEC, NVML_GPM_METRIC_NVLINK_L17_TX_PER_SEC, 2, ORIGIN_TRAFFIC,
	  TRAFFIC_NVLINK_TX, 1, "NVLink TX of a link", "MiB/s" },
	{ NVML_GPM_METRIC_SM_CYCLES_ELAPSED, NVML_GPM_METRIC_SM_CYCLES_ELAPSED, 1, ORIGIN_CYCLES, false, 1,
	  "SM Cycles", "" },
	{ NVML_GPM_METRIC_SM_CYCLES_ACTIVE, NVML_GPM_METRIC_SM_CYCLES_ACTIVE, 1, ORIGIN_CYCLES, true, 0.87f,
	  "SM Cycles Active", "" },
};

static const struct metric *find_metric(uint32_t id)
{
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
		if (id >= metrics[i].first && id <= metrics[i].last &&
		    (id - metrics[i].first) % metrics[i].step == 0)
			return &metrics[i];
	}
	return NULL;
}

/* How many units or links there are of what the metric counts one by one. */
static uint32_t units(const struct scenario_gpu *gpu, const struct metric *metric)
{
	if (metric->origin == ORIGIN_TRAFFIC && metric->which >= TRAFFIC_NVLINK_TX)
		return gpu->model.nvlinks - gpu->inactive_links;
	if (metric->origin == ORIGIN_LOAD && metric->which == ENGINE_DECODER)
		return gpu->model.decoders;
	if (metric->origin == ORIGIN_LOAD && metric->which == ENGINE_JPEG)
		return gpu->model.jpegs;
	if (metric->origin == ORIGIN_LOAD && metric->which == ENGINE_OFA)
		return gpu->model.ofas;
	if (metric->origin == ORIGIN_LOAD && metric->which == ENGINE_ENCODER)
		return gpu->model.encoders;
	return 1;
}

static double metric_value(const struct scenario_gpu *gpu, const struct metric *metric,
			   const struct nvml_gpm_sample *from, const struct nvml_gpm_sample *to)
{
	double ms = (double)(to->time_ms - from->time_ms), value;
	uint64_t delta;

	if (metric->origin == ORIGIN_CYCLES) {
		uint64_t units_ms = metric->which ? to->totals.load[ENGINE_GPU] / 100 : (uint64_t)to->time_ms;

		return metric->factor * (double)units_ms * gpu->model.sm_mhz * 1000 *
		       gpu->model.multiprocessors;
	}
	if (ms <= 0)
		return (double)NAN;
	if (metric->origin == ORIGIN_LOAD) {
		delta = to->totals.load[metric->which] - from->totals.load[metric->which];
		return metric->factor * (double)delta / ms;
	}
	delta = to->totals.traffic[metric->which] - from->totals.traffic[metric->which];
	value = (double)delta / ms * 1000 / BYTES_PER_MIB;
	return metric->last > metric->first ? value / units(gpu, metric) : value;
}

static void fill_metric(const struct call *call, const struct nvml_gpm_sample *from,
			const struct nvml_gpm_sample *to, struct nvml_gpm_metric *ret_metric)
{
	const struct metric *metric = find_metric(ret_metric->id);
	const struct scenario_gpu *gpu = call->gpu->what;

	ret_metric->result = NVML_ERROR_NOT_SUPPORTED;
	if (!metric || ret_metric->id >= call_generation()->gpm_metrics ||
	    (ret_metric->id - metric->first) / metric->step >= units(gpu, metric))
		return;
	/* Links and cycles are not told apart by instance. */
	if (to->instance >= 0 && metric->origin != ORIGIN_LOAD)
		return;
	ret_metric->result = NVML_SUCCESS;
	ret_metric->value = metric_value(gpu, metric, from, to);
	/* The interface has no const; callers only read. */
	ret_metric->info.short_name = ret_metric->info.long_name = (char *)(uintptr_t)metric->name;
	ret_metric->info.unit = (char *)(uintptr_t)metric->unit;
}

static bool is_sample(const struct nvml_gpm_sample *sample)
{
	return sample && sample->magic == SAMPLE_MAGIC;
}

enum nvml_return nvmlGpmQueryDeviceSupport(struct nvml_device *device, struct nvml_gpm_support *support)
{
	CALL(nvmlGpmQueryDeviceSupport, device);

	NEED(support);
	if (support->version != NVML_GPM_SUPPORT_VERSION)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	put_u32(call, &support->supported, call->gpu->what->model.gpm);
	return NVML_SUCCESS;
}

DEVICE_U32(nvmlGpmQueryIfStreamingEnabled, model->gpm, 0)

enum nvml_return nvmlGpmSampleAlloc(struct nvml_gpm_sample **sample)
{
	CALL_NODE(nvmlGpmSampleAlloc);

	NEED(sample);
	*sample = calloc(1, sizeof(**sample));
	if (!*sample)
		return NVML_ERROR_MEMORY;
	(*sample)->magic = SAMPLE_MAGIC;
	(*sample)->time_ms = -1;
	return NVML_SUCCESS;
}

enum nvml_return nvmlGpmSampleFree(struct nvml_gpm_sample *sample)
{
	CALL_NODE(nvmlGpmSampleFree);

	NEED(is_sample(sample));
	sample->magic = 0;
	free(sample);
	return NVML_SUCCESS;
}

enum nvml_return nvmlGpmSampleGet(struct nvml_device *device, struct nvml_gpm_sample *sample)
{
	CALL(nvmlGpmSampleGet, device);

	NEED(is_sample(sample));
	NEED_SUPPORT(call->gpu->what->model.gpm);
	sample->gpu = call->gpu->index;
	sample->instance = -1;
	sample->time_ms = call->now_ms;
	gpu_totals(call->gpu, call->now_ms, &sample->totals);
	return NVML_SUCCESS;
}

enum nvml_return nvmlGpmMigSampleGet(struct nvml_device *device, uint32_t gpu_instance,
				     struct nvml_gpm_sample *sample)
{
	CALL(nvmlGpmMigSampleGet, device);
	const struct scenario_gpu *what = call->gpu->what;
	struct instance_totals totals;

	NEED(is_sample(sample));
	NEED_SUPPORT(what->model.gpm && what->mig);
	for (uint32_t i = 0; i < what->instance_count; i++) {
		if (what->instances[i].gpu_instance != gpu_instance)
			continue;
		gpu_instance_totals(call->gpu, i, call->now_ms, &totals);
		sample->gpu = call->gpu->index;
		sample->instance = (int)i;
		sample->time_ms = call->now_ms;
		for (enum engine engine = 0; engine < ENGINE_COUNT; engine++)
			sample->totals.load[engine] = totals.load[engine];
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

enum nvml_return nvmlGpmMetricsGet(struct nvml_gpm_metrics_get *get)
{
	const struct nvml_gpm_sample *from = get ? get->sample1 : NULL, *to = get ? get->sample2 : NULL;

	NEED(get && is_sample(from) && is_sample(to));
	CALL_WITH(call_begin_gpu(call, FN_nvmlGpmMetricsGet, to->gpu));

	if (get->version != NVML_GPM_METRICS_GET_VERSION || !call_knows(call, NVML_GPM_METRICS_GET_VERSION))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	NEED(from->time_ms >= 0 && to->time_ms >= from->time_ms && from->gpu == to->gpu &&
	     from->instance == to->instance);
	for (uint32_t i = 0; i < get->count; i++)
		fill_metric(call, from, to, &get->metrics[i]);
	return NVML_SUCCESS;
}
