// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "trace/sums.h"

/* The first nanosecond after so many ticks. */
static uint64_t ns_after(uint64_t ticks)
{
	return (ticks * TRACE_TICK_MULTIPLIER >> TRACE_TICK_SHIFT) + 1;
}

uint64_t sums_bucket_low(unsigned i)
{
	if (i >= TRACE_BUCKETS)
		return UINT64_MAX;
	if (i > TRACE_BUCKETS_FINE)
		return (TRACE_FINE_NS << 2 * (i - TRACE_BUCKETS_FINE)) + 1;
	if (i >= 8)
		return ns_after((uint64_t)(8 + i % 8) << (i / 8 - 1));
	return i > 0 ? ns_after(i) : 0;
}

uint64_t sums_bucket_end(unsigned i)
{
	return sums_bucket_low(i + 1);
}

static double bucket_middle(unsigned i)
{
	uint64_t low = sums_bucket_low(i), end = sums_bucket_end(i);

	return (double)(low + (end - MIN(end, low + 1)) / 2);
}

uint64_t trace_sum_timed(const struct trace_sum *sum)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < TRACE_BUCKETS; i++)
		n += sum->buckets[i];
	return n;
}

/*
 * The middle of the bucket with the quantile, rounded down, and at most the total of all calls. Up to 4096 s
 * the bounds of a bucket are at most an eighth apart.
 */
double trace_sum_quantile(const struct trace_sum *sum, double q)
{
	uint64_t n = trace_sum_timed(sum), rank, seen = 0;

	if (n == 0)
		return 0;
	rank = (uint64_t)ceil(q * (double)n);
	for (unsigned i = 0; i < TRACE_BUCKETS; i++) {
		seen += sum->buckets[i];
		if (seen >= rank && sum->buckets[i] > 0)
			return MIN(bucket_middle(i), (double)sum->total_ns);
	}
	return (double)sums_bucket_low(TRACE_BUCKETS - 1);
}

void trace_sum_within(const struct trace_sum *sum, uint64_t ret_within[static TRACE_BOUNDS])
{
	memset(ret_within, 0, TRACE_BOUNDS * sizeof(*ret_within));
	for (unsigned i = 0; i < TRACE_BUCKETS; i++)
		ret_within[latency_bound(i)] += sum->buckets[i];
	for (unsigned i = 1; i < TRACE_BOUNDS; i++)
		ret_within[i] += ret_within[i - 1];
}
