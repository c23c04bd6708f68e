// SPDX-License-Identifier: Apache-2.0
/* For tests of tables that users share. */
#pragma once

#include "test.h"

#include <stdlib.h>

#include "activity/users.h"

enum { OTHER_USERS_PID = 1000000 };

/* PIDs below OTHER_USERS_PID are of one user, the others of another one. */
static inline uint64_t user_by_pid(uint32_t tgid, void *userdata)
{
	(void)userdata;
	return tgid >= OTHER_USERS_PID;
}

/* To be freed. */
static inline struct traced_users *two_users(void)
{
	struct traced_users *users = calloc(1, sizeof(*users));

	assert_non_null(users);
	users->user_of = user_by_pid;
	return users;
}
