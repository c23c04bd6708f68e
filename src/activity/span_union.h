// SPDX-License-Identifier: Apache-2.0
/*
 * The union of spans in bounded memory, for figures: how much time is covered, whatever overlaps. Spans come
 * nearly in the order of their ends, so that adding one looks at the last blocks only. When the room is used
 * up, neighbours are merged: the block then says how much of it is covered, and what overlaps it later can
 * only be bounded from above. The sum is exact while nothing was merged for room, and never too low.
 *
 * A consumer that needs each span by itself is a span sink (activity/span.h).
 */
#pragma once

#include <stdint.h>

enum { SPAN_BLOCKS = 32 };

/* A piece of time, of which `covered` counts: all of it, unless pieces were merged to save room. */
struct span_block {
	uint64_t start, end, covered; /* ns */
	double core_ns; /* cores times time */
	double likely_ns; /* the guess before calibration */
};

/* Sorted, disjoint. */
struct span_union {
	uint32_t n;
	struct span_block blocks[SPAN_BLOCKS];
};

void span_add(struct span_union *u, struct span_block block);
/* Moves what lies before @end into @ret_before; what comes later stays. */
void span_take(struct span_union *u, uint64_t end, struct span_union *ret_before);
uint64_t span_covered(const struct span_union *u);
