// SPDX-License-Identifier: Apache-2.0
/*
 * Histograms of durations as Prometheus' native ones of schema -1, whose bounds are powers of four: each
 * bucket of ours is one of theirs. Durations up to the first bound are in the zero bucket, whose threshold is
 * that bound. Nothing lies beyond the last bound, so that no bucket stands for infinity.
 */
#pragma once

#include <stdint.h>

enum { NATIVE_SCHEMA = -1 };

struct native_histogram {
	double zero_threshold;
	uint64_t count, zero_count;
	/* The buckets, from the first that is not empty to the last one; @length 0: all are empty. */
	int32_t offset;
	uint32_t length;
};

/*
 * @within: how many values are up to 4^first, 4^(first + 1) ..., @n counts, at least one; the last is of all.
 * @deltas has room for @n: how many values more a bucket has than the one before it; the first one: than 0.
 */
void native_histogram_make(const uint64_t *within, uint32_t n, int32_t first,
			   struct native_histogram *ret_native, int64_t *deltas);
