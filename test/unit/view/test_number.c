// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "view/number.h"

static const struct {
	double v;
	const char *text;
} cases[] = {
	{ 0, "0" },
	{ -0.0, "0" },
	{ 1, "1" },
	{ -40, "-40" },
	{ 85899345920, "85899345920" },
	{ 9007199254740992.0, "9007199254740992" },
	{ 9007199254740994.0, "9.00719925474099e+15" },
	{ 0.1 + 0.2, "0.3" },
	{ 0.57, "0.57" },
	{ -0.25, "-0.25" },
	{ 412.533, "412.533" },
	{ 1.0 / 3, "0.333333333333333" },
	{ 12.000000345, "12.000000345" },
	{ 123456789012345.5, "123456789012346" }, /* 15 digits are all there are */
	{ 99999999999999.96, "100000000000000" },
	{ 9.9999999999999999, "10" },
	{ 9.9999999999999991, "10" },
	{ 0.99999999999999989, "1" },
	{ 0.0001, "0.0001" },
	{ 0.000125, "0.000125" },
	{ 0.00001, "1e-05" },
	{ 1.5e-12, "1.5e-12" },
	{ 1e300, "1e+300" },
	{ DBL_MAX, "1.79769313486232e+308" },
	{ NAN, "NaN" },
	{ INFINITY, "+Inf" },
	{ -INFINITY, "-Inf" },
};

static void numbers(void **state)
{
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		strbuf_reset(&out);
		number_add(&out, cases[i].v);
		assert_string_equal(out.data, cases[i].text);
	}
	strbuf_done(&out);
}

static void bounds_of_buckets(_unused_ void **state)
{
	static const struct {
		double v;
		const char *text;
	} bounds[] = { { 1, "1.0" },
		       { 16, "16.0" },
		       { 0.25, "0.25" },
		       { 0x1p-20, "9.5367431640625e-07" },
		       { INFINITY, "+Inf" } };
	struct strbuf out;

	strbuf_init(&out, 0);
	for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
		strbuf_reset(&out);
		number_add_bound(&out, bounds[i].v);
		assert_string_equal(out.data, bounds[i].text);
	}
	strbuf_done(&out);
}

/*
 * The quick way must give what printf gives, but for the last digit where a value lies between two decimals.
 */
static void quick_way_is_printf(void **state)
{
	struct strbuf out;
	uint64_t seed = 42;

	(void)state;
	strbuf_init(&out, 0);
	for (int i = 0; i < 200000; i++) {
		double v, read, expected;
		char text[64];

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		v = ldexp((double)(seed >> 11), -(int)(seed % 60));
		strbuf_reset(&out);
		number_add(&out, v);
		snprintf(text, sizeof(text), "%.15g", v);
		read = strtod(out.data, NULL);
		expected = strtod(text, NULL);
		if (fabs(read - expected) > fabs(v) * 1.1e-14 || (number_is_integer(v) && read != v))
			fail_msg("%.17g became %s", v, out.data);
		/* jansson's way: every view shows the same digits. */
		snprintf(text, sizeof(text), "%.15g", number_rounded(v));
		assert_true(number_is_integer(v) || STRV_EQ(text, out.data));
	}
	strbuf_done(&out);
}

/* A counter that grows must not be printed as one that falls, however its digits are cut. */
static void text_never_falls(void **state)
{
	struct strbuf out;
	double last = 0, v = 0.9;

	(void)state;
	strbuf_init(&out, 0);
	for (int i = 0; i < 300000; i++) {
		double read;

		strbuf_reset(&out);
		number_add(&out, v);
		read = strtod(out.data, NULL);
		assert_true(read >= last);
		last = read;
		v += i % 3 == 0 ? v * 1e-15 : i % 3 == 1 ? 1e-9 : v * 1e-4;
	}
	strbuf_done(&out);
}

static void fixed(void **state)
{
	static const struct {
		double v;
		unsigned decimals;
		const char *text;
	} fixed_cases[] = {
		{ 0, 6, "0.000000" },         { 412.533, 6, "412.533000" },
		{ 0.125, 6, "0.125000" },     { 57.5, 0, "58" },
		{ -3.25, 6, "-3.250000" },    { 1e12, 6, "1000000000000.000000" },
		{ 0.9999999, 6, "1.000000" }, { 2.000000345, 6, "2.000000" },
	};
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 0);
	for (size_t i = 0; i < ARRAY_SIZE(fixed_cases); i++) {
		strbuf_reset(&out);
		number_add_fixed(&out, fixed_cases[i].v, fixed_cases[i].decimals);
		assert_string_equal(out.data, fixed_cases[i].text);
	}
	strbuf_done(&out);
}

static void sizes(void **state)
{
	static const struct {
		double bytes;
		const char *text;
	} size_cases[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1610612736, "1.5 GiB" },
		{ 1.5 * 1024 * 1024 * 1024 * 1024 * 1024 * 1024, "1.5 EiB" },
	};
	char text[BYTES_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(size_cases) / sizeof(size_cases[0]); i++) {
		bytes_text(size_cases[i].bytes, text);
		assert_string_equal(text, size_cases[i].text);
	}
	bytes_text(1e300, text);
	assert_string_equal(text, "1000000000000000000.0 EiB");
}

static void times_past(void **state)
{
	char text[DURATION_TEXT];

	(void)state;
	ago_text(0, text);
	assert_string_equal(text, "0 s");
	ago_text(INT64_C(59999999999), text);
	assert_string_equal(text, "59 s");
	ago_text(INT64_C(3599999999999), text);
	assert_string_equal(text, "59 min");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(bounds_of_buckets),
		cmocka_unit_test(quick_way_is_printf),
		cmocka_unit_test(text_never_falls),
		cmocka_unit_test(fixed),
		cmocka_unit_test(sizes),
		cmocka_unit_test(times_past),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
