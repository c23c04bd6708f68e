// SPDX-License-Identifier: Apache-2.0
#include "analysis/mixture.h"

#include <errno.h>
#include <math.h>

#include "analysis/stream.h"

enum { N = MIXTURE_OBSERVATIONS };

/* Latencies of two modes, 20 and 120 microseconds, spread by 5 %. */
static void two_modes(struct stream *s, float x[N])
{
	for (unsigned i = 0; i < N; i++)
		x[i] = (float)(log(i % 4 ? 20e3 : 120e3) + 0.05 * stream_normal(s));
}

static void finds_the_modes(void **state)
{
	struct stream s = stream_begin(0);
	struct mixture m;
	float x[N], between = (float)log(50e3), outlier = (float)log(400e3), fast = (float)log(10e3);
	unsigned false_alarms = 0;

	(void)state;
	two_modes(&s, x);
	assert_int_equal(mixture_fit(x, N, 1, NULL, &m), 0);
	assert_int_equal(m.components, 2);
	assert_true(fabs(m.mean[mixture_fastest(&m)][0] - log(20e3)) < 0.01);
	assert_true(fabs(m.weight[mixture_fastest(&m)] - 0.75) < 0.01);
	assert_true(mixture_is_slow(&m, &outlier));
	assert_true(mixture_is_slow(&m, &between));
	assert_false(mixture_is_slow(&m, &fast)); /* unusual, but nobody waits for it */
	two_modes(&s, x); /* others of the same kind */
	for (unsigned i = 0; i < N; i++)
		false_alarms += mixture_is_slow(&m, &x[i]);
	assert_in_range(false_alarms, 0, N / 200);
	stream_end(&s);
}

static void one_mode_is_one_component(void **state)
{
	struct stream s = stream_begin(0);
	struct mixture m;
	float x[N];

	(void)state;
	for (unsigned i = 0; i < N; i++)
		x[i] = (float)(10 + 0.1 * stream_normal(&s));
	assert_int_equal(mixture_fit(x, N, 1, NULL, &m), 0);
	assert_int_equal(m.components, 1);
	assert_true(fabs(m.mean[0][0] - 10) < 0.01);
	assert_true(fabs(sqrt(m.variance[0][0]) - 0.1) < 0.01);
	/* The density's integral is 1. */
	double sum = 0;

	for (double at = 8; at < 12; at += 0.001) {
		float point = (float)at;

		sum += exp(mixture_log_density(&m, &point)) * 0.001;
	}
	assert_true(fabs(sum - 1) < 0.001);
	stream_end(&s);
}

static void equal_observations(void **state)
{
	struct mixture m;
	float x[N], other = 10.2F, nearly = 10.05F;

	(void)state;
	for (unsigned i = 0; i < N; i++)
		x[i] = 10;
	assert_int_equal(mixture_fit(x, N, 1, NULL, &m), 0);
	assert_int_equal(m.components, 1);
	assert_true(isfinite(m.threshold));
	assert_false(mixture_is_slow(&m, &x[0]));
	assert_true(mixture_is_slow(&m, &other));
	assert_false(mixture_is_slow(&m, &nearly)); /* 5 % slower: unusual, and costs nothing */
	/* Far away, densities are no numbers that exp() has, but logarithms are. */
	other = 1e6F;
	assert_true(isfinite(mixture_log_density(&m, &other)));
	assert_true(mixture_is_slow(&m, &other));
}

/*
 * Two clocks, two latencies: slow at the low clock is usual, slow at the high one is not. The latency alone
 * cannot tell.
 */
static void several_dimensions(void **state)
{
	struct stream s = stream_begin(0);
	struct mixture m, alone;
	float x[N][2], latency[N];

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		double clock = i % 2 ? 1.0 : 0.5;

		x[i][0] = latency[i] = (float)(log(100e3 / clock) + 0.03 * stream_normal(&s));
		x[i][1] = (float)(clock + 0.01 * stream_normal(&s));
	}
	assert_int_equal(mixture_fit(x[0], N, 2, NULL, &m), 0);
	assert_int_equal(mixture_fit(latency, N, 1, NULL, &alone), 0);
	assert_int_equal(m.components, 2);

	const float usual[] = { (float)log(200e3), 0.5F }, unusual[] = { (float)log(200e3), 1.0F };

	assert_false(mixture_is_slow(&m, usual));
	assert_true(mixture_is_slow(&m, unusual));
	assert_false(mixture_is_slow(&alone, unusual));
	stream_end(&s);
}

/* A clock that is far from all others: a latency that is usual at any clock is so there, too. */
static void unusual_conditions(void **state)
{
	struct stream s = stream_begin(0);
	const float usual[] = { 10.15F, 1.3F }, slow[] = { 12, 1.3F };
	struct mixture m;
	float x[N][2];

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		x[i][0] = (float)(10 + 0.2 * stream_normal(&s));
		x[i][1] = (float)(1 + 0.01 * stream_normal(&s));
	}
	assert_int_equal(mixture_fit(x[0], N, 2, NULL, &m), 0);
	assert_false(mixture_is_slow(&m, usual));
	assert_true(mixture_is_slow(&m, slow));
	stream_end(&s);
}

static void responsibilities_are_probabilities(void **state)
{
	struct stream s = stream_begin(0);
	struct mixture m;
	float x[N], slow = (float)log(118e3);
	double of[MIXTURE_COMPONENTS];

	(void)state;
	two_modes(&s, x);
	assert_int_equal(mixture_fit(x, N, 1, NULL, &m), 0);
	mixture_responsibilities(&m, &slow, of);
	assert_true(of[1 - mixture_fastest(&m)] > 0.999);
	assert_true(fabs(of[0] + of[1] + of[2] + of[3] + of[4] - 1) < 1e-9);
	stream_end(&s);
}

static void what_cannot_be_fitted(void **state)
{
	struct mixture m;
	float x[N] = { 0 };

	(void)state;
	assert_int_equal(mixture_fit(x, MIXTURE_OBSERVATIONS_MIN - 1, 1, NULL, &m), -ENODATA);
	assert_int_equal(mixture_fit(x, N / 5, 5, NULL, &m), -EINVAL);
	assert_int_equal(mixture_fit(x, N, 0, NULL, &m), -EINVAL);
	x[7] = INFINITY;
	assert_int_equal(mixture_fit(x, N, 1, NULL, &m), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_modes),       cmocka_unit_test(one_mode_is_one_component),
		cmocka_unit_test(equal_observations),    cmocka_unit_test(several_dimensions),
		cmocka_unit_test(unusual_conditions),    cmocka_unit_test(responsibilities_are_probabilities),
		cmocka_unit_test(what_cannot_be_fitted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
