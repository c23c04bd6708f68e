// SPDX-License-Identifier: Apache-2.0
#include "web/ask.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "helper/message.h"

/* 0: the channel is readable. */
static int wait_until(int socket, int64_t deadline_ns)
{
	struct pollfd p = { .fd = socket, .events = POLLIN };

	for (;;) {
		int64_t left_ns = deadline_ns - clock_mono_ns();
		int r = left_ns <= 0 ? 0 : poll(&p, 1, (int)(left_ns / NSEC_PER_MSEC) + 1);

		if (r > 0)
			return 0;
		if (r == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static int copy_memory(int fd, size_t n, struct strbuf *to)
{
	char part[16 << 10];

	for (size_t at = 0; at < n;) {
		ssize_t got = pread(fd, part, MIN(n - at, sizeof(part)), (off_t)at);

		if (got <= 0)
			return got < 0 ? -errno : -EPROTO;
		strbuf_add(to, part, (size_t)got);
		at += (size_t)got;
	}
	return 0;
}

static int take_body(const struct web_answer *answer, size_t n, int fd, struct strbuf *to)
{
	size_t head = offsetof(struct web_answer, body);

	if (answer->error)
		return MIN(answer->error, -1);
	if (fd >= 0)
		return copy_memory(fd, answer->bytes, to);
	if (answer->bytes > n - head)
		return -EPROTO;
	strbuf_add(to, answer->body, answer->bytes);
	return 0;
}

int web_ask(struct web_channel *channel, const struct web_ask *ask, struct strbuf *ret_body)
{
	int64_t deadline_ns = clock_mono_ns() + WEB_ANSWER_NS;
	struct web_answer *answer = &channel->answer;
	struct web_ask numbered = *ask;
	int r;

	numbered.id = ++channel->id;
	r = send_with_fd(channel->socket, &numbered, sizeof(numbered), -1);
	while (r == 0) {
		_cleanup_close_ int fd = -1;
		ssize_t n;

		r = wait_until(channel->socket, deadline_ns);
		if (r < 0)
			break;
		n = receive_with_fd(channel->socket, answer, sizeof(*answer), &fd);
		if (n == 0)
			return -ECONNRESET;
		if (n < (ssize_t)offsetof(struct web_answer, body))
			return n < 0 ? (int)n : -EPROTO;
		/* Else it is the late answer to a question that was given up. */
		if (answer->id == numbered.id) {
			answer->content_type[WEB_CONTENT_TYPE_MAX - 1] = '\0';
			return take_body(answer, (size_t)n, fd, ret_body);
		}
	}
	return r;
}
