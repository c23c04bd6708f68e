// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "base/strbuf.h"
#include "store/decimal.h"
#include "view/number.h"

static void assert_decimal(double v, int64_t digits, unsigned scale)
{
	struct decimal d;

	assert_true(decimal_of(v, &d));
	assert_int_equal(d.digits, digits);
	assert_int_equal(d.scale, scale);
}

static void test_few_digits(_unused_ void **state)
{
	assert_decimal(0, 0, 0);
	assert_decimal(412.533, 412533, 3);
	assert_decimal(-0.25, -25, 2);
	assert_decimal(1e-6, 1, 6);
	assert_decimal(85899345920.0, 85899345920, 0);
	assert_decimal(0.1 + 0.2, 3, 1);
}

static void test_what_is_none(_unused_ void **state)
{
	struct decimal d;

	assert_false(decimal_of(NAN, &d));
	assert_false(decimal_of(INFINITY, &d));
	assert_false(decimal_of(-0.0, &d));
	assert_false(decimal_of(1e300, &d));
	assert_false(decimal_of(1.0 / 3e9, &d));
}

static void assert_shown_alike(double v)
{
	struct strbuf a, b;
	struct decimal d, again;

	if (!decimal_of(v, &d))
		return;
	strbuf_init(&a, 0);
	strbuf_init(&b, 0);
	number_add(&a, v);
	number_add(&b, decimal_value(d));
	assert_string_equal(a.data, b.data);
	/* A reader goes on from the same digits as the writer. */
	assert_true(decimal_of(decimal_value(d), &again));
	assert_int_equal(again.digits, d.digits);
	assert_int_equal(again.scale, d.scale);
	strbuf_done(&a);
	strbuf_done(&b);
}

static void test_pages_show_the_same(_unused_ void **state)
{
	uint64_t seed = 42;

	for (unsigned i = 0; i < 200000; i++) {
		double v;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		v = (double)(seed >> 20) / pow(10, seed % 31);
		assert_shown_alike(v);
		assert_shown_alike(-v);
		memcpy(&v, &seed, sizeof(v));
		assert_shown_alike(v);
	}
}

static void test_rescale(_unused_ void **state)
{
	struct decimal d = { 5, 1 };

	assert_true(decimal_rescale(&d, 4));
	assert_int_equal(d.digits, 5000);
	assert_int_equal(d.scale, 4);
	d = (struct decimal){ INT64_C(1) << 52, 0 };
	assert_false(decimal_rescale(&d, 1));
	assert_int_equal(d.digits, INT64_C(1) << 52);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_digits),
		cmocka_unit_test(test_what_is_none),
		cmocka_unit_test(test_pages_show_the_same),
		cmocka_unit_test(test_rescale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
