// SPDX-License-Identifier: Apache-2.0
/*
 * The maps that both sides of the kernel boundary read or write.
 *
 * Invariants
 *  1. A call is counted in `stats` exactly once, when its outermost probed function returns (or, where
 *     there is no return probe, when it is entered). Calls nested in it on the same thread are counted as
 *     `nested` only.
 *  2. A call whose event is dropped by the ring is still counted in `stats` and `errors`. Calls that are not
 *     counted because a map is full are in `counters`.
 */
#pragma once

#include "bpf/spec.h"
#include "bpf/stack.h"

/*
 * A site's cookie or, for trace events, its value in map `sites`: the call number, a flag and the stack
 * offset. TRACE_SITE_NO_RETURN: this site has no return probe even if the call's spec has TRACE_SPEC_RETURNS,
 * so the call is counted when it is entered, and its result is unknown.
 */
enum {
	TRACE_SITE_CALL = 0xffff,
	TRACE_SITE_NO_RETURN = 1 << 16,
	/* From this bit on: bytes by which the stack pointer is below its value at the function's entry. */
	TRACE_SITE_STACK_SHIFT = 32,
};

/*
 * For trace events (kernels before 6.6): identifies a site by the code after it, as the load address is
 * unknown.
 */
struct trace_signature {
	/*
	 * The bytes after the breakpoint (1 byte on x86-64, 4 on arm64) within 16 bytes of the site, which is
	 * too short to reach the next function's breakpoint; zero beyond the page's end.
	 */
	__u64 code[2];
	__u32 page_offset; /* address & 4095 */
	/* of the program; distinguishes sites with equal signatures but different calls */
	__u32 salt;
};
_Static_assert(sizeof(struct trace_signature) == 24, "both sides must agree");

/*
 * Map `stats`, hash. An incarnation identifies a process between two execs: the CLOCK_MONOTONIC time when its
 * entry in `procs` was created. Unlike a PID, it is not reused.
 */
struct trace_stat_key {
	__u32 tgid;
	__u32 call;
	__u64 incarnation;
};

struct trace_stat {
	__u64 count; /* calls that have ended, with or without success */
	__u64 errors; /* calls with result != 0 (for queries, other than "not ready") */
	__u64 bytes; /* of successful calls */
	__u64 total_ns; /* sum of durations */
	__u64 nested; /* hits within another probed call of the thread */
	__u64 last_ns; /* CLOCK_MONOTONIC, when the last one ended */
	__u32 buckets[TRACE_BUCKETS]; /* by duration; they wrap, so differences must be used */
	/* errors whose code is not in `errors`: beyond TRACE_CODES_MAX, or for want of room */
	__u64 other_codes;
	__u64 owner; /* as in struct trace_proc */
	__u32 codes; /* its entries in `errors` */
	__u32 pad;
};

/* Map `errors`, hash. */
struct trace_error_key {
	__u32 tgid;
	__u32 call;
	__u64 incarnation;
	__s32 result;
	__u32 pad;
};

struct trace_error {
	__u64 count;
	__u64 owner; /* as in struct trace_proc */
};

/* Map `operators`, hash by struct trace_stat_key: calls of an operator by a process. */
struct trace_operator {
	__u64 calls;
	__u64 outermost; /* of them, not within another operator of the thread */
	__u64 backward; /* evaluations of nodes that it has made */
	__u64 owner; /* as in struct trace_proc */
};

/*
 * Map `procs`, hash by tgid. Created at the first hit, deleted at exec and exit; user space writes the flags.
 */
enum trace_proc_flag {
	TRACE_PROC_QUIET = 1 << 0, /* no events, stats only */
	TRACE_PROC_IGNORE = 1 << 1, /* neither events nor stats */
	TRACE_PROC_FOLLOW = 1 << 2, /* its children, and itself after exec, get the same flags */
	TRACE_PROC_UNSEEN = 1 << 3, /* added before its first hit: no PROCESS event was sent yet */
	TRACE_PROC_STACKLESS = 1 << 4, /* no stacks */
	TRACE_PROC_NATIVELESS = 1 << 5, /* no native frames in them */
	/* Four bits from here on: as `stack_shift` in `control`, of this process; the larger one counts. */
	TRACE_PROC_STACK_SHIFT = 8,
};
struct trace_proc {
	__u64 incarnation;
	__u64 start_boot_ns;
	__u32 flags;
	__u32 lost; /* bits 1 << enum trace_table: hits of it were not counted for want of room there */
	__u64 owner; /* key in `shares` that its entries are charged to; 0: none */
	__u32 inits; /* calls that have sent its environment */
	__u32 pad;
};

/* The tables that programs fill. */
enum trace_table {
	TRACE_TABLE_PROCS,
	TRACE_TABLE_THREADS,
	TRACE_TABLE_LAYERS,
	TRACE_TABLE_STATS,
	TRACE_TABLE_ERRORS,
	TRACE_TABLE_OPERATORS, /* calls of operators, by process */
	TRACE_TABLE_NESTS, /* threads in operators */
	TRACE_TABLE_WALKS, /* threads whose stacks were walked */
	TRACE_TABLE_PYTHON, /* threads that waited for Python's lock, or collect garbage */
	TRACE_TABLES,
};

/* The tables without whose entries calls of CUDA are not counted. */
#define TRACE_TABLES_OF_CALLS                                                             \
	(1U << TRACE_TABLE_PROCS | 1U << TRACE_TABLE_THREADS | 1U << TRACE_TABLE_LAYERS | \
	 1U << TRACE_TABLE_STATS)

/*
 * Owners: the users and containers whose processes fill the tables. An owner may have at most TRACE_SHARE
 * times as many entries of a table as are free: one alone 7/8 of it, two 7/15 each, and so on. So whatever
 * one of them does, there is room for another.
 */
enum { TRACE_SHARE = 7, TRACE_OWNERS = 4096 };
/* Keys of owners: the ID of a cgroup, or this bit and a user's ID. */
#define TRACE_OWNER_USER (1ULL << 63)
/* The ID of the root cgroup: root's processes in no cgroup, and owners beyond TRACE_OWNERS. */
#define TRACE_OWNER_REST 1ULL

/* Map `shares`, hash by owner. User space deletes entries that are all 0. */
struct trace_share {
	__s32 used[TRACE_TABLES]; /* below 0 by chance, if the entry was deleted meanwhile */
	__u32 pad;
	/* CLOCK_MONOTONIC, when a process of the owner's last got no entry in `procs` */
	__u64 lost_ns;
};

/* Map `counters`, per-CPU array of one. */
struct trace_counters {
	__u64 produced, dropped; /* events */
	/*
	 * All hits, also of ignored processes, for computing the cost. Up to 63 of each running thread are
	 * added later.
	 */
	__u64 hits; /* of entry probes */
	__u64 return_hits;
	/* calls whose return was not seen: exceptions, longjmp, exec, a detached probe */
	__u64 abandoned;
	__u64 unmatched; /* returns whose entry was not seen */
	__u64 unidentified; /* trace events: unknown signature */
	/*
	 * By enum trace_table: calls that are not counted, or not by error code, for want of an entry. Part
	 * of them: because the owner's share was used.
	 */
	__u64 lost[TRACE_TABLES], refused[TRACE_TABLES];
	__u64 stacks; /* STACK events */
	/* Stacks that were taken; of one in 16 the time, and how many these are. */
	__u64 stacks_taken, stacks_timed, stacks_ns;
	__u64 stackless[TRACE_STACK_NONES]; /* events that could have a stack and have none, by why */
};

/* Map `control`, array of one, mmapped. */
struct trace_control {
	__u32 epoch; /* changes with flags in `procs` or the defaults, so that threads read them again */
	__u32 default_flags; /* enum trace_proc_flag of processes not seen before */
	__u32 wake_bytes; /* wake user space when this much is pending; power of two */
	__u32 own_tgid; /* never traced */
	__u32 version; /* TRACE_VERSION of the kernel side */
	__u32 stack_shift; /* of 1 << this many events one has a stack; at most TRACE_FLAG_SAMPLED_BITS */
	__u32 stack_kinds; /* enum trace_stack_kind */
	__u32 ended; /* 1: calls are no longer seen; user space sets it before it reads the last of them */
	__u64 gone_ns; /* the latest gone_ns of all specs */
	/*
	 * Byte (tgid modulo TRACE_ACTIVE) is set to 1 when a process makes a call, so that user space reads
	 * its stats. User space clears it.
	 */
	__u8 active[TRACE_ACTIVE];
	/* By enum trace_table. User space sets the entries before it attaches. */
	struct {
		__s32 entries, used;
	} room[TRACE_TABLES];
	__u32 owners; /* entries of `shares`; user space subtracts those that it deletes */
};

/*
 * Arguments of program entry_free, which user space runs to delete an entry of `stats` or `errors`: it is
 * given back to its owner's share.
 */
enum {
	TRACE_FREE_TABLE, /* enum trace_table */
	TRACE_FREE_CALL, /* tgid << 32 | call */
	TRACE_FREE_INCARNATION,
	TRACE_FREE_RESULT,
	TRACE_FREE_ARGS,
};
