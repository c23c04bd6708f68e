// SPDX-License-Identifier: Apache-2.0
/* For trace.bpf.c only: its maps, and the types in those that user space does not read. */
#pragma once

#include "bpf/machine.h"
#include "bpf/event.h"
#include "bpf/shared.h"

#define U64_MAX (~0ULL)

enum {
	EEXIST = 17,
	/* CUDA_ERROR_NOT_READY in cuda.h, cudaErrorNotReady in driver_api_types.h: not an error of a query */
	NOT_READY = 600,
	NCCL_IN_PROGRESS = 7, /* ncclInProgress in nccl.h: of a communicator that does not block */
	NCCL_UNIQUE_ID = 128, /* bytes */
	FILL_CHECK_EVERY = 256, /* events of a CPU between two checks of how full the ring is; power of two */
	BATCH_CHUNK = 16,
	DIGEST_MAX = 64,
	HITS_FLUSH = 64,
	PENDING_CALLS = 4096,
	PAGE = 4096,
};

/*
 * Of struct frame's flags, besides enum trace_event_flag, of which it is none: the string is sent at the
 * return.
 */
#define FRAME_STRING_LATE (1U << 15)

/* The call that a thread is in. */
struct frame {
	__u64 sp; /* at the function's entry; 0: not in a call */
	__u64 entry_ns;
	__u64 values[TRACE_OPERANDS]; /* for TRACE_FROM_OUT the address, until the call ends */
	__u64 shared; /* launches: bytes of dynamic shared memory */
	__u64 function; /* launches */
	__u32 dim[6]; /* launches: grid, block */
	__u16 call;
	__u16 flags; /* enum trace_event_flag */
	__u32 tails; /* tail calls to probed functions, which return with it */
	__u32 number, enclosing; /* as in struct trace_call and trace_header */
	/*
	 * operators that it is made within: the innermost one, << 16 the outermost one, << 32 how many; << 48
	 * the one whose node is evaluated
	 */
	__u64 within;
};

/*
 * A call in progress that sends an event or is counted when it returns but has no frame in its layer: a
 * nested one with TRACE_SPEC_ALWAYS or TRACE_SPEC_EACH.
 */
struct pending_key {
	__u64 id; /* bpf_get_current_pid_tgid() */
	__u64 sp; /* at the function's entry */
};

struct pending_call {
	struct frame frame;
	__u64 outer_ns; /* entry of the outermost call, within which this one must return */
};

/* At a probe's hit; only where native frames are recorded. */
struct registers {
	__u64 ip, sp, fp, link;
	__u64 entry_sp; /* stack pointer at the function's entry; 0: it has returned */
};

struct thread {
	__u64 incarnation;
	__u32 epoch; /* of trace_control when `flags` were read */
	__u32 flags; /* enum trace_proc_flag */
	__u32 hits, return_hits; /* not yet added to `counters` */
	/* bits 1 << enum trace_layer: layers above CUDA that had a call when last checked */
	__u32 above;
	__u32 numbered; /* calls of those layers so far, which is the newest one's number; 0: none */
	__u64 owner; /* as in struct trace_proc */
	__u64 nested; /* operators in its entry of `nests` when last checked */
	/* NCCL: depth of ncclGroupStart(); in the outermost: when it began, and operations so far */
	__u32 group, group_calls;
	__u64 group_ns;
	struct frame frame; /* of layer CUDA */
	/*
	 * The one that begins or has just ended. Not on the stack, for each state of which the verifier would
	 * follow all that comes after.
	 */
	struct pending_call pending;
	struct registers registers;
};

/* A thread's calls in the layers above CUDA. Most threads make none. */
struct frames {
	struct frame at[TRACE_LAYERS - 1]; /* by layer; the first is the one above CUDA */
};

/* The outcome of a call that has ended. */
struct outcome {
	__u64 now;
	__u64 duration_ns;
	__s32 result;
	__u32 returned; /* its return was seen: result and duration are valid */
};

/* User space sets max_entries of this map and the next ones. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64); /* bpf_get_current_pid_tgid() */
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64); /* as for `threads` */
	__type(value, struct frames);
} layers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace_proc);
} procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct trace_stat_key);
	__type(value, struct trace_stat);
} stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct trace_error_key);
	__type(value, struct trace_error);
} errors SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TRACE_OWNERS);
	__type(key, __u64);
	__type(value, struct trace_share);
} shares SEC(".maps");

/* LRU: these calls are short, and the entry of one that never returns is replaced in time. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PENDING_CALLS);
	__type(key, struct pending_key);
	__type(value, struct pending_call);
} pending_calls SEC(".maps");

/* Of functions that the user names, apart: a program that recurses deeply takes nothing from CUDA's. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PENDING_CALLS);
	__type(key, struct pending_key);
	__type(value, struct pending_call);
} pending_each SEC(".maps");

/*
 * A scratch buffer for determining a name's length. Several programs may write to it at once, since only the
 * returned length is used.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, char[TRACE_NAME_LARGE]);
} lengths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TRACE_CALLS_MAX);
	__type(key, __u32);
	__type(value, struct trace_spec);
} specs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace_control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, PAGE);
} events SEC(".maps");

/* Zeros for a new entry of `stats`, `threads`, `layers` or `nests`, which are too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace_stat);
} zeros SEC(".maps");

/*
 * From 6.13 on, programs of a probe's type may get a per-CPU stack instead of the task's
 * (kernel/bpf/verifier.c, check_max_stack_depth), which assumes that two of them never run on a CPU at once.
 * Programs of uprobes do, from 6.0 on: they can be preempted, and then one overwrites the other's variables.
 * A program with a tail call keeps the task's stack. This tail call is never made: the verifier knows that
 * the constant is 0 and removes it.
 */
#ifdef TRACE_FETCH
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} nothing SEC(".maps");

const volatile __u32 never SEC(".rodata.never");

#define KEEP_OWN_STACK(ctx)                                \
	do {                                               \
		if (never)                                 \
			bpf_tail_call((ctx), &nothing, 0); \
	} while (0)
#else
#define KEEP_OWN_STACK(ctx) ((void)(ctx)) /* preemption is disabled */
#endif

#ifndef TRACE_MULTI
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct trace_signature);
	__type(value, __u64); /* as the cookie */
} sites SEC(".maps");

const volatile __u32 salt SEC(".rodata.salt"); /* of struct trace_signature */
#endif

static const __u32 zero;
