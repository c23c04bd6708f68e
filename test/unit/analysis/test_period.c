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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_smallest),      cmocka_unit_test(tolerates_what_is_rare),
		cmocka_unit_test(what_is_always_the_same), cmocka_unit_test(none),
		cmocka_unit_test(too_irregular),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
