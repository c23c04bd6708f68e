// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/macro.h"
#include "trace/budget.h"

#define SECOND INT64_C(1000000000)

/* Ten seconds that end at @now and cost this share of a core, all in one group. */
static enum budget_verdict window(struct budget_process *p, enum probe_group group, double share, double max,
				  unsigned given_up, int64_t *now, enum probe_group *ret_group)
{
	budget_add(p, group, share * 10e9, 1000);
	*now += 10 * SECOND;
	return budget_judge(p, max, given_up, *now, ret_group);
}

static void quiet_then_dearest(_unused_ void **state)
{
	struct budget_process p = { .begin_ns = SECOND };
	enum probe_group group = PROBE_GROUPS;
	int64_t now = SECOND;

	assert_int_equal(window(&p, PROBE_GROUP_LAUNCH, 0.019, 0.02, 0, &now, &group), BUDGET_FINE);
	assert_int_equal(window(&p, PROBE_GROUP_LAUNCH, 0.021, 0.02, 0, &now, &group), BUDGET_QUIET);
	assert_true(p.overhead > 0.0209 && p.overhead < 0.0211);
	budget_take(&p.quiet, now);
	budget_add(&p, PROBE_GROUP_COPY, 1e8, 0);
	budget_add(&p, PROBE_GROUP_SETUP, 5e9, 0);
	assert_int_equal(window(&p, PROBE_GROUP_LAUNCH, 0.03, 0.02, 0, &now, &group), BUDGET_GIVE_UP);
	assert_int_equal(group, PROBE_GROUP_LAUNCH);
	/* What is left, and setup last, however expensive. */
	budget_add(&p, PROBE_GROUP_SETUP, 5e9, 0);
	assert_int_equal(window(&p, PROBE_GROUP_COPY, 0.01, 0.02, 1U << PROBE_GROUP_LAUNCH, &now, &group),
			 BUDGET_GIVE_UP);
	assert_int_equal(group, PROBE_GROUP_COPY);
	assert_int_equal(window(&p, PROBE_GROUP_SETUP, 0.5, 0.02,
				1U << PROBE_GROUP_LAUNCH | 1U << PROBE_GROUP_COPY, &now, &group),
			 BUDGET_GIVE_UP);
	assert_int_equal(group, PROBE_GROUP_SETUP);
	assert_int_equal(window(&p, PROBE_GROUP_SETUP, 0.5, 0.02, (1U << PROBE_GROUPS) - 1, &now, &group),
			 BUDGET_FINE);
}

static void operators_first(_unused_ void **state)
{
	const unsigned given_up = 1U << PROBE_GROUP_OPERATORS;
	struct budget_process p = { .begin_ns = SECOND };
	enum probe_group group = PROBE_GROUPS;
	int64_t now = SECOND;

	/* However little they cost, and before events. */
	budget_add(&p, PROBE_GROUP_OPERATORS, 1, 0);
	assert_int_equal(window(&p, PROBE_GROUP_LAUNCH, 0.03, 0.02, 0, &now, &group), BUDGET_GIVE_UP);
	assert_int_equal(group, PROBE_GROUP_OPERATORS);
	budget_add(&p, PROBE_GROUP_OPERATORS, 1, 0);
	assert_int_equal(window(&p, PROBE_GROUP_LAUNCH, 0.03, 0.02, given_up, &now, &group), BUDGET_QUIET);
	assert_int_equal(window(&p, PROBE_GROUP_OPERATORS, 0.01, 0.02, 0, &now, &group), BUDGET_FINE);
}

static void only_whole_windows_count(_unused_ void **state)
{
	struct budget_process p = { .begin_ns = SECOND };
	enum probe_group group;

	budget_add(&p, PROBE_GROUP_LAUNCH, 5e9, 10);
	assert_int_equal(budget_judge(&p, 0.02, 0, 6 * SECOND, &group), BUDGET_FINE);
	assert_true(p.overhead > 0.99 && p.overhead < 1.01); /* shown all the same */
	assert_int_equal(budget_judge(&p, 0.02, 0, 11 * SECOND, &group), BUDGET_QUIET);
	assert_true(p.overhead > 0.49 && p.overhead < 0.51);
	/* The next window begins at zero. */
	assert_int_equal(budget_judge(&p, 0.02, 0, 21 * SECOND, &group), BUDGET_FINE);
	assert_true(p.overhead == 0);
	/* A clock that stands still, or no budget. */
	budget_add(&p, PROBE_GROUP_LAUNCH, 5e9, 10);
	assert_int_equal(budget_judge(&p, 0.02, 0, 21 * SECOND, &group), BUDGET_FINE);
	assert_int_equal(budget_judge(&p, 0, 0, 40 * SECOND, &group), BUDGET_FINE);
}

static void back_off_doubles(_unused_ void **state)
{
	struct budget_backoff b = { 0 };
	int64_t now = SECOND, expected = 30 * SECOND;

	for (int i = 0; i < 12; i++) {
		budget_take(&b, now);
		assert_true(b.taken);
		assert_int_equal(b.length_ns, expected);
		assert_false(budget_due(&b, now + expected - 1));
		now += expected;
		assert_true(budget_due(&b, now));
		budget_give_back(&b, now);
		assert_false(budget_due(&b, now + expected));
		now += 10 * SECOND;
		expected = MIN(2 * expected, 3600 * SECOND);
	}
	/* It held for as long as it had been away: forgiven. */
	now += 3600 * SECOND;
	budget_take(&b, now);
	assert_int_equal(b.length_ns, 30 * SECOND);
	/* Taken already: stays as it is. */
	budget_take(&b, now + SECOND);
	assert_int_equal(b.since_ns, now);
}

static void own_cpu(_unused_ void **state)
{
	struct budget_own own = { 0 };

	assert_false(budget_own_judge(&own, 5.0, 0.02, SECOND));
	assert_false(budget_own_judge(&own, 9.0, 0.02, 5 * SECOND));
	assert_true(budget_own_judge(&own, 5.3, 0.02, 11 * SECOND));
	assert_true(own.share > 0.029 && own.share < 0.031);
	assert_false(budget_own_judge(&own, 5.4, 0.02, 21 * SECOND));
	assert_false(budget_own_judge(&own, 9.0, 0, 31 * SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quiet_then_dearest),
		cmocka_unit_test(operators_first),
		cmocka_unit_test(only_whole_windows_count),
		cmocka_unit_test(back_off_doubles),
		cmocka_unit_test(own_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
