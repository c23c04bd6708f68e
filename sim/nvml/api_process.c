// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/getter.h"

#include <string.h>

#include "sim/node/guest.h"
#include "sim/node/match.h"

/* Sizes of the records of process lists, by version of the call. */
enum { RECORD_V1 = sizeof(struct nvml_process_info_v1), RECORD_V2 = sizeof(struct nvml_process_info_v2) };

/* What is copied from: as long as the longest record of any generation. */
struct record {
	struct nvml_process_detail detail;
	uint64_t unheard_of;
};

/* MPS clients are compute processes, too: a list of either leaves the other out. */
static bool listed(const struct call *call, uint32_t slot, uint32_t types)
{
	const struct slot_now *now = &call->gpu->slots_now[slot];
	const struct scenario_process *process = call->gpu->slots[slot].process;

	return now->running && now->pid > 0 && process->type & types &&
	       (!call->mig || process->instance == call->instance);
}

static uint32_t listed_pid(const struct call *call, uint32_t pid)
{
	return call_namespaced(call) ? match_namespaced(pid) : pid;
}

/* Processes that use the simulated CUDA, behind those of the scenario. */
static uint32_t guests_list(const struct call *call, void *infos, uint32_t capacity, uint32_t found,
			    size_t size)
{
	const struct guest *guests;
	uint32_t count = guests_of(call->gpu->index, call->instance, call->now_ms, &guests);

	for (uint32_t i = 0; i < count; i++, found++) {
		struct record record = {
			.detail.pid = listed_pid(call, guests[i].pid),
			.detail.gpu_instance = NVML_NONE_U32,
			.detail.compute_instance = NVML_NONE_U32,
		};

		put_u64(call, &record.detail.used_memory, guests[i].bytes);
		if (guests[i].instance >= 0) {
			record.detail.gpu_instance =
				call->gpu->what->instances[guests[i].instance].gpu_instance;
			record.detail.compute_instance =
				call->gpu->what->instances[guests[i].instance].compute_instance;
		}
		if (found < capacity)
			memcpy((char *)infos + found * size, &record, size);
	}
	return found;
}

static struct nvml_process_detail detail_of(const struct call *call, uint32_t slot)
{
	int32_t instance = call->gpu->slots[slot].process->instance;
	struct nvml_process_detail detail = {
		.pid = listed_pid(call, call->gpu->slots_now[slot].pid),
		.gpu_instance = NVML_NONE_U32,
		.compute_instance = NVML_NONE_U32,
	};

	put_u64(call, &detail.used_memory, (uint64_t)call->gpu->slots_now[slot].memory_mib * BYTES_PER_MIB);
	if (instance >= 0) {
		detail.gpu_instance = call->gpu->what->instances[instance].gpu_instance;
		detail.compute_instance = call->gpu->what->instances[instance].compute_instance;
	}
	return detail;
}

/*
 * Fills records of `size` bytes each, all of them beginning like the longest. The count is how many there
 * are, whether they fit or not, as programs count on that to ask again.
 */
static enum nvml_return list_processes(const struct call *call, uint32_t types, uint32_t *count, void *infos,
				       size_t size)
{
	uint32_t capacity, found = 0;

	NEED(count);
	if (size > RECORD_V1 && call_stride(call) > 0)
		size = call_stride(call);
	else if (size == RECORD_V2)
		size = call_generation()->process_bytes;
	capacity = infos ? *count : 0;
	for (uint32_t i = 0; i < call->gpu->slot_count; i++) {
		if (!listed(call, i, types))
			continue;
		if (found < capacity) {
			struct record record = { .detail = detail_of(call, i) };

			memcpy((char *)infos + found * size, &record, size);
		}
		found++;
	}
	if (types & PROCESS_COMPUTE)
		found = guests_list(call, infos, capacity, found, size);
	*count = found;
	return found > capacity ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#define PROCESS_LIST(name, info, types, size)                                                  \
	enum nvml_return name(struct nvml_device *device, uint32_t *count, struct info *infos) \
	{                                                                                      \
		CALL(name, device);                                                            \
                                                                                               \
		return list_processes(call, types, count, infos, size);                        \
	}

PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, nvml_process_info_v1, PROCESS_COMPUTE, RECORD_V1)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvml_process_info_v2, PROCESS_COMPUTE, RECORD_V2)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvml_process_info_v2, PROCESS_COMPUTE, RECORD_V2)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses, nvml_process_info_v1, PROCESS_GRAPHICS, RECORD_V1)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvml_process_info_v2, PROCESS_GRAPHICS, RECORD_V2)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvml_process_info_v2, PROCESS_GRAPHICS, RECORD_V2)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvml_process_info_v1, PROCESS_MPS, RECORD_V1)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvml_process_info_v2, PROCESS_MPS, RECORD_V2)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvml_process_info_v2, PROCESS_MPS, RECORD_V2)

enum nvml_return nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device,
						       struct nvml_process_detail_list *list)
{
	CALL(nvmlDeviceGetRunningProcessDetailList, device);
	static const uint32_t types[] = {
		[NVML_PROCESS_MODE_COMPUTE] = PROCESS_COMPUTE,
		[NVML_PROCESS_MODE_GRAPHICS] = PROCESS_GRAPHICS,
		[NVML_PROCESS_MODE_MPS] = PROCESS_MPS,
		[NVML_PROCESS_MODE_ALL] = PROCESS_COMPUTE | PROCESS_GRAPHICS | PROCESS_MPS,
	};

	NEED(list);
	NEED_VERSION(list, 1);
	NEED(list->mode < ARRAY_SIZE(types));
	NEED_SUPPORT(call->gpu->what->model.architecture >= NVML_DEVICE_ARCH_HOPPER);
	return list_processes(call, types[list->mode], &list->count, list->processes,
			      sizeof(*list->processes));
}

/*
 * Samples of processes: one for each process that did something in a period of a second, for the periods
 * that ended after last_seen. The newest come last.
 */
struct utilization {
	uint64_t timestamp;
	uint32_t pid;
	uint8_t load[ENGINE_COUNT];
};

/* The first period to give; in *ret_end the first that is not complete. */
static int64_t periods(const struct call *call, uint64_t last_seen, int64_t *ret_end)
{
	const int64_t period_ms = PERIOD_TICKS * SCENARIO_TICK_MS;
	int64_t end = call->gpu->tick / PERIOD_TICKS, first = MAX(end - (PERIODS_KEPT - 2), INT64_C(0));

	first = MAX(first, call->gpu->driver_ms / period_ms);
	*ret_end = end;
	return MAX(first, (unstamp_ms(last_seen) - sample_skew_ms(call->gpu)) / period_ms);
}

static bool worked(const struct slot_period *period)
{
	bool any = false;

	for (enum engine engine = 0; engine < ENGINE_COUNT; engine++)
		any |= period->load[engine] > 0;
	return any && period->pid > 0;
}

typedef void put_utilization(const struct call *call, const struct utilization *what, uint32_t index,
			     void *dst);

static uint32_t put_guests(const struct call *call, int64_t period, uint32_t capacity, uint32_t found,
			   put_utilization *put, void *dst)
{
	const struct guest *guests;
	uint32_t count = guests_of(call->gpu->index, call->instance, call->now_ms, &guests);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t load = guest_percent(&guests[i], (uint64_t)period);
		struct utilization what = { .pid = guests[i].pid };

		if (load == 0)
			continue;
		what.timestamp =
			stamp_us((period + 1) * PERIOD_TICKS * SCENARIO_TICK_MS + sample_skew_ms(call->gpu));
		what.load[ENGINE_GPU] = (uint8_t)load;
		if (found < capacity)
			put(call, &what, found, dst);
		found++;
	}
	return found;
}

static uint32_t list_utilization(const struct call *call, uint64_t last_seen, uint32_t capacity,
				 put_utilization *put, void *dst)
{
	const struct gpu *gpu = call->gpu;
	uint32_t found = 0;
	int64_t end;

	for (int64_t at = periods(call, last_seen, &end); at < end; at++) {
		const struct slot_period *period = &gpu->periods[at % PERIODS_KEPT * gpu->slot_count];

		for (uint32_t i = 0; i < gpu->slot_count; i++) {
			struct utilization what;

			if (!worked(&period[i]))
				continue;
			what.timestamp =
				stamp_us((at + 1) * PERIOD_TICKS * SCENARIO_TICK_MS + sample_skew_ms(gpu));
			what.pid = period[i].pid;
			memcpy(what.load, period[i].load, sizeof(what.load));
			if (found < capacity)
				put(call, &what, found, dst);
			found++;
		}
		found = put_guests(call, at, capacity, found, put, dst);
	}
	return found;
}

static void put_sample(const struct call *call, const struct utilization *what, uint32_t index, void *dst)
{
	struct nvml_process_utilization *sample = (struct nvml_process_utilization *)dst + index;

	*sample = (struct nvml_process_utilization){ .pid = what->pid, .timestamp = what->timestamp };
	put_u32(call, &sample->sm, what->load[ENGINE_GPU]);
	put_u32(call, &sample->memory, what->load[ENGINE_MEMORY]);
	put_u32(call, &sample->encoder, what->load[ENGINE_ENCODER]);
	put_u32(call, &sample->decoder, what->load[ENGINE_DECODER]);
}

static void put_sample_v1(const struct call *call, const struct utilization *what, uint32_t index, void *dst)
{
	struct nvml_process_utilization_v1 *sample = (struct nvml_process_utilization_v1 *)dst + index;

	*sample = (struct nvml_process_utilization_v1){ .pid = what->pid, .timestamp = what->timestamp };
	put_u32(call, &sample->sm, what->load[ENGINE_GPU]);
	put_u32(call, &sample->memory, what->load[ENGINE_MEMORY]);
	put_u32(call, &sample->encoder, what->load[ENGINE_ENCODER]);
	put_u32(call, &sample->decoder, what->load[ENGINE_DECODER]);
	put_u32(call, &sample->jpeg, what->load[ENGINE_JPEG]);
	put_u32(call, &sample->ofa, what->load[ENGINE_OFA]);
}

/* The result for a query of the size, or a buffer that is too small: the maximum size. */
static uint32_t most_samples(const struct call *call)
{
	const struct guest *guests;
	uint32_t guest_count = guests_of(call->gpu->index, call->instance, call->now_ms, &guests);

	return MAX(call->gpu->slot_count + guest_count, 1u) * (PERIODS_KEPT - 2);
}

enum nvml_return nvmlDeviceGetProcessUtilization(struct nvml_device *device,
						 struct nvml_process_utilization *samples, uint32_t *count,
						 uint64_t last_seen)
{
	CALL(nvmlDeviceGetProcessUtilization, device);
	uint32_t found;

	NEED(count);
	NEED_SUPPORT(call->gpu->what->model.process_utilization && !call->gpu->what->mig);
	if (!samples) {
		*count = most_samples(call);
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	found = list_utilization(call, last_seen, *count, put_sample, samples);
	if (found > *count) {
		*count = most_samples(call);
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	*count = found;
	return found > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

enum nvml_return nvmlDeviceGetProcessesUtilizationInfo(struct nvml_device *device,
						       struct nvml_processes_utilization *info)
{
	CALL(nvmlDeviceGetProcessesUtilizationInfo, device);
	uint32_t found;

	NEED(info);
	NEED_VERSION(info, 1);
	NEED_SUPPORT(call->gpu->what->model.process_utilization && !call->gpu->what->mig);
	if (!info->processes) {
		info->count = most_samples(call);
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	found = list_utilization(call, info->last_seen, info->count, put_sample_v1, info->processes);
	if (found > info->count) {
		info->count = most_samples(call);
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	info->count = found;
	return found > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* Accounting: of the processes that run now; what ended is forgotten. */
enum { ACCOUNTING_BUFFER = 4000 };

DEVICE_U32(nvmlDeviceGetAccountingMode, model->accounting, NVML_FEATURE_ENABLED)
DEVICE_U32(nvmlDeviceGetAccountingBufferSize, model->accounting, ACCOUNTING_BUFFER)

enum nvml_return nvmlDeviceGetAccountingPids(struct nvml_device *device, uint32_t *count, uint32_t *pids)
{
	CALL(nvmlDeviceGetAccountingPids, device);
	uint32_t capacity, found = 0;

	NEED(count);
	NEED_SUPPORT(call->gpu->what->model.accounting);
	capacity = pids ? *count : 0;
	for (uint32_t i = 0; i < call->gpu->slot_count; i++) {
		if (!listed(call, i, PROCESS_COMPUTE | PROCESS_MPS))
			continue;
		if (found < capacity)
			pids[found] = call->gpu->slots_now[i].pid;
		found++;
	}
	*count = found;
	return found > capacity ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetAccountingStats(struct nvml_device *device, uint32_t pid,
					      struct nvml_accounting_stats *stats)
{
	CALL(nvmlDeviceGetAccountingStats, device);

	NEED(stats);
	NEED_SUPPORT(call->gpu->what->model.accounting);
	for (uint32_t i = 0; i < call->gpu->slot_count; i++) {
		const struct slot_now *now = &call->gpu->slots_now[i];

		if (!listed(call, i, PROCESS_COMPUTE | PROCESS_MPS) || now->pid != pid)
			continue;
		*stats =
			(struct nvml_accounting_stats){ .start_us = stamp_us(now->started_ms), .running = 1 };
		put_u32(call, &stats->gpu_utilization, now->load[ENGINE_GPU]);
		put_u32(call, &stats->memory_utilization, now->load[ENGINE_MEMORY]);
		put_u64(call, &stats->max_memory, (uint64_t)now->memory_mib * BYTES_PER_MIB);
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}
