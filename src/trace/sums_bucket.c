// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "trace/sums.h"

uint64_t sums_bucket_low(unsigned i)
{
	return i < 8 ? i : (uint64_t)(8 + i % 8) << (i / 8 - 1);
}

uint64_t sums_bucket_end(unsigned i)
{
	return sums_bucket_low(i + 1);
}

/*
 * The middle of the bucket with the quantile, rounded down, and at most the total of all calls. The bounds of
 * a bucket are at most an eighth apart.
 */
double trace_sum_quantile(const struct trace_sum *sum, double q)
{
	uint64_t n = 0, rank, seen = 0;

	for (unsigned i = 0; i < TRACE_BUCKETS; i++)
		n += sum->buckets[i];
	if (n == 0)
		return 0;
	rank = (uint64_t)ceil(q * (double)n);
	for (unsigned i = 0; i < TRACE_BUCKETS; i++) {
		seen += sum->buckets[i];
		if (seen >= rank && sum->buckets[i] > 0)
			return (double)MIN((sums_bucket_low(i) + sums_bucket_end(i) - 1) / 2, sum->total_ns);
	}
	return (double)sums_bucket_low(TRACE_BUCKETS - 1);
}

uint64_t trace_sum_below(const struct trace_sum *sum, uint64_t bound_ns)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < TRACE_BUCKETS; i++)
		if ((sums_bucket_low(i) + sums_bucket_end(i)) / 2 <= bound_ns)
			n += sum->buckets[i];
	return n;
}
