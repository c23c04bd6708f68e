// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/clock.h"
#include "base/macro.h"
#include "push/sender.h"

static void attempts_are_ever_further_apart(void **state)
{
	static const int64_t wanted_ms[] = { 50, 400, 3200, 25600 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(wanted_ms); i++) {
		int64_t mean_ns = wanted_ms[i] * NSEC_PER_MSEC;

		assert_true(sender_delay_ns(i + 1, 0.5) == mean_ns);
		assert_int_equal(sender_delay_ns(i + 1, 0) / 1000, mean_ns * 85 / 100 / 1000);
		assert_int_equal((sender_delay_ns(i + 1, 1) + 500) / 1000, mean_ns * 115 / 100 / 1000);
	}
}

static void who_asks_wrongly_may_ask_again(void **state)
{
	(void)state;
	assert_true(sender_is_refusal(400));
	assert_true(sender_is_refusal(413));
	assert_true(sender_is_refusal(422));
	assert_false(sender_is_refusal(401));
	assert_false(sender_is_refusal(404));
	assert_false(sender_is_refusal(429));
	assert_false(sender_is_refusal(500));
	assert_false(sender_is_refusal(302));
	assert_false(sender_is_refusal(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attempts_are_ever_further_apart),
		cmocka_unit_test(who_asks_wrongly_may_ask_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
