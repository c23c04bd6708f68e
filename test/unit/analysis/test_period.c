// SPDX-License-Identifier: Apache-2.0
#include "analysis/period.h"

#include "analysis/stream.h"

enum { N = 1000 };

static uint32_t period_of(const uint32_t *symbols, uint32_t n)
{
	uint32_t rare;
	bool once;

	return period_find(symbols, n, &rare, &once);
}

static void finds_the_smallest(void **state)
{
	uint32_t calls[N], rare;
	bool once;

	(void)state;
	for (unsigned i = 0; i < N; i++)
		calls[i] = i % 37 == 11 ? 1 : i % 37 % 5 + 10;
	assert_int_equal(period_find(calls, N, &rare, &once), 37);
	assert_int_equal(rare, 1);
	assert_true(once);
}

/* Every 20th step has one call more; then the phase is another one, but the period the same. */
static void tolerates_what_is_rare(void **state)
{
	uint32_t calls[N], n = 0;

	(void)state;
	for (unsigned step = 0; n + 11 < N; step++) {
		for (unsigned i = 0; i < 10; i++)
			calls[n++] = i;
		if (step % 50 == 49)
			calls[n++] = 99;
	}
	assert_int_equal(period_of(calls, n), 10);
}

static void what_is_always_the_same(void **state)
{
	uint32_t calls[N] = { 0 };

	(void)state;
	assert_int_equal(period_of(calls, N), 1);
	/* 99 % are one kernel, which is no iteration: the other call is. */
	for (unsigned i = 0; i < N; i++)
		calls[i] = i % 100 == 99;
	assert_int_equal(period_of(calls, N), 100);
}

static void none(void **state)
{
	struct stream s = stream_begin(0);
	uint32_t calls[N];

	(void)state;
	for (unsigned i = 0; i < N; i++)
		calls[i] = (uint32_t)(stream_random(&s) * 8);
	assert_int_equal(period_of(calls, N), 0);
	/* Only two of it are there. */
	for (unsigned i = 0; i < N; i++)
		calls[i] = i % (N / 2);
	assert_int_equal(period_of(calls, N), 0);
	assert_int_equal(period_of(calls, 0), 0);
	stream_end(&s);
}

/* One call in ten differs: an autocorrelation below 0.95. */
static void too_irregular(void **state)
{
	struct stream s = stream_begin(0);
	uint32_t calls[N];

	(void)state;
	for (unsigned i = 0; i < N; i++)
		calls[i] = stream_random(&s) < 0.1 ? 1000 + i : i % 20;
	assert_int_equal(period_of(calls, N), 0);
	for (unsigned i = 0; i < N; i++)
		calls[i] = i % 100 == 50 ? 1000 + i : i % 20;
	assert_int_equal(period_of(calls, N), 20);
	stream_end(&s);
}

/* The autocorrelation of the calls' indicators, summed over all symbols, with means taken off. */
static double correlation(const uint32_t *calls, uint32_t n, uint32_t lag)
{
	double share[64] = { 0 }, equal = 0, chance = 0, all = 0;

	for (uint32_t i = 0; i < n; i++)
		share[calls[i]] += 1.0 / n;
	for (uint32_t k = 0; k < 64; k++) {
		chance += share[k] * share[k];
		all += share[k] * (1 - share[k]);
	}
	for (uint32_t i = 0; i + lag < n; i++)
		equal += calls[i] == calls[i + lag];
	return (equal / (n - lag) - chance) / all;
}

/*
 * Streams of known periods, of which calls are missing, come twice, or are others: what is found is the
 * smallest lag whose autocorrelation is 0.95 or more, and the period wherever few enough are disturbed.
 */
static void is_what_is_defined(void **state)
{
	struct stream s = stream_begin(0);
	unsigned found = 0, none = 0;

	(void)state;
	for (unsigned trial = 0; trial < 200; trial++) {
		uint32_t calls[N], pattern[40], n = 0, period = 2 + (uint32_t)(stream_random(&s) * 38),
						lag = 1;
		double rate = stream_random(&s) < 0.5 ? 0 : stream_random(&s) * 0.04;

		for (uint32_t i = 0; i < period; i++)
			pattern[i] = i == 0 ? 63 : (uint32_t)(stream_random(&s) * 20);
		for (uint32_t i = 0; n < N; i++) {
			double chance = stream_random(&s);

			if (chance < rate / 3)
				continue;
			calls[n++] = chance < 2 * rate / 3 ? (uint32_t)(stream_random(&s) * 20) :
							     pattern[i % period];
			if (chance > 1 - rate / 3 && n < N)
				calls[n++] = pattern[i % period];
		}
		while (lag * PERIOD_REPEATS <= N && correlation(calls, N, lag) < PERIOD_CORRELATION)
			lag++;
		lag = lag * PERIOD_REPEATS <= N ? lag : 0;
		assert_int_equal(period_of(calls, N), lag);
		if (rate == 0)
			assert_int_equal(lag, period);
		found += lag == period;
		none += lag == 0;
		assert_true(lag == 0 || lag % period == 0 || rate > 0);
	}
	assert_true(found > 100);
	assert_true(none > 10);
	stream_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_what_is_defined),
		cmocka_unit_test(finds_the_smallest),
		cmocka_unit_test(tolerates_what_is_rare),
		cmocka_unit_test(what_is_always_the_same),
		cmocka_unit_test(none),
		cmocka_unit_test(too_irregular),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
