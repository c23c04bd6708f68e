// SPDX-License-Identifier: Apache-2.0
/* Processes and threads: found or made, with their flags. */
#pragma once

#include "bpf/emit.h"

/* The current process's entry, made if there is none. NULL: no room, counted. */
static __noinline struct trace_proc *proc_get(struct trace_counters *c, __u32 tgid, __u32 default_flags)
{
	struct trace_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	struct trace_proc new = { .flags = default_flags };
	struct task_struct *task;
	long r;

	if (proc) {
		/* Two threads at once may tell twice, which user space does not mind. */
		if (proc->flags & TRACE_PROC_UNSEEN) {
			proc->flags &= ~TRACE_PROC_UNSEEN;
			process_event(c, TRACE_EVENT_PROCESS, proc->incarnation, proc->start_boot_ns);
		}
		return proc;
	}
	task = (void *)bpf_get_current_task();
	new.incarnation = bpf_ktime_get_ns();
	new.start_boot_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	r = bpf_map_update_elem(&procs, &tgid, &new, BPF_NOEXIST);
	if (r == 0 && !(new.flags &TRACE_PROC_IGNORE))
		process_event(c, TRACE_EVENT_PROCESS, new.incarnation, new.start_boot_ns);
	proc = bpf_map_lookup_elem(&procs, &tgid);
	if (!proc)
		COUNT(&c->lost_procs);
	return proc;
}

/* The slow half of thread_get(): not seen before, or to be looked at again. */
static __noinline struct thread *thread_refresh(struct trace_counters *c, struct trace_control *ctl, __u64 id)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	__u32 tgid = id >> 32;
	__u64 incarnation = 0;
	__u32 epoch = ctl->epoch; /* before the flags that it stands for */
	__u32 flags = TRACE_PROC_IGNORE;

	if (tgid != ctl->own_tgid) {
		struct trace_proc *proc = proc_get(c, tgid, ctl->default_flags);

		if (!proc)
			return NULL;
		incarnation = proc->incarnation;
		flags = proc->flags;
	}
	if (!thread) {
		struct thread *none = bpf_map_lookup_elem(&zeros, &zero);

		if (!none)
			return NULL;
		bpf_map_update_elem(&threads, &id, none, BPF_NOEXIST);
		thread = bpf_map_lookup_elem(&threads, &id);
		if (!thread) {
			COUNT(&c->lost_threads);
			return NULL;
		}
	}
	thread->incarnation = incarnation;
	thread->epoch = epoch;
	thread->flags = flags;
	return thread;
}

/* Hits wait in the thread, where adding costs nothing, until there are some or the thread ends. */
static __noinline void hits_flush(struct trace_counters *c, struct thread *thread)
{
	ADD(&c->hits, thread->hits);
	ADD(&c->return_hits, thread->return_hits);
	thread->hits = 0;
	thread->return_hits = 0;
}

/* The current thread, if its calls are wanted; counts the hit. */
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
	if (++thread->hits >= HITS_WAIT)
		hits_flush(c, thread);
	return thread;
}
