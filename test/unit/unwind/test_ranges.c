// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/private.h"

static uint32_t take(struct ranges *ranges, uint32_t n)
{
	uint32_t first = UINT32_MAX;

	assert_int_equal(ranges_take(ranges, n, &first), 0);
	return first;
}

static void test_gaps(void **state)
{
	struct ranges ranges = { .size = 100 };
	uint32_t first;

	(void)state;
	assert_int_equal(take(&ranges, 40), 0);
	assert_int_equal(take(&ranges, 20), 40);
	assert_int_equal(take(&ranges, 40), 60);
	assert_int_equal(ranges_take(&ranges, 1, &first), -ENOBUFS);
	ranges_give(&ranges, 40);
	assert_int_equal(ranges_take(&ranges, 21, &first), -ENOBUFS);
	assert_int_equal(take(&ranges, 15), 40);
	assert_int_equal(take(&ranges, 5), 55);
	ranges_give(&ranges, 0);
	assert_int_equal(take(&ranges, 40), 0);
	ranges_done(&ranges);
}

static void test_more_than_there_is(void **state)
{
	struct ranges ranges = { .size = 100 };
	uint32_t first;

	(void)state;
	assert_int_equal(ranges_take(&ranges, 101, &first), -ENOBUFS);
	assert_int_equal(ranges_take(&ranges, UINT32_MAX, &first), -ENOBUFS);
	assert_int_equal(take(&ranges, 100), 0);
	ranges_done(&ranges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_more_than_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
