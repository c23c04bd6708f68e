// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/clock.h"
#include "trace/users.h"

#define NOW ((int64_t)(1000 * NSEC_PER_SEC))
#define SECOND ((int64_t)NSEC_PER_SEC)

static struct users users;

static int end(void **state)
{
	(void)state;
	users_done(&users);
	return 0;
}

static void files_are_opened_in_bursts(void **state)
{
	(void)state;
	for (unsigned i = 0; i < USER_BURST; i++)
		assert_int_equal(users_may_open(&users, 7, NOW), USER_MAY);
	assert_int_equal(users_may_open(&users, 7, NOW), USER_BEYOND_SHARE);
	assert_int_equal(users_may_open(&users, 8, NOW), USER_MAY);
	assert_int_equal(users_may_open(&users, 7, NOW + SECOND - 1), USER_BEYOND_SHARE);
	assert_int_equal(users_may_open(&users, 7, NOW + SECOND), USER_MAY);
	assert_int_equal(users_may_open(&users, 7, NOW + SECOND), USER_BEYOND_SHARE);
	/* A long rest gives no more than a burst. */
	for (unsigned i = 0; i < USER_BURST; i++)
		assert_int_equal(users_may_open(&users, 7, NOW + 1000000 * SECOND), USER_MAY);
	assert_int_equal(users_may_open(&users, 7, NOW + 1000000 * SECOND), USER_BEYOND_SHARE);
	assert_int_equal(users.beyond_share, 4);
}

static void files_and_sites_have_shares(void **state)
{
	uint64_t left = (USERS_SHARES - 1) * USER_FILES_MAX;

	(void)state;
	assert_int_equal(users_attach(&users, 9, 1), USER_BEYOND_SHARE); /* never asked */
	assert_int_equal(users_may_open(&users, 1, NOW), USER_MAY);
	assert_int_equal(users_attach(&users, 1, USER_SITES_MAX), USER_MAY);
	assert_int_equal(users_attach(&users, 1, 1), USER_BEYOND_SHARE);
	users_detach(&users, 1, USER_SITES_MAX);
	for (unsigned i = 0; i < USER_FILES_MAX; i++)
		assert_int_equal(users_attach(&users, 1, 1), USER_MAY);
	assert_int_equal(users_attach(&users, 1, 1), USER_BEYOND_SHARE);
	/* All users together have four shares, and none more than it leaves: a newcomer finds something. */
	for (uint64_t id = 2; id < 100; id++) {
		assert_int_equal(users_may_open(&users, id, NOW), USER_MAY);
		while (users_attach(&users, id, 1) == USER_MAY)
			left--;
		if (id <= 3)
			assert_int_equal(left, (USERS_SHARES - id) * USER_FILES_MAX);
		else if (id < 8)
			assert_int_equal(left, USER_FILES_MAX >> (id - 3));
	}
	assert_int_equal(left, 1);
	users_detach(&users, 2, 1);
	assert_int_equal(users_attach(&users, 100, 1), USER_BEYOND_SHARE); /* never asked */
	assert_int_equal(users_may_open(&users, 100, NOW), USER_MAY);
	assert_int_equal(users_attach(&users, 100, 1), USER_MAY);
}

/* Sites that patterns find take nothing from others, of nobody. */
static void operators_have_shares_of_their_own(void **state)
{
	(void)state;
	assert_int_equal(users_attach_operators(&users, 1, 1), USER_BEYOND_SHARE); /* never asked */
	for (uint64_t id = 1; id <= 2; id++) {
		assert_int_equal(users_may_open(&users, id, NOW), USER_MAY);
		assert_int_equal(users_attach(&users, id, 0), USER_MAY);
		assert_int_equal(users_attach_operators(&users, id, USER_OPERATORS_MAX), USER_MAY);
		assert_int_equal(users_attach_operators(&users, id, 1), USER_BEYOND_SHARE);
		assert_int_equal(users_attach(&users, id, USER_SITES_MAX), USER_MAY);
	}
	assert_int_equal(users_may_open(&users, 3, NOW), USER_MAY);
	assert_int_equal(users_attach_operators(&users, 3, USER_OPERATORS_MAX), USER_MAY);
	/* Nobody more than is then left. */
	assert_int_equal(users_may_open(&users, 4, NOW), USER_MAY);
	assert_int_equal(users_attach_operators(&users, 4, USER_OPERATORS_MAX), USER_BEYOND_SHARE);
	assert_int_equal(users_attach_operators(&users, 4, USER_OPERATORS_MAX / 2), USER_MAY);
	users_detach_operators(&users, 1, USER_OPERATORS_MAX);
	assert_int_equal(users_attach_operators(&users, 1, USER_OPERATORS_MAX / 2), USER_MAY);
	assert_int_equal(users.sites, 2 * USER_SITES_MAX);
}

static void processes_have_shares(void **state)
{
	uint32_t n = 0;

	(void)state;
	while (users_process(&users, 1, n, 100, NOW) == USER_MAY)
		n++;
	assert_int_equal(n, 50);
	while (users_process(&users, 2, n, 100, NOW) == USER_MAY)
		n++;
	assert_int_equal(n, 75);
	assert_int_equal(users_process(&users, 1, n, 100, NOW), USER_BEYOND_SHARE);
	assert_int_equal(users_process(&users, 3, n, 100, NOW), USER_MAY);
	for (unsigned i = 0; i < 40; i++)
		users_process_gone(&users, 1);
	assert_int_equal(users_process(&users, 1, 36, 100, NOW), USER_MAY);
}

static void users_take_turns(void **state)
{
	(void)state;
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(users_may_open(&users, id, NOW), USER_MAY);
	users_serve(&users, 1);
	users_serve(&users, 2);
	assert_true(users_turn(&users, 3) < users_turn(&users, 1));
	assert_true(users_turn(&users, 1) < users_turn(&users, 2));
	users_serve(&users, 1);
	assert_true(users_turn(&users, 2) < users_turn(&users, 1));
	assert_int_equal(users_turn(&users, 99), 0);
}

static void strikes_bar_for_longer_and_longer(void **state)
{
	int64_t now = NOW;

	(void)state;
	assert_false(users_any_barred(&users, now));
	for (unsigned i = 0; i < 9; i++) {
		int64_t barred = (60 * SECOND) << (i < 6 ? i : 6);

		users_strike(&users, 5, now);
		assert_true(users_any_barred(&users, now));
		assert_true(users_barred(&users, 5, now + barred - 1));
		assert_int_equal(users_may_open(&users, 5, now + barred - 1), USER_BARRED);
		assert_int_equal(users_may_open(&users, 6, now), USER_MAY);
		now += barred;
		assert_false(users_barred(&users, 5, now));
		assert_false(users_any_barred(&users, now));
		assert_int_equal(users_may_open(&users, 5, now), USER_MAY);
	}
	now += 48 * 3600 * SECOND;
	users_strike(&users, 5, now);
	assert_false(users_barred(&users, 5, now + 60 * SECOND));
	assert_int_equal(users.strikes, 10);
}

static void many_users_are_bounded(void **state)
{
	int64_t later = NOW + 2 * USER_BURST * SECOND;

	(void)state;
	for (uint64_t id = 0; id < USERS_MAX; id++)
		assert_int_equal(users_may_open(&users, id, NOW), USER_MAY);
	assert_int_equal(users_attach(&users, 3, 10), USER_MAY);
	users_strike(&users, 4, NOW);
	assert_int_equal(users_may_open(&users, USERS_MAX, NOW), USER_BEYOND_SHARE);
	/* Those who hold nothing are forgotten, but not who is barred. */
	assert_int_equal(users_may_open(&users, USERS_MAX, later - SECOND * USER_BURST + SECOND), USER_MAY);
	assert_int_equal(users.n, 3);
	assert_int_equal(users.sites, 10);
	users_detach(&users, 3, 10);
	assert_int_equal(users.sites, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(files_are_opened_in_bursts, end),
		cmocka_unit_test_teardown(files_and_sites_have_shares, end),
		cmocka_unit_test_teardown(operators_have_shares_of_their_own, end),
		cmocka_unit_test_teardown(processes_have_shares, end),
		cmocka_unit_test_teardown(users_take_turns, end),
		cmocka_unit_test_teardown(strikes_bar_for_longer_and_longer, end),
		cmocka_unit_test_teardown(many_users_are_bounded, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
