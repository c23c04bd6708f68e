// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/clock.h"
#include "base/macro.h"
#include "serve/limit.h"
#include "serve/origin.h"

static struct limit limit;

static unsigned take_many(uint64_t client, int64_t now_ns, unsigned n)
{
	unsigned taken = 0;

	while (n--)
		taken += limit_take(&limit, client, now_ns, NSEC_PER_SEC, 5);
	return taken;
}

static void a_burst_and_then_one_each_interval(_unused_ void **state)
{
	int64_t now_ns = 1000 * NSEC_PER_SEC;

	limit = (struct limit){ 0 };
	assert_int_equal(take_many(1, now_ns, 10), 5);
	assert_int_equal(take_many(1, now_ns + NSEC_PER_SEC - 1, 10), 0);
	assert_int_equal(take_many(1, now_ns + NSEC_PER_SEC, 10), 1);
	assert_int_equal(take_many(1, now_ns + 3 * NSEC_PER_SEC, 10), 2);
	assert_int_equal(take_many(1, now_ns + 100 * NSEC_PER_SEC, 10), 5);
}

static void clients_do_not_share(_unused_ void **state)
{
	limit = (struct limit){ 0 };
	for (uint64_t client = 0; client < 10 * LIMIT_CLIENTS; client++)
		assert_int_equal(take_many(client, NSEC_PER_SEC, 6), 5);
}

static void origins_are_whole(_unused_ void **state)
{
	assert_true(origin_is_own("http://host:9470", "host:9470"));
	assert_true(origin_is_own("https://HOST", "host"));
	assert_false(origin_is_own("http://host:9470", "host"));
	assert_false(origin_is_own("http://host.evil", "host"));
	assert_false(origin_is_own("null", "null"));
	assert_false(origin_is_own("http://host", NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_and_then_one_each_interval),
		cmocka_unit_test(clients_do_not_share),
		cmocka_unit_test(origins_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
