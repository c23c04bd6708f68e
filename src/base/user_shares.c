// SPDX-License-Identifier: Apache-2.0
#include "base/user_shares.h"

/* users_n: none. */
static uint32_t user_find(const struct user_shares *shares, uint64_t id)
{
	uint32_t i = 0;

	while (i < shares->users_n && shares->users[i].id != id)
		i++;
	return i;
}

static bool has_nothing(const struct user_share *user)
{
	for (unsigned i = 0; i < USER_SHARES_TABLES; i++)
		if (user->used[i] > 0)
			return false;
	return true;
}

uint32_t user_shares_charged(struct user_shares *shares, uint64_t id)
{
	uint32_t i = user_find(shares, id);

	if (i < shares->users_n || shares->users_n < USER_SHARES_USERS)
		return user_shares_user(shares, id);
	for (i = 0; i < USER_SHARES_USERS - 1; i++)
		if (has_nothing(&shares->users[i])) {
			shares->users[i].id = id;
			return i;
		}
	return USER_SHARES_USERS - 1;
}

uint32_t user_shares_user(struct user_shares *shares, uint64_t id)
{
	uint32_t i = user_find(shares, id);

	if (i < shares->users_n)
		return i;
	if (shares->users_n == USER_SHARES_USERS)
		return USER_SHARES_USERS - 1;
	shares->users[shares->users_n] = (struct user_share){ .id = id };
	return shares->users_n++;
}

bool user_shares_have(const struct user_shares *shares, uint32_t user, unsigned table, uint32_t n)
{
	uint32_t used = shares->used[table], room = shares->room[table];

	if (used > room || n > room - used)
		return false;
	/* As many as this were asked for one by one. */
	return n == 0 || (uint64_t)shares->users[user].used[table] + n - 1 <
				 (uint64_t)USER_SHARE * (room - used - (n - 1));
}

void user_shares_take(struct user_shares *shares, uint32_t user, unsigned table, uint32_t n)
{
	shares->users[user].used[table] += n;
	shares->used[table] += n;
}

void user_shares_give(struct user_shares *shares, uint32_t user, unsigned table, uint32_t n)
{
	shares->users[user].used[table] -= n;
	shares->used[table] -= n;
}
