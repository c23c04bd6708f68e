// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The objects that handles point to. They are in one array, so that a handle can be validated without
 * dereferencing it. A released handle is the next one to be reused, as in the real driver. An object begins
 * with struct slot. Callers hold the simulation's lock, except for pool_has().
 */
struct slot {
	uint32_t live; /* 0: free */
	uint32_t next; /* index of the next free slot plus one; 0: none */
};

struct pool {
	size_t size; /* of an object */
	uint32_t capacity, used; /* slots before `used` have been handed out once */
	uint32_t first_free; /* plus one */
	char *base;
};

/* A zeroed object; NULL: the pool is full. */
void *pool_new(struct pool *pool);
void pool_free(struct pool *pool, void *object);
bool pool_has(const struct pool *pool, const void *object);

/* The next live object behind this one (NULL: the first); NULL at the end. */
void *pool_next(const struct pool *pool, void *object);
