// SPDX-License-Identifier: Apache-2.0
#include "pipeline/analysis_stacks.h"

#include "proc/user.h"

enum { USERS = 4096 }; /* processes whose user is known */

/* ---- users ---- */

static uint64_t user_read(uint32_t tgid)
{
	uint64_t user;
	uint32_t uid;

	/* Root's is not 0, which nobody is; those of whom it cannot be told are one. */
	return proc_answers_for("/proc", tgid, &user, &uid) == 0 ? user + 1 : UINT64_MAX;
}

static void forget_users(struct analysis_stacks *l)
{
	hashmap_clear(&l->user_by);
	row_list_clear(&l->users);
}

uint64_t analysis_user(struct analysis_stacks *l, uint32_t tgid)
{
	uint32_t index;
	uint64_t *user;

	if (hashmap_get(&l->user_by, tgid, &index))
		return ((const uint64_t *)l->users.list)[index];
	l->users.size = sizeof(*user);
	l->users.max = USERS;
	if (l->users.n == USERS)
		forget_users(l);
	user = row_list_add(&l->users);
	if (!user || hashmap_put(&l->user_by, tgid, l->users.n - 1) < 0)
		return UINT64_MAX;
	return *user = user_read(tgid);
}

void analysis_stacks_over(struct analysis_stacks *l, uint32_t tgid)
{
	hashmap_del(&l->user_by, tgid);
}

/* ---- stacks ---- */

void analysis_stacks_done(struct analysis_stacks *l)
{
	hashmap_done(&l->user_by);
	row_list_done(&l->users);
}

static uint64_t path_key(const struct analysis_stacks *l, uint32_t path)
{
	const uint64_t parts[] = { (uint64_t)l->since_ns, path };

	return hash_bytes_secret(parts, sizeof(parts));
}

static uint64_t add_stack(struct analysis_stacks *l, struct analysis *a, uint32_t path, uint64_t user)
{
	struct analysis_place places[ANALYSIS_STACK_FRAMES];
	struct stack_place place;
	bool native, unnamed = false;
	uint64_t stack = 0;
	uint32_t n = 0;

	while (n < ANALYSIS_STACK_FRAMES && stack_sums_frame(l->sums, path, n, &place, &native)) {
		unnamed |= native && place.name[0] == '[';
		places[n++] = (struct analysis_place){ place.name, place.file, place.line };
	}
	if (n == 0 || analysis_stack(a, user, path_key(l, path), places, n, &stack) < 0)
		return 0;
	if (unnamed && l->unnamed_n < ANALYSIS_UNNAMED)
		l->unnamed[l->unnamed_n++] = (struct analysis_unnamed){ path, user };
	return stack;
}

/* Those that still have none go back to the list, once. */
void analysis_stacks_name(struct analysis_stacks *l, struct analysis *a)
{
	uint32_t n = l->unnamed_n;

	if (n == 0 || l->since_ns != stack_sums_since(l->sums)) {
		l->unnamed_n = 0;
		return;
	}
	stack_sums_name(l->sums);
	l->unnamed_n = 0;
	for (uint32_t i = 0; i < n; i++)
		add_stack(l, a, l->unnamed[i].path, l->unnamed[i].user);
}

uint64_t analysis_stack_of(struct analysis_stacks *l, struct analysis *a, const struct trace_header *event,
			   uint64_t user)
{
	uint64_t stack;
	uint32_t path;

	if (!l->sums || !stack_sums_path(l->sums, event, &path))
		return 0;
	l->since_ns = stack_sums_since(l->sums);
	return analysis_stack_known(a, path_key(l, path), &stack) ? stack : add_stack(l, a, path, user);
}
