// SPDX-License-Identifier: Apache-2.0
#include "base/user_shares.h"

uint32_t user_shares_user(struct user_shares *shares, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < shares->users_n; i++)
		if (shares->users[i].id == id)
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
