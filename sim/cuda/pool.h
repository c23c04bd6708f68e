// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Objects behind handles. They lie in one array, so that any pointer a program passes can be told from a
 * handle without following it; a handle that was given back is the next to be handed out again, as with
 * the real driver. What a slot holds begins with struct slot. Callers hold the simulation's lock but for
 * pool_has().
 */
struct slot {
	uint32_t live; /* 0: free */
	uint32_t next; /* free one behind this, plus one; 0: none */
};

struct pool {
	size_t size; /* of an object */
	uint32_t capacity, used; /* slots before `used` have been handed out once */
	uint32_t first_free; /* plus one */
	char *base;
};

/* A zeroed object, or NULL where there are too many. */
void *pool_new(struct pool *pool);
void pool_free(struct pool *pool, void *object);
bool pool_has(const struct pool *pool, const void *object);

/* The next live object behind this one (NULL: the first); NULL at the end. */
void *pool_next(const struct pool *pool, void *object);
