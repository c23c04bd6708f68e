// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <time.h>

#include "base/clock.h"
#include "base/macro.h"

static void follows_the_systems_clocks(_unused_ void **state)
{
	struct timespec before, after;
	int64_t now;

	clock_gettime(CLOCK_REALTIME, &before);
	now = clock_real_ns();
	clock_gettime(CLOCK_REALTIME, &after);
	assert_true(now >= before.tv_sec * NSEC_PER_SEC + before.tv_nsec);
	assert_true(now <= after.tv_sec * NSEC_PER_SEC + after.tv_nsec);
	assert_true(clock_boot_ns() >= clock_mono_ns() - NSEC_PER_SEC);
}

static void offsets_are_between_the_clocks(_unused_ void **state)
{
	struct clock_offsets offsets;
	int64_t before, after;

	before = clock_real_ns() - clock_mono_ns();
	clock_offsets(&offsets);
	after = clock_real_ns() - clock_mono_ns();
	assert_true(offsets.error_ns >= 0);
	/* Of a clock that nobody sets meanwhile. */
	assert_true(offsets.real_ns > MIN(before, after) - NSEC_PER_SEC &&
		    offsets.real_ns < MAX(before, after) + NSEC_PER_SEC);
	clock_freeze(true);
	clock_offsets(&offsets);
	assert_true(offsets.real_ns == clock_real_ns() - clock_mono_ns());
	assert_true(offsets.boot_ns == clock_boot_ns() - clock_mono_ns());
	assert_true(offsets.error_ns == 0);
	clock_freeze(false);
}

static void frozen_moves_only_when_advanced(_unused_ void **state)
{
	int64_t boot, mono, real;

	clock_freeze(true);
	boot = clock_boot_ns();
	mono = clock_mono_ns();
	real = clock_real_ns();
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	assert_true(clock_boot_ns() == boot);
	clock_advance(3600 * NSEC_PER_SEC);
	assert_true(clock_boot_ns() == boot + 3600 * NSEC_PER_SEC);
	assert_true(clock_mono_ns() == mono + 3600 * NSEC_PER_SEC);
	assert_true(clock_real_ns() == real + 3600 * NSEC_PER_SEC);
	clock_freeze(true);
	assert_true(clock_boot_ns() == boot + 3600 * NSEC_PER_SEC);
	clock_freeze(false);
	assert_true(clock_mono_ns() > mono + 3600 * NSEC_PER_SEC);
}

static void formats_times_of_every_kind(_unused_ void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ 999999, "1970-01-01T00:00:00.000Z" },
		{ 1000000, "1970-01-01T00:00:00.001Z" },
		{ -1, "1969-12-31T23:59:59.999Z" },
		{ INT64_C(951782400042000000), "2000-02-29T00:00:00.042Z" },
		{ INT64_C(1769903999999999999), "2026-01-31T23:59:59.999Z" },
		{ INT64_MAX, "2262-04-11T23:47:16.854Z" },
		{ INT64_MIN, "1677-09-21T00:12:43.145Z" },
	};
	char buf[32];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		format_rfc3339(cases[i].ns, buf);
		assert_string_equal(buf, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_the_systems_clocks),
		cmocka_unit_test(offsets_are_between_the_clocks),
		cmocka_unit_test(frozen_moves_only_when_advanced),
		cmocka_unit_test(formats_times_of_every_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
