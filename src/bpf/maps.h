// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: its maps and what it keeps in those that only it sees.
 */
#pragma once

#include "bpf/machine.h"
#include "bpf/event.h"
#include "bpf/shared.h"

#define U64_MAX (~0ULL)

enum {
	EEXIST = 17,
	/* CUDA_ERROR_NOT_READY in cuda.h, cudaErrorNotReady in driver_api_types.h: a query's "no" */
	NOT_READY = 600,
	LOOK_EVERY = 256, /* events of a CPU between two looks at how full the ring is; power of two */
	BATCH_CHUNK = 16,
	HITS_WAIT = 64,
	ASIDES = 4096,
	PAGE = 4096,
};

/* The call that a thread is in. */
struct frame {
	__u64 sp; /* at the function's entry; 0: in none */
	__u64 entry_ns;
	__u64 values[TRACE_OPERANDS]; /* of TRACE_FROM_OUT the address, until it is over */
	__u64 shared; /* launches: bytes, function, dimensions */
	__u64 function;
	__u32 dim[6];
	__u16 call;
	__u16 flags; /* enum trace_event_flag */
	__u32 tails; /* probed functions that it has been left for by a jump: they return with it */
	__u32 number, enclosing; /* as in struct trace_call and trace_header */
};

struct thread {
	__u64 incarnation;
	__u32 epoch; /* trace_control's when `flags` were looked up */
	__u32 flags; /* enum trace_proc_flag */
	__u32 hits, return_hits; /* not yet in `counters` */
	/* bits 1 << enum trace_layer: layers above CUDA's that had a call when last looked at */
	__u32 above;
	__u32 numbered; /* calls of those layers so far, and so the number of the newest; 0: none */
	struct frame frame; /* of layer CUDA */
};

/* A thread's calls in the layers above CUDA's, which most threads never make. */
struct frames {
	struct frame at[TRACE_LAYERS - 1]; /* by layer, the one above CUDA's first */
};

/*
 * A call that a thread is in and that is told apart from its outermost: of setenv(), or nested and
 * TRACE_SPEC_ALWAYS.
 */
struct aside_key {
	__u64 id; /* bpf_get_current_pid_tgid() */
	__u64 sp; /* at the function's entry */
};

struct aside {
	struct frame frame; /* of setenv(): the addresses of name and value are values[0] and [1] */
	__u64 outer_ns; /* when the outermost was entered, which this one is over before */
};

/* What is about to be known of a call that is over. */
struct outcome {
	__u64 now;
	__u64 duration_ns;
	__s32 result;
	__u32 returned; /* result and duration are known */
};

/* User space sets how many entries. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64); /* bpf_get_current_pid_tgid() */
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64); /* as of `threads` */
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
	__type(value, __u64);
} errors SEC(".maps");

/* They are short: whoever does not return makes room for others. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ASIDES);
	__type(key, struct aside_key);
	__type(value, struct aside);
} asides SEC(".maps");

/*
 * Where names are read to, to know how long they are: whatever others write there, too, their length is
 * right.
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

/* Zeros that are too many for the stack: a new entry of `stats`, `threads`, `layers`. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace_stat);
} zeros SEC(".maps");

/*
 * From 6.13 on programs of a probe's type may get their stack from a page of the CPU instead of the task's
 * (kernel/bpf/verifier.c, check_max_stack_depth), on the grounds that two never run on a CPU at once. Those
 * of uprobes do, from 6.0 on: they can be preempted, and then one writes over the other's variables. A
 * program with a tail call is left its own stack; this one is never made, and the verifier, which knows that
 * constant, takes it out.
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
#define KEEP_OWN_STACK(ctx) ((void)(ctx)) /* preemption is off */
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
