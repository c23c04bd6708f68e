// SPDX-License-Identifier: Apache-2.0
/* For trace.bpf.c only: maps of stacks. */
#pragma once

#include "bpf/maps.h"
#include "bpf/stack.h"
#include "bpf/unwind.h"

enum {
	PYTHON_MET = 32, /* code objects of a walk that are known again; a power of two */
	NATIVE_MET = 64, /* addresses of a thread whose rules are known again; a power of two */
	PYTHON_AWAITING = 16, /* frames of a task that awaits; a power of two */
	PYTHON_END = 64, /* bytes at each end of a table of lines that are compared */
	/*
	 * Bytes before a frame that are read with it. From 3.11 on frames lie one after the other, the outer
	 * ones first, so that the next ones are among them.
	 */
	PYTHON_REACH = 896,
	PYTHON_FRAMES = 1024, /* room for that, and a frame; a power of two */
};
_Static_assert(PYTHON_REACH + TRACE_PYTHON_FRAME <= PYTHON_FRAMES, "a frame's members lie in what was read");

/* A code object that was met in a walk. It cannot change before the walk's end: a frame has it. */
struct walk_code {
	__u64 code;
	__u64 walk; /* number of the walk */
	__u32 check;
	__u32 pad;
};

/* The rule of an address in a list of mappings, of which it has one as long as the list is in use. */
struct native_met {
	__u64 pc;
	__u32 space; /* its number; 0: none */
	__u32 rule;
};

/* A thread's native frames as they are walked. */
struct native {
	__u64 ip, sp, fp, link; /* of the frame that the walk has reached */
	__u64 returns; /* the struct return_instance of a frame that is not below it */
	__u64 hash; /* of all frames */
	__u32 n;
	__u32 stop; /* enum trace_native_stop */
	__u32 called; /* ip is behind a call; 0: it was interrupted, or has just been entered */
	__u32 guessed; /* as in struct trace_native */
	struct unwind_area area; /* of the last frame */
	__u64 loops[2]; /* as in struct trace_native */
	__u64 loop, loop_n, part, part_n; /* as in struct trace_python */
	__u32 space, pad; /* number of the list in use when the walk began; 0: none */
	__u64 pcs[TRACE_STACK_LARGE];
	struct native_met met[NATIVE_MET];
};

/* A thread's Python frames as they are walked: too large for the stack, and a program may be preempted. */
struct walk {
	__u64 thread; /* address of its PyThreadState when last found; 0: not found */
	__u64 hash; /* of all frames */
	__u32 n, flags; /* as in struct trace_stack */
	__u32 why; /* enum trace_stack_none: why there are no Python frames; 0: there are some */
	__u32 kinds; /* enum trace_stack_kind, that are wanted */
	/* Of the search for the thread: states of it that have frames, the last of them, one without. */
	__u64 framed, idle;
	__u32 framed_n, pad;
	__u64 entries[2]; /* as in struct trace_native */
	struct trace_frame frames[TRACE_STACK_LARGE];
	struct native native;
	/* Read from the process; a member at any place that is a multiple of 8 lies in them. */
	unsigned char state[TRACE_PYTHON_STATE] __attribute__((aligned(8)));
	unsigned char frames_read[PYTHON_FRAMES], code[128] __attribute__((aligned(8)));
	__u64 frames_at; /* address of what is in frames_read */
	/* offset of the last frame in it, that it was read for; below 0: nothing is in it */
	__s64 frames_last;
	__u64 number; /* of the walk */
	__u32 check, pad2; /* of the code object that was read last */
	struct walk_code met[PYTHON_MET];
	__u64 end[2 + PYTHON_END / 8]; /* of a table of lines */
	/* The task that the thread runs, and the frame of its coroutine; 0: none is known. */
	__u64 task, task_frame;
	__u64 task_back; /* the frame that calls that one, once the walk has reached it; else 0 */
	__u64 awaiting[PYTHON_AWAITING]; /* frames of a coroutine that awaits, the outermost first */
};

/*
 * Whether stacks are recorded; user space sets it. To the verifier it is a constant: where they are not, it
 * leaves out what takes them, which is three quarters of its work. Before 6.8 it verifies each function that
 * is not static, whether or not it is called: so those that take longest ask, too.
 */
const volatile __u32 takes_stacks SEC(".rodata.stacks") = 1;

/* User space sets max_entries of this map, too: 1 where no stacks are recorded. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64); /* as for `threads` */
	__type(value, struct walk);
} walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} no_walk SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* tgid */
	__type(value, struct trace_python);
} pythons SEC(".maps");

/* What was sent already. LRU: what is replaced is sent again. */
struct code_key {
	__u64 incarnation;
	__u64 code;
	__u32 check;
	__u32 pad;
};

struct stack_key {
	__u64 incarnation;
	__u64 hash;
};

_Static_assert(sizeof(struct stack_key) == TRACE_STACK_KEY && sizeof(struct code_key) == TRACE_CODE_KEY,
	       "both sides must agree");

struct stack_known {
	__u64 since_ns;
	__u32 id;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct code_key);
	__type(value, __u64); /* when it was sent last */
} codes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct stack_key);
	__type(value, struct stack_known);
} stacks SEC(".maps");
