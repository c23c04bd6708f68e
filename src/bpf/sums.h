// SPDX-License-Identifier: Apache-2.0
/* Sums by process and call. */
#pragma once

#include "bpf/emit.h"

static __noinline struct trace_stat *stat_new(struct trace_counters *c, struct trace_stat_key *key)
{
	struct trace_stat *none = bpf_map_lookup_elem(&zeros, &zero), *stat;
	struct trace_stat_new *event;
	long r;

	if (!none)
		return NULL;
	r = bpf_map_update_elem(&stats, key, none, BPF_NOEXIST);
	stat = bpf_map_lookup_elem(&stats, key);
	if (!stat)
		COUNT(&c->lost_stats);
	if (r)
		return stat;
	event = event_begin(c, sizeof(*event), TRACE_EVENT_STAT, bpf_ktime_get_ns());
	if (event) {
		event->header.call = key->call;
		event->incarnation = key->incarnation;
		event_submit(event);
	}
	return stat;
}

/*
 * Tells user space to read the process's sums. Called after they are updated, since user space clears the
 * byte before it reads them.
 */
static __always_inline void stat_mark_active(struct trace_control *ctl, __u32 tgid)
{
	if (!ctl->active[tgid & (TRACE_ACTIVE - 1)])
		ctl->active[tgid & (TRACE_ACTIVE - 1)] = 1;
}

/* The sums of a call in this process. */
static __always_inline struct trace_stat *stat_get(struct trace_counters *c, const struct thread *thread,
						   __u32 tgid, __u32 call)
{
	struct trace_stat_key key = { .tgid = tgid, .call = call, .incarnation = thread->incarnation };
	struct trace_stat *stat = bpf_map_lookup_elem(&stats, &key);

	if (!stat)
		stat = stat_new(c, &key);
	return stat;
}

static __noinline void error_count(struct trace_counters *c, const struct thread *thread, __u32 tgid,
				   __u32 call, __s32 result)
{
	struct trace_error_key key = {
		.tgid = tgid, .call = call, .incarnation = thread->incarnation, .result = result
	};
	__u64 none = 0, *n = bpf_map_lookup_elem(&errors, &key);

	if (!n) {
		bpf_map_update_elem(&errors, &key, &none, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&errors, &key);
	}
	if (n)
		COUNT(n);
	else
		COUNT(&c->lost_errors);
}

/*
 * The bucket (see TRACE_BUCKETS), from the position of the highest bit and the three bits after it. Without
 * branches where that is possible, since the verifier follows both ways of each.
 */
static __always_inline __u64 bucket_of(__u64 ns)
{
	__u64 rest = ns, log = 0;

	if (ns < 8)
		return ns;
	if (ns >> 41)
		return TRACE_BUCKETS - 1;
	for (__u32 bits = 32; bits; bits /= 2) {
		__u64 shift = (((1ULL << bits) - 1 - rest) >> 63) * bits; /* if rest >= 2^bits */

		log += shift;
		rest >>= shift;
	}
	return 8 + (log - 3) * 8 + ((ns >> (log - 3)) & 7);
}
