// SPDX-License-Identifier: Apache-2.0
#include "near.h"

#include <math.h>

#include "nvml/counter.h"

static void begins_at_the_drivers_value(void **state)
{
	struct persistent_counter counter = { .known = 0 };

	(void)state;
	assert_near(counter_unwrap(&counter, 1000, NAN), 1000, 0);
	assert_near(counter_unwrap(&counter, 1500, NAN), 1500, 0);
}

static void comes_round_once(void **state)
{
	struct persistent_counter counter = { .known = 0 };

	(void)state;
	counter_unwrap(&counter, COUNTER_ROUND - 10, NAN);
	assert_near(counter_unwrap(&counter, 5, NAN), COUNTER_ROUND + 5, 0);
}

static void a_known_rate_tells_how_often_it_came_round(void **state)
{
	struct persistent_counter counter = { .known = 0 };

	(void)state;
	counter_unwrap(&counter, 100, NAN);
	/* 3 rounds and 50 bytes, where the rate says 3 rounds less 5 %. */
	assert_near(counter_unwrap(&counter, 150, 2.85 * COUNTER_ROUND), 3 * COUNTER_ROUND + 150, 0);
	/* A rate that says less than what was counted changes nothing. */
	assert_near(counter_unwrap(&counter, 250, 10), 3 * COUNTER_ROUND + 250, 0);
	/* A rate that cannot be is ignored. */
	assert_near(counter_unwrap(&counter, 300, 1e300), 3 * COUNTER_ROUND + 300, 0);
}

static void a_wide_counter_that_falls_began_again(void **state)
{
	struct persistent_counter counter = { .known = 0 };

	(void)state;
	counter_unwrap(&counter, 3 * COUNTER_ROUND, NAN);
	assert_near(counter_unwrap(&counter, 3 * COUNTER_ROUND + 7, NAN), 3 * COUNTER_ROUND + 7, 0);
	assert_near(counter_unwrap(&counter, 20, NAN), 3 * COUNTER_ROUND + 27, 0);
}

static void links_come_and_go(void **state)
{
	double last[3] = { -1, -1, -1 }, total = 0;

	(void)state;
	assert_near(counter_sum(&total, last, (double[]){ 100, 200, -1 }, 3), 300, 0);
	/* The second is away: its part stays. */
	assert_near(counter_sum(&total, last, (double[]){ 110, -1, -1 }, 3), 310, 0);
	/* It is back and has counted on; the third is new. */
	assert_near(counter_sum(&total, last, (double[]){ 110, 230, 5 }, 3), 345, 0);
	/* The first began again. */
	assert_near(counter_sum(&total, last, (double[]){ 3, 230, 5 }, 3), 348, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begins_at_the_drivers_value),
		cmocka_unit_test(comes_round_once),
		cmocka_unit_test(a_known_rate_tells_how_often_it_came_round),
		cmocka_unit_test(a_wide_counter_that_falls_began_again),
		cmocka_unit_test(links_come_and_go),
	};

	return cmocka_run_group_tests_name("counter", tests, NULL, NULL);
}
