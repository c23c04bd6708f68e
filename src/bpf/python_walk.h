// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: walks the Python frames of a thread. The functions that are not static: as in
 * shares.h.
 */
#pragma once

#include "bpf/python_tasks.h"

enum {
	PYTHON_CHUNK = 20, /* frames */
	PYTHON_CHUNKS = 13, /* twice TRACE_STACK_MAX frames: there are frames of C functions, too */
};

/* All bits, or none. Without a branch, of which the kernel would verify both sides in each turn of a loop. */
static __always_inline __u64 ones_if_zero(__u64 value)
{
	value |= -value;
	SHOW_BOUND(value);
	return (value >> 63) - 1;
}

/*
 * Walks PYTHON_CHUNK frames from this one on. The frame where the walk goes on; 0: it has ended, or goes on
 * at walk->task_back, behind the frame of the task that the thread runs.
 */
__noinline __u64 python_chunk(__u64 id, __u64 frame)
{
	__u32 tgid = id >> 32;
	const struct trace_python *python = bpf_map_lookup_elem(&pythons, &tgid);
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);
	__u64 back, met;
	int at;

	if (!takes_stacks || !python || !walk)
		return 0;
	for (__u32 i = 0; i < PYTHON_CHUNK; i++) {
		if (!frame)
			return 0;
		at = python_read(python, walk, frame);
		if (at < 0) {
			walk->flags |= TRACE_STACK_PART;
			return 0;
		}
		if (!(python->flags & TRACE_PYTHON_OWNER) ||
		    FRAME_BYTE(walk, at + python->frame_owner) < TRACE_PYTHON_OWNER_C) {
			if (!python_add(python, walk, at))
				return 0;
		} else if (walk->n) {
			bit_set(walk->entries, walk->n - 1);
		}
		back = FRAME_WORD(walk, at + python->frame_back);
		met = ones_if_zero(frame ^ walk->task_frame);
		walk->task_back = back & met;
		frame = back & ~met;
	}
	return frame;
}

/* Walks from the innermost frame on. In chunks, since the kernel verifies each turn of a loop. */
static __always_inline void python_walk(struct walk *walk, __u64 id, __u64 frame)
{
	walk->number++;
	walk->frames_last = -1; /* they have changed since the last walk */
	python_task(walk, id);
	for (__u32 i = 0; i < PYTHON_CHUNKS; i++) {
		if (!frame)
			return;
		frame = python_chunk(id, frame);
		if (!frame && walk->task_back) {
			python_awaiters(id);
			frame = walk->task_back;
			walk->task_back = 0;
		}
	}
	if (frame)
		walk->flags |= TRACE_STACK_CUT;
}
