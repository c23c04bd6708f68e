// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/outputs/statsd_packets.h"
#include "base/macro.h"

static struct statsd_packets packets;
static char all[8192]; /* datagrams, each with a "=" behind it */
static size_t longest;

static void take(const void *data, size_t n, _unused_ void *userdata)
{
	size_t at = strlen(all);

	snprintf(all + at, sizeof(all) - at, "%.*s=", (int)n, (const char *)data);
	longest = MAX(longest, n);
}

static int begin(_unused_ void **state)
{
	all[0] = '\0';
	longest = 0;
	return statsd_packets_init(&packets, 40, take, NULL);
}

static int end(_unused_ void **state)
{
	statsd_packets_done(&packets);
	return 0;
}

static void gauge(const char *name, double value)
{
	statsd_packets_add(&packets, &(struct statsd_value){ name, "a:b", value, false, 0 });
}

static void counter(const char *tags, double value, int64_t created_ns)
{
	statsd_packets_add(&packets, &(struct statsd_value){ "c", tags, value, true, created_ns });
}

static void round_is(int64_t real_ns, const char *wanted)
{
	statsd_packets_end(&packets, real_ns);
	assert_string_equal(all, wanted);
	all[0] = '\0';
}

static void lines_fill_datagrams(_unused_ void **state)
{
	gauge("one", 1);
	gauge("two", -2.5);
	gauge("three", 85520809984);
	gauge("none", NAN);
	round_is(1, "one:1|g|#a:b\ntwo:-2.5|g|#a:b\n=three:85520809984|g|#a:b\n=");
	assert_true(longest <= 40);
	statsd_packets_add(&packets, &(struct statsd_value){ "bare", "", 3, false, 0 });
	round_is(2, "bare:3|g\n=");
	round_is(3, "");
}

static void what_fits_no_datagram_is_counted(_unused_ void **state)
{
	gauge("a_name_that_is_longer_than_a_datagram_may_be", 1);
	gauge("b", 1);
	round_is(1, "b:1|g|#a:b\n=");
	assert_int_equal(packets.left_out, 1);
}

/* The driver's counters are older than the agent: where they stand first is nobody's increase. */
static void counters_are_sent_as_increases(_unused_ void **state)
{
	counter("x", 1000, 0);
	counter("y", 7, 0);
	round_is(10, "");
	counter("x", 1003, 0);
	counter("y", 7, 0);
	round_is(20, "c:3|c|#x\n=");
	/* One that was away for a round has lost nothing. */
	counter("y", 9, 0);
	round_is(30, "c:2|c|#y\n=");
	counter("x", 1010, 0);
	counter("y", 9, 0);
	round_is(40, "c:7|c|#x\n=");
	/* One that fell began anew. */
	counter("x", 4, 0);
	round_is(50, "c:4|c|#x\n=");
}

static void one_that_was_away_is_remembered_for_a_while(_unused_ void **state)
{
	counter("short", 10, 0);
	counter("long", 10, 0);
	counter("another", 10, 5);
	round_is(10, "");
	round_is(20, "");
	/* One of the same name, and not the same. */
	counter("another", 12, 15);
	counter("short", 13, 0);
	round_is(3500 * NSEC_PER_SEC, "c:12|c|#another\nc:3|c|#short\n=");
	round_is(STATSD_ABSENT_NS + 11, "");
	counter("long", 14, 0);
	round_is(STATSD_ABSENT_NS + 12, "");
}

static void a_gpu_of_another_number_is_the_same(_unused_ void **state)
{
	counter("gpu:2,uuid:b", 10, 0);
	counter("gpu:2", 10, 0);
	round_is(10, "");
	counter("gpu:1,uuid:b", 12, 0);
	counter("gpu:1", 12, 0);
	round_is(20, "c:2|c|#gpu:1,uuid:b\n=");
	counter("gpu:2,uuid:b", 13, 0);
	round_is(30, "c:1|c|#gpu:2,uuid:b\n=");
}

static void one_that_began_since_is_whole(_unused_ void **state)
{
	counter("old", 5, 3);
	round_is(10, "");
	counter("old", 5, 3);
	counter("new", 6, 15);
	counter("late", 7, 9);
	round_is(20, "c:6|c|#new\n=");
}

/* The server would take both for one: the first is sent, the other is counted. */
static void two_of_one_name_are_not_mixed(_unused_ void **state)
{
	counter("g:0", 5, 0);
	counter("g:0", 100, 0);
	counter("g:1", 7, 0);
	round_is(1, "");
	assert_int_equal(packets.left_out, 1);
	counter("g:0", 6, 0);
	counter("g:1", 9, 0);
	round_is(2, "c:1|c|#g:0\nc:2|c|#g:1\n=");
}

static void counters_have_a_limit(_unused_ void **state)
{
	char tags[32];

	for (unsigned i = 0; i < STATSD_COUNTERS_MAX + 3; i++) {
		snprintf(tags, sizeof(tags), "%u", i);
		counter(tags, 1, 0);
	}
	assert_int_equal(packets.left_out, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines_fill_datagrams, begin, end),
		cmocka_unit_test_setup_teardown(what_fits_no_datagram_is_counted, begin, end),
		cmocka_unit_test_setup_teardown(counters_are_sent_as_increases, begin, end),
		cmocka_unit_test_setup_teardown(one_that_was_away_is_remembered_for_a_while, begin, end),
		cmocka_unit_test_setup_teardown(a_gpu_of_another_number_is_the_same, begin, end),
		cmocka_unit_test_setup_teardown(one_that_began_since_is_whole, begin, end),
		cmocka_unit_test_setup_teardown(two_of_one_name_are_not_mixed, begin, end),
		cmocka_unit_test_setup_teardown(counters_have_a_limit, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
