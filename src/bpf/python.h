// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: finds the current thread in its Python interpreter. What a process claims is read
 * with bounds, and can only make its own stacks wrong.
 *
 * A thread's state is the one whose thread_id is this thread's pthread_self(). Of several, one for each
 * sub-interpreter that the thread is in, it is the one that holds the interpreter's lock, if one does.
 *
 * The functions that are not static: as in shares.h.
 */
#pragma once

#include "bpf/emit.h"
#include "bpf/stack_maps.h"

enum {
	PYTHON_INTERPRETERS = 8, /* that are searched */
	PYTHON_THREADS = 256, /* of each; new ones are at the beginning */
};

/* 0 also where it cannot be read. */
static __always_inline __u64 user_word(__u64 from)
{
	__u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (void *)from);
	return value;
}

static __always_inline bool python_is_own(const struct trace_python *python, __u64 state, __u64 self)
{
	__u64 id = state ? user_word(state + python->thread_id) : 0;

	return id && self - id <= THREAD_SELF_BELOW;
}

/* The innermost frame of a thread's state; 0: it runs no Python code. */
static __always_inline __u64 python_frame(const struct trace_python *python, __u64 state)
{
	__u64 frame = user_word(state + python->thread_frame);

	return frame && python->flags & TRACE_PYTHON_CFRAME ? user_word(frame + python->cframe_frame) : frame;
}

static __always_inline bool python_runs(const struct trace_python *python, __u64 state)
{
	__u8 status = 0;

	if (!python->thread_status)
		return false;
	bpf_probe_read_user(&status, sizeof(status), (void *)(state + python->thread_status));
	return status & python->status_active;
}

/* A member of what was read; @at is masked to lie in it. */
#define STATE_WORD(walk, at) (*(__u64 *)((walk)->state + ((at)&0xf8)))
#define STATE_BYTE(walk, at) ((walk)->state[(at)&0xff])
_Static_assert(TRACE_PYTHON_STATE == 0x100, "masks");

/* Reads the members of a thread's state at once. False: it is not this thread's. */
static __always_inline bool python_state(const struct trace_python *python, struct walk *walk, __u64 state,
					 __u64 self)
{
	__u64 bytes = python->thread_n, id;

	SHOW_BOUND(bytes);
	if (bytes > TRACE_PYTHON_STATE)
		bytes = TRACE_PYTHON_STATE;
	if (!state || bpf_probe_read_user(walk->state, bytes, (void *)state))
		return false;
	id = STATE_WORD(walk, python->thread_id);
	return id && self - id <= THREAD_SELF_BELOW;
}

/* Whether the state that was read is still in use: memory that was freed has no such neighbours. */
static __always_inline bool python_is_valid(const struct trace_python *python, const struct walk *walk,
					    __u64 state)
{
	__u64 before = STATE_WORD(walk, python->thread_prev);
	__u64 interpreter = STATE_WORD(walk, python->thread_interpreter);

	if (before)
		return user_word(before + python->thread_next) == state;
	return interpreter && user_word(interpreter + python->interpreter_threads) == state;
}

/* Searches an interpreter's threads from @state on. 1: found for sure, in walk->thread; -1: more are left. */
__noinline int python_scan(__u64 id, __u64 self, __u64 state)
{
	__u32 tgid = id >> 32;
	const struct trace_python *python = bpf_map_lookup_elem(&pythons, &tgid);
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);

	if (!takes_stacks || !python || !walk)
		return 0;
	for (__u32 i = 0; i < PYTHON_THREADS; i++) {
		if (!state)
			return 0;
		if (python_is_own(python, state, self)) {
			if (python_runs(python, state)) {
				walk->thread = state;
				return 1;
			}
			if (python_frame(python, state)) {
				walk->framed = state;
				walk->framed_n++;
			} else {
				walk->idle = state;
			}
		}
		state = user_word(state + python->thread_next);
	}
	return state ? -1 : 0;
}

/* Searches all interpreters. An enum trace_stack_none, or 0: found, in walk->thread. */
__noinline int python_search(__u64 id, __u64 self)
{
	__u32 tgid = id >> 32;
	const struct trace_python *python = bpf_map_lookup_elem(&pythons, &tgid);
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);
	__u64 interpreter;
	int r, cut = 0;

	if (!python || !walk)
		return TRACE_STACK_LOST;
	walk->thread = 0;
	walk->framed = 0;
	walk->idle = 0;
	walk->framed_n = 0;
	interpreter = user_word(python->runtime + python->interpreters);
	for (__u32 i = 0; i < PYTHON_INTERPRETERS && interpreter; i++) {
		r = python_scan(id, self, user_word(interpreter + python->interpreter_threads));
		if (r > 0)
			return 0;
		cut |= r < 0;
		interpreter = user_word(interpreter + python->interpreter_next);
	}
	if (walk->framed_n > 1)
		return TRACE_STACK_AMBIGUOUS;
	walk->thread = walk->framed ? walk->framed : walk->idle;
	if (walk->thread)
		return 0;
	return cut || interpreter ? TRACE_STACK_UNREAD : TRACE_STACK_NO_THREAD;
}

/* Finds the current thread's state. An enum trace_stack_none, or 0: it is in walk->thread, and was read. */
static __noinline int python_locate(const struct trace_python *python, struct walk *walk, __u64 id)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 self = THREAD_POINTER(task), state, first;
	int why;

	state = python->current ? user_word(python->runtime + python->current) : 0;
	if (python_state(python, walk, state, self)) {
		walk->thread = state;
		return 0;
	}
	state = walk->thread;
	if (python_state(python, walk, state, self) && python_is_valid(python, walk, state)) {
		if (python->thread_status &&
		    STATE_BYTE(walk, python->thread_status) & python->status_active)
			return 0;
		first = user_word(python->runtime + python->interpreters);
		if (first && !user_word(first + python->interpreter_next))
			return 0; /* in the only interpreter a thread has one state */
	}
	why = python_search(id, self);
	if (why)
		return why;
	return python_state(python, walk, walk->thread, self) ? 0 : TRACE_STACK_UNREAD;
}

/* The innermost frame of the thread that was found; 0: it runs no Python code. */
static __always_inline __u64 python_innermost(const struct trace_python *python, const struct walk *walk)
{
	__u64 frame = STATE_WORD(walk, python->thread_frame);

	return frame && python->flags & TRACE_PYTHON_CFRAME ? user_word(frame + python->cframe_frame) : frame;
}
