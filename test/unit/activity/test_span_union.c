// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>

#include "activity/span_union.h"
#include "base/macro.h"
#include "test.h"

enum { TIME = 400, MANY = 60 };

static struct span_block block(uint64_t start, uint64_t end)
{
	return (struct span_block){ start, end, end - start, (double)(end - start), (double)(end - start) };
}

static uint64_t brute(const bool *covered, uint64_t from, uint64_t to)
{
	uint64_t n = 0;

	for (uint64_t i = from; i < to; i++)
		n += covered[i];
	return n;
}

static void check_sorted(const struct span_union *u)
{
	for (uint32_t i = 0; i < u->n; i++) {
		assert_true(u->blocks[i].start < u->blocks[i].end);
		assert_true(u->blocks[i].covered <= u->blocks[i].end - u->blocks[i].start);
		assert_true(i == 0 || u->blocks[i - 1].end < u->blocks[i].start);
	}
}

/*
 * Any order, any overlap: exact while there is room, never too low beyond, never more than the time there is.
 */
static void random_intervals(void **state)
{
	(void)state;
	srandom(1);
	for (int round = 0; round < 5000; round++) {
		int n = 1 + (int)(random() % MANY);
		struct span_union u = { 0 }, before;
		bool covered[TIME] = { 0 };
		uint64_t cut = (uint64_t)random() % TIME, exact;
		bool compacted = false;

		for (int i = 0; i < n; i++) {
			uint64_t start = (uint64_t)random() % TIME, end = start + (uint64_t)random() % 8;

			end = MIN(end, (uint64_t)TIME);
			for (uint64_t at = start; at < end; at++)
				covered[at] = true;
			compacted |= u.n == SPAN_BLOCKS;
			span_add(&u, block(start, end));
			check_sorted(&u);
		}
		exact = brute(covered, 0, TIME);
		assert_true(span_covered(&u) >= exact);
		assert_true(span_covered(&u) <= TIME);
		if (!compacted)
			assert_int_equal(span_covered(&u), exact);
		span_take(&u, cut, &before);
		check_sorted(&u);
		check_sorted(&before);
		assert_true(before.n == 0 || before.blocks[before.n - 1].end <= cut);
		assert_true(u.n == 0 || u.blocks[0].start >= cut);
		if (!compacted) {
			assert_int_equal(span_covered(&before), brute(covered, 0, cut));
			assert_int_equal(span_covered(&u), brute(covered, cut, TIME));
		} else {
			assert_true(span_covered(&before) >= brute(covered, 0, cut));
			assert_true(span_covered(&u) >= brute(covered, cut, TIME));
		}
	}
}

/* Ten thousand short waits in one window: pieces are put together, the gaps between them are not counted. */
static void many_short_ones(void **state)
{
	struct span_union u = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		span_add(&u, block(i * 100, i * 100 + 30));
	assert_int_equal(span_covered(&u), 300000);
	assert_true(u.n <= SPAN_BLOCKS);
}

/* One long span over all of them, as of a stream that nobody waited for. */
static void one_over_all(void **state)
{
	struct span_union u = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		span_add(&u, block(i * 100, i * 100 + 30));
	span_add(&u, block(5, 200000));
	assert_int_equal(u.n, 1);
	assert_int_equal(span_covered(&u), 200000);
}

static void weights_are_kept(void **state)
{
	struct span_union u = { 0 }, before;

	(void)state;
	span_add(&u, (struct span_block){ 0, 100, 100, 400, 100 });
	span_add(&u, (struct span_block){ 50, 150, 100, 100, 0 });
	assert_int_equal(u.n, 1);
	assert_float_equal(u.blocks[0].core_ns, 500, 1e-9);
	span_take(&u, 75, &before);
	assert_float_equal(before.blocks[0].core_ns, 250, 1e-9);
	assert_float_equal(u.blocks[0].core_ns, 250, 1e-9);
	span_add(&u, block(9, 9));
	span_add(&u, block(9, 8));
	assert_int_equal(u.n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_intervals),
		cmocka_unit_test(many_short_ones),
		cmocka_unit_test(one_over_all),
		cmocka_unit_test(weights_are_kept),
	};

	return cmocka_run_group_tests_name("span_union", tests, NULL, NULL);
}
