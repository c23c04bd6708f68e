// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "exposition/float.h"

static bool parse(const char *text, double *ret_value, bool *ret_whole)
{
	return float_parse(text, strlen(text), ret_value, ret_whole);
}

static void numbers_are_gos(void **state)
{
	static const struct {
		const char *text;
		double value;
		bool whole;
	} rows[] = {
		{ "0", 0, true },
		{ "-0", -0.0, true },
		{ "+7", 7, true },
		{ "412.533000", 412.533, false },
		{ ".5", 0.5, false },
		{ "5.", 5, false },
		{ "1e3", 1000, false },
		{ "1E-3", 0.001, false },
		{ "-1.5e+2", -150, false },
		{ "9223372036854775794", 9223372036854775808.0, true },
		{ "123456789012345678901234567890", 123456789012345678901234567890.0, true },
		{ "0.1234567890123456789", 0.1234567890123456789, false },
		{ "000000000000000000000000000001", 1, true },
		{ "0.000000000000000000000000000001", 1e-30, false },
		{ "1.7976931348623157e308", 1.7976931348623157e308, false },
		{ "4.9e-324", 4.9e-324, false },
		{ "1e-999", 0, false },
	};
	double value;
	bool whole;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!parse(rows[i].text, &value, &whole) || value != rows[i].value || whole != rows[i].whole)
			fail_msg("%s is %.17g", rows[i].text, value);
		assert_int_equal(signbit(value), signbit(rows[i].value));
	}
}

static void words_are_gos(void **state)
{
	double value;
	bool whole;

	(void)state;
	assert_true(parse("NaN", &value, &whole) && isnan(value) && !whole);
	assert_true(parse("nan", &value, &whole) && isnan(value));
	assert_true(parse("+Inf", &value, &whole) && isinf(value) && value > 0);
	assert_true(parse("-infinity", &value, &whole) && isinf(value) && value < 0);
	assert_false(parse("+nan", &value, &whole));
	assert_false(parse("infin", &value, &whole));
}

static void what_is_no_number_is_refused(void **state)
{
	static const char *const texts[] = { "",     ".",     "-",     "e5",    "1e",     "1e+",
					     "0x10", "1_000", "0x1p3", "1p3",   "1..",    "1.2.3",
					     "12 ",  " 12",   "1\r",   "1e999", "-1e400", "--1" };
	double value;
	bool whole;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (parse(texts[i], &value, &whole))
			fail_msg("\"%s\" is %g", texts[i], value);
	assert_false(float_parse("1\0002", 3, &value, &whole));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_gos),
		cmocka_unit_test(words_are_gos),
		cmocka_unit_test(what_is_no_number_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
