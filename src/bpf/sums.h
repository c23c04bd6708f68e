// SPDX-License-Identifier: Apache-2.0
/* Sums by process and call. */
#pragma once

#include "bpf/shares.h"

/* Creates the entry of a call of the current process. Not static: as in shares.h. */
__noinline int stat_new(__u32 call, __u64 incarnation, __u64 owner)
{
	struct trace_stat_key key = { .tgid = bpf_get_current_pid_tgid() >> 32,
				      .call = call,
				      .incarnation = incarnation };
	struct trace_stat *none = bpf_map_lookup_elem(&zeros, &zero), *stat;
	struct trace_counters *c = counters_get();
	struct trace_stat_new *event;

	if (!c || !none || !share_take(owner, TRACE_TABLE_STATS))
		return 0;
	if (bpf_map_update_elem(&stats, &key, none, BPF_NOEXIST)) {
		share_give(owner, TRACE_TABLE_STATS); /* another thread was first, or the map is full */
		return 0;
	}
	stat = bpf_map_lookup_elem(&stats, &key);
	if (stat)
		stat->owner = owner;
	event = event_begin(c, sizeof(*event), TRACE_EVENT_STAT, bpf_ktime_get_ns());
	if (event) {
		event->header.call = call;
		event->incarnation = incarnation;
		event_submit(event);
	}
	return 0;
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

/* The sums of a call in this process. NULL: there is no room, which is counted. */
static __always_inline struct trace_stat *stat_get(const struct thread *thread, __u32 tgid, __u32 call)
{
	struct trace_stat_key key = { .tgid = tgid, .call = call, .incarnation = thread->incarnation };
	struct trace_stat *stat = bpf_map_lookup_elem(&stats, &key);

	if (stat)
		return stat;
	stat_new(call, thread->incarnation, thread->owner);
	stat = bpf_map_lookup_elem(&stats, &key);
	if (!stat)
		table_lost(thread->owner, TRACE_TABLE_STATS);
	return stat;
}

/* A code that the call had not returned before. NULL: it is counted with others. */
static __always_inline struct trace_error *error_new(struct trace_stat *stat,
						     const struct trace_error_key *key, __u64 owner)
{
	struct trace_error new = { .owner = owner }, *error;

	if (stat->codes >= TRACE_CODES_MAX)
		return NULL;
	if (share_take(owner, TRACE_TABLE_ERRORS)) {
		if (bpf_map_update_elem(&errors, key, &new, BPF_NOEXIST) == 0)
			COUNT(&stat->codes);
		else
			share_give(owner, TRACE_TABLE_ERRORS);
	}
	error = bpf_map_lookup_elem(&errors, key);
	if (!error)
		table_lost(owner, TRACE_TABLE_ERRORS);
	return error;
}

/* Counts an error of the current process by its code; its call has an entry. Not static: as in shares.h. */
__noinline int error_count(__u32 call, __u64 incarnation, __u64 owner, __s32 result)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct trace_error_key key = {
		.tgid = tgid, .call = call, .incarnation = incarnation, .result = result
	};
	struct trace_stat_key of = { .tgid = tgid, .call = call, .incarnation = incarnation };
	struct trace_error *error = bpf_map_lookup_elem(&errors, &key);
	struct trace_stat *stat;

	if (error) {
		COUNT(&error->count);
		return 0;
	}
	stat = bpf_map_lookup_elem(&stats, &of);
	if (!stat)
		return 0;
	error = error_new(stat, &key, owner);
	if (error)
		COUNT(&error->count);
	else
		COUNT(&stat->other_codes);
	return 0;
}
