// SPDX-License-Identifier: Apache-2.0
/*
 * The events in the ring. With bpf/spec.h and bpf/shared.h this is all that crosses the boundary between the
 * kernel side (src/bpf/) and the rest. Fixed widths, explicit padding, sizes asserted; byte order is the
 * machine's own.
 *
 * Every event has a number of its CPU's: per CPU, produced = events in the ring + dropped.
 */
#pragma once

#include "bpf/spec.h"

enum trace_event_type {
	TRACE_EVENT_NONE,
	TRACE_EVENT_LAUNCH, /* struct trace_launch */
	TRACE_EVENT_CALL, /* struct trace_call */
	TRACE_EVENT_PROCESS, /* struct trace_process: first hit of a process (or of what it became by exec) */
	/* struct trace_process: it executes another program now, all of CUDA's state is gone */
	TRACE_EVENT_EXEC,
	TRACE_EVENT_EXIT, /* struct trace_process: its last thread has ended */
	TRACE_EVENT_TEXT, /* struct trace_text */
	TRACE_EVENT_NAME, /* struct trace_name */
	/* struct trace_stat_new: an entry of `stats` was made; told once, so that nobody must walk the map */
	TRACE_EVENT_STAT,
	TRACE_EVENTS,
};

enum trace_event_flag {
	/* no return probe: result, duration and what comes out are not known */
	TRACE_FLAG_NO_RESULT = 1 << 0,
	TRACE_FLAG_UNREAD = 1 << 1, /* an operand in the process's memory could not be read: it is 0 */
	TRACE_FLAG_BATCH_CUT = 1 << 2, /* a batch of more than TRACE_BATCH_MAX: size is of the first ones */
	/* a _ptsz or _ptds name: stream 0 is the thread's own default stream */
	TRACE_FLAG_PER_THREAD = 1 << 3,
	TRACE_FLAG_WAITS = 1 << 4, /* copies and sets: returns only when it is done */
	TRACE_FLAG_RUNTIME = 1 << 5, /* a name of the runtime's; else the driver's */
	TRACE_FLAG_KEEPS = 1 << 6, /* setenv: without effect if the variable was there */
};

struct trace_header {
	__u64 time_ns; /* CLOCK_MONOTONIC, when the call was entered */
	__u64 cgroup; /* id in cgroup v2; 0 or 1 where there is none */
	__u64 seq; /* of this CPU, from 1 */
	__u32 tgid, tid; /* in the initial PID namespace */
	__u16 cpu; /* whose seq that is */
	__u16 call; /* row of the table of probes */
	__u8 type; /* enum trace_event_type */
	__u8 op; /* enum trace_op */
	__u16 flags; /* enum trace_event_flag */
	/*
	 * The innermost call that this one is made within, of those of the layers above its own: trace_call's
	 * `number` in the event of that call, which comes later and is of the same thread. 0: in none.
	 */
	__u32 enclosing;
	__u32 stack; /* the stack of the call, by its id; 0: not taken */
};
_Static_assert(sizeof(struct trace_header) == 48, "both sides must agree");

struct trace_launch {
	struct trace_header header;
	__u64 duration_ns; /* of the call, not of the kernel */
	__u64 function; /* CUfunction, CUkernel, cudaKernel_t or host stub: as passed */
	__u64 stream;
	__u32 grid[3], block[3];
	__u32 shared_bytes; /* dynamic; 2^32-1 and more are shown as 2^32-1 */
	__s32 result;
};
_Static_assert(sizeof(struct trace_launch) == 104, "both sides must agree");

struct trace_call {
	struct trace_header header;
	__u64 duration_ns;
	__u64 addr;
	__u64 size; /* bytes, height and depth multiplied in; saturates */
	__u64 stream;
	__u64 handle;
	__s32 result;
	__u32 kind;
	/*
	 * Of this call among its thread's of the layers above CUDA's, from 1; 0 in CUDA's layer, whose calls
	 * enclose none
	 */
	__u32 number;
	__u32 pad;
};
_Static_assert(sizeof(struct trace_call) == 104, "both sides must agree");

struct trace_process {
	struct trace_header header;
	__u64 incarnation; /* as in struct trace_stat_key */
	/* group leader's start on the boot clock, as field 22 of /proc/PID/stat has it in ticks */
	__u64 start_boot_ns;
	__u32 ns_tgid; /* in its own PID namespace */
	__u32 pad;
	char comm[TRACE_COMM];
};
_Static_assert(sizeof(struct trace_process) == 88, "both sides must agree");

/* setenv(name, value) of the one name that matters: value, ended by NUL unless cut. */
struct trace_text {
	struct trace_header header;
	char text[TRACE_TEXT];
};
_Static_assert(sizeof(struct trace_text) == 264, "both sides must agree");

/*
 * A successful call that says what a handle is called. TRACE_FLAG_UNREAD: the name could not be read and is
 * "". The record has one of three sizes: this and TRACE_NAME_SMALL, _MEDIUM or _LARGE; what is behind the NUL
 * means nothing.
 */
struct trace_name {
	struct trace_header header;
	__u64 handle;
	__u64 of; /* module or library; 0: none */
	__u32 name_n; /* without the NUL */
	__u32 cut; /* 1: the name is longer */
	char name[]; /* ended by NUL */
};
_Static_assert(sizeof(struct trace_name) == 72, "both sides must agree");

struct trace_stat_new {
	struct trace_header header; /* tgid, call */
	__u64 incarnation;
};
_Static_assert(sizeof(struct trace_stat_new) == 56, "both sides must agree");
