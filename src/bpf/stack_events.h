// SPDX-License-Identifier: Apache-2.0
/* For trace.bpf.c only: the events that tell a stack. */
#pragma once

#include "bpf/emit.h"
#include "bpf/stack_maps.h"

/* A new id; 0: this CPU's number is too high. */
static __always_inline __u32 stack_number(struct trace_counters *c)
{
	__u32 cpu = bpf_get_smp_processor_id(), n;

	if (cpu >> TRACE_STACK_CPU_BITS)
		return 0;
#ifdef TRACE_FETCH
	n = __sync_fetch_and_add(&c->stacks, 1);
#else
	n = c->stacks++;
#endif
	/* From 1 on, so that an id is never below TRACE_STACK_NONES. */
	n = n % ((1U << (32 - TRACE_STACK_CPU_BITS)) - 1) + 1;
	return n << TRACE_STACK_CPU_BITS | cpu;
}

#define STACK_SEND(function, capacity)                                                                       \
	static __noinline int function(struct trace_counters *c, const struct walk *walk, __u32 number)      \
	{                                                                                                    \
		struct trace_stack *event =                                                                  \
			event_begin(c, sizeof(struct trace_stack) + (capacity) * sizeof(struct trace_frame), \
				    TRACE_EVENT_STACK, bpf_ktime_get_ns());                                  \
                                                                                                             \
		if (!event)                                                                                  \
			return 0;                                                                            \
		event->header.stack = number;                                                                \
		event->n = walk->n;                                                                          \
		event->flags = walk->flags;                                                                  \
		bpf_probe_read_kernel(event->frames, (capacity) * sizeof(struct trace_frame), walk->frames); \
		event_submit(event);                                                                         \
		return 1;                                                                                    \
	}
STACK_SEND(stack_send_small, TRACE_STACK_SMALL)
STACK_SEND(stack_send_large, TRACE_STACK_LARGE)

#define NATIVE_SEND(function, capacity)                                                                 \
	static __noinline int function(struct trace_counters *c, const struct walk *walk, __u32 number) \
	{                                                                                               \
		struct trace_native *event =                                                            \
			event_begin(c, sizeof(struct trace_native) + (capacity) * sizeof(__u64),        \
				    TRACE_EVENT_NATIVE, bpf_ktime_get_ns());                            \
                                                                                                        \
		if (!event)                                                                             \
			return 0;                                                                       \
		event->header.stack = number;                                                           \
		event->entries[0] = walk->entries[0];                                                   \
		event->entries[1] = walk->entries[1];                                                   \
		event->loops[0] = walk->native.loops[0];                                                \
		event->loops[1] = walk->native.loops[1];                                                \
		event->space = walk->native.area.space;                                                 \
		event->n = walk->native.n;                                                              \
		event->stop = walk->native.stop;                                                        \
		event->python = walk->why;                                                              \
		event->guessed = walk->native.guessed;                                                  \
		bpf_probe_read_kernel(event->pcs, (capacity) * sizeof(__u64), walk->native.pcs);        \
		event_submit(event);                                                                    \
		return 1;                                                                               \
	}
NATIVE_SEND(native_send_small, TRACE_STACK_SMALL)
NATIVE_SEND(native_send_large, TRACE_STACK_LARGE)
