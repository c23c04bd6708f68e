// SPDX-License-Identifier: Apache-2.0
/*
 * What a process that listens, and was taken over, asks the agent for: messages of any length and content,
 * one after the other (a byte with the length before each). Pages for the UNIX socket stay closed to it.
 */
#include "fuzz.h"

#include <signal.h>

#include "agent/web/pages.c"

static int make_page(const struct http_request *request, struct http_reply *reply, _unused_ void *userdata)
{
	if (request->variant < 0 || request->variant >= HTTP_VARIANTS || request->argument(request, "names"))
		abort();

	reply->status = request->variant == 1 ? 400 : 200;
	for (size_t i = 0; request->variant == 2 && i <= WEB_INLINE_MAX; i++)
		strbuf_addc(&reply->body, 'x');
	return request->variant == 3 ? -ENOMEM : 0;
}

static int make_secret(_unused_ const struct http_request *request, _unused_ struct http_reply *reply,
		       _unused_ void *userdata)
{
	abort();
}

static int atop_types(unsigned version, struct strbuf *out, _unused_ void *userdata)
{
	if (version < 1 || version > ATOP_VERSION_NEWEST)
		abort();
	strbuf_adds(out, "types");
	return 0;
}

static int atop_stats(unsigned version, uint64_t exit_seq, struct strbuf *out, uint64_t *ret_exit_seq,
		      void *userdata)
{
	*ret_exit_seq = exit_seq;
	return atop_types(version, out, userdata);
}

static const struct http_route routes[] = {
#define PAGE(path_, methods_, right_, variant_, handle_, help_) \
	{ path_, methods_, right_, NULL, (right_) == ACCESS_CONTROL ? make_secret : make_page, NULL },
#include "web/routes.def"
#undef PAGE
};

/* As of the last question, or none. */
static void check_answer(int end, const void *message, size_t n)
{
	static struct web_answer answer;
	struct web_ask ask;
	int fd = -1;
	ssize_t got = receive_with_fd(end, &answer, sizeof(answer), &fd);

	if (n != sizeof(ask)) {
		if (got > 0)
			abort();
		return;
	}
	memcpy(&ask, message, n);
	if (got < (ssize_t)offsetof(struct web_answer, body) || answer.id != ask.id || answer.error > 0 ||
	    answer.content_type[WEB_CONTENT_TYPE_MAX - 1] || (answer.error && (answer.bytes || fd >= 0)) ||
	    (fd < 0 && answer.bytes != (size_t)got - offsetof(struct web_answer, body)))
		abort();
	closep(&fd);
}

int fuzz_one(const uint8_t *data, size_t size)
{
	static const struct atop_source atop = { atop_types, atop_stats, NULL, NULL };
	struct web_pages pages = { .config = { routes, NULL, &atop, NULL } };
	struct channel channel = { .memory_fd = -1 };
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		abort();
	channel.socket = ends[0];
	strbuf_init(&pages.body, PAGE_BYTES_MAX);
	for (size_t at = 0; at < size && channel.socket >= 0;) {
		size_t n = MIN((size_t)data[at] % 48, size - at - 1);

		if (n && send(ends[1], data + at + 1, n, MSG_NOSIGNAL) < 0)
			abort();
		if (n) {
			serve_question(&pages, &channel);
			check_answer(ends[1], data + at + 1, n);
		}
		at += 1 + n;
	}
	channel_close(&channel);
	close(ends[1]);
	strbuf_done(&pages.body);
	return 0;
}
