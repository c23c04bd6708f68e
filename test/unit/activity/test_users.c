// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "activity/users.h"
#include "base/macro.h"

enum { ROOM = 80, SHARE = 70 };

/* Process 1 to 999 are of user 0, 1000 to 1999 of user 1, and so on. */
static uint64_t user_of(uint32_t tgid, void *userdata)
{
	++*(unsigned *)userdata;
	return tgid / 1000;
}

static struct traced_users *users_new(enum traced_table table, unsigned *asked)
{
	struct traced_users *users = calloc(1, sizeof(*users));

	assert_non_null(users);
	users->user_of = user_of;
	users->userdata = asked;
	traced_users_room(users, table, ROOM);
	return users;
}

static void nobody_has_all(_unused_ void **state)
{
	unsigned asked = 0;
	struct traced_users *users = users_new(TRACED_TABLE_TORCH, &asked);
	uint32_t user, other;

	for (uint32_t i = 1; i <= ROOM; i++)
		assert_int_equal(traced_users_enter(users, TRACED_TABLE_TORCH, i, &user),
				 i <= SHARE ? 0 : -ENOBUFS);
	assert_int_equal(traced_users_enter(users, TRACED_TABLE_TORCH, 1000, &other), 0);
	assert_int_not_equal(user, other);
	/* Of who has no room nothing is read again for each of his events. */
	asked = 0;
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(traced_users_enter(users, TRACED_TABLE_TORCH, 1, &user), -ENOBUFS);
	assert_in_range(asked, 0, 50);
	traced_users_give(users, TRACED_TABLE_TORCH, user, 1);
	assert_int_equal(traced_users_enter(users, TRACED_TABLE_TORCH, 1, &user), 0);
	free(users);
}

/* Those who have nothing any more make room: 1,000 users one after the other are each one of their own. */
static void users_come_and_go(_unused_ void **state)
{
	unsigned asked = 0;
	struct traced_users *users = users_new(TRACED_TABLE_BLAS, &asked);
	uint32_t first, user;

	assert_int_equal(traced_users_enter(users, TRACED_TABLE_BLAS, 1, &first), 0);
	for (uint32_t i = 1; i <= 1000; i++) {
		assert_int_equal(traced_users_enter(users, TRACED_TABLE_BLAS, i * 1000, &user), 0);
		assert_int_not_equal(user, first);
		assert_int_equal(users->shares.users[user].used[TRACED_TABLE_BLAS], 1);
		traced_users_give(users, TRACED_TABLE_BLAS, user, 1);
	}
	free(users);
}

static void without_users_there_is_no_limit(_unused_ void **state)
{
	uint32_t user = 7;

	assert_int_equal(traced_users_enter(NULL, TRACED_TABLE_NCCL, 1, &user), 0);
	assert_int_equal(user, 0);
	assert_true(traced_users_have(NULL, TRACED_TABLE_NCCL, 0, UINT32_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_has_all),
		cmocka_unit_test(users_come_and_go),
		cmocka_unit_test(without_users_there_is_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
