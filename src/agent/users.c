// SPDX-License-Identifier: Apache-2.0
#include "agent/users.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/answers.h"
#include "base/clock.h"
#include "base/text.h"
#include "helper/run.h"

#define KEPT_NS (600 * NSEC_PER_SEC)
#define STUCK_NS (10 * NSEC_PER_SEC)
enum {
	RUN_SECONDS = 5,
	AT_ONCE = 64,
	NAME_LENGTH = 64,
	NUMBER_LENGTH = 16,
	PRINTED_MAX = 64 << 10,
	MEMORY_BYTES = 256 << 20,
};

struct user {
	uint32_t uid;
	int64_t asked_ns;
	char name[NAME_LENGTH]; /* "": it has none, or none was found */
};

struct users {
	struct users_config config;
	struct answers *answers;
	atomic_int pid;
	/* of the thread */
	uint32_t wanted[USERS_MAX];
	unsigned n;
	struct user list[USERS_MAX];
};

/* ---- the thread ---- */

static struct user *find_user(struct users *users, uint32_t uid)
{
	for (unsigned i = 0; i < users->n; i++)
		if (users->list[i].uid == uid)
			return &users->list[i];
	return NULL;
}

/* The longest ago asked for makes room. */
static struct user *room_for(struct users *users, uint32_t uid)
{
	struct user *user = find_user(users, uid);

	if (!user && users->n < USERS_MAX)
		user = &users->list[users->n++];
	for (unsigned i = 0; !user && i < users->n; i++)
		if (i == 0 || users->list[i].asked_ns < user->asked_ns)
			user = &users->list[i];
	*user = (struct user){ .uid = uid, .asked_ns = clock_mono_ns() };
	return user;
}

/* "name:password:number:...", as of passwd(5). Only numbers that were asked for are believed. */
static void users_take_line(struct users *users, char *line)
{
	char *password = strchr(line, ':'), *number = password ? strchr(password + 1, ':') : NULL;
	char *end = number ? strchr(number + 1, ':') : NULL;
	struct user *user;
	uint64_t uid;

	if (!end)
		return;
	*password = *end = '\0';
	user = parse_u64(number + 1, &uid) == 0 && uid < UINT32_MAX ? find_user(users, (uint32_t)uid) : NULL;
	if (user && *line && strlen(line) < sizeof(user->name) && text_is_printable(line))
		snprintf(user->name, sizeof(user->name), "%s", line);
}

/* What getent does not find in time has no name, for a while. */
static void ask_getent(struct users *users, const uint32_t *uids, unsigned n)
{
	char numbers[AT_ONCE][NUMBER_LENGTH],
		*arguments[AT_ONCE + 3] = { (char *)"getent", (char *)"passwd" };
	const struct run getent = {
		.program = users->config.program ? users->config.program : "/usr/bin/getent",
		.arguments = arguments,
		.seconds = RUN_SECONDS,
		.limit = PRINTED_MAX,
		.memory = MEMORY_BYTES,
		.powerless = true,
		.pid = &users->pid,
	};
	struct strbuf output, errors;
	char *save = NULL;

	for (unsigned i = 0; i < n; i++) {
		room_for(users, uids[i]);
		snprintf(numbers[i], sizeof(numbers[i]), "%u", uids[i]);
		arguments[2 + i] = numbers[i];
	}
	strbuf_init(&output, PRINTED_MAX);
	strbuf_init(&errors, PRINTED_MAX);
	run_program(&getent, &output, &errors); /* 2: one of them was not found */
	for (char *line = strtok_r(output.len ? output.data : NULL, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		users_take_line(users, line);
	strbuf_done(&output);
	strbuf_done(&errors);
}

static bool is_fresh(const struct user *user)
{
	return user && clock_mono_ns() - user->asked_ns < KEPT_NS;
}

static void users_make(_unused_ const struct question *question, struct answer *answer, void *userdata)
{
	struct users *users = userdata;
	uint32_t unknown[AT_ONCE];
	unsigned n = users->config.list(users->wanted, USERS_MAX, users->config.userdata), asked = 0;
	bool any = false;

	for (unsigned i = 0; i < n && asked < AT_ONCE; i++)
		if (!is_fresh(find_user(users, users->wanted[i])))
			unknown[asked++] = users->wanted[i];
	if (asked > 0)
		ask_getent(users, unknown, asked);
	strbuf_adds(&answer->body, "{\"schema\":\"gpusonde/users/v1\",\"users\":{");
	for (unsigned i = 0; i < n; i++) {
		const struct user *user = find_user(users, users->wanted[i]);

		/* Neither is in names that useradd(8) takes, and JSON would have them escaped. */
		if (!user || !*user->name || strpbrk(user->name, "\"\\"))
			continue;
		strbuf_addf(&answer->body, "%s\"%u\":\"%s\"", any ? "," : "", user->uid, user->name);
		any = true;
	}
	strbuf_adds(&answer->body, "}}\n");
	answer->content_type = "application/json";
}

static void end_process(void *userdata)
{
	struct users *users = userdata;
	pid_t pid = users->pid;

	if (pid > 0)
		kill(pid, SIGKILL);
}

/* ---- who asks ---- */

int users_page(struct users *users, const struct http_request *request, struct http_reply *reply)
{
	struct question question = question_of(0, 0, request);

	return answers_reply(users->answers, &question, reply);
}

/* ---- life ---- */

int users_new(const struct users_config *config, struct users **ret_users)
{
	_cleanup_(users_freep) struct users *users = calloc(1, sizeof(*users));
	const struct answers_config answering = {
		.name = "users",
		.stuck = "the directory of user names (files, LDAP, SSSD) does not answer",
		.slow_ns = STUCK_NS,
		.make = users_make,
		.interrupt = end_process,
		.userdata = users,
	};
	int r;

	if (!users)
		return -ENOMEM;
	users->config = *config;
	r = answers_new(&answering, &users->answers);
	if (r == 0)
		*ret_users = TAKE_PTR(users);
	return r;
}

void users_free(struct users *users)
{
	if (users && answers_free(users->answers))
		free(users);
}
