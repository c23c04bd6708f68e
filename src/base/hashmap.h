// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * From a 64-bit key to a 32-bit value (usually an index into the owner's array): open addressing,
 * linear probing, no tombstones. Any key is allowed, 0 too. A zeroed struct is an empty map.
 *
 * Capacity grows as needed, at most to HASHMAP_MAX entries; a map that must not allocate on a hot path
 * is given its greatest number of entries at init. Keys may be chosen by somebody hostile: places in the map
 * depend on a secret of the process.
 */
enum { HASHMAP_MAX = 1 << 26 };

struct hashmap_slot {
	uint64_t key;
	uint32_t value;
	uint32_t used;
};

struct hashmap {
	struct hashmap_slot *slots;
	uint32_t mask; /* slots - 1; the number of slots is a power of two, or none are allocated */
	uint32_t count;
};

/* @expected entries fit without a further allocation; 0 allocates nothing yet. -ENOMEM, -E2BIG. */
int hashmap_init(struct hashmap *map, uint32_t expected);
void hashmap_done(struct hashmap *map);

/* True and *ret_value set when @key is there. */
bool hashmap_get(const struct hashmap *map, uint64_t key, uint32_t *ret_value);

/* Adds or replaces. -ENOMEM or -E2BIG, and then the map is as before. */
int hashmap_put(struct hashmap *map, uint64_t key, uint32_t value);

/* True when @key was there. */
bool hashmap_del(struct hashmap *map, uint64_t key);

/* Removes all entries, but does not free memory. */
void hashmap_clear(struct hashmap *map);

/* 64-bit FNV-1a with a final mix. For tables; not resistant to intentional collisions. */
uint64_t hash_bytes(const void *p, size_t n);
/* Another value in each process, so that nobody can choose bytes that have the hash of others. */
uint64_t hash_bytes_secret(const void *p, size_t n);
