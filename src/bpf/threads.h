// SPDX-License-Identifier: Apache-2.0
/* Entries of processes and threads, and their flags. */
#pragma once

#include "bpf/shares.h"

/* The current process's entry, created if needed. NULL: the map is full, which is counted. */
static __noinline struct trace_proc *proc_get(struct trace_counters *c, __u32 tgid, __u32 default_flags)
{
	struct trace_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	struct trace_proc new = { .flags = default_flags };
	struct task_struct *task;

	if (proc) {
		/* Two threads may both send the event; user space accepts duplicates. */
		if (proc->flags & TRACE_PROC_UNSEEN) {
			proc->flags &= ~TRACE_PROC_UNSEEN;
			process_event(c, TRACE_EVENT_PROCESS, proc);
		}
		return proc;
	}
	task = (void *)bpf_get_current_task();
	new.incarnation = bpf_ktime_get_ns();
	new.start_boot_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	new.owner = owner_enter();
	if (!share_take(new.owner, TRACE_TABLE_PROCS)) {
		table_lost(new.owner, TRACE_TABLE_PROCS);
		return NULL;
	}
	if (bpf_map_update_elem(&procs, &tgid, &new, BPF_NOEXIST))
		share_give(new.owner, TRACE_TABLE_PROCS);
	else if (!(new.flags &TRACE_PROC_IGNORE))
		process_event(c, TRACE_EVENT_PROCESS, &new);
	proc = bpf_map_lookup_elem(&procs, &tgid);
	if (!proc)
		table_lost(new.owner, TRACE_TABLE_PROCS);
	return proc;
}

/* NULL: there is no room, which is counted. */
static __noinline struct thread *thread_new(__u64 id, __u64 owner)
{
	struct thread *none = bpf_map_lookup_elem(&zeros, &zero), *thread = NULL;

	if (none && share_take(owner, TRACE_TABLE_THREADS)) {
		if (bpf_map_update_elem(&threads, &id, none, BPF_NOEXIST))
			share_give(owner, TRACE_TABLE_THREADS);
		thread = bpf_map_lookup_elem(&threads, &id);
	}
	if (thread)
		thread->owner = owner;
	else
		table_lost(owner, TRACE_TABLE_THREADS);
	return thread;
}

/* The slow path of thread_get(): creates the entry, or updates its flags. */
static __noinline struct thread *thread_refresh(struct trace_counters *c, struct trace_control *ctl, __u64 id)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	__u32 tgid = id >> 32;
	__u64 incarnation = 0, owner = 0;
	__u32 epoch = ctl->epoch; /* read before the flags */
	__u32 flags = TRACE_PROC_IGNORE;

	if (tgid != ctl->own_tgid) {
		struct trace_proc *proc = proc_get(c, tgid, ctl->default_flags);

		if (!proc)
			return NULL;
		incarnation = proc->incarnation;
		flags = proc->flags;
		owner = proc->owner;
	}
	if (!thread)
		thread = thread_new(id, owner);
	if (!thread)
		return NULL;
	thread->incarnation = incarnation;
	thread->epoch = epoch;
	thread->flags = flags;
	return thread;
}

/* Hits are first counted in the thread's entry, which needs no atomic add, and added here in batches. */
static __noinline void hits_flush(struct trace_counters *c, struct thread *thread)
{
	ADD(&c->hits, thread->hits);
	ADD(&c->return_hits, thread->return_hits);
	thread->hits = 0;
	thread->return_hits = 0;
}

/* Counts the hit. The current thread's entry; NULL: its calls are not traced, or a map is full. */
static __always_inline struct thread *thread_get(struct trace_counters *c, struct trace_control *ctl,
						 __u64 id)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);

	if (!thread || thread->epoch != ctl->epoch)
		thread = thread_refresh(c, ctl, id);
	if (!thread || thread->flags & TRACE_PROC_IGNORE) {
		COUNT(&c->hits);
		return NULL;
	}
	if (++thread->hits >= HITS_FLUSH)
		hits_flush(c, thread);
	return thread;
}
