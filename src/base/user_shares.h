// SPDX-License-Identifier: Apache-2.0
/*
 * What users may have of tables that all of them share: of each, at most USER_SHARE times as much as is free.
 * So one user can have 7/8 of a table alone, and none can leave others without a place.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { USER_SHARE = 7, USER_SHARES_USERS = 256, USER_SHARES_TABLES = 10 };

/* All zeros at the start, but for @room. */
struct user_shares {
	struct user_share {
		uint64_t id;
		uint32_t used[USER_SHARES_TABLES];
	} users[USER_SHARES_USERS];
	uint32_t users_n;
	uint32_t used[USER_SHARES_TABLES], room[USER_SHARES_TABLES]; /* of all */
};

/* The index of a user; those beyond USER_SHARES_USERS are one. */
uint32_t user_shares_user(struct user_shares *shares, uint64_t id);
/* The same, for who is charged as long as the index is kept: a user who has nothing makes room. */
uint32_t user_shares_charged(struct user_shares *shares, uint64_t id);
/* Whether the user may have @n more. */
bool user_shares_have(const struct user_shares *shares, uint32_t user, unsigned table, uint32_t n);
/* Not checked: what is there already is charged, too. */
void user_shares_take(struct user_shares *shares, uint32_t user, unsigned table, uint32_t n);
void user_shares_give(struct user_shares *shares, uint32_t user, unsigned table, uint32_t n);
