// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/macro.h"
#include "samples/native.h"

static struct native_histogram native;
static int64_t deltas[8];

static void make(const uint64_t *within, uint32_t n, int32_t first)
{
	native_histogram_make(within, n, first, &native, deltas);
}

static void buckets_from_the_first_to_the_last_that_has_values(_unused_ void **state)
{
	/* up to 1/16: 2, to 1/4: 0, to 1: 3, to 4: 0, to 16: 1, to 64: 0 */
	static const uint64_t within[] = { 2, 2, 5, 5, 6, 6 };

	make(within, ARRAY_SIZE(within), -2);
	assert_true(native.zero_threshold == 0.0625);
	assert_int_equal(native.count, 6);
	assert_int_equal(native.zero_count, 2);
	assert_int_equal(native.offset, 0);
	assert_int_equal(native.length, 3);
	assert_true(deltas[0] == 3 && deltas[1] == -3 && deltas[2] == 1);
}

static void values_in_the_bucket_of_zero_alone(_unused_ void **state)
{
	static const uint64_t within[] = { 7, 7, 7 }, none[] = { 0, 0 }, one[] = { 3 };

	make(within, ARRAY_SIZE(within), -10);
	assert_true(native.length == 0 && native.zero_count == 7 && native.count == 7);
	make(none, ARRAY_SIZE(none), -10);
	assert_true(native.length == 0 && native.zero_count == 0 && native.count == 0);
	make(one, ARRAY_SIZE(one), 0);
	assert_true(native.length == 0 && native.zero_count == 3 && native.zero_threshold == 1);
}

static void values_in_the_last_bucket(_unused_ void **state)
{
	static const uint64_t within[] = { 0, 0, 9 };

	make(within, ARRAY_SIZE(within), 16);
	assert_true(native.length == 1 && native.offset == 18 && deltas[0] == 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_from_the_first_to_the_last_that_has_values),
		cmocka_unit_test(values_in_the_bucket_of_zero_alone),
		cmocka_unit_test(values_in_the_last_bucket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
