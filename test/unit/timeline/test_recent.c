// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>

#include "timeline/recent.h"

static struct timeline_recent *recent;

static int close_it(void **state)
{
	(void)state;
	timeline_recent_free(recent);
	return 0;
}

static int add(int64_t end_ns, size_t n)
{
	static const char data[1000];
	struct timeline_block *block = timeline_block_new(data, n);
	int r;

	assert_non_null(block);
	block->events = 10;
	block->end_ns = end_ns;
	r = timeline_recent_add(recent, block);
	timeline_block_unref(block);
	return r;
}

static uint32_t count(void)
{
	uint32_t n = 0;

	while (timeline_recent_at(recent, n))
		n++;
	return n;
}

static void what_is_too_old_goes(void **state)
{
	(void)state;
	assert_int_equal(timeline_recent_new(100, 1 << 20, &recent), 0);
	assert_null(timeline_recent_at(recent, 0));
	for (int64_t ns = 0; ns < 10000; ns++)
		assert_int_equal(add(ns, 1), 0);
	assert_int_equal(count(), 101);
	assert_int_equal(timeline_recent_at(recent, 0)->end_ns, 9899);
	assert_int_equal(timeline_recent_at(recent, 100)->end_ns, 9999);
	assert_int_equal(timeline_recent_lost(recent), 0);
	assert_int_equal(timeline_recent_bytes(recent), 101);
}

static void what_is_too_much_goes_and_is_counted(void **state)
{
	(void)state;
	assert_int_equal(timeline_recent_new(1000, 2500, &recent), 0);
	for (int64_t ns = 0; ns < 5; ns++)
		assert_int_equal(add(ns, 1000), 0);
	assert_int_equal(count(), 2);
	assert_int_equal(timeline_recent_at(recent, 0)->end_ns, 3);
	assert_int_equal(timeline_recent_lost(recent), 3 * 10);
	assert_int_equal(timeline_recent_bytes(recent), 2000);
}

static void one_that_is_larger_than_all_is_refused(void **state)
{
	(void)state;
	assert_int_equal(timeline_recent_new(1000, 500, &recent), 0);
	assert_int_equal(add(1, 501), -ENOBUFS);
	assert_int_equal(count(), 0);
	assert_int_equal(timeline_recent_lost(recent), 10);
}

/* Their writer has them still. */
static void blocks_are_shared(void **state)
{
	struct timeline_block *held;

	(void)state;
	assert_int_equal(timeline_recent_new(1, 1000, &recent), 0);
	assert_int_equal(add(1, 1), 0);
	held = timeline_block_ref(timeline_recent_at(recent, 0));
	assert_int_equal(add(10, 1), 0);
	assert_int_equal(count(), 1);
	assert_int_equal(held->end_ns, 1);
	timeline_block_unref(held);
}

#define TEST(name_) cmocka_unit_test_teardown(name_, close_it)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_too_old_goes),
		TEST(what_is_too_much_goes_and_is_counted),
		TEST(one_that_is_larger_than_all_is_refused),
		TEST(blocks_are_shared),
	};

	return cmocka_run_group_tests_name("recent", tests, NULL, NULL);
}
