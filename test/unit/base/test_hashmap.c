// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/macro.h"

static void empty_map_answers(_unused_ void **state)
{
	struct hashmap map = { 0 };
	uint32_t value = 77;

	assert_false(hashmap_get(&map, 0, &value));
	assert_false(hashmap_del(&map, 0));
	assert_int_equal(value, 77);
	hashmap_clear(&map);
	hashmap_done(&map);
	hashmap_done(NULL);
}

static void any_key_is_a_key(_unused_ void **state)
{
	static const uint64_t keys[] = { 0, 1, UINT64_MAX, UINT64_C(1) << 63, UINT32_MAX };
	_cleanup_(hashmap_done) struct hashmap map = { 0 };
	uint32_t value;

	for (uint32_t i = 0; i < ARRAY_SIZE(keys); i++)
		assert_int_equal(hashmap_put(&map, keys[i], i + 10), 0);
	assert_int_equal(hashmap_put(&map, 0, 99), 0);
	assert_int_equal(map.count, ARRAY_SIZE(keys));
	assert_true(hashmap_get(&map, 0, &value));
	assert_int_equal(value, 99);
	for (uint32_t i = 1; i < ARRAY_SIZE(keys); i++) {
		assert_true(hashmap_get(&map, keys[i], &value));
		assert_int_equal(value, i + 10);
	}
	assert_false(hashmap_get(&map, 2, &value));
}

static void expected_entries_need_no_allocation(_unused_ void **state)
{
	_cleanup_(hashmap_done) struct hashmap map;
	const struct hashmap_slot *slots;

	assert_int_equal(hashmap_init(&map, 1000), 0);
	slots = map.slots;
	for (uint64_t key = 0; key < 1000; key++)
		assert_int_equal(hashmap_put(&map, key, (uint32_t)key), 0);
	assert_ptr_equal(map.slots, slots);
	hashmap_clear(&map);
	assert_int_equal(map.count, 0);
	assert_ptr_equal(map.slots, slots);
}

static void refuses_more_than_its_maximum(_unused_ void **state)
{
	_cleanup_(hashmap_done) struct hashmap map = { 0 };

	assert_int_equal(hashmap_init(&map, HASHMAP_MAX + 1), -E2BIG);
	assert_null(map.slots);
}

/* A random history of puts and deletions, held against an array that is obviously right. */
static void agrees_with_a_plain_array(_unused_ void **state)
{
	enum { KEYS = 500, STEPS = 200000 };
	_cleanup_(hashmap_done) struct hashmap map = { 0 };
	static uint32_t model[KEYS]; /* 0 is absent */
	uint64_t random = 0x9e3779b97f4a7c15;
	uint32_t count = 0, value;

	for (uint32_t step = 1; step <= STEPS; step++) {
		uint32_t key;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		key = (uint32_t)(random >> 33) % KEYS;
		if (random & 1) {
			assert_int_equal(hashmap_put(&map, key, step), 0);
			count += model[key] == 0;
			model[key] = step;
		} else {
			assert_int_equal(hashmap_del(&map, key), model[key] != 0);
			count -= model[key] != 0;
			model[key] = 0;
		}
		assert_int_equal(map.count, count);
	}
	for (uint32_t key = 0; key < KEYS; key++) {
		assert_int_equal(hashmap_get(&map, key, &value), model[key] != 0);
		if (model[key] != 0)
			assert_int_equal(value, model[key]);
	}
}

static void hashes_differ_by_every_byte(_unused_ void **state)
{
	assert_true(hash_bytes("abc", 3) == hash_bytes("abc", 3));
	assert_true(hash_bytes("abc", 3) != hash_bytes("abd", 3));
	assert_true(hash_bytes("abc", 3) != hash_bytes("abc", 4));
	assert_true(hash_bytes("", 0) != hash_bytes("", 1));
	assert_true(hash_bytes_secret("abc", 3) == hash_bytes_secret("abc", 3));
	assert_true(hash_bytes_secret("abc", 3) != hash_bytes_secret("abd", 3));
	assert_true(hash_bytes_secret("abc", 3) != hash_bytes("abc", 3));
}

/* The inverse of an h ^= h >> 33, and of a multiplication: what a program would do to choose its handles. */
static uint64_t unmix(uint64_t h)
{
	h ^= h >> 33;
	h *= UINT64_C(0x9cb4b2f8129337db);
	h ^= h >> 33;
	h *= UINT64_C(0x4f74430c22a54005);
	return h ^ h >> 33;
}

/* Keys that all belong into one slot, were it not for the secret: each look-up would pass all of them. */
static void keys_cannot_be_chosen_to_collide(_unused_ void **state)
{
	enum { KEYS = 4096 };
	struct hashmap map = { 0 };
	uint32_t run = 0, longest = 0, value;

	for (uint32_t i = 0; i < KEYS; i++)
		assert_int_equal(hashmap_put(&map, unmix((uint64_t)i << 32), i), 0);
	for (uint32_t i = 0; i <= map.mask; i++) {
		run = map.slots[i].used ? run + 1 : 0;
		longest = MAX(longest, run);
	}
	assert_true(longest < KEYS / 4);
	for (uint32_t i = 0; i < KEYS; i++) {
		assert_true(hashmap_get(&map, unmix((uint64_t)i << 32), &value));
		assert_int_equal(value, i);
	}
	hashmap_done(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_map_answers),
		cmocka_unit_test(any_key_is_a_key),
		cmocka_unit_test(expected_entries_need_no_allocation),
		cmocka_unit_test(refuses_more_than_its_maximum),
		cmocka_unit_test(agrees_with_a_plain_array),
		cmocka_unit_test(hashes_differ_by_every_byte),
		cmocka_unit_test(keys_cannot_be_chosen_to_collide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
