// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hashmap.h"
#include "symbolize/names.h"

enum { MANY = 20000 };

/* Much alike, as mangled names are. */
static size_t make(unsigned i, char *buf, size_t size)
{
	int n = snprintf(buf, size,
			 "_ZN2at6native29vectorized_elementwise_kernelILi%uENS0_13BinaryFunctorIfffNS0_"
			 "15binary_internal"
			 "10MulFunctorIfEEEESt5arrayIPcLm3EEEEviT0_T1_%0*u",
			 i % 8, (int)(i % 300), i);

	return (size_t)n;
}

static void texts_come_back(_unused_ void **state)
{
	_cleanup_(names_freep) struct names *names = NULL;
	static uint32_t refs[MANY];
	uint64_t all = 0;
	char text[1024];

	assert_int_equal(names_new(&names), 0);
	for (unsigned i = 0; i < MANY; i++) {
		size_t n = make(i, text, sizeof(text));

		all += n;
		assert_int_equal(names_add(names, text, n, &refs[i]), 0);
	}
	assert_int_equal(names_seal(names), 0);
	for (unsigned i = 0; i < MANY; i += 7) {
		char *got;

		make(i, text, sizeof(text));
		assert_int_equal(names_get(names, refs[i], &got), 0);
		assert_string_equal(got, text);
		free(got);
	}
	printf("# %llu bytes of names in %llu\n", (unsigned long long)all,
	       (unsigned long long)names_bytes(names));
	assert_true(names_bytes(names) < all / 10);
}

static void texts_of_every_length(_unused_ void **state)
{
	static const size_t lengths[] = { 0, SYMBOL_MAX, 1, SYMBOL_MAX - 1, 5, 40000, 40000, 1 };
	_cleanup_(names_freep) struct names *names = NULL;
	_cleanup_free_ char *text = malloc(SYMBOL_MAX + 2);
	uint32_t refs[ARRAY_SIZE(lengths)], ref;

	assert_int_equal(names_new(&names), 0);
	memset(text, 'x', SYMBOL_MAX + 1);
	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++)
		assert_int_equal(names_add(names, text, lengths[i], &refs[i]), 0);
	assert_int_equal(names_add(names, text, SYMBOL_MAX + 1, &ref), -E2BIG);
	assert_int_equal(names_seal(names), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		char *got;

		assert_int_equal(names_get(names, refs[i], &got), 0);
		assert_int_equal(strlen(got), lengths[i]);
		free(got);
	}
}

/* Names that no compiler makes: they do not pack. */
static void texts_that_do_not_pack(_unused_ void **state)
{
	enum { MOST = 40 << 20 };
	_cleanup_(names_freep) struct names *names = NULL;
	_cleanup_free_ char *text = malloc(SYMBOL_MAX);
	uint64_t random = 1;
	uint32_t ref;
	int r = 0;

	assert_int_equal(names_new(&names), 0);
	for (size_t all = 0; r == 0 && all < 2 * (size_t)MOST; all += SYMBOL_MAX) {
		for (size_t i = 0; i < SYMBOL_MAX; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			text[i] = (char)('0' + (random >> 58));
		}
		r = names_add(names, text, SYMBOL_MAX, &ref);
	}
	assert_int_equal(r, -E2BIG);
	assert_true(names_bytes(names) < MOST);
	assert_int_equal(names_seal(names), 0);
}

static void a_reference_that_is_none(_unused_ void **state)
{
	_cleanup_(names_freep) struct names *names = NULL;
	uint32_t ref;
	char *got;

	assert_int_equal(names_new(&names), 0);
	assert_int_equal(names_seal(names), 0);
	assert_int_equal(names_get(names, 0, &got), -EBADMSG);
	names_free(TAKE_PTR(names));
	assert_int_equal(names_new(&names), 0);
	assert_int_equal(names_add(names, "abc", 3, &ref), 0);
	assert_int_equal(names_seal(names), 0);
	assert_int_equal(names_get(names, ref + 4, &got), -EBADMSG);
	assert_int_equal(names_get(names, UINT32_MAX, &got), -EBADMSG);
}

/* Both halves of a key tell symbols apart, also those that differ in one place only. */
static void keys_differ(_unused_ void **state)
{
	_cleanup_(hashmap_done) struct hashmap hashes = { 0 }, checks = { 0 };
	unsigned same_checks = 0;
	char text[1024];
	uint32_t other;

	for (unsigned i = 0; i < MANY; i++) {
		struct symbol_key key = symbol_key(text, make(i, text, sizeof(text)));

		assert_false(hashmap_get(&hashes, key.hash, &other));
		assert_int_equal(hashmap_put(&hashes, key.hash, i), 0);
		same_checks += hashmap_get(&checks, key.check, &other);
		assert_int_equal(hashmap_put(&checks, key.check, i), 0);
	}
	/* 20,000 squared, over two times 2^32: 0.05 are to be expected. */
	assert_true(same_checks <= 2);
	memset(text, 0, sizeof(text));
	for (size_t n = 0; n < 64; n++)
		for (size_t m = 0; m < n; m++)
			assert_int_not_equal(symbol_key(text, n).hash, symbol_key(text, m).hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_come_back),
		cmocka_unit_test(texts_of_every_length),
		cmocka_unit_test(texts_that_do_not_pack),
		cmocka_unit_test(a_reference_that_is_none),
		cmocka_unit_test(keys_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
