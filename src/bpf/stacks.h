// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: takes and sends stacks, each once (bpf/stack.h). The functions that are
 * not static: as in shares.h.
 */
#pragma once

#include "bpf/codes.h"
#include "bpf/native.h"
#include "bpf/python_walk.h"
#include "bpf/stack_events.h"
#include "bpf/threads.h"

enum {
	STACK_TIMED = 16, /* of so many stacks the time of one is taken */
	STACK_LONGEST_NS = 100 * 1000,
};

/* Identifies the stack in @id's walk: of all its frames, and how it ends. */
static __always_inline __u64 stack_hash(const struct walk *walk)
{
	__u64 hash = hash_mix(walk->hash, walk->flags);

	if (walk->kinds & TRACE_STACK_NATIVE) {
		hash = hash_mix(hash_mix(hash, walk->native.hash), walk->native.area.space);
		hash = hash_mix(hash, walk->native.guessed << 16 | walk->native.stop << 8 | walk->why);
		hash = hash_mix(hash_mix(hash, walk->entries[0]), walk->entries[1]);
	}
	return hash;
}

/* The id of the stack in a walk, if it was sent lately; else 0. */
static __noinline __u32 stack_known(const struct walk *walk, __u64 incarnation)
{
	const struct stack_known *known;
	struct stack_key key = { .incarnation = incarnation };

	key.hash = stack_hash(walk);
	known = bpf_map_lookup_elem(&stacks, &key);
	return known && bpf_ktime_get_ns() - known->since_ns < TRACE_STACK_KEPT_NS ? known->id : 0;
}

/* Sends the stack in @id's walk, whose code objects were sent. Its new id. */
__noinline __u32 stack_send(__u64 id, __u64 incarnation)
{
	struct stack_known new = { .since_ns = bpf_ktime_get_ns() };
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);
	struct trace_counters *c = counters_get();
	struct stack_key key = { .incarnation = incarnation };

	if (!walk || !c)
		return TRACE_STACK_LOST;
	key.hash = stack_hash(walk);
	new.id = stack_number(c);
	if (new.id && walk->kinds &TRACE_STACK_NATIVE &&
	    !(walk->native.n <= TRACE_STACK_SMALL ? native_send_small(c, walk, new.id) :
						    native_send_large(c, walk, new.id)))
		return TRACE_STACK_LOST;
	if (!new.id || !(walk->n <= TRACE_STACK_SMALL ? stack_send_small(c, walk, new.id) :
							stack_send_large(c, walk, new.id)))
		return TRACE_STACK_LOST;
	bpf_map_update_elem(&stacks, &key, &new, BPF_ANY);
	return new.id;
}

/* NULL: there is no room, which is counted. */
static __noinline struct walk *walk_new(__u64 id, __u64 owner)
{
	struct walk *none = bpf_map_lookup_elem(&no_walk, &zero), *walk = NULL;

	if (none && share_take(owner, TRACE_TABLE_WALKS)) {
		if (bpf_map_update_elem(&walks, &id, none, BPF_NOEXIST))
			share_give(owner, TRACE_TABLE_WALKS);
		walk = bpf_map_lookup_elem(&walks, &id);
	}
	if (!walk)
		table_lost(owner, TRACE_TABLE_WALKS);
	return walk;
}

/* Walks the Python frames of @id. An enum trace_stack_none, or 0: there are some. */
static __always_inline __u32 python_take(const struct trace_python *python, struct walk *walk, __u64 id)
{
	__u32 why;
	__u64 frame;

	if (!python)
		return TRACE_STACK_NO_PYTHON;
	why = python_locate(python, walk, id);
	if (why)
		return why;
	frame = python_innermost(python, walk);
	if (!frame)
		return TRACE_STACK_EMPTY;
	python_walk(walk, id, frame);
	if (!walk->n)
		return walk->flags ? TRACE_STACK_UNREAD : TRACE_STACK_EMPTY;
	return 0;
}

/* The walk of @id, without frames; NULL: there is no room for it. */
static __always_inline struct walk *walk_begin(__u64 id, __u64 owner)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);

	if (!walk)
		walk = walk_new(id, owner);
	if (walk) {
		walk->n = 0;
		walk->flags = 0;
		walk->hash = 0;
		walk->entries[0] = walk->entries[1] = 0;
	}
	return walk;
}

/* @flags: of the process. */
static __always_inline __u32 stack_walked(__u64 id, __u64 incarnation, __u64 owner, __u32 kinds, __u32 flags)
{
	__u32 tgid = id >> 32, why = TRACE_STACK_EMPTY, stack;
	const struct trace_python *python = bpf_map_lookup_elem(&pythons, &tgid);
	bool given_up = kinds & TRACE_STACK_NATIVE && flags & TRACE_PROC_NATIVELESS;
	struct walk *walk;

	if (given_up)
		kinds &= ~TRACE_STACK_NATIVE;
	if (!python && !(kinds & TRACE_STACK_NATIVE))
		return given_up ? TRACE_STACK_GIVEN_UP : TRACE_STACK_NO_PYTHON;
	walk = walk_begin(id, owner);
	if (!walk)
		return TRACE_STACK_LOST;
	if (kinds & TRACE_STACK_PYTHON)
		why = python_take(python, walk, id);
	walk->why = why;
	walk->kinds = kinds;
	if (kinds & TRACE_STACK_NATIVE)
		native_walk(id);
	else if (why)
		return given_up ? TRACE_STACK_GIVEN_UP : why;
	if (given_up)
		walk->flags |= TRACE_STACK_NO_NATIVE;
	/* One after the other: the stacks of functions within each other may take 512 bytes. */
	stack = stack_known(walk, incarnation);
	if (stack)
		return stack;
	return codes_send(id, incarnation) ? stack_send(id, incarnation) : TRACE_STACK_LOST;
}

/* Takes a stack, and of one in 16 the time: the budget has to know what they cost. */
static __always_inline __u32 stack_timed(struct trace_counters *c, __u64 id, const struct thread *thread,
					 __u32 kinds)
{
	__u64 taken = c->stacks_taken, begin_ns = taken % STACK_TIMED ? 0 : bpf_ktime_get_ns();
	__u32 stack = stack_walked(id, thread->incarnation, thread->owner, kinds, thread->flags);

	COUNT(&c->stacks_taken);
	if (begin_ns) {
		__u64 ns = bpf_ktime_get_ns() - begin_ns;

		/* A longer one was interrupted. */
		ADD(&c->stacks_ns, ns < STACK_LONGEST_NS ? ns : STACK_LONGEST_NS);
		COUNT(&c->stacks_timed);
	}
	return stack;
}

__noinline __u64 stack_take(__u64 id)
{
	struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct trace_counters *c = counters_get();
	__u32 shift, own, stack;
	__u64 none; /* all bits of it are compared */

	if (!takes_stacks || !ctl || !thread || !c)
		return TRACE_STACK_OFF;
	shift = ctl->stack_shift & TRACE_FLAG_SAMPLED_BITS;
	own = thread->flags >> TRACE_PROC_STACK_SHIFT & TRACE_FLAG_SAMPLED_BITS;
	if (own > shift)
		shift = own;
	if (thread->flags & TRACE_PROC_STACKLESS) {
		stack = TRACE_STACK_GIVEN_UP;
		shift = 0; /* each call counts once */
	} else if (shift && bpf_get_prandom_u32() & ((1U << shift) - 1)) {
		stack = TRACE_STACK_SKIPPED;
	} else {
		stack = stack_timed(c, id, thread, ctl->stack_kinds);
	}
	none = stack;
	SHOW_BOUND(none);
	if (none < TRACE_STACK_NONES)
		COUNT(&c->stackless[none]);
	return (__u64)shift << (32 + TRACE_FLAG_SAMPLED_SHIFT) | stack;
}
