// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "sim/scenario/curve.h"

#include "base/macro.h"

static const struct curve sine = { .shape = CURVE_SINE, .low = 20, .high = 80, .period_ms = 1000 };

static void close_to(float value, float expected)
{
	assert_true(value > expected - 0.01f && value < expected + 0.01f);
}

static void test_shapes(_unused_ void **state)
{
	struct curve curve = { .shape = CURVE_CONSTANT, .low = 5, .high = 5 };

	close_to(curve_at(&curve, 12345, 0), 5);
	close_to(curve_at(&sine, 0, 0), 50);
	close_to(curve_at(&sine, 250, 0), 80);
	close_to(curve_at(&sine, 2750, 0), 20);

	curve = (struct curve){
		.shape = CURVE_SQUARE, .low = 1, .high = 9, .duty = 0.25f, .period_ms = 1000
	};
	close_to(curve_at(&curve, 1249, 0), 9);
	close_to(curve_at(&curve, 1250, 0), 1);

	curve = (struct curve){ .shape = CURVE_SAW, .low = 0, .high = 10, .period_ms = 1000 };
	close_to(curve_at(&curve, 500, 0), 5);
	close_to(curve_at(&curve, 1000, 0), 0);

	curve.shape = CURVE_RAMP;
	close_to(curve_at(&curve, 500, 0), 5);
	close_to(curve_at(&curve, 90000, 0), 10);

	curve.phase_ms = 500;
	close_to(curve_at(&curve, 0, 0), 5);
}

static void test_noise_repeats_and_differs(_unused_ void **state)
{
	const struct curve curve = {
		.shape = CURVE_NOISE, .low = 10, .high = 20, .period_ms = 100, .seed = 7
	};
	unsigned same_salt = 0, other_salt = 0, steps = 0;

	for (int64_t time = 0; time < 100000; time += 50) {
		float value = curve_at(&curve, time, 1);

		assert_true(value >= 10 && value <= 20);
		assert_true(value == curve_at(&curve, time / 100 * 100, 1));
		same_salt += value == curve_at(&curve, time, 1);
		other_salt += value == curve_at(&curve, time, 2);
		steps++;
	}
	assert_int_equal(same_salt, steps);
	assert_in_range(other_salt, 0, steps / 100);
}

static void test_jitter_stays_near(_unused_ void **state)
{
	struct curve jittery = sine;
	float farthest = 0;

	jittery.jitter = 3;
	for (int64_t time = 0; time < 100000; time += 100) {
		float away = curve_at(&jittery, time, 0) - curve_at(&sine, time, 0);

		farthest = MAX(farthest, away < 0 ? -away : away);
	}
	assert_true(farthest > 2 && farthest < 3.001f);
}

/* Against counting, millisecond by millisecond. */
static void check_window(const struct window *window)
{
	int64_t openings = 0, open_ms = 0;

	for (int64_t time = 0; time < 500; time++) {
		int64_t into = time - window->at_ms;
		bool opens = into == 0 || (into > 0 && window->every_ms > 0 && into % window->every_ms == 0);

		openings += opens;
		assert_int_equal(window_openings(window, time), openings);
		assert_int_equal(window_open_ms(window, time), open_ms);
		if (opens)
			assert_int_equal(window_last_opening(window, time), time);
		if (opens && time > 0)
			assert_int_equal(window_next_opening(window, time - 1), time);
		if (openings > 0)
			assert_int_equal(window_open(window, time),
					 window->length_ms < 0 || time - window_last_opening(window, time) <
									  window->length_ms);
		else
			assert_false(window_open(window, time));
		open_ms += window_open(window, time);
	}
}

static void test_windows(_unused_ void **state)
{
	static const struct window windows[] = {
		{ .at_ms = 0, .length_ms = -1, .every_ms = 0 },
		{ .at_ms = 30, .length_ms = -1, .every_ms = 0 },
		{ .at_ms = 30, .length_ms = 40, .every_ms = 0 },
		{ .at_ms = 0, .length_ms = 10, .every_ms = 25 },
		{ .at_ms = 17, .length_ms = 25, .every_ms = 25 },
		{ .at_ms = 17, .length_ms = 1, .every_ms = 100 },
		{ .at_ms = 400, .length_ms = 50, .every_ms = 60 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(windows); i++)
		check_window(&windows[i]);
	assert_int_equal(window_next_opening(&windows[1], 30), INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_noise_repeats_and_differs),
		cmocka_unit_test(test_jitter_stays_near),
		cmocka_unit_test(test_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
