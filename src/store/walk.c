// SPDX-License-Identifier: Apache-2.0
#include "store/walk.h"

#include <errno.h>

#include "base/macro.h"

/* The first two columns of the table of the node. */
enum { FIELD_REAL_NS };

static int64_t real_ns_of(const struct block *block)
{
	return block_rows(block, STORE_NODE) == 1 ? (int64_t)block_row(block, STORE_NODE, 0)[FIELD_REAL_NS] :
						    INT64_MIN;
}

/* ---- what there is ---- */

bool store_span(const struct store_reader *reader, uint32_t tier, int64_t *ret_first_ns, int64_t *ret_last_ns)
{
	size_t n;
	const struct stored_block *blocks = store_reader_blocks(reader, &n);
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		if (blocks[i].tier != tier)
			continue;
		*ret_first_ns = any ? MIN(*ret_first_ns, blocks[i].real_first_ns) : blocks[i].real_first_ns;
		*ret_last_ns = any ? MAX(*ret_last_ns, blocks[i].real_last_ns) : blocks[i].real_last_ns;
		any = true;
	}
	return any;
}

bool store_whole_span(const struct store_reader *reader, int64_t *ret_first_ns, int64_t *ret_last_ns)
{
	bool any = false;

	for (uint32_t tier = 0; tier < TIERS; tier++) {
		int64_t first, last;

		if (!store_span(reader, tier, &first, &last))
			continue;
		*ret_first_ns = any ? MIN(*ret_first_ns, first) : first;
		*ret_last_ns = any ? MAX(*ret_last_ns, last) : last;
		any = true;
	}
	return any;
}

uint32_t store_best_tier(const struct store_reader *reader, int64_t since_ns)
{
	int64_t first, last, earliest = INT64_MAX;
	uint32_t best = 0;

	for (uint32_t tier = 0; tier < TIERS; tier++) {
		if (!store_span(reader, tier, &first, &last))
			continue;
		if (first <= since_ns)
			return tier;
		if (first < earliest) {
			earliest = first;
			best = tier;
		}
	}
	return best;
}

/* ---- a moment ---- */

/* The block whose newest frame that is not after @real_ns is the newest; of the finest tier that has one. */
static const struct stored_block *block_at(const struct store_reader *reader, int64_t real_ns)
{
	size_t n;
	const struct stored_block *blocks = store_reader_blocks(reader, &n), *best = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct stored_block *b = &blocks[i];
		int64_t last, best_last;

		if (b->real_first_ns > real_ns)
			continue;
		last = MIN(b->real_last_ns, real_ns);
		best_last = best ? MIN(best->real_last_ns, real_ns) : INT64_MIN;
		/* Of a coarser tier only where a finer one has nothing near. */
		if (!best || last > best_last + store_tiers[b->tier].period_ns ||
		    (b->tier <= best->tier && last >= best_last))
			best = b;
	}
	return best;
}

static int open_at(struct store_reader *reader, const struct stored_block *stored, uint32_t frame,
		   struct block **ret_block)
{
	int r = store_reader_block(reader, stored, ret_block);

	for (uint32_t i = 0; r == 0 && i <= frame; i++)
		if (!block_next(*ret_block))
			r = block_error(*ret_block) < 0 ? block_error(*ret_block) : -EBADMSG;
	return r;
}

int store_moment(struct store_reader *reader, int64_t real_ns, struct snapshot **ret_snapshot)
{
	const struct stored_block *stored = block_at(reader, real_ns);
	struct block *block;
	uint32_t found = 0;
	int r;

	if (!stored)
		return -ENOENT;
	r = store_reader_block(reader, stored, &block);
	if (r < 0)
		return r;
	for (uint32_t i = 0; block_next(block); i++)
		if (real_ns_of(block) <= real_ns)
			found = i;
	if (block_error(block) < 0)
		return block_error(block);
	r = open_at(reader, stored, found, &block);
	return r < 0 ? r : restore_snapshot(block, store_reader_fields(reader), ret_snapshot);
}

/* ---- all of them ---- */

void store_walk_begin(struct store_walk *walk, struct store_reader *reader, uint32_t tier, int64_t since_ns,
		      int64_t until_ns)
{
	*walk = (struct store_walk){
		.reader = reader, .tier = tier, .since_ns = since_ns, .until_ns = until_ns
	};
}

/* 0: there is none. */
static int open_next(struct store_walk *walk)
{
	size_t n;
	const struct stored_block *blocks = store_reader_blocks(walk->reader, &n);

	for (; walk->next < n; walk->next++) {
		const struct stored_block *b = &blocks[walk->next];
		int r;

		if (b->tier != walk->tier || b->real_last_ns < walk->since_ns ||
		    b->real_first_ns > walk->until_ns)
			continue;
		r = store_reader_block(walk->reader, b, &walk->block);
		if (r == -ENOENT) /* who records has dropped it meanwhile */
			continue;
		walk->next++;
		return r < 0 ? r : 1;
	}
	return 0;
}

int store_walk_next(struct store_walk *walk, struct snapshot **ret_snapshot)
{
	for (;;) {
		int64_t real_ns;
		int r;

		if (!walk->block) {
			r = open_next(walk);
			if (r <= 0)
				return r;
		}
		if (!block_next(walk->block)) {
			r = block_error(walk->block);
			if (r < 0)
				return r;
			walk->block = NULL;
			continue;
		}
		real_ns = real_ns_of(walk->block);
		if (real_ns < walk->since_ns || real_ns > walk->until_ns)
			continue;
		r = restore_snapshot(walk->block, store_reader_fields(walk->reader), ret_snapshot);
		return r < 0 ? r : 1;
	}
}
