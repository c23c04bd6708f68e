// SPDX-License-Identifier: Apache-2.0
#include "trace/users.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/macro.h"

#define USER_REFILL_NS NSEC_PER_SEC
#define BARRED_NS (60 * NSEC_PER_SEC)
/* So long without a strike, and the next one is the first again. */
#define FORGIVEN_NS (24 * 3600 * NSEC_PER_SEC)

enum { STRIKES_MAX = 6 };

static struct user *find(const struct users *users, uint64_t id)
{
	uint32_t i;

	return hashmap_get(&users->by_id, id, &i) ? &users->at[i] : NULL;
}

static void user_drop(struct users *users, uint32_t i)
{
	hashmap_del(&users->by_id, users->at[i].id);
	if (i != --users->n) {
		users->at[i] = users->at[users->n];
		hashmap_put(&users->by_id, users->at[i].id, i);
	}
}

/* Drops those who hold nothing, are not barred and have not asked for a while. */
static void drop_idle(struct users *users, int64_t now_ns)
{
	for (uint32_t i = users->n; i-- > 0;) {
		const struct user *user = &users->at[i];

		if (user->files == 0 && user->processes == 0 && user->barred_until_ns <= now_ns &&
		    now_ns - user->refilled_ns > USER_BURST * (int64_t)USER_REFILL_NS)
			user_drop(users, i);
	}
}

/* NULL: there are too many, or no memory. */
static struct user *get(struct users *users, uint64_t id, int64_t now_ns)
{
	struct user *user = find(users, id);

	if (user)
		return user;
	if (users->n == USERS_MAX)
		drop_idle(users, now_ns);
	if (users->n == users->cap) {
		uint32_t cap = users->cap ? 2 * users->cap : 16;
		void *grown = cap > USERS_MAX ? NULL : realloc(users->at, cap * sizeof(*users->at));

		if (!grown)
			return NULL;
		users->at = grown;
		users->cap = cap;
	}
	if (hashmap_put(&users->by_id, id, users->n) < 0)
		return NULL;
	user = &users->at[users->n++];
	*user = (struct user){ .id = id, .tokens = USER_BURST, .refilled_ns = now_ns };
	return user;
}

void users_done(struct users *users)
{
	free(users->at);
	hashmap_done(&users->by_id);
	*users = (struct users){ 0 };
}

bool users_barred(struct users *users, uint64_t id, int64_t now_ns)
{
	const struct user *user = find(users, id);
	bool barred = user && user->barred_until_ns > now_ns;

	users->barred += barred;
	return barred;
}

static void refill(struct user *user, int64_t now_ns)
{
	int64_t more = (now_ns - user->refilled_ns) / USER_REFILL_NS;

	if (more <= 0)
		return;
	user->tokens = (uint32_t)MIN(user->tokens + more, (int64_t)USER_BURST);
	user->refilled_ns += more * USER_REFILL_NS;
}

enum user_verdict users_may_open(struct users *users, uint64_t id, int64_t now_ns)
{
	struct user *user = get(users, id, now_ns);

	if (user && user->barred_until_ns > now_ns) {
		users->barred++;
		return USER_BARRED;
	}
	if (user)
		refill(user, now_ns);
	if (!user || user->tokens == 0) {
		users->beyond_share++;
		return USER_BEYOND_SHARE;
	}
	user->tokens--;
	return USER_MAY;
}

/* Whether who has @mine may have @more, of which all have @all and may have @max. */
static bool leaves_as_much(uint32_t mine, uint32_t more, uint32_t all, uint32_t max)
{
	return all + more <= max && mine + more <= max - (all + more);
}

enum user_verdict users_attach(struct users *users, uint64_t id, uint32_t sites)
{
	struct user *user = find(users, id);

	if (!user || user->files >= USER_FILES_MAX || user->sites + sites > USER_SITES_MAX ||
	    !leaves_as_much(user->files, 1, users->files, USERS_SHARES * USER_FILES_MAX) ||
	    !leaves_as_much(user->sites, sites, users->sites, USERS_SHARES * USER_SITES_MAX)) {
		users->beyond_share++;
		return USER_BEYOND_SHARE;
	}
	user->files++;
	user->sites += sites;
	users->files++;
	users->sites += sites;
	return USER_MAY;
}

enum user_verdict users_attach_operators(struct users *users, uint64_t id, uint32_t sites)
{
	struct user *user = find(users, id);

	if (!user || user->operators + sites > USER_OPERATORS_MAX ||
	    !leaves_as_much(user->operators, sites, users->operators, USERS_SHARES * USER_OPERATORS_MAX))
		return USER_BEYOND_SHARE;
	user->operators += sites;
	users->operators += sites;
	return USER_MAY;
}

void users_detach_operators(struct users *users, uint64_t id, uint32_t sites)
{
	struct user *user = find(users, id);

	if (!user)
		return;
	user->operators -= MIN(sites, user->operators);
	users->operators -= MIN(sites, users->operators);
}

uint64_t users_turn(const struct users *users, uint64_t id)
{
	const struct user *user = find(users, id);

	return user ? user->turn : 0;
}

void users_serve(struct users *users, uint64_t id)
{
	struct user *user = find(users, id);

	if (user)
		user->turn = ++users->turns;
}

void users_detach(struct users *users, uint64_t id, uint32_t sites)
{
	struct user *user = find(users, id);

	if (!user || user->files == 0)
		return;
	user->files--;
	user->sites -= MIN(sites, user->sites);
	users->files--;
	users->sites -= MIN(sites, users->sites);
}

enum user_verdict users_process(struct users *users, uint64_t id, uint32_t n, uint32_t max, int64_t now_ns)
{
	struct user *user = get(users, id, now_ns);

	if (!user || !leaves_as_much(user->processes, 1, n, max)) {
		users->beyond_share++;
		return USER_BEYOND_SHARE;
	}
	user->processes++;
	return USER_MAY;
}

void users_process_gone(struct users *users, uint64_t id)
{
	struct user *user = find(users, id);

	if (user && user->processes)
		user->processes--;
}

void users_strike(struct users *users, uint64_t id, int64_t now_ns)
{
	struct user *user = get(users, id, now_ns);

	users->strikes++;
	if (!user)
		return;
	if (user->strikes && now_ns - user->struck_ns > FORGIVEN_NS)
		user->strikes = 0;
	user->struck_ns = now_ns;
	user->barred_until_ns = now_ns + (BARRED_NS << MIN(user->strikes, (unsigned)STRIKES_MAX));
	user->strikes++;
	users->barred_until_ns = MAX(users->barred_until_ns, user->barred_until_ns);
}
