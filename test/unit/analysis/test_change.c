// SPDX-License-Identifier: Apache-2.0
#include "analysis/change.h"

#include <math.h>
#include <stdlib.h>

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

/*
 * The definition (Adams and MacKay 2007, algorithm 1), with nothing left out: all run lengths, probabilities
 * as they are, and the parameters of the normal-gamma prior brought forward by one observation at a time.
 * A run of length 0 has seen nothing yet: what src/analysis has are those of 1 and more.
 */
struct reference {
	unsigned n;
	long double probability[400], weight[400], mean[400], shape[400], rate[400];
};

static long double student(long double x, long double mean, long double scale, long double freedom)
{
	long double z = (x - mean) * (x - mean) / scale;

	return expl(lgammal((freedom + 1) / 2) - lgammal(freedom / 2)) /
	       sqrtl(freedom * 3.14159265358979323846L * scale) * powl(1 + z / freedom, -(freedom + 1) / 2);
}

static void reference_add(struct reference *r, const struct change *prior, double x)
{
	const long double hazard = 1.0L / 250;
	long double evidence = 0, change = 0;

	for (unsigned i = r->n; i-- > 0;) {
		long double scale = r->rate[i] * (r->weight[i] + 1) / (r->shape[i] * r->weight[i]);
		long double joint = r->probability[i] * student(x, r->mean[i], scale, 2 * r->shape[i]);
		long double away = x - r->mean[i];

		change += joint * hazard;
		evidence += joint;
		r->probability[i + 1] = joint * (1 - hazard);
		r->rate[i + 1] = r->rate[i] + r->weight[i] * away * away / (2 * (r->weight[i] + 1));
		r->mean[i + 1] = (r->weight[i] * r->mean[i] + x) / (r->weight[i] + 1);
		r->weight[i + 1] = r->weight[i] + 1;
		r->shape[i + 1] = r->shape[i] + 0.5L;
	}
	r->n++;
	r->probability[0] = r->n > 1 ? change : 1;
	r->weight[0] = 0.01L;
	r->mean[0] = prior->prior_mean;
	r->shape[0] = 1;
	r->rate[0] = prior->prior_variance;
	for (unsigned i = 0; i < r->n && evidence > 0; i++)
		r->probability[i] /= evidence;
}

/* Random streams with jumps: each run's probability is that of the definition. */
static void is_what_is_defined(void **state)
{
	struct stream s = stream_begin(0);

	(void)state;
	for (unsigned trial = 0; trial < 20; trial++) {
		_cleanup_free_ struct reference *r = calloc(1, sizeof(*r));
		double level = 0, deviation = 0.01 + 0.1 * stream_random(&s);
		struct change c = { 0 };

		assert_non_null(r);
		for (unsigned i = 0; i < CHANGE_FIRST + CHANGE_RUNS; i++) {
			double x, sum = 0;

			if (stream_random(&s) < 0.02)
				level = stream_random(&s) * 2;
			x = level + deviation * stream_normal(&s);
			change_add(&c, x, LEAST);
			if (i + 1 == CHANGE_FIRST)
				reference_add(r, &c, 0); /* run length 0, for certain */
			if (i < CHANGE_FIRST)
				continue;
			reference_add(r, &c, x);
			assert_int_equal(c.runs_n, r->n - 1);
			for (unsigned k = 0; k < c.runs_n; k++) {
				double wanted = (double)(r->probability[k + 1] / (1 - r->probability[0]));

				assert_true(c.runs[k].n == k + 1);
				sum += exp(c.runs[k].probability);
				if (fabs(exp(c.runs[k].probability) - wanted) > 1e-6)
					fail_msg("trial %u, observation %u, run of %u: %g, not %g", trial, i,
						 k + 1, exp(c.runs[k].probability), wanted);
			}
			assert_true(fabs(sum - 1) < 1e-9);
		}
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
		cmocka_unit_test(is_what_is_defined),
		cmocka_unit_test(finds_a_change),
		cmocka_unit_test(says_nothing_of_less),
		cmocka_unit_test(outliers_are_no_change),
		cmocka_unit_test(two_modes),
		cmocka_unit_test(stays_finite),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
