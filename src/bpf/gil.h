// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: how long threads wait for their interpreter's lock (the GIL).
 *
 * A thread waits for it where the kernel takes it off its CPU in a futex() within _PyRuntime, where the lock
 * is. So no function of the interpreter has to be probed, which compilers put into others, and where an
 * exception, pthread_exit() or another stack (greenlet) would meet a return probe. No other wait in
 * _PyRuntime has a time limit: neither for a mutex nor, of a thread that was made to give up the lock, until
 * another one has it (switch_cond). Locks of interpreters with one of their own, other than the first, are
 * elsewhere: waits for them are not seen.
 *
 * CPython waits in pieces of 5 ms. They are one wait until the thread gets the lock, even if others get it
 * meanwhile: see gil_goes_on().
 *
 * The functions that are not static: as in shares.h.
 */
#pragma once

#include "bpf/python_threads.h"
#include "bpf/stack_maps.h"
#include "bpf/system_call.h"
#include "bpf/threads.h"

/* Waits that follow each other without any other are told after this. */
#define GIL_TELL_NS (100 * 1000 * 1000ULL)
/* A thread that waits on begins its next piece within this: it only looks at the lock. */
#define GIL_BETWEEN_NS (1000 * 1000ULL)

/* Tells the current thread's waits. */
__noinline int gil_tell(__u64 id)
{
	struct python_thread *python = bpf_map_lookup_elem(&python_threads, &id);
	struct trace_counters *c = counters_get();
	__u32 tgid = id >> 32;
	const struct trace_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	struct python_told told = { .op = TRACE_OP_PYTHON_GIL };

	if (!python || !c || !python->waits)
		return 0;
	told.time_ns = python->since_ns;
	told.duration_ns = python->total_ns;
	told.size = python->waits;
	told.addr = python->longest_ns;
	python->since_ns = 0;
	python->total_ns = 0;
	python->longest_ns = 0;
	python->waits = 0;
	if (proc && !(proc->flags & (TRACE_PROC_QUIET | TRACE_PROC_IGNORE)))
		python_event(c, &told);
	return 0;
}

/* ---- the lock ---- */

/* The futex() within its interpreter's _PyRuntime that the current thread is in; 0: it is in none. */
static __always_inline __u64 runtime_waited(__u32 tgid, __u64 *ret_limit)
{
	const struct trace_python *python = bpf_map_lookup_elem(&pythons, &tgid);
	__u64 address = 0;

	if (!python || !futex_of_current(&address, ret_limit) || address < python->runtime ||
	    address >= python->runtime_end)
		return 0;
	return address;
}

/*
 * Rises when another thread gets the lock (struct _gil_runtime_state: last_holder, locked, switch_number,
 * cond). 0: not known. @address: in the condition variable, 40 or 44 bytes from its beginning, or 32 or 36
 * from glibc 2.41 on. `locked` before the number is 0 or 1, and no pointer.
 */
static __always_inline __u64 gil_number(__u64 address)
{
	__u64 words[3] = {};

	bpf_probe_read_user(words, sizeof(words), (void *)((address & ~7ULL) - 56));
	if (words[0] <= 1)
		return words[1];
	return words[1] <= 1 ? words[2] : 0;
}

/* Of a time limit by CLOCK_MONOTONIC; by another one it is years away. */
static __always_inline __u64 gil_limit(__u64 address)
{
	__u64 limit[2] = {};

	if (bpf_probe_read_user(limit, sizeof(limit), (void *)address))
		return ~0ULL;
	return limit[0] * 1000000000ULL + limit[1];
}

/*
 * Whether the thread has not had the lock since the last piece. If it had, the number has risen by two: it
 * got the lock from another thread, and another one from it. If it had not, the number rises by as much where
 * two others had their turns meanwhile, but then the last piece has ended by its limit, right before this
 * one.
 */
static __always_inline bool gil_goes_on(const struct python_thread *python, __u64 number, __u64 now)
{
	return (number && number - python->number <= 1) ||
	       (python->expired_ns && now - python->expired_ns < GIL_BETWEEN_NS);
}

static __always_inline void gil_wait(struct python_thread *python, __u64 id, __u64 address, __u64 limit)
{
	__u64 now = bpf_ktime_get_ns(), number = gil_number(address);
	bool is_new = !gil_goes_on(python, number, now);

	if (is_new && python->waits && now - python->since_ns > GIL_TELL_NS)
		gil_tell(id);
	if (is_new || !python->waits) {
		python->waits++;
		python->wait_ns = 0;
	}
	python->number = number;
	if (!python->since_ns)
		python->since_ns = now;
	python->off_ns = now;
	python->limit_ns = gil_limit(limit);
}

/* The current thread, of a process with an interpreter, waits for something. */
__noinline int gil_off(__u64 id)
{
	struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);
	struct trace_counters *c = counters_get();
	struct python_thread *python;
	const struct trace_proc *proc;
	__u32 tgid = id >> 32;
	__u64 address, limit = 0;

	if (!ctl || !c || tgid == ctl->own_tgid)
		return 0;
	address = runtime_waited(tgid, &limit);
	if (!address)
		return gil_tell(id);
	if (!limit)
		return 0;
	proc = proc_get(c, tgid, ctl->default_flags);
	if (!proc || proc->flags & TRACE_PROC_IGNORE)
		return 0;
	python = python_thread_get(id, proc->owner);
	if (python)
		gil_wait(python, id, address, limit);
	return 0;
}

/* A thread runs again. */
static __always_inline void gil_on(__u64 id)
{
	struct python_thread *python = bpf_map_lookup_elem(&python_threads, &id);
	__u64 now, ns;

	if (!python || !python->off_ns)
		return;
	now = bpf_ktime_get_ns();
	ns = now - python->off_ns;
	python->off_ns = 0;
	python->expired_ns = now >= python->limit_ns ? now : 0;
	python->wait_ns += ns;
	python->total_ns += ns;
	if (python->wait_ns > python->longest_ns)
		python->longest_ns = python->wait_ns;
}

/* The thread has ended. */
static __always_inline void python_remove(__u64 id)
{
	struct python_thread *python = bpf_map_lookup_elem(&python_threads, &id);
	__u64 owner;

	if (!python)
		return;
	owner = python->owner;
	gil_tell(id);
	if (bpf_map_delete_elem(&python_threads, &id) == 0)
		share_give(owner, TRACE_TABLE_PYTHON);
}
