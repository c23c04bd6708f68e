// SPDX-License-Identifier: Apache-2.0
#include "nvml/report.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "nvml/process_list.h"

/* Capacity offered to the driver beyond the length of the previous list. */
enum { ROOM = 32 };

/* Capacity for the longest list, of records longer than any known driver writes. */
static _Alignas(16) unsigned char buffer[READING_PROCESSES_MAX * PROCESS_RECORD_ROOM];
static uint32_t capacity = ROOM;

static const struct {
	enum process_type type;
	uint32_t mode;
	unsigned row, slot;
} lists[] = {
	{ PROCESS_TYPE_COMPUTE, NVML_PROCESS_MODE_COMPUTE, GPU_PROCESSES_COMPUTE, SLOT_PROCESSES_COMPUTE },
	{ PROCESS_TYPE_GRAPHICS, NVML_PROCESS_MODE_GRAPHICS, GPU_PROCESSES_GRAPHICS,
	  SLOT_PROCESSES_GRAPHICS },
	{ PROCESS_TYPE_MPS, NVML_PROCESS_MODE_MPS, GPU_PROCESSES_MPS, SLOT_PROCESSES_MPS },
};
enum { LISTS = ARRAY_SIZE(lists) };

/* Versions of a list's call, newest first. */
enum list_call { CALL_V3, CALL_V2, CALL_V1, CALL_DETAIL, LIST_CALLS };

static const unsigned declared_stride[LIST_CALLS] = {
	[CALL_V3] = sizeof(struct nvml_process_info_v2),
	[CALL_V2] = sizeof(struct nvml_process_info_v2),
	[CALL_V1] = sizeof(struct nvml_process_info_v1),
	[CALL_DETAIL] = sizeof(struct nvml_process_detail),
};

unsigned process_list_stride(const unsigned char *records, unsigned n, unsigned declared)
{
	const unsigned char *end = records + (size_t)n * PROCESS_RECORD_ROOM,
			    *known = records + (size_t)n * declared;

	while (end > known && end[-1] == PROCESS_LIST_FILL)
		end--;
	if (end <= known)
		return declared;
	/*
	 * The end of the last record may be padding that was not written; records are multiples of 8 bytes.
	 */
	return ((unsigned)((size_t)(end - records) + n - 1) / n + 7) / 8 * 8;
}

void process_list_get(const unsigned char *records, unsigned i, unsigned stride,
		      struct process_record *ret_record)
{
	const unsigned char *record = records + (size_t)i * stride;

	memcpy(&ret_record->pid, record + offsetof(struct nvml_process_info_v1, pid),
	       sizeof(ret_record->pid));
	memcpy(&ret_record->used_memory, record + offsetof(struct nvml_process_info_v1, used_memory),
	       sizeof(ret_record->used_memory));
}

static enum nvml_return call_list(struct reader *reader, struct device *device, unsigned list,
				  enum list_call call, uint32_t *n)
{
	void *records = buffer;

#define LIST_CALL(name_) NVML_CALL(reader, name_, device->handle, n, records)
	switch (call * LISTS + list) {
	case (CALL_V3 * LISTS) + 0:
		return LIST_CALL(nvmlDeviceGetComputeRunningProcesses_v3);
	case (CALL_V3 * LISTS) + 1:
		return LIST_CALL(nvmlDeviceGetGraphicsRunningProcesses_v3);
	case (CALL_V3 * LISTS) + 2:
		return LIST_CALL(nvmlDeviceGetMPSComputeRunningProcesses_v3);
	case (CALL_V2 * LISTS) + 0:
		return LIST_CALL(nvmlDeviceGetComputeRunningProcesses_v2);
	case (CALL_V2 * LISTS) + 1:
		return LIST_CALL(nvmlDeviceGetGraphicsRunningProcesses_v2);
	case (CALL_V2 * LISTS) + 2:
		return LIST_CALL(nvmlDeviceGetMPSComputeRunningProcesses_v2);
	case (CALL_V1 * LISTS) + 0:
		return LIST_CALL(nvmlDeviceGetComputeRunningProcesses);
	case (CALL_V1 * LISTS) + 1:
		return LIST_CALL(nvmlDeviceGetGraphicsRunningProcesses);
	case (CALL_V1 * LISTS) + 2:
		return LIST_CALL(nvmlDeviceGetMPSComputeRunningProcesses);
	default:
		break;
	}
#undef LIST_CALL
	struct nvml_process_detail_list detail = {
		.version = NVML_VERSION_WORD(struct nvml_process_detail_list, 1),
		.mode = lists[list].mode,
		.count = *n,
		.processes = records,
	};
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetRunningProcessDetailList, device->handle, &detail);

	*n = detail.count;
	return result;
}

/*
 * Calls one version of the function, with a buffer of the size it requests; the number is invalid if it
 * exceeds the buffer.
 */
static enum nvml_return read_list_call(struct reader *reader, struct device *device, unsigned list,
				       enum list_call call, uint32_t *ret_n)
{
	enum nvml_return result = NVML_ERROR_INSUFFICIENT_SIZE;

	for (int attempt = 0; attempt < 4 && result == NVML_ERROR_INSUFFICIENT_SIZE; attempt++) {
		uint32_t offered = capacity;

		*ret_n = offered;
		memset(buffer, PROCESS_LIST_FILL, (size_t)offered * PROCESS_RECORD_ROOM);
		result = call_list(reader, device, list, call, ret_n);
		if (result == NVML_SUCCESS && *ret_n > offered) {
			*ret_n = NVML_NONE_U32;
			return result;
		}
		*ret_n = MIN(*ret_n, (uint32_t)READING_PROCESSES_MAX);
		if (result == NVML_ERROR_INSUFFICIENT_SIZE ||
		    (result == NVML_SUCCESS && *ret_n + ROOM / 2 > capacity))
			capacity = MIN(MAX(*ret_n, capacity) + ROOM, (uint32_t)READING_PROCESSES_MAX);
	}
	return result;
}

static enum nvml_return read_list(struct reader *reader, struct device *device, unsigned list,
				  uint32_t *ret_n, unsigned *ret_stride)
{
	enum nvml_return result = NVML_ERROR_NOT_SUPPORTED;
	bool refused = false;

	*ret_n = 0;
	for (unsigned call = 0; call < LIST_CALLS; call++) {
		unsigned bit = list * LIST_CALLS + call;

		if (device->process_calls_off & 1u << bit)
			continue;
		*ret_stride = 0;
		result = read_list_call(reader, device, list, call, ret_n);
		if (nvml_unsupported(result)) {
			device->process_calls_off |= (uint16_t)(1u << bit);
			continue;
		}
		if (result == NVML_SUCCESS && *ret_n != NVML_NONE_U32)
			*ret_stride = process_list_stride(buffer, *ret_n, declared_stride[call]);
		refused = result == NVML_SUCCESS && *ret_stride > PROCESS_RECORD_MAX;
		if (!refused)
			break;
		reader_unrecognised(reader, "processes in records of %u bytes", *ret_stride);
	}
	if (refused) {
		/* There are processes, but the list is unknown: the number is unknown, not 0. */
		*ret_n = NVML_NONE_U32;
		return NVML_SUCCESS;
	}
	if (result != NVML_SUCCESS)
		*ret_n = 0;
	return result;
}

static void take_record(struct reader *reader, struct device *device, enum process_type type,
			const struct process_record *record)
{
	struct process_state *state;
	struct reading_process *process = process_take(reader, device, record->pid, &state);

	if (!process)
		return;
	process->types |= (uint8_t)type;
	if (record->used_memory == NVML_NONE_U64)
		return; /* unknown to the driver, which is not 0 */
	if (nvml_garbage_u64(record->used_memory) ||
	    !metric_plausible(&process_metrics[PROCESS_MEMORY], (double)record->used_memory)) {
		reader->reading->rejected_process[PROCESS_MEMORY]++;
		if (!presence_is(process->p[PROCESS_MEMORY]))
			process->p[PROCESS_MEMORY] = PRESENCE_REJECTED;
		return;
	}
	/* The lists overlap, each with all of the process's memory. */
	process->v[PROCESS_MEMORY] = MAX(process->v[PROCESS_MEMORY], (double)record->used_memory);
	process->p[PROCESS_MEMORY] = PRESENCE_PRESENT;
}

static void ask_name(struct reader *reader, const struct reading_process *process,
		     struct process_state *state)
{
	char path[PATH_MAX] = "";
	const char *slash;

	if (state->named || reader->names_asked >= PROCESS_NAME_CALLS)
		return;
	state->named = true;
	reader->names_asked++;
	if (NVML_CALL(reader, nvmlSystemGetProcessName, process->pid, path, sizeof(path)) != NVML_SUCCESS)
		return;
	/* The driver truncates a path at its end, where the name is; so the buffer takes the longest path. */
	path[sizeof(path) - 1] = '\0';
	slash = strrchr(path, '/');
	snprintf(state->name, sizeof(state->name), "%.*s", (int)sizeof(state->name) - 1,
		 slash ? slash + 1 : path);
}

static void name_processes(struct reader *reader, uint32_t from)
{
	for (uint32_t i = from; i < reader->reading->processes_n; i++) {
		struct reading_process *process = &reader->reading->processes[i];
		struct process_state *state = &reader->processes.states[reader->processes.of_reading[i]];

		ask_name(reader, process, state);
		memcpy(process->name, state->name, sizeof(process->name));
	}
}

void processes_read(struct reader *reader, struct device *device)
{
	uint32_t from = reader->reading->processes_n;
	uint8_t presence = PRESENCE_UNSUPPORTED;

	if (device->mig) {
		/* Each process is listed at its instance; here it would be counted twice. */
		device->entity->process_list = device->entity->process_util = PRESENCE_ABSENT;
		return;
	}
	for (unsigned list = 0; list < LISTS && !reader->lost && !reader->gone; list++) {
		uint32_t n;
		uint8_t one;
		unsigned stride = 0;
		enum nvml_return result = read_list(reader, device, list, &n, &stride);

		reader_report_u32(reader, device, lists[list].row, lists[list].slot, result, n, 1);
		one = device->entity->p[lists[list].slot];
		/* A list that failed makes them incomplete; one that the driver lacks does not. */
		if (one != PRESENCE_UNSUPPORTED && (presence == PRESENCE_UNSUPPORTED || !presence_is(one)))
			presence = one;
		for (uint32_t i = 0; presence_is(one) && i < n; i++) {
			struct process_record record;

			process_list_get(buffer, i, stride, &record);
			take_record(reader, device, lists[list].type, &record);
		}
	}
	device->entity->process_list = presence;
	process_utilization_read(reader, device);
	if (!reader->gone)
		name_processes(reader, from);
}
