// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/macro.h"
#include "bpf/event.h"
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

/* What tells less for what it costs goes before events do, unless it costs next to nothing. */
static void layers_first(_unused_ void **state)
{
	static const enum probe_group order[] = { PROBE_GROUP_OPERATORS, PROBE_GROUP_CALLS };
	struct budget_process p = { .begin_ns = SECOND };
	enum probe_group group = PROBE_GROUPS;
	unsigned given_up = 0;
	int64_t now = SECOND;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		for (size_t k = i; k < ARRAY_SIZE(order); k++)
			budget_add(&p, order[k], 3e7, 0);
		assert_int_equal(window(&p, PROBE_GROUP_LAUNCH, 0.03, 0.02, given_up, &now, &group),
				 BUDGET_GIVE_UP);
		assert_int_equal(group, order[i]);
		given_up |= 1U << group;
	}
	assert_int_equal(window(&p, PROBE_GROUP_LAUNCH, 0.03, 0.02, given_up, &now, &group), BUDGET_QUIET);
	budget_add(&p, PROBE_GROUP_OPERATORS, 1e6, 0);
	budget_add(&p, PROBE_GROUP_CALLS, 1e6, 0);
	assert_int_equal(window(&p, PROBE_GROUP_LAUNCH, 0.03, 0.02, 0, &now, &group), BUDGET_QUIET);
	assert_int_equal(window(&p, PROBE_GROUP_OPERATORS, 0.01, 0.02, 0, &now, &group), BUDGET_FINE);
}

/* One second of @calls calls whose stacks cost 4 us each and whose probes cost @others, as a share. */
static bool second(struct budget_process *p, double calls, double others, double max, int64_t *now)
{
	if (!p->stacks.none.taken)
		budget_add_stacks(p, calls / (1U << p->stacks.shift) * 4000);
	budget_add(p, PROBE_GROUP_LAUNCH, others * 1e9, calls);
	*now += SECOND;
	return budget_judge_stacks(p, max, true, 0, false, *now);
}

/* A flood of calls: a sample that fits at once, and all stacks again after it. */
static void stacks_become_a_sample(_unused_ void **state)
{
	struct budget_process p = { .begin_ns = SECOND };
	int64_t now = SECOND;

	assert_false(budget_judge_stacks(&p, 0.02, true, 0, false, now));
	assert_false(second(&p, 1000, 0.005, 0.02, &now)); /* 0.4 % of a core */
	assert_int_equal(p.stacks.shift, 0);
	assert_true(second(&p, 100000, 0.005, 0.02, &now)); /* 40 %, with room for 1.5 % */
	assert_int_equal(p.stacks.shift, 5);
	for (unsigned i = 0; i < 20; i++) {
		assert_false(second(&p, 100000, 0.005, 0.02, &now));
		assert_true(p.stacks.overhead < 0.015);
	}
	for (unsigned shift = 5; shift > 0; shift--) {
		assert_true(second(&p, 1000, 0.005, 0.02, &now));
		assert_int_equal(p.stacks.shift, shift - 1);
	}
	assert_false(second(&p, 1000, 0.005, 0.02, &now));
	/* Not the least, where the user wants fewer. */
	budget_add_stacks(&p, 1);
	now += SECOND;
	assert_true(budget_judge_stacks(&p, 0.02, true, 3, false, now));
	assert_int_equal(p.stacks.shift, 3);
}

/* Where the probes alone cost too much, stacks go first. */
static void stacks_are_given_up_first(_unused_ void **state)
{
	struct budget_process p = { .begin_ns = SECOND };
	enum probe_group group;
	int64_t now = SECOND;

	assert_false(budget_judge_stacks(&p, 0.02, true, 0, false, now));
	assert_true(second(&p, 100000, 0.021, 0.02, &now));
	assert_true(p.stacks.none.taken);
	assert_int_equal(budget_judge(&p, 0.02, 0, now, &group), BUDGET_FINE); /* its window goes on */
	for (unsigned i = 0; i < 29; i++)
		assert_false(second(&p, 100000, 0.021, 0.02, &now));
	assert_true(second(&p, 1000, 0.001, 0.02, &now));
	assert_false(p.stacks.none.taken);
	assert_int_equal(p.stacks.shift, TRACE_FLAG_SAMPLED_BITS);
	for (unsigned shift = TRACE_FLAG_SAMPLED_BITS; shift > 0; shift--)
		assert_true(second(&p, 1000, 0.001, 0.02, &now));
	/* Without a budget nothing changes, and stacks alone may have a bound of their own. */
	assert_false(second(&p, 1e6, 0.5, 0, &now));
	budget_add_stacks(&p, 1e7);
	budget_add(&p, PROBE_GROUP_LAUNCH, 5e8, 0);
	now += SECOND;
	assert_false(budget_judge_stacks(&p, 0.02, false, 0, false, now));
}

/* Native frames go before the sample becomes too small, and come back; stacks go after them. */
static void native_frames_are_given_up_before_stacks(_unused_ void **state)
{
	struct budget_process p = { .begin_ns = SECOND };
	int64_t now = SECOND;

	assert_false(budget_judge_stacks(&p, 0.02, true, 0, true, now));
	budget_add_stacks(&p, 0.5e9); /* a sample of one in 32 fits */
	assert_true(budget_judge_stacks(&p, 0.02, true, 0, true, now += SECOND));
	assert_int_equal(p.stacks.shift, 5);
	assert_false(p.stacks.native.taken);
	budget_add_stacks(&p, 0.1e9); /* one in 512 would */
	assert_true(budget_judge_stacks(&p, 0.02, true, 0, true, now += SECOND));
	assert_true(p.stacks.native.taken);
	assert_false(p.stacks.none.taken);
	assert_int_equal(p.stacks.shift, BUDGET_NATIVE_SHIFT);
	/* Without them it is what it is. */
	budget_add_stacks(&p, 0.1e9);
	assert_true(budget_judge_stacks(&p, 0.02, true, 0, true, now += SECOND));
	assert_int_equal(p.stacks.shift, BUDGET_NATIVE_SHIFT + 3);
	budget_add(&p, PROBE_GROUP_LAUNCH, 0.03e9, 1);
	budget_add_stacks(&p, 1);
	assert_true(budget_judge_stacks(&p, 0.02, true, 0, true, now += SECOND));
	assert_true(p.stacks.none.taken);
	now += BUDGET_BACKOFF_MIN_NS;
	assert_true(budget_judge_stacks(&p, 0.02, true, 0, true, now));
	assert_false(p.stacks.none.taken);
	budget_add_stacks(&p, 1);
	assert_true(budget_judge_stacks(&p, 0.02, true, 0, true, now += SECOND));
	assert_false(p.stacks.native.taken);
	/* Who records none gives up none. */
	p = (struct budget_process){ .begin_ns = SECOND };
	now = SECOND;
	assert_false(budget_judge_stacks(&p, 0.02, true, 0, false, now));
	budget_add_stacks(&p, 3e9);
	assert_true(budget_judge_stacks(&p, 0.02, true, 0, false, now += SECOND));
	assert_false(p.stacks.native.taken);
	assert_true(p.stacks.shift > BUDGET_NATIVE_SHIFT);
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
		cmocka_unit_test(layers_first),
		cmocka_unit_test(stacks_become_a_sample),
		cmocka_unit_test(stacks_are_given_up_first),
		cmocka_unit_test(native_frames_are_given_up_before_stacks),
		cmocka_unit_test(only_whole_windows_count),
		cmocka_unit_test(back_off_doubles),
		cmocka_unit_test(own_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
