// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: what threads do in Python besides running it (gil.h, garbage.h), and the events that
 * tell it.
 */
#pragma once

#include "bpf/emit.h"
#include "bpf/shares.h"

struct python_thread {
	__u64 owner; /* as in struct trace_proc */
	__u64 off_ns; /* waits since; 0: it does not wait */
	__u64 limit_ns; /* until then at most; not by that clock: far in the future */
	__u64 expired_ns; /* when the last piece had reached its limit; 0: it had not */
	__u64 number; /* of the lock's holder when the last piece began; 0: not known */
	__u64 wait_ns; /* of the wait so far */
	/* Not told yet. */
	__u64 since_ns, total_ns, longest_ns;
	__u32 waits, pad;
	__u64 gc_ns; /* collects garbage since; 0: it does not */
	__u32 gc_call, gc_generation;
};

/* User space sets max_entries: as many as `threads`, or 1 where it is not traced. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64); /* as for `threads` */
	__type(value, struct python_thread);
} python_threads SEC(".maps");

/* The current thread's entry, created if needed. NULL: there is no room, which is counted. */
static __always_inline struct python_thread *python_thread_get(__u64 id, __u64 owner)
{
	struct python_thread *python = bpf_map_lookup_elem(&python_threads, &id);
	struct python_thread *none = bpf_map_lookup_elem(&zeros, &zero);

	if (python || !none)
		return python;
	if (share_take(owner, TRACE_TABLE_PYTHON)) {
		if (bpf_map_update_elem(&python_threads, &id, none, BPF_NOEXIST))
			share_give(owner, TRACE_TABLE_PYTHON);
		python = bpf_map_lookup_elem(&python_threads, &id);
	}
	if (python)
		python->owner = owner;
	else
		table_lost(owner, TRACE_TABLE_PYTHON);
	return python;
}

/* ---- events ---- */

struct python_told {
	__u64 time_ns, duration_ns, size, addr;
	__u32 kind, call;
	__u8 op;
};

static __noinline void python_event(struct trace_counters *c, const struct python_told *told)
{
	struct trace_call *event = event_begin(c, sizeof(*event), TRACE_EVENT_CALL, told->time_ns);

	if (!event)
		return;
	event->header.call = told->call;
	event->header.op = told->op;
	event->duration_ns = told->duration_ns;
	event->addr = told->addr;
	event->size = told->size;
	event->stream = 0;
	event->handle = 0;
	event->result = 0;
	event->kind = told->kind;
	event->number = 0;
	event->other = 0;
	if (told->op == TRACE_OP_PYTHON_CALL)
		event->header.flags = TRACE_FLAG_NO_RESULT;
	event_submit(event);
}
