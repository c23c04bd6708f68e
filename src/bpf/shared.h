// SPDX-License-Identifier: Apache-2.0
/*
 * The maps that both sides of the kernel boundary read or write.
 *
 * Invariants
 *  1. A call is counted in `stats` exactly once, when its outermost probed function returns (or, where
 *     there is no return probe, when it is entered). Calls nested in it on the same thread are `nested`,
 *     nothing else.
 *  2. `stats` and `errors` never lose a call that the ring loses; what they lose themselves (a full map)
 *     is in `counters`.
 */
#pragma once

#include "bpf/spec.h"

/*
 * Cookie of a site: the call number, and the flag where the call has a return probe (TRACE_SPEC_RETURNS) but
 * this site has none: then the call is over when it is entered, and its result unknown. Perf path: value of
 * map `sites`.
 */
enum {
	TRACE_SITE_CALL = 0xffff,
	TRACE_SITE_NO_RETURN = 1 << 16,
	/* From this bit on: bytes that the stack pointer lies below where it was at the function's entry. */
	TRACE_SITE_STACK_SHIFT = 32,
};

/* Perf path (kernels before 6.6): a site is known by the code behind it, because the load address is not. */
struct trace_signature {
	/*
	 * What follows the breakpoint (1 byte on x86-64, 4 on arm64) within 16 bytes of the site, which is
	 * short enough not to reach the next function's breakpoint; zero beyond the page's end.
	 */
	__u64 code[2];
	__u32 page_offset; /* address & 4095 */
	/* the program's own; tells files apart whose signatures are equal but whose calls are not */
	__u32 salt;
};
_Static_assert(sizeof(struct trace_signature) == 24, "both sides must agree");

/*
 * Map `stats`, hash. An incarnation is the CLOCK_MONOTONIC time of a process's first hit: PIDs and exec come
 * again, it does not.
 */
struct trace_stat_key {
	__u32 tgid;
	__u32 call;
	__u64 incarnation;
};

struct trace_stat {
	__u64 count; /* calls over; with and without success */
	__u64 errors; /* of them: result != 0 (queries: other than "not ready") */
	__u64 bytes; /* of successful ones */
	__u64 total_ns; /* durations */
	__u64 nested; /* hits within another probed call of the thread */
	__u64 last_ns; /* CLOCK_MONOTONIC, when the newest was over */
	__u32 buckets[TRACE_BUCKETS]; /* durations; wraps, so read differences */
};

/* Map `errors`, hash: value __u64, how often. */
struct trace_error_key {
	__u32 tgid;
	__u32 call;
	__u64 incarnation;
	__s32 result;
	__u32 pad;
};

/* Map `procs`, hash by tgid. Made at the first hit, deleted at exec and exit, flags written by user space. */
enum trace_proc_flag {
	TRACE_PROC_QUIET = 1 << 0, /* no events, stats only */
	TRACE_PROC_IGNORE = 1 << 1, /* nothing at all */
	TRACE_PROC_FOLLOW = 1 << 2, /* what it forks, and what it becomes by exec, has the same flags */
	TRACE_PROC_UNSEEN = 1 << 3, /* entered before its first hit: no event has told of it */
};
struct trace_proc {
	__u64 incarnation;
	__u64 start_boot_ns;
	__u32 flags;
	__u32 pad;
};

/* Map `counters`, per-CPU array of one. */
struct trace_counters {
	__u64 produced, dropped; /* events */
	/*
	 * Whatever becomes of them: what the cost is reckoned from. Of each running thread, up to 63 are
	 * added later.
	 */
	__u64 hits; /* of entry probes */
	__u64 return_hits;
	/* calls whose return was never seen: exceptions, longjmp, exec, a probe taken away */
	__u64 abandoned;
	__u64 unmatched; /* returns whose entry was not seen */
	__u64 unidentified; /* perf path: no such signature */
	__u64 lost_threads, lost_procs, lost_stats,
		lost_errors; /* calls not counted (threads, procs, stats) or not by code: map full */
};

/* Map `control`, array of one, mmapped. */
struct trace_control {
	__u32 epoch; /* flags in `procs` or the defaults changed: threads look again */
	__u32 default_flags; /* enum trace_proc_flag of processes not seen before */
	__u32 wake_bytes; /* wake user space when so much is pending; power of two */
	__u32 own_tgid; /* never traced */
	__u32 version; /* TRACE_VERSION of the kernel side */
	__u32 pad;
	__u64 gone_ns; /* the latest of all calls' */
	/*
	 * Byte (tgid modulo its size) becomes 1 when a process makes a call: whose stats to read. User space
	 * clears it.
	 */
	__u8 active[TRACE_ACTIVE];
};
