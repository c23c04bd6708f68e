// SPDX-License-Identifier: Apache-2.0
/*
 * How much of a table of workloads users may have; internal to the model. A user may make cgroups, and with
 * each a workload, so that without this one user could leave no place for a pod that starts later. Of a table
 * one user gets an eighth at most, and all users together a half. Root, and what is in no user's slice, has
 * the table's own limit alone.
 *
 * A table counts its entries for one user, asks where a place is to come from, and evicts the entry that has
 * been idle for longest among those that it may.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Entries of a table, and how many of them are idle: their sums may be added to "other". */
struct share {
	uint32_t user; /* as in struct process_identity, who wants a place */
	uint32_t all, users, own;
	uint32_t idle_all, idle_users, idle_own;
};

/* Which entry makes room. */
enum share_room {
	SHARE_FREE, /* none has to */
	SHARE_OF_OWN, /* one of the same user's */
	SHARE_OF_USERS, /* one of any user's */
	SHARE_OF_ANY,
};

void share_count(struct share *share, uint32_t user, bool idle);
enum share_room share_room(const struct share *share, uint32_t limit);
/* Whether an entry of @user may make room. */
bool share_may_take(const struct share *share, enum share_room room, uint32_t user);
/* Whether there is a place, or one that may be taken. */
bool share_has_place(const struct share *share, uint32_t limit);
