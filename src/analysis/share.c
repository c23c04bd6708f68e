// SPDX-License-Identifier: Apache-2.0
/* Tables that users share (shares.def). */
#include "analysis/private.h"

void shares_init(struct user_shares *shares)
{
	static const uint32_t rooms[ANALYSIS_SHARES] = {
#define SHARE(id_, room_) [SHARE_##id_] = (room_),
#include "analysis/shares.def"
#undef SHARE
	};

	for (unsigned i = 0; i < ANALYSIS_SHARES; i++)
		shares->room[i] = rooms[i];
}

bool share_has(struct analysis *a, uint64_t user, enum analysis_share share, uint32_t n)
{
	return user == 0 || user_shares_have(&a->shares, user_shares_user(&a->shares, user), share, n);
}

void share_take(struct analysis *a, uint64_t user, enum analysis_share share, uint32_t n)
{
	if (user != 0)
		user_shares_take(&a->shares, user_shares_user(&a->shares, user), share, n);
}

void share_give(struct analysis *a, uint64_t user, enum analysis_share share, uint32_t n)
{
	if (user != 0)
		user_shares_give(&a->shares, user_shares_user(&a->shares, user), share, n);
}

void share_clear(struct analysis *a, enum analysis_share share)
{
	a->shares.used[share] = 0;
	for (uint32_t user = 0; user < a->shares.users_n; user++)
		a->shares.users[user].used[share] = 0;
}
