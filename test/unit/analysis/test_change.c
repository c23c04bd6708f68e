// SPDX-License-Identifier: Apache-2.0
#include "analysis/change.h"

#include <math.h>

#include "analysis/stream.h"

/* A tenth slower. */
#define LEAST 0.0953

/* Of @n values around @mean: how many changes are told. */
static unsigned add(struct change *c, struct stream *s, unsigned n, double mean, double deviation)
{
	unsigned changes = 0;

	for (unsigned i = 0; i < n; i++)
		changes += change_add(c, mean + deviation * stream_normal(s), LEAST);
	return changes;
}

static void finds_a_change(void **state)
{
	struct stream s = stream_begin(0);
	struct change c = { 0 };

	(void)state;
	assert_int_equal(add(&c, &s, 200, 1.0, 0.02), 0);
	assert_int_equal(add(&c, &s, 20, 1.3, 0.02), 1);
	assert_true(fabs(c.before - 1.0) < 0.03);
	assert_true(fabs(c.after - 1.3) < 0.03);
	assert_int_equal(add(&c, &s, 200, 1.3, 0.02), 0);
	assert_int_equal(add(&c, &s, 20, 1.0, 0.02), 1); /* and back */
	assert_true(fabs(c.after - 1.0) < 0.03);
	stream_end(&s);
}

static void says_nothing_of_less(void **state)
{
	struct stream s = stream_begin(0);
	struct change c = { 0 };

	(void)state;
	assert_int_equal(add(&c, &s, 200, 1.0, 0.01), 0);
	assert_int_equal(add(&c, &s, 200, 1.05, 0.01), 0); /* a change, of 5 % */
	assert_int_equal(add(&c, &s, 200, 1.15, 0.01), 1); /* of 15 % since the last that was told */
	stream_end(&s);
}

/* Two modes: what most of a few observations are is often the other one. */
static void two_modes(void **state)
{
	struct stream s = stream_begin(0);
	struct change c = { 0 };

	(void)state;
	for (unsigned i = 0; i < 5000; i++)
		assert_false(change_add(&c, (stream_random(&s) < 0.4 ? 1.3 : 1.0) + 0.02 * stream_normal(&s),
					LEAST));
	stream_end(&s);
}

static void outliers_are_no_change(void **state)
{
	struct stream s = stream_begin(0);
	struct change c = { 0 };

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(add(&c, &s, 50, 1.0, 0.02), 0);
		assert_int_equal(add(&c, &s, 1, 3.0, 0.02), 0); /* a checkpoint */
	}
	stream_end(&s);
}

/* More runs than are kept, constant values, and far jumps: numbers stay numbers. */
static void stays_finite(void **state)
{
	struct change c = { 0 };
	unsigned changes = 0;

	(void)state;
	for (unsigned i = 0; i < 10000; i++)
		changes += change_add(&c, i < 5000 ? -20 : 20, LEAST);
	assert_int_equal(changes, 1);
	assert_in_range(c.runs_n, 1, CHANGE_RUNS);
	for (unsigned i = 0; i < c.runs_n; i++)
		assert_false(isnan(c.runs[i].probability));
	assert_true(fabs(c.after - 20) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_a_change),         cmocka_unit_test(says_nothing_of_less),
		cmocka_unit_test(outliers_are_no_change), cmocka_unit_test(two_modes),
		cmocka_unit_test(stays_finite),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
