// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: the tasks of asyncio that await the one that a thread runs, in CPython 3.14 and
 * later. Behind the frame of that task's coroutine come a mark (enum trace_frame_mark) and
 * the frames of the coroutine that awaits it, the innermost first, and so on; then those of the event loop.
 *
 * That there is such a task is believed only where the thread runs its coroutine's frame. The functions that
 * are not static: as in shares.h.
 */
#pragma once

#include "bpf/python_frames.h"

enum {
	PYTHON_AWAITERS = 8, /* tasks, and futures such as gather()'s between them, that are walked */
};

static __always_inline __u8 user_byte(__u64 from)
{
	__u8 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (void *)from);
	return value;
}

/* The frame of a task's coroutine; 0: it has none. */
static __always_inline __u64 python_coroutine(const struct trace_python *python, __u64 task)
{
	__u64 coroutine = user_word(task + python->task_coroutine);

	return coroutine ? coroutine + python->generator_frame : 0;
}

/* Sets walk->task and its frame. */
static __always_inline void python_task(struct walk *walk, __u64 id)
{
	__u32 tgid = id >> 32;
	const struct trace_python *python = bpf_map_lookup_elem(&pythons, &tgid);

	walk->task_frame = 0;
	walk->task_back = 0;
	if (!python || !python->thread_task)
		return;
	walk->task = user_word(walk->thread + python->thread_task);
	if (walk->task)
		walk->task_frame = python_coroutine(python, walk->task);
}

/*
 * What a coroutine awaits, if that is one, too: of the same type. 0: something else, which runs no Python,
 * or an asynchronous generator.
 */
static __always_inline __u64 python_awaited(const struct trace_python *python, __u64 coroutine)
{
	__u64 stack, awaited;

	if (user_byte(coroutine + python->generator_state) != python->state_awaits)
		return 0;
	stack = user_word(coroutine + python->generator_frame + python->frame_stack);
	awaited = user_word(stack - python->awaited_below) & ~(__u64)PYTHON_TAGS;
	if (!awaited ||
	    user_word(awaited + python->object_type) != user_word(coroutine + python->object_type))
		return 0;
	return awaited;
}

/* Adds a frame that waits. By a function of its own, which the kernel verifies once. */
__noinline int python_add_waiting(__u64 id, __u64 frame)
{
	__u32 tgid = id >> 32;
	const struct trace_python *python = bpf_map_lookup_elem(&pythons, &tgid);
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);
	int at;

	if (!python || !walk)
		return 0;
	at = python_read(python, walk, frame);
	return at >= 0 && python_add(python, walk, at);
}

/*
 * Goes on to who awaits walk->task, and puts the mark. How many frames it waits in, in walk->awaiting; 0: it
 * is a future; below 0: nobody awaits it, or there is no room.
 */
__noinline int python_awaiter(__u64 id)
{
	__u32 tgid = id >> 32, n = 0;
	const struct trace_python *python = bpf_map_lookup_elem(&pythons, &tgid);
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);
	__u64 by, used, coroutine;

	if (!python || !walk)
		return -1;
	by = user_word(walk->task + python->task_awaited_by);
	if (!by)
		return -1;
	if (user_byte(walk->task + python->task_several)) {
		used = user_word(by + python->set_used);
		if (used)
			python_put(walk,
				   used > 1 ? TRACE_FRAME_AWAITED_BY_SEVERAL : TRACE_FRAME_AWAITED_BY_ONE, 0,
				   0);
		return -1;
	}
	walk->task = by;
	if (!user_byte(by + python->task_is_task))
		return 0;
	if (!python_put(walk, TRACE_FRAME_AWAITED_BY, 0, 0))
		return -1;
	coroutine = user_word(by + python->task_coroutine);
	for (__u32 i = 0; i < PYTHON_AWAITING && coroutine; i++) {
		walk->awaiting[i] = coroutine + python->generator_frame;
		coroutine = python_awaited(python, coroutine);
		n = i + 1;
	}
	return coroutine && !python_put(walk, TRACE_FRAME_AWAITED_FURTHER, 0, 0) ? -1 : (int)n;
}

/* Adds the tasks that await the one that the thread runs. */
__noinline int python_awaiters(__u64 id)
{
	__u32 tgid = id >> 32;
	const struct trace_python *python = bpf_map_lookup_elem(&pythons, &tgid);
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);

	if (!python || !walk)
		return 0;
	for (__u32 i = 0; i < PYTHON_AWAITERS; i++) {
		int n = python_awaiter(id);

		if (n < 0)
			return 0;
		for (__u32 of = 0; of < PYTHON_AWAITING; of++) {
			if (--n < 0)
				break;
			if (!python_add_waiting(id, walk->awaiting[n & (PYTHON_AWAITING - 1)]))
				return 0;
		}
	}
	if (user_word(walk->task + python->task_awaited_by))
		python_put(walk, TRACE_FRAME_AWAITED_FURTHER, 0, 0);
	return 0;
}
