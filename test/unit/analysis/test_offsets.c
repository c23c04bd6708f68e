// SPDX-License-Identifier: Apache-2.0
/* Clocks of nodes, by collectives that they have in common. */
#include "test.h"

#include "analysis/offsets.h"
#include "base/clock.h"

#define MS ((int64_t)NSEC_PER_MSEC)

enum { COMMUNICATOR = 77, TIMES = 101 };

/* Node 1's clock is 5 s behind; one in ten of its arrivals is a second late. */
static void the_median_is_the_offset(_unused_ void **state)
{
	struct offsets *offsets = offsets_new(2);
	struct node_offset found[2];

	assert_non_null(offsets);
	for (int64_t i = 0; i < TIMES; i++) {
		int64_t at = 100000 * MS + i * 10 * MS;

		offsets_add(offsets, 0, COMMUNICATOR, (uint64_t)i, (uint64_t)(at + i % 3 * MS));
		offsets_add(offsets, 0, COMMUNICATOR, (uint64_t)i,
			    (uint64_t)(at + 9 * MS)); /* another rank */
		offsets_add(offsets, 1, COMMUNICATOR, (uint64_t)i,
			    (uint64_t)(at - 5000 * MS + MS + (i % 10 == 0) * 1000 * MS));
	}
	assert_int_equal(offsets_solve(offsets, found), 0);
	assert_int_equal(found[0].offset_ns, 0);
	assert_int_equal(found[1].common, TIMES);
	assert_in_range(found[1].offset_ns, 4999 * MS, 5001 * MS);
	offsets_free(offsets);
}

/* Node 2 has something in common with node 1 alone, node 3 with nobody. */
static void by_way_of_others(_unused_ void **state)
{
	struct offsets *offsets = offsets_new(4);
	struct node_offset found[4];

	assert_non_null(offsets);
	for (uint64_t i = 0; i < TIMES; i++) {
		uint64_t at = 1000000000000 + i * 1000000;

		offsets_add(offsets, 0, 1, i, at);
		offsets_add(offsets, 1, 1, i, at + 300);
		offsets_add(offsets, 1, 2, i, at + 300);
		offsets_add(offsets, 2, 2, i, at - 4000);
		offsets_add(offsets, 3, 3, i, at);
	}
	assert_int_equal(offsets_solve(offsets, found), 0);
	assert_int_equal(found[1].offset_ns, -300);
	assert_int_equal(found[2].offset_ns, 4000);
	assert_int_equal(found[3].offset_ns, 0);
	assert_int_equal(found[3].common, 0);
	offsets_free(offsets);
}

/* Two collectives are no median. */
static void too_few_tell_nothing(_unused_ void **state)
{
	struct offsets *offsets = offsets_new(2);
	struct node_offset found[2];

	assert_non_null(offsets);
	for (uint64_t i = 0; i < OFFSET_COMMON_MIN - 1; i++) {
		offsets_add(offsets, 0, 1, i, 1000);
		offsets_add(offsets, 1, 1, i, 2000);
	}
	assert_int_equal(offsets_solve(offsets, found), 0);
	assert_int_equal(found[1].common, 0);
	assert_int_equal(found[1].offset_ns, 0);
	offsets_free(offsets);
	offsets = offsets_new(1);
	assert_int_equal(offsets_solve(offsets, found), 0);
	offsets_free(offsets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_median_is_the_offset),
		cmocka_unit_test(by_way_of_others),
		cmocka_unit_test(too_few_tell_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
