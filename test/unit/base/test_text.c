// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <locale.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"

static const struct {
	const char *bytes;
	const char *sanitized; /* NULL: valid as it is */
} utf8_cases[] = {
	{ "", NULL },
	{ "plain ascii", NULL },
	{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", NULL },
	{ "\xed\x9f\xbf\xee\x80\x80", NULL }, /* either side of the surrogates */
	{ "\xf4\x8f\xbf\xbf", NULL }, /* U+10FFFF */
	{ "\xf4\x90\x80\x80", "????" }, /* beyond it */
	{ "\xc0\xaf", "??" }, /* overlong '/' */
	{ "\xe0\x9f\xbf", "???" }, /* overlong in three */
	{ "\xf0\x8f\xbf\xbf", "????" }, /* overlong in four */
	{ "\xed\xa0\x80", "???" }, /* a surrogate */
	{ "a\x80z", "a?z" }, /* continuation without lead */
	{ "\xe2\x82", "??" }, /* cut short */
	{ "\xe2\x82z\xc3\xa9", "??z\xc3\xa9" }, /* goes on after the damage */
	{ "\xff\xfe", "??" },
};

static void utf8_is_told_from_bytes(_unused_ void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(utf8_cases); i++) {
		const char *bytes = utf8_cases[i].bytes, *sanitized = utf8_cases[i].sanitized;
		char copy[64];

		assert_int_equal(utf8_valid(bytes, strlen(bytes)), sanitized == NULL);
		strcpy(copy, bytes);
		utf8_sanitize(copy);
		assert_string_equal(copy, sanitized ? sanitized : bytes);
		assert_true(utf8_valid(copy, strlen(copy)));
	}
	assert_true(utf8_valid("a\0b", 3));
	assert_false(utf8_valid("\xc3\xa9", 1));
}

static void characters_that_a_terminal_obeys(void **state)
{
	static const struct {
		const char *text;
		uint32_t c;
		bool unsafe;
	} cases[] = {
		{ "a", 'a', false },
		{ " ", ' ', false },
		{ "\n", '\n', true },
		{ "\x1b", 0x1b, true },
		{ "\x7f", 0x7f, true },
		{ "\xc2\x9b", 0x9b, true },
		{ "\xc2\xa0", 0xa0, false },
		{ "\xc3\xa9", 0xe9, false },
		{ "\xe2\x80\xae", 0x202e, true },
		{ "\xe6\x97\xa5", 0x65e5, false },
		{ "\xf0\x9f\x98\x80", 0x1f600, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *text = cases[i].text;

		assert_int_equal(utf8_next(&text), cases[i].c);
		assert_int_equal(*text, 0);
		assert_int_equal(character_is_unsafe(cases[i].c), cases[i].unsafe);
	}
}

static void integers(_unused_ void **state)
{
	uint64_t u = 1;
	int64_t i = 1;

	assert_int_equal(parse_u64("18446744073709551615", &u), 0);
	assert_true(u == UINT64_MAX);
	assert_int_equal(parse_u64("18446744073709551616", &u), -ERANGE);
	assert_int_equal(parse_u64("", &u), -EINVAL);
	assert_int_equal(parse_u64(" 1", &u), -EINVAL);
	assert_int_equal(parse_u64("1 ", &u), -EINVAL);
	assert_int_equal(parse_u64("-1", &u), -EINVAL);
	assert_int_equal(parse_u64("0x10", &u), -EINVAL);
	assert_true(u == UINT64_MAX);
	assert_int_equal(parse_i64("-9223372036854775808", &i), 0);
	assert_true(i == INT64_MIN);
	assert_int_equal(parse_i64("9223372036854775807", &i), 0);
	assert_true(i == INT64_MAX);
	assert_int_equal(parse_i64("9223372036854775808", &i), -ERANGE);
	assert_int_equal(parse_i64("-9223372036854775809", &i), -ERANGE);
	assert_int_equal(parse_i64("-", &i), -EINVAL);
	assert_int_equal(parse_i64("--1", &i), -EINVAL);
}

static void doubles(_unused_ void **state)
{
	static const char *const bad[] = { "",    "x",   "1x", " 1", "0x1p3", "inf",
					   "nan", "1,5", "+1", "-",  ".",     "e5" };
	double v = 3;

	assert_int_equal(parse_double("-12.5e1", &v), 0);
	assert_true(v == -125);
	assert_int_equal(parse_double(".5", &v), 0);
	assert_true(v == 0.5);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse_double(bad[i], &v), -EINVAL);
	assert_int_equal(parse_double("1e999", &v), -ERANGE);
	assert_true(v == 0.5);
}

static void doubles_ignore_the_programs_locale(_unused_ void **state)
{
	double v;

	/* Without the locale installed this repeats the test above, which does no harm. */
	setlocale(LC_ALL, "de_DE.UTF-8");
	assert_int_equal(parse_double("1.5", &v), 0);
	assert_true(v == 1.5);
	setlocale(LC_ALL, "C");
}

static void durations(_unused_ void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{ "0", 0 },
		{ "1ns", 1 },
		{ "250us", 250 * NSEC_PER_USEC },
		{ "100ms", 100 * NSEC_PER_MSEC },
		{ "1s", NSEC_PER_SEC },
		{ "1.5s", 1500 * NSEC_PER_MSEC },
		{ "0.000000001s", 1 },
		{ "0.0000000019s", 1 },
		{ "0.1000000000000000000000000000000000000001s", NSEC_PER_SEC / 10 },
		{ "2m", 120 * NSEC_PER_SEC },
		{ "2min", 120 * NSEC_PER_SEC },
		{ "0.5h", 1800 * NSEC_PER_SEC },
		{ "7d", 7 * 86400 * NSEC_PER_SEC },
		{ "9223372036854775807ns", INT64_MAX },
		{ "9223372036.854775807s", INT64_MAX },
	};
	static const struct {
		const char *text;
		int error;
	} bad[] = {
		{ "", -EINVAL },
		{ "1", -EINVAL },
		{ "s", -EINVAL },
		{ "-1s", -EINVAL },
		{ "1 s", -EINVAL },
		{ "1.s", -EINVAL },
		{ "1S", -EINVAL },
		{ "1sec", -EINVAL },
		{ "1s1s", -EINVAL },
		{ "1e3s", -EINVAL },
		{ "1..5s", -EINVAL },
		{ "1000000d", -ERANGE },
		{ "9223372036.854775808s", -ERANGE },
		{ "99999999999999999999s", -ERANGE },
	};
	int64_t ns = -7;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse_duration_ns(bad[i].text, &ns), bad[i].error);
	assert_true(ns == -7);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(parse_duration_ns(good[i].text, &ns), 0);
		assert_true(ns == good[i].ns);
	}
}

static void booleans(_unused_ void **state)
{
	bool v = false;

	assert_int_equal(parse_bool("yes", &v), 0);
	assert_true(v);
	assert_int_equal(parse_bool("off", &v), 0);
	assert_false(v);
	assert_int_equal(parse_bool("1", &v), 0);
	assert_true(v);
	assert_int_equal(parse_bool("Yes", &v), -EINVAL);
	assert_int_equal(parse_bool("", &v), -EINVAL);
	assert_true(v);
}

static void seconds(void **state)
{
	int64_t ns = 0;

	(void)state;
	assert_int_equal(parse_seconds_ns("2", 0.1, 10, &ns), 0);
	assert_int_equal(ns, 2 * NSEC_PER_SEC);
	assert_int_equal(parse_seconds_ns("0.5", 0.1, 10, &ns), 0);
	assert_int_equal(ns, NSEC_PER_SEC / 2);
	assert_int_equal(parse_seconds_ns("100ms", 0.1, 10, &ns), 0);
	assert_int_equal(ns, NSEC_PER_SEC / 10);
	assert_int_equal(parse_seconds_ns("11", 0.1, 10, &ns), -ERANGE);
	assert_int_equal(parse_seconds_ns("1m", 0.1, 10, &ns), -ERANGE);
	assert_int_equal(parse_seconds_ns("-1", 0.1, 10, &ns), -ERANGE);
	assert_true(parse_seconds_ns("x", 0.1, 10, &ns) < 0);
	assert_true(parse_seconds_ns("", 0.1, 10, &ns) < 0);
	assert_int_equal(ns, NSEC_PER_SEC / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_is_told_from_bytes),
		cmocka_unit_test(characters_that_a_terminal_obeys),
		cmocka_unit_test(integers),
		cmocka_unit_test(doubles),
		cmocka_unit_test(doubles_ignore_the_programs_locale),
		cmocka_unit_test(durations),
		cmocka_unit_test(booleans),
		cmocka_unit_test(seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
