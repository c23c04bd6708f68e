// SPDX-License-Identifier: Apache-2.0
/* For trace.bpf.c only: groups of NCCL calls, and calls that make several communicators. */
#pragma once

#include "bpf/layers.h"

static __always_inline struct frame *nccl_frame(struct thread *thread, __u64 id)
{
	return frame_of(thread, bpf_map_lookup_elem(&layers, &id), TRACE_LAYER_NCCL);
}

/*
 * A call of NCCL by thread @id ends. A group belongs to the thread: it ends with ncclGroupEnd(), also with
 * one that fails, or with the thread. Not static, as in shares.h.
 */
__noinline int nccl_end(__u64 id, __u32 failed)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	const struct trace_spec *spec;
	struct frame *frame;
	__u32 call;

	frame = thread ? nccl_frame(thread, id) : NULL;
	if (!frame)
		return 0;
	call = frame->call;
	spec = bpf_map_lookup_elem(&specs, &call);
	if (!spec)
		return 0;
	if (spec->op == TRACE_OP_NCCL_GROUP_START) {
		if (failed)
			return 0;
		if (thread->group++ == 0) {
			thread->group_ns = frame->entry_ns;
			thread->group_calls = 0;
		}
		frame->values[TRACE_OPERAND_TIMES] = thread->group;
	} else if (spec->op == TRACE_OP_NCCL_GROUP_END) {
		frame->values[TRACE_OPERAND_TIMES] = thread->group;
		if (thread->group == 0 || --thread->group > 0)
			return 0;
		frame->values[TRACE_OPERAND_STREAM] = thread->group_ns;
		frame->values[TRACE_OPERAND_HANDLE] = thread->group_calls;
	} else if (thread->group > 0) {
		frame->flags |= TRACE_FLAG_GROUPED;
		if (!failed && spec->op >= TRACE_OP_NCCL_FIRST && spec->op <= TRACE_OP_NCCL_LAST_MOVING)
			thread->group_calls++;
	}
	return 0;
}

/* One event for each communicator that ncclCommInitAll() has made. Not static, as in shares.h. */
__noinline int communicators_send(__u64 id, __u64 duration_ns)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct outcome outcome = { .duration_ns = duration_ns, .returned = 1 };
	struct trace_counters *c = counters_get();
	const struct trace_spec *spec;
	struct frame *frame;
	__u64 array;
	__u32 call;

	frame = thread ? nccl_frame(thread, id) : NULL;
	if (!frame || !c)
		return 0;
	call = frame->call;
	spec = bpf_map_lookup_elem(&specs, &call);
	if (!spec)
		return 0;
	array = frame->values[TRACE_OPERAND_HANDLE];
	for (__u32 i = 0; i < TRACE_COMMS_MAX && i < frame->values[TRACE_OPERAND_KIND]; i++) {
		frame->values[TRACE_OPERAND_HANDLE] = read_user_number(array + i * 8, 8, frame);
		frame->values[TRACE_OPERAND_TIMES] = i;
		call_event(c, spec, frame, &outcome, 0, TRACE_STACK_OFF);
	}
	return 0;
}
