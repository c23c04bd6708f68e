// SPDX-License-Identifier: Apache-2.0
#include "base/hashmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { HASHMAP_FIRST_SLOTS = 16 };

/* The finaliser of MurmurHash3 (public domain): every key bit reaches every slot bit. */
static uint64_t mix(uint64_t h)
{
	h ^= h >> 33;
	h *= UINT64_C(0xff51afd7ed558ccd);
	h ^= h >> 33;
	h *= UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ h >> 33;
}

/*
 * Where a key goes differs from process to process: keys may be addresses and handles that a program chooses,
 * and mix() can be inverted.
 */
static uint64_t secret;

/* Before constructors without a priority: those that register kernels fill maps, in the simulator. */
__attribute__((constructor(101))) static void take_secret(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM); /* 16 bytes of the kernel's */

	if (random)
		memcpy(&secret, random, sizeof(secret));
}

static uint32_t home(const struct hashmap *map, uint64_t key)
{
	return (uint32_t)mix(key ^ secret) & map->mask;
}

/* FNV-1a, its prime below. */
static uint64_t hash_from(uint64_t h, const void *p, size_t n)
{
	const unsigned char *bytes = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
	return mix(h);
}

uint64_t hash_bytes(const void *p, size_t n)
{
	return hash_from(UINT64_C(0xcbf29ce484222325), p, n); /* the offset basis */
}

uint64_t hash_bytes_secret(const void *p, size_t n)
{
	return hash_from(secret, p, n);
}

/* At most three quarters of the slots are used, so a probe always ends at an unused one. */
static bool has_room(const struct hashmap *map, uint64_t entries)
{
	return map->slots && entries * 4 <= ((uint64_t)map->mask + 1) * 3;
}

/* The slot that holds @key, or the unused one where it would go. Only with slots allocated. */
static uint32_t probe(const struct hashmap *map, uint64_t key)
{
	uint32_t at = home(map, key);

	while (map->slots[at].used && map->slots[at].key != key)
		at = (at + 1) & map->mask;
	return at;
}

static int hashmap_grow(struct hashmap *map, uint32_t entries)
{
	struct hashmap bigger = { .mask = HASHMAP_FIRST_SLOTS - 1, .count = map->count };

	if (entries > HASHMAP_MAX)
		return -E2BIG;
	while ((uint64_t)entries * 4 > ((uint64_t)bigger.mask + 1) * 3)
		bigger.mask = bigger.mask * 2 + 1;
	bigger.slots = calloc((size_t)bigger.mask + 1, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; map->slots && i <= map->mask; i++) {
		if (map->slots[i].used)
			bigger.slots[probe(&bigger, map->slots[i].key)] = map->slots[i];
	}
	free(map->slots);
	*map = bigger;
	return 0;
}

int hashmap_init(struct hashmap *map, uint32_t expected)
{
	*map = (struct hashmap){ 0 };
	return expected > 0 ? hashmap_grow(map, expected) : 0;
}

void hashmap_done(struct hashmap *map)
{
	if (!map)
		return;
	free(map->slots);
	*map = (struct hashmap){ 0 };
}

bool hashmap_get(const struct hashmap *map, uint64_t key, uint32_t *ret_value)
{
	uint32_t at;

	if (map->count == 0)
		return false;
	at = probe(map, key);
	if (!map->slots[at].used)
		return false;
	*ret_value = map->slots[at].value;
	return true;
}

int hashmap_put(struct hashmap *map, uint64_t key, uint32_t value)
{
	uint32_t at, present;
	int r;

	if (!has_room(map, (uint64_t)map->count + 1) && !hashmap_get(map, key, &present)) {
		r = hashmap_grow(map, map->count + 1);
		if (r < 0)
			return r;
	}
	at = probe(map, key);
	map->count += !map->slots[at].used;
	map->slots[at] = (struct hashmap_slot){ .key = key, .value = value, .used = 1 };
	return 0;
}

/*
 * Closes the gap at @hole: each later entry of the run moves into it unless that would put the entry
 * before the slot where its own search begins.
 */
static void close_gap(struct hashmap *map, uint32_t hole)
{
	uint32_t at = hole;

	for (;;) {
		uint32_t begin;

		at = (at + 1) & map->mask;
		if (!map->slots[at].used)
			break;
		begin = home(map, map->slots[at].key);
		if (((at - begin) & map->mask) < ((at - hole) & map->mask))
			continue;
		map->slots[hole] = map->slots[at];
		hole = at;
	}
	map->slots[hole].used = 0;
}

bool hashmap_del(struct hashmap *map, uint64_t key)
{
	uint32_t at;

	if (map->count == 0)
		return false;
	at = probe(map, key);
	if (!map->slots[at].used)
		return false;
	close_gap(map, at);
	map->count--;
	return true;
}

void hashmap_clear(struct hashmap *map)
{
	if (map->slots)
		memset(map->slots, 0, ((size_t)map->mask + 1) * sizeof(*map->slots));
	map->count = 0;
}
