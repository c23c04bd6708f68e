// SPDX-License-Identifier: Apache-2.0
#include "model/share.h"

#include "base/macro.h"

enum { SHARE_ONE = 8, SHARE_ALL = 2 }; /* parts of the limit */

void share_count(struct share *share, uint32_t user, bool idle)
{
	bool own = user == share->user;

	share->all++;
	share->idle_all += idle;
	if (user == 0)
		return;
	share->users++;
	share->idle_users += idle;
	share->own += own;
	share->idle_own += own && idle;
}

enum share_room share_room(const struct share *share, uint32_t limit)
{
	if (share->user != 0 && share->own >= MAX(limit / SHARE_ONE, 1u))
		return SHARE_OF_OWN;
	if (share->user != 0 && share->users >= MAX(limit / SHARE_ALL, 1u))
		return SHARE_OF_USERS;
	return share->all >= limit ? SHARE_OF_ANY : SHARE_FREE;
}

bool share_may_take(const struct share *share, enum share_room room, uint32_t user)
{
	switch (room) {
	case SHARE_OF_OWN:
		return user == share->user;
	case SHARE_OF_USERS:
		return user != 0;
	case SHARE_OF_ANY:
		return true;
	case SHARE_FREE:
		break;
	}
	return false;
}

bool share_has_place(const struct share *share, uint32_t limit)
{
	switch (share_room(share, limit)) {
	case SHARE_OF_OWN:
		return share->idle_own > 0;
	case SHARE_OF_USERS:
		return share->idle_users > 0;
	case SHARE_OF_ANY:
		return share->idle_all > 0;
	case SHARE_FREE:
		break;
	}
	return true;
}
