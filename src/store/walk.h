// SPDX-License-Identifier: Apache-2.0
/* The frames of a store, one after the other, and the one of a moment. Times are of the wall clock. */
#pragma once

#include "store/reader.h"
#include "store/restore.h"

/* What the store has of a tier; false: nothing. */
bool store_span(const struct store_reader *reader, uint32_t tier, int64_t *ret_first_ns,
		int64_t *ret_last_ns);
/* Of all tiers. */
bool store_whole_span(const struct store_reader *reader, int64_t *ret_first_ns, int64_t *ret_last_ns);
/* The finest tier that reaches back to @since_ns; else the one that reaches back furthest. */
uint32_t store_best_tier(const struct store_reader *reader, int64_t since_ns);

/*
 * The newest snapshot that is not after @real_ns; of a clock that was set back, the one recorded last.
 * -ENOENT: there is none; -errno, with store_reader_error().
 */
int store_moment(struct store_reader *reader, int64_t real_ns, struct snapshot **ret_snapshot);

struct store_walk {
	struct store_reader *reader;
	uint32_t tier;
	int64_t since_ns, until_ns;
	size_t next; /* index of a block */
	struct block *block; /* borrowed; NULL: the next one must be opened */
};

void store_walk_begin(struct store_walk *walk, struct store_reader *reader, uint32_t tier, int64_t since_ns,
		      int64_t until_ns);
/* 1: *ret_snapshot is the caller's (restored_free()); 0: there is none after it; -errno. */
int store_walk_next(struct store_walk *walk, struct snapshot **ret_snapshot);
