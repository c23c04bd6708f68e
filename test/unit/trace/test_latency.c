// SPDX-License-Identifier: Apache-2.0
/* Buckets of durations, as the kernel side finds them and as user space reads them. */
#include "test.h"

#include "base/clock.h"
#include "base/macro.h"
#include "bpf/latency.h"
#include "trace/sums.h"

enum { AROUND = 2000, FIRST_NS = 4000000 };

/* The first power of four of a second that is not below @ns, from 4^-10 s on: in whole numbers. */
static unsigned bound_by_rule(uint64_t ns)
{
	unsigned i = 0;

	while ((unsigned __int128)ns << 20 > (unsigned __int128)NSEC_PER_SEC << 2 * i)
		i++;
	return i;
}

static void check(uint64_t ns)
{
	uint64_t bucket = latency_bucket(ns);
	unsigned bound = latency_bound((unsigned)bucket);

	assert_in_range(bucket, 0, TRACE_BUCKETS - 1);
	assert_int_equal(bound, bound_by_rule(ns));
	assert_true(ns >= sums_bucket_low((unsigned)bucket));
	assert_true(ns < sums_bucket_end((unsigned)bucket) || ns == UINT64_MAX);
}

static void check_around(uint64_t ns)
{
	for (uint64_t at = ns - MIN(ns, (uint64_t)AROUND); at < ns || at - ns < AROUND; at++) {
		check(at);
		if (at == UINT64_MAX)
			break;
	}
}

/* All short durations, and those around the bounds of each bucket. */
static void a_duration_is_in_the_bucket_of_its_bound(_unused_ void **state)
{
	for (uint64_t ns = 0; ns < FIRST_NS; ns++)
		check(ns);
	for (unsigned i = 0; i <= TRACE_BUCKETS; i++)
		check_around(sums_bucket_low(i));
	for (unsigned bits = 1; bits < 64; bits++)
		check_around(UINT64_C(1) << bits);
}

static void bounds_are_in_the_bucket_below(_unused_ void **state)
{
	for (unsigned i = 10; i < TRACE_BOUNDS - 1; i++) {
		uint64_t ns = (uint64_t)NSEC_PER_SEC << 2 * (i - 10);

		assert_int_equal(latency_bound((unsigned)latency_bucket(ns)), i);
		assert_int_equal(latency_bound((unsigned)latency_bucket(ns + 1)), i + 1);
	}
	assert_int_equal(latency_bound((unsigned)latency_bucket(953)), 0); /* 4^-10 s is 953.7 ns */
	assert_int_equal(latency_bound((unsigned)latency_bucket(954)), 1);
	assert_int_equal(latency_bound((unsigned)latency_bucket(UINT64_MAX)), TRACE_BOUNDS - 1);
}

static void sums_are_by_bound(_unused_ void **state)
{
	static const uint64_t durations[] = { 0, 953, 954, 3814, 3815, 1000000000, 1000000001, UINT64_MAX };
	struct trace_sum sum = { 0 };
	uint64_t within[TRACE_BOUNDS];

	for (size_t i = 0; i < ARRAY_SIZE(durations); i++)
		sum.buckets[latency_bucket(durations[i])]++;
	trace_sum_within(&sum, within);
	assert_int_equal(within[0], 2);
	assert_int_equal(within[1], 4);
	assert_int_equal(within[9], 5);
	assert_int_equal(within[10], 6);
	assert_int_equal(within[11], 7);
	assert_int_equal(within[TRACE_BOUNDS - 2], 7);
	assert_int_equal(within[TRACE_BOUNDS - 1], 8);
	assert_int_equal(trace_sum_timed(&sum), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_duration_is_in_the_bucket_of_its_bound),
		cmocka_unit_test(bounds_are_in_the_bucket_below),
		cmocka_unit_test(sums_are_by_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
