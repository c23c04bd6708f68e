// SPDX-License-Identifier: Apache-2.0
/*
 * What each user's files and processes cost tracing, and whose turn is over: shares, so that one user cannot
 * use up what all have. Root's files are for everybody and count for nobody.
 *
 * A file counts for the user whose process was the first to map it. Bounded: USERS_MAX users; where there are
 * more, those who hold nothing are forgotten first, and what cannot be counted is refused.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hashmap.h"

enum {
	USERS_MAX = 4096,
	/*
	 * For each user; all users together may have four times as much, and nobody more than is left then:
	 * so one who comes later finds something.
	 */
	USER_FILES_MAX = 64,
	USER_SITES_MAX = 4096, /* 20 copies of libcuda */
	USER_OPERATORS_MAX = 8192, /* sites of functions that patterns find: two copies of PyTorch */
	USERS_SHARES = 4,
	USER_BURST = 32, /* files that may be opened at once; then one each USER_REFILL_NS */
};

enum user_verdict {
	USER_MAY,
	USER_BEYOND_SHARE, /* of files or sites, or of files opened a second */
	USER_BARRED, /* a helper hung or crashed over a file or process of this user, for a time */
};

struct user {
	uint64_t id;
	uint32_t files, sites, operators; /* attached now */
	uint32_t processes; /* known now */
	uint32_t tokens; /* files that may be opened now */
	int64_t refilled_ns;
	unsigned strikes; /* in a row */
	int64_t barred_until_ns, struck_ns;
	uint64_t turn; /* when a file of this user was last attached: users.turns then; 0: never */
};

/* What a file counts for a user. */
struct counted_sites {
	bool any;
	uint32_t sites, operators;
};

struct users {
	struct user *at; /* dense */
	uint32_t n, cap;
	struct hashmap by_id;
	int64_t barred_until_ns; /* the latest of all */
	uint32_t files, sites, operators; /* of all */
	uint64_t beyond_share, barred, strikes; /* ever */
	uint64_t turns;
};

void users_done(struct users *users);
/* Whether a file that maps for this user may be opened now, which takes one of the user's tokens. */
enum user_verdict users_may_open(struct users *users, uint64_t id, int64_t now_ns);
/* Whether anybody is barred at all. */
static inline bool users_any_barred(const struct users *users, int64_t now_ns)
{
	return users->barred_until_ns > now_ns;
}
/* Whether its processes may not be looked at. */
bool users_barred(struct users *users, uint64_t id, int64_t now_ns);
/* Whether so many sites in a file of the user may be attached; counts them. */
enum user_verdict users_attach(struct users *users, uint64_t id, uint32_t sites);
/* Files of the user with the least turn are attached first; serving one ends its turn. */
uint64_t users_turn(const struct users *users, uint64_t id);
void users_serve(struct users *users, uint64_t id);
void users_detach(struct users *users, uint64_t id, uint32_t sites);
/* The same for sites that patterns find, in a file that is counted: they take nothing from others. */
enum user_verdict users_attach_operators(struct users *users, uint64_t id, uint32_t sites);
void users_detach_operators(struct users *users, uint64_t id, uint32_t sites);
/*
 * Whether one more process of the user may be known, of @n and at most @max of all users: nobody has more
 * than is left for others. Counts it.
 */
enum user_verdict users_process(struct users *users, uint64_t id, uint32_t n, uint32_t max, int64_t now_ns);
void users_process_gone(struct users *users, uint64_t id);
/* A helper hung or crashed: nothing of this user is read for 1, 2, 4 ... 64 minutes. */
void users_strike(struct users *users, uint64_t id, int64_t now_ns);
