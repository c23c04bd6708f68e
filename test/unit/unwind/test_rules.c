// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "base/macro.h"
#include "unwind/private.h"

struct fixture {
	struct rules rules;
	struct user_shares shares;
	struct unwind_rule *map;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->map = calloc(UNWIND_RULES, sizeof(*f->map));
	assert_non_null(f->map);
	f->shares.room[UNWIND_SHARE_RULES] = UNWIND_RULES;
	assert_int_equal(rules_init(&f->rules, f->map), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	rules_done(&f->rules);
	free(f->map);
	free(f);
	return 0;
}

static uint32_t take(struct fixture *f, uint32_t user, int32_t cfa)
{
	const struct unwind_rule rule = { .kind = UNWIND_SP, .cfa = cfa };
	uint32_t index = 77;

	assert_int_equal(rules_take(&f->rules, &f->shares, user, true, &rule, &index), 0);
	assert_int_equal(f->map[index].cfa, cfa);
	return index;
}

/* A rule is there as long as a file has it, and charged to the first one's user. */
static void equal_rules_are_one(void **state)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	struct fixture *f = *state;
	uint32_t one = user_shares_user(&f->shares, 1), other = user_shares_user(&f->shares, 2);
	uint32_t first = take(f, one, 8), second = take(f, one, 16), zero = 77;

	assert_int_equal(rules_take(&f->rules, &f->shares, one, true, &none, &zero), 0);
	assert_int_equal(zero, 0);
	assert_true(first != second && first != 0 && second != 0);
	assert_int_equal(take(f, other, 8), first);
	assert_int_equal(f->shares.users[one].used[UNWIND_SHARE_RULES], 2);
	assert_int_equal(f->shares.users[other].used[UNWIND_SHARE_RULES], 0);
	rules_give(&f->rules, &f->shares, 0);
	rules_give(&f->rules, &f->shares, first);
	assert_int_equal(take(f, other, 8), first);
	rules_give(&f->rules, &f->shares, first);
	rules_give(&f->rules, &f->shares, first);
	assert_int_equal(f->shares.users[one].used[UNWIND_SHARE_RULES], 1);
	/* Its place is another one's now. */
	assert_int_equal(take(f, other, 24), first);
	assert_true(take(f, other, 8) != first);
	assert_int_equal(f->shares.users[other].used[UNWIND_SHARE_RULES], 2);
}

static void a_user_leaves_some(void **state)
{
	struct fixture *f = *state;
	uint32_t one = user_shares_user(&f->shares, 1), other = user_shares_user(&f->shares, 2), index, n = 0;
	struct unwind_rule rule = { .kind = UNWIND_SP };

	do
		rule.cfa = (int32_t)++n;
	while (rules_take(&f->rules, &f->shares, one, true, &rule, &index) == 0);
	assert_int_equal(n - 1, UNWIND_RULES / 8 * 7);
	assert_int_equal(rules_take(&f->rules, &f->shares, one, true, &rule, &index), -ENOBUFS);
	assert_int_equal(index, 0);
	assert_int_equal(rules_take(&f->rules, &f->shares, other, true, &rule, &index), 0);
	/* Without shares it has all of them. */
	for (rule.cfa = -1; rules_take(&f->rules, &f->shares, one, false, &rule, &index) == 0; n++)
		rule.cfa--;
	assert_int_equal(n + 1, UNWIND_RULES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(equal_rules_are_one, setup, teardown),
		cmocka_unit_test_setup_teardown(a_user_leaves_some, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
