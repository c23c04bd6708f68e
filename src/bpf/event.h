// SPDX-License-Identifier: Apache-2.0
/*
 * The events in the ring. With bpf/spec.h and bpf/shared.h this is the whole interface between the kernel
 * side (src/bpf/) and user space. Fixed widths, explicit padding, asserted sizes, native byte order.
 *
 * Events are numbered by CPU: for each CPU, produced = events in the ring + dropped.
 */
#pragma once

#include "bpf/spec.h"

enum trace_event_type {
	TRACE_EVENT_NONE,
	TRACE_EVENT_LAUNCH, /* struct trace_launch */
	TRACE_EVENT_CALL, /* struct trace_call */
	TRACE_EVENT_PROCESS, /* struct trace_process: first hit of a process, or the first one after exec */
	/* struct trace_process: it has called exec, so all of its CUDA state is gone */
	TRACE_EVENT_EXEC,
	TRACE_EVENT_EXIT, /* struct trace_process: its last thread has ended */
	TRACE_EVENT_NAME, /* struct trace_name */
	/* struct trace_stat_new: an entry of `stats` was created; so user space need not walk the map */
	TRACE_EVENT_STAT,
	TRACE_EVENT_CODE, /* struct trace_code: a Python function, before the first stack that has it */
	TRACE_EVENT_STACK, /* struct trace_stack, before the first event that has it */
	TRACE_EVENT_NATIVE, /* struct trace_native, before the struct trace_stack that it belongs to */
	TRACE_EVENTS,
};

enum trace_event_flag {
	/* no return probe: result, duration and outputs are unknown */
	TRACE_FLAG_NO_RESULT = 1 << 0,
	TRACE_FLAG_UNREAD = 1 << 1, /* an operand in the process's memory could not be read, and is 0 */
	TRACE_FLAG_BATCH_CUT = 1 << 2, /* a batch of more than TRACE_BATCH_MAX: size covers the first ones */
	/* a _ptsz or _ptds name: stream 0 is the thread's own default stream */
	TRACE_FLAG_PER_THREAD = 1 << 3,
	TRACE_FLAG_WAITS = 1 << 4, /* copies and sets: returns only when it has completed */
	TRACE_FLAG_RUNTIME = 1 << 5, /* a function of the runtime; else of the driver */
	TRACE_FLAG_GROUPED = 1 << 6, /* NCCL: between ncclGroupStart() and ncclGroupEnd() */
	/*
	 * Four bits: of 1 << this many events one has a stack, chosen at random; others have
	 * TRACE_STACK_SKIPPED
	 */
	TRACE_FLAG_SAMPLED_SHIFT = 8,
	TRACE_FLAG_SAMPLED_BITS = 15,
};

struct trace_header {
	__u64 time_ns; /* CLOCK_MONOTONIC, when the call was entered */
	__u64 seq; /* event number on this CPU, from 1 */
	/*
	 * The operator that makes the call, and the outermost one that it is within: rows in the table of
	 * probes. 0: none. Their number, at most TRACE_OPERATORS_DEEP.
	 */
	__u16 operator, operator_outer;
	__u8 operators;
	__u8 pad;
	__u16 forward; /* in a backward pass: the operator whose node is evaluated; 0: none is known */
	__u32 tgid, tid; /* in the initial PID namespace */
	__u16 cpu; /* that seq belongs to */
	__u16 call; /* row in the table of probes */
	__u8 type; /* enum trace_event_type */
	__u8 op; /* enum trace_op */
	__u16 flags; /* enum trace_event_flag */
	/*
	 * The innermost enclosing call of a layer above this one's: `number` in the struct trace_call of that
	 * call, which comes later and is of the same thread. 0: none.
	 */
	__u32 enclosing;
	__u32 stack; /* id of the call's stack (bpf/stack.h), or an enum trace_stack_none */
};
_Static_assert(sizeof(struct trace_header) == 48, "both sides must agree");

struct trace_launch {
	struct trace_header header;
	__u64 duration_ns; /* of the call, not of the kernel */
	__u64 function; /* CUfunction, CUkernel, cudaKernel_t or host stub, as passed */
	__u64 stream;
	__u32 grid[3], block[3];
	__u32 shared_bytes; /* dynamic shared memory; saturates */
	__s32 result;
};
_Static_assert(sizeof(struct trace_launch) == 104, "both sides must agree");

struct trace_call {
	struct trace_header header;
	__u64 duration_ns;
	__u64 addr;
	__u64 size; /* bytes, multiplied by height and depth; saturates */
	__u64 stream;
	__u64 handle;
	__s32 result;
	__u32 kind;
	/*
	 * among the thread's calls of layers above CUDA, from 1; 0 in the CUDA layer, which encloses no other
	 */
	__u32 number;
	__u32 other; /* of shapes from TRACE_SHAPE_OTHER on; else 0 */
};
_Static_assert(sizeof(struct trace_call) == 104, "both sides must agree");

struct trace_process {
	struct trace_header header;
	__u64 incarnation; /* as in struct trace_stat_key */
	/* the group leader's start on the boot clock; field 22 of /proc/PID/stat has it in ticks */
	__u64 start_boot_ns;
	__u32 ns_tgid; /* in its own PID namespace */
	__u32 lost; /* as in struct trace_proc, at this time */
	char comm[TRACE_COMM];
};
_Static_assert(sizeof(struct trace_process) == 88, "both sides must agree");

/*
 * A successful call that gives the name of a handle, or a variable (TRACE_OP_INIT). TRACE_FLAG_UNREAD: the
 * name could not be read and is "". The record has one of three sizes: this struct and TRACE_NAME_SMALL,
 * _MEDIUM or _LARGE bytes. Bytes after the NUL are undefined.
 */
struct trace_name {
	struct trace_header header;
	__u64 handle;
	__u64 of; /* module or library; 0: none */
	__u32 name_n; /* without the NUL */
	__u32 cut; /* 1: the name is longer */
	char name[]; /* NUL-terminated */
};
_Static_assert(sizeof(struct trace_name) == 72, "both sides must agree");

struct trace_stat_new {
	struct trace_header header; /* tgid, call */
	__u64 incarnation;
};
_Static_assert(sizeof(struct trace_stat_new) == 56, "both sides must agree");
