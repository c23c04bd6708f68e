// SPDX-License-Identifier: Apache-2.0
#include "pipeline/analysis_call.h"

#include <string.h>

#include "model/nccl.h"

static uint8_t copy_of(uint32_t kind)
{
	switch ((enum trace_copy)kind) {
	case TRACE_COPY_HOST_TO_DEVICE:
		return ANALYSIS_COPY_TO_DEVICE;
	case TRACE_COPY_DEVICE_TO_HOST:
		return ANALYSIS_COPY_TO_HOST;
	case TRACE_COPY_DEVICE_TO_DEVICE:
		return ANALYSIS_COPY_ON_DEVICE;
	case TRACE_COPY_PEER:
		return ANALYSIS_COPY_PEER;
	default:
		return ANALYSIS_COPY_UNKNOWN;
	}
}

static void of_memory(const struct analysis_call *call, enum analysis_kind kind, struct analysis_event *event)
{
	event->kind = (uint8_t)kind;
	event->address = call->address;
	if (call->kind == TRACE_MEMORY_HOST || call->kind == TRACE_MEMORY_REGISTERED)
		event->flags |= ANALYSIS_HOST;
}

static void of_copy(const struct analysis_call *call, const struct trace_spec *spec,
		    struct analysis_event *event)
{
	event->kind = ANALYSIS_COPY;
	event->copy = copy_of(call->kind);
	if (spec->event_flags & TRACE_FLAG_WAITS)
		event->flags |= ANALYSIS_BLOCKS;
}

static void of_collective(const struct analysis_call *call, struct analysis_event *event)
{
	uint32_t size = nccl_type_bytes(call->kind);

	event->kind = ANALYSIS_COLLECTIVE;
	event->datatype = (uint8_t)call->kind;
	event->count = size ? call->bytes / size : 0;
	event->rank = -1;
}

/* Of CUDA, NCCL and Python; what other layers do is told by what they call. */
static bool of_operation(const struct analysis_call *call, const struct trace_spec *spec,
			 struct analysis_event *event)
{
	switch ((enum trace_op)spec->op) {
	case TRACE_OP_LAUNCH:
	case TRACE_OP_GRAPH_LAUNCH:
		event->kind = ANALYSIS_LAUNCH;
		return true;
	case TRACE_OP_ALLOC:
		of_memory(call, ANALYSIS_ALLOCATE, event);
		return true;
	case TRACE_OP_FREE:
		of_memory(call, ANALYSIS_FREE, event);
		return true;
	case TRACE_OP_COPY:
		of_copy(call, spec, event);
		return true;
	case TRACE_OP_SYNC_STREAM:
	case TRACE_OP_SYNC_EVENT:
	case TRACE_OP_SYNC_CONTEXT:
	case TRACE_OP_SYNC_DEVICE:
		event->kind = ANALYSIS_SYNC;
		return true;
	case TRACE_OP_PYTHON_GIL:
		event->kind = ANALYSIS_GIL;
		return true;
	case TRACE_OP_PYTHON_GC:
		event->kind = ANALYSIS_GC;
		return true;
	default:
		event->kind = ANALYSIS_CALL;
		return spec->layer == TRACE_LAYER_CUDA;
	}
}

bool analysis_of_call(const struct analysis_call *call, struct analysis_event *event)
{
	const struct trace_spec spec = probe_spec(call->probe);

	event->result = call->result;
	event->bytes = call->bytes;
	event->stream = call->stream;
	if (spec.op < TRACE_OP_NCCL_FIRST || spec.op > TRACE_OP_NCCL_LAST_MOVING)
		return of_operation(call, &spec, event);
	of_collective(call, event);
	return true;
}

bool analysis_of_range(const char *name, struct analysis_event *event)
{
	static const struct {
		const char *begin;
		enum analysis_kind kind;
	} ranges[] = {
		{ "Optimizer.step#", ANALYSIS_STEP },
		{ "enumerate(DataLoader)#", ANALYSIS_DATA },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (strncmp(name, ranges[i].begin, strlen(ranges[i].begin)) == 0) {
			event->kind = (uint8_t)ranges[i].kind;
			return true;
		}
	return false;
}
