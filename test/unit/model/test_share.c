// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/macro.h"
#include "model/share.h"

enum { LIMIT = 32 };

/* A table with so many entries of root's and of each user. */
static struct share table(uint32_t user, unsigned of_root, unsigned of_user[3], bool idle)
{
	struct share share = { .user = user };

	for (unsigned i = 0; i < of_root; i++)
		share_count(&share, 0, idle);
	for (unsigned u = 0; u < 3; u++)
		for (unsigned i = 0; i < of_user[u]; i++)
			share_count(&share, 1000 + u, idle);
	return share;
}

static void a_user_has_an_eighth(_unused_ void **state)
{
	unsigned three[] = { 3, 0, 0 }, four[] = { 4, 0, 0 };
	struct share share = table(1000, 10, three, false);

	assert_int_equal(share_room(&share, LIMIT), SHARE_FREE);
	assert_true(share_has_place(&share, LIMIT));
	share = table(1000, 10, four, false);
	assert_int_equal(share_room(&share, LIMIT), SHARE_OF_OWN);
	assert_false(share_has_place(&share, LIMIT));
	share_count(&share, 0, true);
	share_count(&share, 1001, true);
	assert_false(share_has_place(&share, LIMIT));
	share = table(1000, 10, four, true);
	assert_true(share_has_place(&share, LIMIT));
	assert_true(share_may_take(&share, SHARE_OF_OWN, 1000));
	assert_false(share_may_take(&share, SHARE_OF_OWN, 1001));
	assert_false(share_may_take(&share, SHARE_OF_OWN, 0));
	share = table(1001, 10, four, false);
	assert_int_equal(share_room(&share, LIMIT), SHARE_FREE);
}

static void all_users_have_a_half(_unused_ void **state)
{
	unsigned half[] = { 6, 7, 3 };
	struct share share = table(1002, 4, half, true);

	assert_int_equal(share_room(&share, LIMIT), SHARE_OF_USERS);
	assert_true(share_may_take(&share, SHARE_OF_USERS, 1000));
	assert_false(share_may_take(&share, SHARE_OF_USERS, 0));
	assert_true(share_has_place(&share, LIMIT));
	share = table(1002, 4, half, false);
	share_count(&share, 0, true);
	assert_false(share_has_place(&share, LIMIT));
}

static void the_rest_is_bounded_by_the_table(_unused_ void **state)
{
	unsigned half[] = { 6, 7, 3 }, none[] = { 0, 0, 0 };
	struct share share = table(0, LIMIT / 2 - 1, half, false);

	assert_int_equal(share_room(&share, LIMIT), SHARE_FREE);
	share = table(0, LIMIT / 2, half, true);
	assert_int_equal(share_room(&share, LIMIT), SHARE_OF_ANY);
	assert_true(share_may_take(&share, SHARE_OF_ANY, 0));
	assert_true(share_may_take(&share, SHARE_OF_ANY, 1000));
	assert_true(share_has_place(&share, LIMIT));
	share = table(0, LIMIT, none, false);
	assert_false(share_has_place(&share, LIMIT));
	share = table(1000, LIMIT, none, false);
	assert_int_equal(share_room(&share, LIMIT), SHARE_OF_ANY);
}

/* However small the table is. */
static void a_user_has_one_place(_unused_ void **state)
{
	struct share share = { .user = 1000 };

	assert_int_equal(share_room(&share, 1), SHARE_FREE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_has_an_eighth),
		cmocka_unit_test(all_users_have_a_half),
		cmocka_unit_test(the_rest_is_bounded_by_the_table),
		cmocka_unit_test(a_user_has_one_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
