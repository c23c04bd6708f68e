// SPDX-License-Identifier: Apache-2.0
/*
 * What users may have of the tables of traced processes (base/user_shares.h), so that nobody's processes take
 * the room of others'. A user is there as long as he is charged for something.
 */
#pragma once

#include "base/user_shares.h"

enum traced_table {
	TRACED_TABLE_NCCL, /* processes */
	TRACED_TABLE_BLAS,
	TRACED_TABLE_PYTHON,
	TRACED_TABLE_WAITERS, /* threads that wait for CPython's lock */
	TRACED_TABLE_TORCH,
	TRACED_TABLE_OPERATORS, /* of PyTorch's processes */
	TRACED_TABLE_BLOCKS, /* allocations of these */
	TRACED_TABLES,
};
_Static_assert((int)TRACED_TABLES <= (int)USER_SHARES_TABLES, "users share them");

enum { TRACED_USERS_ASKED = 4096 };

/* All zeros at the start, but for user_of. NULL in place of it: all are one user's, without a limit. */
struct traced_users {
	struct user_shares shares;
	uint64_t (*user_of)(uint32_t tgid, void *userdata);
	void *userdata;
	/* The newest answers: a process without room asks with each of its events. */
	struct {
		uint32_t tgid;
		int64_t asked_ns;
		uint64_t user;
	} asked[TRACED_USERS_ASKED];
};

void traced_users_room(struct traced_users *users, enum traced_table table, uint32_t room);
/* Charges a process to its user. -ENOBUFS: he has his share. */
int traced_users_enter(struct traced_users *users, enum traced_table table, uint32_t tgid,
		       uint32_t *ret_user);
bool traced_users_have(const struct traced_users *users, enum traced_table table, uint32_t user, uint32_t n);
void traced_users_take(struct traced_users *users, enum traced_table table, uint32_t user, uint32_t n);
void traced_users_give(struct traced_users *users, enum traced_table table, uint32_t user, uint32_t n);
