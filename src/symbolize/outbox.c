// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proc/account.h"
#include "proc/environment.h"
#include "symbolize/client_private.h"

enum { PENDING_FIRST = 64, PENDING_MAX = 16384, ENVIRONMENT_TRIES = 3, KEPT_MAX = 1 << 16 };

/* ---- images and ends of processes ---- */

static int grow_pending(struct symbols *s)
{
	uint32_t room = s->pending_room ? s->pending_room * 2 : PENDING_FIRST;
	struct wire_request *grown;

	if (room > PENDING_MAX)
		return -EAGAIN;
	grown = calloc(room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->pending_n; i++)
		grown[i] = s->pending[(s->pending_at + i) % s->pending_room];
	free(s->pending);
	s->pending = grown;
	s->pending_at = 0;
	s->pending_room = room;
	return 0;
}

int pending_add(struct symbols *s, const struct wire_request *request)
{
	int r = s->pending_n == s->pending_room ? grow_pending(s) : 0;

	if (r == 0)
		s->pending[(s->pending_at + s->pending_n++) % s->pending_room] = *request;
	return r;
}

int pending_send(struct symbols *s)
{
	while (s->pending_n > 0) {
		int r = symbols_send(s, &s->pending[s->pending_at], sizeof(s->pending[0]), -1);

		if (r < 0)
			return r;
		s->pending_at = (s->pending_at + 1) % s->pending_room;
		s->pending_n--;
	}
	if (s->pending_room > PENDING_FIRST)
		pending_done(s);
	return 0;
}

void pending_done(struct symbols *s)
{
	free(TAKE_PTR(s->pending));
	s->pending_n = s->pending_room = s->pending_at = 0;
}

static uint64_t kept_key(pid_t pid, uint64_t incarnation)
{
	const uint64_t both[] = { (uint64_t)pid, incarnation };

	return hash_bytes(both, sizeof(both));
}

void kept_add(struct symbols *s, pid_t pid, uint64_t incarnation)
{
	/* Without memory or beyond the limit the helper ends too early: figures are then missing. */
	if (s->kept.count < KEPT_MAX)
		(void)hashmap_put(&s->kept, kept_key(pid, incarnation), 0);
}

void kept_remove(struct symbols *s, pid_t pid, uint64_t incarnation)
{
	hashmap_del(&s->kept, kept_key(pid, incarnation));
}

/* ---- environments ---- */

static void finish_environment(struct symbols *s, uint32_t i, int state, const char *text, size_t n)
{
	uint32_t pid = s->environments[i].id.pid;

	s->environments[i] = s->environments[--s->environments_n];
	if (s->ops.environment)
		s->ops.environment(pid, state, text, n, s->userdata);
}

int symbols_environment(struct symbols *s, struct process_id process)
{
	uint64_t account;

	if (suspects_has_process(&s->suspects, process)) {
		s->withheld++;
		return -EPERM;
	}
	account = proc_account(s->config.symbolizer.proc_root, process.pid);
	if (suspects_has_account(&s->suspects, account, clock_mono_ns())) {
		s->withheld++;
		return -EAGAIN;
	}
	for (uint32_t i = 0; i < s->environments_n; i++)
		if (process_id_may_equal(s->environments[i].id, process))
			return 0;
	if (s->environments_n == ENVIRONMENTS)
		return -EAGAIN;
	s->environments[s->environments_n++] = (struct environment_asked){ .id = process };
	symbols_pump(s);
	return 0;
}

static int send_environment(struct symbols *s, const struct wire_request *request)
{
	int r;

	if (!s->config.variables)
		return symbols_send(s, request, sizeof(*request), -1);
	strbuf_reset(&s->out);
	r = wire_put_request(&s->out, request, s->config.variables);
	return r < 0 ? r : symbols_send(s, s->out.data, s->out.len, -1);
}

int environments_send(struct symbols *s)
{
	for (uint32_t i = 0; i < s->environments_n; i++) {
		struct environment_asked *asked = &s->environments[i];
		const struct wire_request request = {
			.kind = s->config.variables ? WIRE_JOB : WIRE_ENVIRONMENT,
			.pid = asked->id.pid,
			.start_ticks = asked->id.start_ticks,
			.id = asked->wire_id ? asked->wire_id : ++s->seq,
		};
		int r = asked->wire_id ? 0 : send_environment(s, &request);

		if (r < 0)
			return r;
		asked->wire_id = request.id;
	}
	return 0;
}

/* Whole variables: it ends with a NUL. */
static bool are_variables(const char *text, size_t n)
{
	return n == 0 || text[n - 1] == '\0';
}

void environments_take(struct symbols *s, const char *message, size_t n)
{
	struct wire_variables fixed;
	const char *text = message + sizeof(fixed);

	if (n < sizeof(fixed))
		return;
	memcpy(&fixed, message, sizeof(fixed));
	if (fixed.n != n - sizeof(fixed) || fixed.n > WIRE_VARIABLES_MAX || !are_variables(text, fixed.n))
		return;
	for (uint32_t i = 0; i < s->environments_n; i++)
		if (s->environments[i].wire_id == fixed.id) {
			finish_environment(s, i, MIN(fixed.state, (int)PROC_ENVIRONMENT_UNKNOWN), text,
					   fixed.n);
			return;
		}
}

void environments_take_back(struct symbols *s, uint32_t culprit)
{
	for (uint32_t i = s->environments_n; i-- > 0;) {
		struct environment_asked *asked = &s->environments[i];

		asked->tries += asked->wire_id != 0;
		asked->wire_id = 0;
		if (asked->tries >= ENVIRONMENT_TRIES || (culprit && asked->id.pid == culprit))
			finish_environment(s, i, -EIO, NULL, 0);
	}
}

void environments_give_up(struct symbols *s, uint32_t pid)
{
	for (uint32_t i = s->environments_n; i-- > 0;)
		if (i < s->environments_n && (pid == 0 || s->environments[i].id.pid == pid))
			finish_environment(s, i, -EIO, NULL, 0);
}
