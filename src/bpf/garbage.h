// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: functions of CPython that are probed: collections of garbage, and calls from C.
 *
 * Garbage is collected from the entry of the function that does it to that of the one that calls the
 * program's callbacks afterwards. Both are entry probes: what runs meanwhile may never come back.
 *
 * The functions that are not static: as in shares.h.
 */
#pragma once

#include "bpf/python_threads.h"
#include "bpf/sums.h"

static __always_inline bool is_stop(__u64 text)
{
	char phase[5] = {};

	bpf_probe_read_user(phase, sizeof(phase), (void *)text);
	return phase[0] == 's' && phase[1] == 't' && phase[2] == 'o' && phase[3] == 'p' && !phase[4];
}

/* Counts a call of the current process. @duration_ns: 0: not known. */
static __always_inline void python_count(const struct thread *thread, __u32 tgid, __u32 call,
					 __u64 duration_ns)
{
	struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);
	struct trace_stat *stat = stat_get(thread, tgid, call);
	__u64 bucket = latency_bucket(duration_ns);

	if (!stat || !ctl)
		return;
	COUNT(&stat->count);
	stat->last_ns = bpf_ktime_get_ns();
	SHOW_BOUND(bucket);
	if (duration_ns && bucket < TRACE_BUCKETS) {
		ADD(&stat->total_ns, duration_ns);
		COUNT(&stat->buckets[bucket]);
	}
	stat_mark_active(ctl, tgid);
}

__noinline int python_called(__u64 id, __u32 call)
{
	const struct trace_spec *spec = bpf_map_lookup_elem(&specs, &call);
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct python_told told = { .op = TRACE_OP_PYTHON_CALL, .call = call, .time_ns = bpf_ktime_get_ns() };
	struct trace_counters *c = counters_get();

	if (!spec || !thread || !c)
		return 0;
	python_count(thread, id >> 32, call, 0);
	if (spec->flags & TRACE_SPEC_EVENT && !(thread->flags & TRACE_PROC_QUIET))
		python_event(c, &told);
	return 0;
}

/* @generation: argument 1, if that is what it is. */
__noinline int gc_begin(__u64 id, __u32 call, __u32 generation)
{
	const struct trace_spec *spec = bpf_map_lookup_elem(&specs, &call);
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct python_thread *python;

	if (!spec || !thread)
		return 0;
	python = python_thread_get(id, thread->owner);
	if (!python)
		return 0;
	python->gc_ns = bpf_ktime_get_ns();
	python->gc_call = call;
	python->gc_generation =
		spec->operands[TRACE_OPERAND_KIND].from ? generation : (__u32)TRACE_GENERATION_UNKNOWN;
	return 0;
}

/* Callbacks are called with these arguments, of which one says whether garbage was collected, or will be. */
__noinline int gc_end(__u64 id, __u64 first, __u64 second)
{
	struct python_thread *python = bpf_map_lookup_elem(&python_threads, &id);
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct trace_counters *c = counters_get();
	struct python_told told = { .op = TRACE_OP_PYTHON_GC };

	if (!python || !thread || !c || !python->gc_ns || !(is_stop(first) || is_stop(second)))
		return 0;
	told.time_ns = python->gc_ns;
	told.duration_ns = bpf_ktime_get_ns() - python->gc_ns;
	told.call = python->gc_call;
	told.kind = python->gc_generation;
	python->gc_ns = 0;
	python_count(thread, id >> 32, told.call, told.duration_ns);
	if (!(thread->flags & TRACE_PROC_QUIET))
		python_event(c, &told);
	return 0;
}

/* Thread @id enters a function of CPython with these arguments. */
static __always_inline int python_enter(__u64 id, __u8 op, __u32 call, __u64 first, __u64 second)
{
	if (op == TRACE_OP_PYTHON_CALL)
		return python_called(id, call);
	if (op == TRACE_OP_PYTHON_GC)
		return gc_begin(id, call, second);
	return gc_end(id, first, second);
}
