// SPDX-License-Identifier: Apache-2.0
/*
 * A pool of zeroed rows of equal size, referred to by index. The array moves when it grows, so a pointer to a
 * row is valid until the next pool_take(). The first 4 bytes of a free row link the free list: a row must
 * begin with a uint32_t for this purpose, which is unused while the row is in use.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define POOL_NONE UINT32_MAX

struct pool {
	char *rows;
	uint32_t size; /* of a row, in bytes */
	uint32_t n, room, used;
	uint32_t free; /* first free row plus one; 0: none */
};

/* Returns the index of a zeroed row of @size bytes; POOL_NONE: @limit rows are used, or out of memory. */
uint32_t pool_take(struct pool *pool, uint32_t size, uint32_t limit);
void pool_give(struct pool *pool, uint32_t index);
void pool_done(struct pool *pool);

static inline void *pool_at(const struct pool *pool, uint32_t index)
{
	return pool->rows + (size_t)index * pool->size;
}
