// SPDX-License-Identifier: Apache-2.0
/*
 * Operators of PyTorch: counted by process, and which ones a thread is in. They are probed at entry only,
 * since they throw: a return probe would end the program. So an operator has ended, by the stack, where
 *
 *   - the thread is at the operator's stack pointer or above it, or
 *   - its return address is no longer there, so that what is deeper in the stack was called by others. On
 *     arm64, where a function may save that address anywhere, this is not known: a call of CUDA that the
 *     program makes itself, deeper than its last operator was, is taken to be that operator's.
 *
 * Of more than TRACE_OPERATORS_DEEP within each other the innermost replaces the one before it.
 */
#pragma once

#include "bpf/shares.h"

/* An operator that was entered and has not been seen to end. */
struct nest_entry {
	__u64 sp; /* at its entry */
	__u64 address; /* that it returns to */
	__u32 call;
	__u32 forward; /* the operator whose node it belongs to, in a backward pass; 0: none */
};

/* The operators that a thread is in, the outermost first. */
struct nest {
	__u64 n;
	struct nest_entry at[TRACE_OPERATORS_DEEP];
};

/* User space sets max_entries of both. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64); /* as for `threads` */
	__type(value, struct nest);
} nests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct trace_stat_key);
	__type(value, struct trace_operator);
} operators SEC(".maps");

/* Whether the operator's return address is still where it was when the operator was entered. */
static __always_inline bool is_there(const struct nest_entry *entry)
{
	return !RETURN_ON_STACK || return_address(0, entry->sp) == entry->address;
}

/*
 * Drops the operators that have ended by the time that their thread is at @sp. One within another has ended
 * with that: of the outermost the return address is overwritten first, by the next call of its caller.
 */
static __always_inline void nest_trim(struct nest *nest, __u64 sp)
{
	for (__u32 i = 0; i < TRACE_OPERATORS_DEEP; i++) {
		if (i >= nest->n)
			return;
		if (sp < nest->at[i].sp && is_there(&nest->at[i]))
			continue;
		nest->n = i;
		return;
	}
}

/* The thread's operators, created if needed. NULL: there is no room, which is counted. */
static __always_inline struct nest *nest_get(__u64 id, __u64 owner)
{
	struct nest *nest = bpf_map_lookup_elem(&nests, &id);
	struct nest *none = bpf_map_lookup_elem(&zeros, &zero);

	if (nest || !none)
		return nest;
	if (share_take(owner, TRACE_TABLE_NESTS)) {
		if (bpf_map_update_elem(&nests, &id, none, BPF_NOEXIST))
			share_give(owner, TRACE_TABLE_NESTS);
		nest = bpf_map_lookup_elem(&nests, &id);
	}
	if (!nest)
		table_lost(owner, TRACE_TABLE_NESTS);
	return nest;
}

/* The operator whose node the innermost entry belongs to; 0: none. */
static __always_inline __u32 nest_forward(const struct nest *nest)
{
	__u64 top = nest->n - 1;

	SHOW_BOUND(top);
	return top < TRACE_OPERATORS_DEEP ? nest->at[top].forward : 0;
}

static __always_inline void nest_push(struct nest *nest, __u64 sp, __u64 address, __u32 call, __u32 forward)
{
	__u64 at = nest->n;

	SHOW_BOUND(at);
	if (at >= TRACE_OPERATORS_DEEP)
		at = TRACE_OPERATORS_DEEP - 1;
	nest->at[at].sp = sp;
	nest->at[at].address = address;
	nest->at[at].call = call;
	nest->at[at].forward = forward;
	nest->n = at + 1;
}

/* The sums of an operator and the current process, made if needed. NULL: no room, which is counted. */
static __always_inline struct trace_operator *operator_sum(const struct thread *thread, __u32 tgid,
							   __u32 call)
{
	struct trace_stat_key key = { .tgid = tgid, .call = call, .incarnation = thread->incarnation };
	struct trace_operator *sum = bpf_map_lookup_elem(&operators, &key);
	struct trace_operator none = { .owner = thread->owner };

	if (!sum && share_take(thread->owner, TRACE_TABLE_OPERATORS)) {
		if (bpf_map_update_elem(&operators, &key, &none, BPF_NOEXIST))
			share_give(thread->owner, TRACE_TABLE_OPERATORS);
		sum = bpf_map_lookup_elem(&operators, &key);
	}
	if (!sum)
		table_lost(thread->owner, TRACE_TABLE_OPERATORS);
	return sum;
}

/* Counts a call of the current process. */
static __always_inline void operator_count(const struct thread *thread, __u32 tgid, __u32 call,
					   bool outermost)
{
	struct trace_operator *sum = operator_sum(thread, tgid, call);

	if (!sum)
		return;
	COUNT(&sum->calls);
	if (outermost)
		COUNT(&sum->outermost);
}

/* Thread @id enters an operator at @sp. @link: the link register. Not static, as in shares.h. */
__noinline int operator_enter(__u64 id, __u64 sp, __u32 call, __u64 link)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct nest *nest;

	asm volatile("" : "+r"(link)); /* as in layers.h */
	if (!thread)
		return 0;
	nest = nest_get(id, thread->owner);
	if (nest) {
		nest_trim(nest, sp);
		nest_push(nest, sp, return_address(link, sp), call, nest_forward(nest));
		thread->nested = nest->n;
	}
	operator_count(thread, id >> 32, call, nest && nest->n == 1);
	return 0;
}

/* A function of Python's binding that calls an operator: only counted. Not static, as in shares.h. */
__noinline int binding_enter(__u64 id, __u32 call)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);

	if (thread)
		operator_count(thread, id >> 32, call, false);
	return 0;
}

/* The operators that a call of thread @id at @sp is within, as in struct frame. As in shares.h. */
__noinline __u64 operators_around(__u64 id, __u64 sp)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct nest *nest = bpf_map_lookup_elem(&nests, &id);
	__u64 top;

	if (!thread || !nest)
		return 0;
	nest_trim(nest, sp);
	thread->nested = nest->n;
	top = nest->n - 1;
	SHOW_BOUND(top);
	if (top >= TRACE_OPERATORS_DEEP)
		return 0;
	return nest->at[top].call | (__u64)nest->at[0].call << 16 | nest->n << 32 |
	       (__u64)nest->at[top].forward << 48;
}

/* The thread has ended. */
static __always_inline void nest_remove(__u64 id, __u64 owner)
{
	if (bpf_map_delete_elem(&nests, &id) == 0)
		share_give(owner, TRACE_TABLE_NESTS);
}
