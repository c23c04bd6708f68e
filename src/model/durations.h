// SPDX-License-Identifier: Apache-2.0
/*
 * Bounds of histograms of durations: powers of 4 of a second, from 2^-20 s (0.95 us) on. These are the bounds
 * of Prometheus' native histograms of schema -1, so that each bucket is one of theirs. Counts are cumulative:
 * how many durations are up to a bound.
 */
#pragma once

enum {
	TRACED_LE = 29, /* no duration is longer than the last bound */
	TRACED_LE_SHOWN = 13, /* the first of them, which pages have as buckets: up to 16 s */
	TRACED_LE_FIRST = -10, /* the first is 4 to this power */
};

extern const double traced_le[TRACED_LE]; /* seconds */
