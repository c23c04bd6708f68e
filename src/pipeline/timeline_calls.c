// SPDX-License-Identifier: Apache-2.0
/* Calls of threads in a timeline, and the launches among them whose kernels have no name yet. */
#include <errno.h>

#include "base/clock.h"
#include "pipeline/timeline_private.h"
#include "torch/name.h"
#include "trace/probe.h"

static const uint8_t categories[PROBE_LIBRARIES] = {
	[PROBE_CUDA] = TIMELINE_CUDA,     [PROBE_CUDART] = TIMELINE_CUDA,   [PROBE_CUBLAS] = TIMELINE_BLAS,
	[PROBE_CUBLASLT] = TIMELINE_BLAS, [PROBE_CUDNN] = TIMELINE_BLAS,    [PROBE_NCCL] = TIMELINE_NCCL,
	[PROBE_TORCH] = TIMELINE_TORCH,   [PROBE_PYTHON] = TIMELINE_PYTHON, [PROBE_USER] = TIMELINE_USER,
};

/* Text of a call's number, made at its first event: what PyTorch has is named as PyTorch does. */
static bool call_text(struct trace_timeline *t, uint16_t call, uint32_t *ret_text)
{
	const struct probe *probe = probe_at(call);
	const char *text = probe->symbol;
	char name[TORCH_NAME_MAX];

	if (!t->names[call]) {
		if (probe->library == PROBE_TORCH) {
			torch_name(probe->symbol, name);
			text = name;
		}
		if (!trace_timeline_text(t, text, ret_text))
			return false;
		t->names[call] = *ret_text + 1;
	}
	*ret_text = t->names[call] - 1;
	return true;
}

static bool name_event(struct trace_timeline *t, const struct trace_header *header,
		       struct timeline_event *event)
{
	bool made;

	if (timeline_layer_name(t, header, event, &made))
		return made;
	event->category = categories[probe_at(header->call)->library];
	return call_text(t, header->call, &event->name);
}

/* Waits that are told together have no time that is one slice. */
static bool is_slice(const struct trace_header *header, const struct raw_event *raw)
{
	return raw->has_result &&
	       (header->op != TRACE_OP_PYTHON_GIL || ((const struct trace_call *)header)->size == 1);
}

static void put_operator(struct trace_timeline *t, struct timeline_event *event,
			 const struct trace_header *header)
{
	uint16_t call = header->operator;
	uint32_t name;

	/* A node's own is that of the forward pass. */
	if (call != 0 && header->op != TRACE_OP_TORCH_NODE && call_text(t, call, &name))
		timeline_put_arg(t, event, "operator", TIMELINE_TEXT, name);
}

static void add_wait(struct trace_timeline *t, const struct timeline_event *event, uint32_t tgid,
		     uint64_t function)
{
	if (t->waiting_n < WAITING_MAX)
		t->waiting[t->waiting_n++] = (struct waiting){ *event, function, tgid };
	else
		trace_timeline_add(t, event);
}

static bool put_kernel(struct trace_timeline *t, struct timeline_event *event, uint32_t tgid,
		       uint64_t function)
{
	const struct kernel *kernel = pipeline_kernel(t->pipeline, tgid, function);

	if (kernel)
		timeline_put_text_arg(t, event, "kernel", kernel->name);
	return kernel;
}

/* An event without a process's track, or without room for texts, is dropped. */
static int timeline_call(struct trace_timeline *t, const struct trace_header *header,
			 const struct raw_event *raw)
{
	struct timeline_event event = {
		.type = is_slice(header, raw) ? TIMELINE_SLICE : TIMELINE_INSTANT,
		.begin_ns = raw->time_ns,
		.end_ns = raw->time_ns + raw->duration_ns,
	};
	uint32_t process, stream_id;
	bool nameless;

	if (!timeline_thread(t, header, &process, &event.track))
		return -ENOBUFS;
	if (header->op == TRACE_OP_TORCH_MEMORY) {
		timeline_torch_memory(t, (const struct trace_call *)header, process);
		return 0;
	}
	if (!name_event(t, header, &event))
		return -ENOBUFS;
	event.stack = timeline_stack_of(t, header);
	/* First what differs: it is less to compress. */
	nameless = raw->type == RAW_LAUNCH && !put_kernel(t, &event, header->tgid, raw->launch.function);
	if (raw->has_result && raw->result != 0)
		timeline_put_arg(t, &event, "result", TIMELINE_SIGNED, (uint64_t)(int64_t)raw->result);
	put_operator(t, &event, header);
	if (raw->has_result && event.type == TIMELINE_INSTANT)
		timeline_put_arg(t, &event, "total_ns", TIMELINE_UNSIGNED, raw->duration_ns);
	timeline_put_operands(t, &event, raw);
	timeline_nccl(t, header, &event, process);
	if (raw->type == RAW_LAUNCH && timeline_work_expected(t, header->tgid))
		event.other_flow = timeline_work_launch(t, process, header, &event);
	if (raw->type == RAW_LAUNCH && !timeline_work_certain(t, header->tgid) &&
	    pipeline_launch_stream(t->pipeline, (const struct trace_launch *)header, &stream_id))
		event.flow = timeline_flow(t, process, stream_id, false);
	if (!nameless) {
		trace_timeline_add(t, &event);
		return 0;
	}
	timeline_put_arg(t, &event, "function", TIMELINE_POINTER, raw->launch.function);
	add_wait(t, &event, header->tgid, raw->launch.function);
	return 0;
}

/* Launches whose kernel has a name by now, and those that have waited for a second or more. */
void timeline_add_waiting(struct trace_timeline *t, bool all)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->waiting_n; i++) {
		struct waiting *waiting = &t->waiting[i];

		if (put_kernel(t, &waiting->event, waiting->tgid, waiting->function) || all ||
		    i < t->waiting_old)
			trace_timeline_add(t, &waiting->event);
		else
			t->waiting[kept++] = *waiting;
	}
	t->waiting_n = t->waiting_old = kept;
}

/* What record_function() begins: a step of an optimizer, a part that the program names. */
static int timeline_range(struct trace_timeline *t, const struct trace_header *header,
			  const struct raw_event *raw)
{
	struct timeline_event event = { .type = TIMELINE_INSTANT,
					.category = TIMELINE_TORCH,
					.begin_ns = raw->time_ns };
	uint32_t process;

	if (!raw->name.text)
		return 0;
	if (!timeline_thread(t, header, &process, &event.track) ||
	    !trace_timeline_text(t, raw->name.text, &event.name))
		return -ENOBUFS;
	trace_timeline_add(t, &event);
	return 0;
}

int timeline_event(const struct trace_header *event, _unused_ uint32_t size, void *userdata)
{
	struct trace_timeline *t = userdata;
	struct raw_event raw;

	if (t->pid && event->tgid != t->pid)
		return 0;
	if (!raw_event_of(t->blas, event, &raw))
		return 0;
	switch (raw.type) {
	case RAW_PROCESS:
		return timeline_process_begins(t, (const struct trace_process *)event) ? 0 : -ENOBUFS;
	case RAW_EXEC:
		timeline_process_ends(t, event->tgid, "exec", event->time_ns);
		return 0;
	case RAW_EXIT:
		timeline_process_ends(t, event->tgid, "process ended", event->time_ns);
		return 0;
	case RAW_NAME:
		return event->op == TRACE_OP_TORCH_RANGE ? timeline_range(t, event, &raw) : 0;
	case RAW_VARIABLE:
		return 0;
	default:
		/* A kernel's registration is nothing that the program does. */
		if (event->op == TRACE_OP_FUNCTION_REGISTER)
			return 0;
		return timeline_call(t, event, &raw);
	}
}
