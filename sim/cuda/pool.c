// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/pool.h"

#include <string.h>
#include <sys/mman.h>

static struct slot *slot_at(const struct pool *pool, uint32_t index)
{
	return (struct slot *)(pool->base + index * pool->size);
}

void *pool_new(struct pool *pool)
{
	struct slot *slot;
	char *base;

	if (!pool->base) {
		base = mmap(NULL, pool->size * pool->capacity, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (base == MAP_FAILED)
			return NULL;
		__atomic_store_n(&pool->base, base, __ATOMIC_RELEASE);
	}
	if (pool->first_free > 0) {
		slot = slot_at(pool, pool->first_free - 1);
		pool->first_free = slot->next;
	} else if (pool->used < pool->capacity) {
		slot = slot_at(pool, pool->used++);
	} else {
		return NULL;
	}
	memset(slot, 0, pool->size);
	__atomic_store_n(&slot->live, 1, __ATOMIC_RELEASE);
	return slot;
}

void pool_free(struct pool *pool, void *object)
{
	struct slot *slot = object;

	__atomic_store_n(&slot->live, 0, __ATOMIC_RELEASE);
	slot->next = pool->first_free;
	pool->first_free = (uint32_t)((size_t)((char *)object - pool->base) / pool->size) + 1;
}

bool pool_has(const struct pool *pool, const void *object)
{
	const char *base = __atomic_load_n(&pool->base, __ATOMIC_ACQUIRE);
	uintptr_t offset = (uintptr_t)object - (uintptr_t)base;

	if (!base || offset >= pool->size * pool->capacity || offset % pool->size != 0)
		return false;
	return __atomic_load_n(&((const struct slot *)object)->live, __ATOMIC_ACQUIRE) != 0;
}

void *pool_next(const struct pool *pool, void *object)
{
	size_t at = object ? (size_t)((char *)object - pool->base) / pool->size + 1 : 0;

	for (; at < pool->used; at++) {
		if (slot_at(pool, (uint32_t)at)->live)
			return slot_at(pool, (uint32_t)at);
	}
	return NULL;
}
