// SPDX-License-Identifier: Apache-2.0
#include "activity/pool.h"

#include <stdbool.h>

#include "base/macro.h"

static bool pool_grow(struct pool *pool, uint32_t limit)
{
	uint32_t room =
		pool->room ? (uint32_t)MIN((uint64_t)limit, (uint64_t)pool->room * 2) : MIN(limit, 4u);
	char *rows;

	if (room <= pool->room)
		return false;
	rows = realloc(pool->rows, (size_t)room * pool->size);
	if (!rows)
		return false;
	pool->rows = rows;
	pool->room = room;
	return true;
}

uint32_t pool_take(struct pool *pool, uint32_t size, uint32_t limit)
{
	uint32_t index;

	pool->size = size;
	if (pool->used >= limit)
		return POOL_NONE;
	if (pool->free) {
		index = pool->free - 1;
		memcpy(&pool->free, pool_at(pool, index), sizeof(pool->free));
	} else {
		if (pool->n == pool->room && !pool_grow(pool, limit))
			return POOL_NONE;
		index = pool->n++;
	}
	pool->used++;
	memset(pool_at(pool, index), 0, size);
	return index;
}

void pool_give(struct pool *pool, uint32_t index)
{
	memset(pool_at(pool, index), 0, pool->size);
	memcpy(pool_at(pool, index), &pool->free, sizeof(pool->free));
	pool->free = index + 1;
	pool->used--;
}

void pool_done(struct pool *pool)
{
	free(pool->rows);
	*pool = (struct pool){ 0 };
}
