// SPDX-License-Identifier: Apache-2.0
/*
 * The union of spans in bounded memory: how much time is covered by any of them. Spans arrive nearly in the
 * order of their ends, so adding one usually affects only the last blocks. When the capacity is exceeded,
 * neighbours are merged: a block then stores how much of it is covered, and later overlaps can only be
 * bounded from above. The sum is exact as long as nothing was merged this way, and never too low.
 *
 * A consumer that needs individual spans is a span sink (activity/span.h).
 */
#pragma once

#include <stdint.h>

enum { SPAN_BLOCKS = 32 };

/* A period; `covered` of it counts, which is all of it unless blocks were merged to save space. */
struct span_block {
	uint64_t start, end, covered; /* ns */
	double core_ns; /* cores times time */
	double likely_ns; /* estimate before calibration */
};

/* Sorted, disjoint. */
struct span_union {
	uint32_t n;
	struct span_block blocks[SPAN_BLOCKS];
};

void span_add(struct span_union *u, struct span_block block);
/* Moves the part before @end to @ret_before; the rest stays in @u. */
void span_take(struct span_union *u, uint64_t end, struct span_union *ret_before);
uint64_t span_covered(const struct span_union *u);
