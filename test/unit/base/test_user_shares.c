// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/macro.h"
#include "base/user_shares.h"

enum { TABLE = 3, ROOM = 80 };

/* One alone has 7/8, one by one and at once; what it leaves is for others. */
static void seven_eighths(_unused_ void **state)
{
	struct user_shares shares = { .room = { [TABLE] = ROOM } };
	uint32_t one = user_shares_user(&shares, 1000), other = user_shares_user(&shares, 1001), n = 0;

	assert_true(user_shares_have(&shares, one, TABLE, ROOM / 8 * 7));
	assert_false(user_shares_have(&shares, one, TABLE, ROOM / 8 * 7 + 1));
	assert_false(user_shares_have(&shares, one, TABLE, ROOM + 1));
	for (; user_shares_have(&shares, one, TABLE, 1); n++)
		user_shares_take(&shares, one, TABLE, 1);
	assert_int_equal(n, ROOM / 8 * 7);
	assert_true(user_shares_have(&shares, one, TABLE, 0));
	assert_true(user_shares_have(&shares, other, TABLE, 1));
	assert_false(user_shares_have(&shares, other, TABLE, ROOM - n));
	user_shares_give(&shares, one, TABLE, 8);
	assert_true(user_shares_have(&shares, one, TABLE, 8));
	assert_false(user_shares_have(&shares, other, TABLE, ROOM - n + 8 + 1));
}

static void users_have_indexes(_unused_ void **state)
{
	struct user_shares shares = { .users_n = 0 };

	for (uint32_t i = 0; i < USER_SHARES_USERS; i++)
		assert_int_equal(user_shares_user(&shares, 7 * i), i);
	assert_int_equal(user_shares_user(&shares, 14), 2);
	assert_int_equal(user_shares_user(&shares, 5), USER_SHARES_USERS - 1);
}

/* Of those who are charged as long as they are kept, who has nothing makes room. */
static void the_place_of_who_has_nothing(_unused_ void **state)
{
	struct user_shares shares = { .room = { [TABLE] = ROOM } };

	for (uint32_t i = 0; i < USER_SHARES_USERS; i++)
		user_shares_take(&shares, user_shares_charged(&shares, i), TABLE, 1);
	assert_int_equal(user_shares_charged(&shares, 1000), USER_SHARES_USERS - 1);
	user_shares_give(&shares, 3, TABLE, 1);
	assert_int_equal(user_shares_charged(&shares, 3), 3);
	assert_int_equal(user_shares_charged(&shares, 1000), 3);
	assert_int_equal(user_shares_user(&shares, 1000), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seven_eighths),
		cmocka_unit_test(users_have_indexes),
		cmocka_unit_test(the_place_of_who_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
