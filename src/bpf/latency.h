// SPDX-License-Identifier: Apache-2.0
/*
 * Into which bucket a duration counts, on both sides. Part of bpf/spec.h.
 *
 * Buckets are cut in ticks of 2^-30 s (0.93 ns), so that each bound of pages, a power of four of a second
 * (model/trace.h), is one of theirs: no bucket is divided among two of a page. A duration that is a bound
 * belongs to the bucket below it, as everywhere in Prometheus.
 */
#pragma once

#include <linux/types.h>

enum {
	/* One for each of the first 8 ticks, then 8 for each power of two, up to 2^42 ticks: 4096 s. */
	TRACE_BUCKETS_FINE = 8 + 39 * 8,
	/* Then one for each power of four, up to 4^18 s: more than 64 bits of nanoseconds can say. */
	TRACE_BUCKETS = TRACE_BUCKETS_FINE + 12,
	TRACE_BOUNDS = 29, /* 4^-10 s to 4^18 s */
};
#define TRACE_FINE_NS 4096000000000ULL
/* A tick is 5^9 / 2^21 ns. */
#define TRACE_TICK_MULTIPLIER 1953125ULL
#define TRACE_TICK_SHIFT 21

/*
 * The bucket: for each duration one below TRACE_BUCKETS. From the position of the highest bit and the three
 * bits after it. With few branches, since the verifier follows both ways of each.
 */
static inline __attribute__((always_inline)) __u64 latency_bucket(__u64 ns)
{
	__u64 ticks, rest, log = 0;

	if (ns == 0)
		return 0;
	/* Whole ticks, or 4096 s, below it: one that is a multiple of them is not above the last. */
	rest = ns > TRACE_FINE_NS ? (ns - 1) / TRACE_FINE_NS :
				    ((ns << TRACE_TICK_SHIFT) - 1) / TRACE_TICK_MULTIPLIER;
	ticks = rest;
	for (__u32 bits = 32; bits; bits /= 2) {
		__u64 shift = (((1ULL << bits) - 1 - rest) >> 63) * bits; /* if rest >= 2^bits */

		log += shift;
		rest >>= shift;
	}
	if (ns > TRACE_FINE_NS)
		return TRACE_BUCKETS_FINE + log / 2;
	if (ticks < 8)
		return ticks;
	return (log - 2) * 8 + ((ticks >> (log - 3)) & 7);
}

/* Which bound of pages is the first that is not below the durations of @bucket: i for 4^(i - 10) s. */
static inline unsigned latency_bound(unsigned bucket)
{
	const unsigned first = 8 * 8; /* the first bucket beyond 2^10 ticks: 4^-10 s */

	if (bucket < first)
		return 0;
	if (bucket < TRACE_BUCKETS_FINE)
		return 1 + (bucket - first) / 16;
	return 1 + (TRACE_BUCKETS_FINE - first) / 16 + (bucket - TRACE_BUCKETS_FINE);
}
