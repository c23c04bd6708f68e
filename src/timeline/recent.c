// SPDX-License-Identifier: Apache-2.0
#include "timeline/recent.h"

#include <errno.h>
#include <stdlib.h>

struct timeline_recent {
	int64_t span_ns;
	size_t max, bytes;
	struct timeline_block **blocks; /* a ring of @cap, a power of two */
	uint32_t first, n, cap;
	uint64_t lost;
};

struct timeline_block *timeline_recent_at(const struct timeline_recent *r, uint32_t index)
{
	return index < r->n ? r->blocks[(r->first + index) & (r->cap - 1)] : NULL;
}

static void drop_oldest(struct timeline_recent *r)
{
	struct timeline_block *oldest = timeline_recent_at(r, 0);

	r->bytes -= oldest->n;
	r->first = (r->first + 1) & (r->cap - 1);
	r->n--;
	timeline_block_unref(oldest);
}

static int recent_grow(struct timeline_recent *r)
{
	uint32_t cap = r->cap ? 2 * r->cap : 64;
	struct timeline_block **blocks;

	if (r->n < r->cap)
		return 0;
	if (cap > TIMELINE_RECENT_BLOCKS)
		return -ENOBUFS;
	blocks = calloc(cap, sizeof(struct timeline_block *));
	if (!blocks)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->n; i++)
		blocks[i] = timeline_recent_at(r, i);
	free(r->blocks);
	r->blocks = blocks;
	r->first = 0;
	r->cap = cap;
	return 0;
}

int timeline_recent_add(struct timeline_recent *r, struct timeline_block *block)
{
	int made;

	while (r->n > 0 && timeline_recent_at(r, 0)->end_ns < block->end_ns - r->span_ns)
		drop_oldest(r);
	while (r->n > 0 && (r->bytes + block->n > r->max || r->n == TIMELINE_RECENT_BLOCKS)) {
		r->lost += timeline_recent_at(r, 0)->events;
		drop_oldest(r);
	}
	made = block->n > r->max ? -ENOBUFS : recent_grow(r);
	if (made < 0) {
		r->lost += block->events;
		return made;
	}
	r->blocks[(r->first + r->n++) & (r->cap - 1)] = timeline_block_ref(block);
	r->bytes += block->n;
	return 0;
}

uint64_t timeline_recent_lost(const struct timeline_recent *r)
{
	return r->lost;
}

size_t timeline_recent_bytes(const struct timeline_recent *r)
{
	return r->bytes;
}

int timeline_recent_new(int64_t span_ns, size_t bytes, struct timeline_recent **ret_recent)
{
	struct timeline_recent *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->span_ns = span_ns;
	r->max = bytes;
	*ret_recent = r;
	return 0;
}

void timeline_recent_free(struct timeline_recent *r)
{
	if (!r)
		return;
	while (r->n > 0)
		drop_oldest(r);
	free(r->blocks);
	free(r);
}
