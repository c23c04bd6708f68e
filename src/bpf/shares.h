// SPDX-License-Identifier: Apache-2.0
/*
 * Shares of the tables, so that no user or container can fill them. Only the creation of an entry asks.
 *
 * The functions here that are not static are verified once, not once for each call. Before 5.13 they can take
 * only numbers.
 */
#pragma once

#include "bpf/emit.h"

enum { USER_NAMESPACES = 33 /* levels: from the first to the deepest, kernel/user_namespace.c */ };

/* The user who created the outermost user namespace that the task is in, or the task's own; 0: root. */
static __always_inline __u32 user_of(struct task_struct *task)
{
	struct user_namespace *ns = BPF_CORE_READ(task, real_cred, user_ns);
	int level = BPF_CORE_READ(ns, level);

	if (level == 0)
		return BPF_CORE_READ(task, real_cred, uid.val);
	for (int i = 0; i < USER_NAMESPACES && level > 1; i++, level--)
		ns = BPF_CORE_READ(ns, parent);
	return BPF_CORE_READ(ns, owner.val);
}

/* The ID of the cgroup at the root of the task's cgroup namespace, which is its container's. */
static __always_inline __u64 container_id(struct task_struct *task)
{
	return BPF_CORE_READ(task, nsproxy, cgroup_ns, root_cset, dfl_cgrp, kn, id);
}

/*
 * Who the current process's entries are charged to (struct trace_share): its container if root made that;
 * else its user; else, for root, its cgroup. A container that a user has made for himself is his.
 */
static __always_inline __u64 owner_of(struct task_struct *task)
{
	struct user_namespace *ns = BPF_CORE_READ(task, real_cred, user_ns);
	bool in_namespace = BPF_CORE_READ(ns, level) > 0;
	__u32 user = user_of(task);
	__u64 group = container_id(task);

	if (user && (in_namespace || group <= TRACE_OWNER_REST))
		return TRACE_OWNER_USER | user;
	if (group <= TRACE_OWNER_REST)
		group = bpf_get_current_cgroup_id();
	return group > TRACE_OWNER_REST ? group : TRACE_OWNER_REST;
}

/* The current process's owner, which has an entry in `shares`. */
__noinline __u64 owner_enter(void)
{
	struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);
	__u64 owner = owner_of((void *)bpf_get_current_task());
	struct trace_share none = {};

	if (bpf_map_lookup_elem(&shares, &owner))
		return owner;
	if (bpf_map_update_elem(&shares, &owner, &none, BPF_NOEXIST) == 0 && ctl)
		COUNT(&ctl->owners);
	return bpf_map_lookup_elem(&shares, &owner) ? owner : TRACE_OWNER_REST;
}

/*
 * Charges an entry of a table to an owner. 0: his share is used, which is counted. Several CPUs may each go
 * beyond it by one.
 */
__noinline int share_take(__u64 owner, __u64 table)
{
	struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);
	struct trace_share *share = bpf_map_lookup_elem(&shares, &owner);
	struct trace_counters *c = counters_get();
	__s32 unused;

	SHOW_BOUND(table);
	if (!owner)
		return 1;
	if (!ctl || !c || table >= TRACE_TABLES)
		return 0;
	unused = ctl->room[table].entries - ctl->room[table].used;
	if (!share || unused <= 0 || share->used[table] >= TRACE_SHARE * unused) {
		COUNT(&c->refused[table]);
		return 0;
	}
	COUNT(&share->used[table]);
	COUNT(&ctl->room[table].used);
	return 1;
}

__noinline int share_give(__u64 owner, __u64 table)
{
	struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);
	struct trace_share *share = bpf_map_lookup_elem(&shares, &owner);

	SHOW_BOUND(table);
	if (!owner || !ctl || table >= TRACE_TABLES)
		return 0;
	if (share)
		ADD(&share->used[table], -1);
	ADD(&ctl->room[table].used, -1);
	return 0;
}

/*
 * Counts a hit that has no entry in a table, and marks its process; without an entry for the process, its
 * owner's others.
 */
__noinline int table_lost(__u64 owner, __u64 table)
{
	struct trace_share *share = bpf_map_lookup_elem(&shares, &owner);
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct trace_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	struct trace_counters *c = counters_get();

	SHOW_BOUND(table);
	if (!c || table >= TRACE_TABLES)
		return 0;
	COUNT(&c->lost[table]);
	if (proc)
		proc->lost |= 1U << table;
	else if (share)
		share->lost_ns = bpf_ktime_get_ns();
	return 0;
}
