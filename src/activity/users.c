// SPDX-License-Identifier: Apache-2.0
#include "activity/users.h"

#include <errno.h>

#include "base/clock.h"

enum { ASKED_NS = 1000 * 1000 * 1000 };

void traced_users_room(struct traced_users *users, enum traced_table table, uint32_t room)
{
	if (users)
		users->shares.room[table] = room;
}

static uint64_t user_of(struct traced_users *users, uint32_t tgid)
{
	uint32_t i = tgid % TRACED_USERS_ASKED;
	int64_t now_ns = clock_mono_ns();

	if (users->asked[i].tgid != tgid || now_ns - users->asked[i].asked_ns > ASKED_NS) {
		users->asked[i].tgid = tgid;
		users->asked[i].asked_ns = now_ns;
		users->asked[i].user = users->user_of(tgid, users->userdata);
	}
	return users->asked[i].user;
}

int traced_users_enter(struct traced_users *users, enum traced_table table, uint32_t tgid, uint32_t *ret_user)
{
	uint32_t user;

	*ret_user = 0;
	if (!users)
		return 0;
	user = user_shares_charged(&users->shares, user_of(users, tgid));
	if (!user_shares_have(&users->shares, user, table, 1))
		return -ENOBUFS;
	user_shares_take(&users->shares, user, table, 1);
	*ret_user = user;
	return 0;
}

bool traced_users_have(const struct traced_users *users, enum traced_table table, uint32_t user, uint32_t n)
{
	return !users || user_shares_have(&users->shares, user, table, n);
}

void traced_users_take(struct traced_users *users, enum traced_table table, uint32_t user, uint32_t n)
{
	if (users)
		user_shares_take(&users->shares, user, table, n);
}

void traced_users_give(struct traced_users *users, enum traced_table table, uint32_t user, uint32_t n)
{
	if (users)
		user_shares_give(&users->shares, user, table, n);
}
