// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/macro.h"
#include "model/clock_events.h"

#define WINDOW_NS (300 * NSEC_PER_SEC)
enum { POWER_CAP = 2, HW_THERMAL = 6 };

static uint32_t count(const struct clock_window *w, int64_t now_ns, unsigned event)
{
	uint32_t counts[CLOCK_EVENTS];

	clock_window_counts(w, now_ns, counts);
	return counts[event];
}

static void readings_of_the_window_count(_unused_ void **state)
{
	struct clock_window *w = NULL;
	int64_t now_ns = 1000 * NSEC_PER_SEC;

	assert_int_equal(count(w, now_ns, POWER_CAP), 0);
	for (unsigned i = 0; i < 100; i++, now_ns += NSEC_PER_SEC)
		clock_window_take(&w, i < 10 ? 1 << POWER_CAP | 1 << HW_THERMAL : 1 << POWER_CAP, WINDOW_NS,
				  now_ns);
	assert_int_equal(count(w, now_ns, POWER_CAP), 100);
	assert_int_equal(count(w, now_ns, HW_THERMAL), 10);
	/* No reading comes any more: what was counted leaves the window. */
	assert_int_equal(count(w, now_ns + 150 * NSEC_PER_SEC, POWER_CAP), 100);
	assert_in_range(count(w, now_ns + 250 * NSEC_PER_SEC, POWER_CAP), 44, 50);
	assert_int_equal(count(w, now_ns + WINDOW_NS, POWER_CAP), 0);
	free(w);
}

static void a_long_run_counts_the_window_alone(_unused_ void **state)
{
	struct clock_window *w = NULL;
	int64_t now_ns = 7 * NSEC_PER_SEC;

	for (unsigned i = 0; i < 5000; i++, now_ns += NSEC_PER_SEC)
		clock_window_take(&w, 1 << POWER_CAP, WINDOW_NS, now_ns);
	assert_in_range(count(w, now_ns, POWER_CAP), 295, 300);
	/* Nothing for an hour, then one. */
	now_ns += 3600 * NSEC_PER_SEC;
	clock_window_take(&w, 1 << POWER_CAP, WINDOW_NS, now_ns);
	assert_int_equal(count(w, now_ns, POWER_CAP), 1);
	/* Another length of the window begins anew. */
	clock_window_take(&w, 1 << POWER_CAP, WINDOW_NS / 5, now_ns);
	assert_int_equal(count(w, now_ns, POWER_CAP), 1);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readings_of_the_window_count),
		cmocka_unit_test(a_long_run_counts_the_window_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
