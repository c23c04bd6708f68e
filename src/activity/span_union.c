// SPDX-License-Identifier: Apache-2.0
#include "activity/span_union.h"

#include <stdbool.h>
#include <string.h>

#include "base/macro.h"

static bool block_is_whole(const struct span_block *b)
{
	return b->covered == b->end - b->start;
}

/* How much of @a lies outside @b. */
static uint64_t covered_outside(const struct span_block *a, const struct span_block *b)
{
	uint64_t n = 0;

	if (a->start < b->start)
		n += MIN(a->end, b->start) - a->start;
	if (a->end > b->end)
		n += a->end - MAX(a->start, b->end);
	return n;
}

static struct span_block blocks_merge(const struct span_block *a, const struct span_block *b)
{
	struct span_block m = { .start = MIN(a->start, b->start), .end = MAX(a->end, b->end) };

	if (block_is_whole(b))
		m.covered = b->covered + MIN(a->covered, covered_outside(a, b));
	else if (block_is_whole(a))
		m.covered = a->covered + MIN(b->covered, covered_outside(b, a));
	else
		m.covered = a->covered + b->covered;
	m.covered = MIN(m.covered, m.end - m.start);
	m.core_ns = a->core_ns + b->core_ns;
	m.likely_ns = MIN(a->likely_ns + b->likely_ns, (double)m.covered);
	return m;
}

/* Halves the number of blocks; each new one is two neighbours and the uncovered gap between them. */
static void union_compact(struct span_union *u)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < u->n; i += 2, n++) {
		u->blocks[n] = u->blocks[i];
		if (i + 1 < u->n)
			u->blocks[n] = blocks_merge(&u->blocks[i], &u->blocks[i + 1]);
	}
	u->n = n;
}

void span_add(struct span_union *u, struct span_block block)
{
	uint32_t first = u->n, last;

	if (block.end <= block.start)
		return;
	while (first > 0 && u->blocks[first - 1].end >= block.start)
		first--;
	for (last = first; last < u->n && u->blocks[last].start <= block.end; last++)
		block = blocks_merge(&u->blocks[last], &block);
	if (first == last && u->n == SPAN_BLOCKS) {
		union_compact(u);
		span_add(u, block);
		return;
	}
	memmove(&u->blocks[first + 1], &u->blocks[last], (u->n - last) * sizeof(block));
	u->blocks[first] = block;
	u->n += 1 + first - last;
}

/* Splits a block at the end of the window, so that neither part is too low. */
static struct span_block block_cut(struct span_block *b, uint64_t at)
{
	double share = (double)(at - b->start) / (double)(b->end - b->start);
	struct span_block before = {
		.start = b->start,
		.end = at,
		.covered = MIN(b->covered, at - b->start),
		.core_ns = b->core_ns * share,
		.likely_ns = b->likely_ns * share,
	};

	b->core_ns -= before.core_ns;
	b->likely_ns -= before.likely_ns;
	b->start = at;
	b->covered = MIN(b->covered, b->end - at);
	return before;
}

void span_take(struct span_union *u, uint64_t end, struct span_union *ret_before)
{
	uint32_t n = 0;

	ret_before->n = 0;
	while (n < u->n && u->blocks[n].end <= end)
		n++;
	memcpy(ret_before->blocks, u->blocks, n * sizeof(u->blocks[0]));
	ret_before->n = n;
	if (n < u->n && u->blocks[n].start < end)
		ret_before->blocks[ret_before->n++] = block_cut(&u->blocks[n], end);
	u->n -= n;
	memmove(u->blocks, u->blocks + n, u->n * sizeof(u->blocks[0]));
}

uint64_t span_covered(const struct span_union *u)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < u->n; i++)
		sum += u->blocks[i].covered;
	return sum;
}
