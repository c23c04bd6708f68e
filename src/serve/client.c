// SPDX-License-Identifier: Apache-2.0
#include "serve/client.h"

#include <errno.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "base/fd.h"
#include "serve/address.h"

/* Waits until @fd is ready for @events, or the deadline. */
static int wait_for(int fd, short events, int64_t deadline_ns)
{
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		int64_t left_ns = deadline_ns - clock_mono_ns();
		int r;

		if (left_ns <= 0)
			return -ETIMEDOUT;
		r = poll(&p, 1, (int)(left_ns / NSEC_PER_MSEC) + 1);
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

static int connect_to(const char *path, int64_t deadline_ns, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_un sun;
	socklen_t len;
	int r;

	r = unix_address(path, &sun, &len);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	while (connect(fd, (struct sockaddr *)&sun, len) < 0) {
		/* The queue is full; there is no event for when it no longer is. */
		struct timespec pause = { .tv_nsec = 10 * NSEC_PER_MSEC };

		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (clock_mono_ns() >= deadline_ns)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int send_all(int fd, const struct strbuf *data, int64_t deadline_ns)
{
	size_t done = 0;

	while (done < data->len) {
		ssize_t n = send(fd, data->data + done, data->len - done, MSG_NOSIGNAL);
		int r = 0;

		if (n >= 0)
			done += (size_t)n;
		else if (errno == EAGAIN)
			r = wait_for(fd, POLLOUT, deadline_ns);
		else if (errno != EINTR)
			r = -errno;
		if (r < 0)
			return r;
	}
	return 0;
}

/* Receives until the peer closes. */
static int receive_all(int fd, int64_t deadline_ns, struct strbuf *reply)
{
	char part[16384];

	for (;;) {
		ssize_t n;
		int r = wait_for(fd, POLLIN, deadline_ns);

		if (r < 0)
			return r;
		n = recv(fd, part, sizeof(part), 0);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n > 0)
			strbuf_add(reply, part, (size_t)n);
		if (reply->failed)
			return reply->len + sizeof(part) > CONTROL_REPLY_MAX ? -EMSGSIZE : -ENOMEM;
	}
}

/* Parses one header line; gets the body's length from it. */
static int parse_header(struct cursor line, bool *has_length, uint64_t *length)
{
	static const char name[] = "Content-Length:";

	if (cursor_left(&line) < sizeof(name) - 1 || strncasecmp(line.p, name, sizeof(name) - 1) != 0)
		return 0;
	line.p += sizeof(name) - 1;
	cursor_skip_space(&line);
	*has_length = true;
	return cursor_u64(&line, length);
}

static int parse_reply(const struct strbuf *reply, struct strbuf *body, unsigned *ret_status)
{
	struct cursor c = cursor_over(reply->data, reply->len), line;
	bool has_length = false;
	uint64_t status, length = 0;

	if (!(cursor_literal(&c, "HTTP/1.0 ") || cursor_literal(&c, "HTTP/1.1 ")) ||
	    cursor_u64(&c, &status) < 0 || status < 100 || status > 599 || cursor_until(&c, '\n', &line) < 0)
		return -EPROTO;
	for (;;) {
		if (cursor_until(&c, '\n', &line) < 0)
			return -EPROTO;
		if (cursor_equals(&line, "\r") || cursor_equals(&line, ""))
			break;
		if (parse_header(line, &has_length, &length) < 0)
			return -EPROTO;
	}
	if (has_length && cursor_left(&c) != length)
		return -EPROTO;
	strbuf_add(body, c.p, cursor_left(&c));
	if (body->failed)
		return -ENOMEM;
	*ret_status = (unsigned)status;
	return 0;
}

int control_request(const char *socket_path, const char *method, const char *target, struct strbuf *ret_body,
		    unsigned *ret_status)
{
	int64_t deadline_ns = clock_mono_ns() + CONTROL_TIMEOUT_MS * NSEC_PER_MSEC;
	_cleanup_(strbuf_done) struct strbuf request = { 0 };
	_cleanup_(strbuf_done) struct strbuf reply = { 0 };
	_cleanup_close_ int fd = -1;
	int r;

	strbuf_init(&request, 4096);
	strbuf_init(&reply, CONTROL_REPLY_MAX);
	strbuf_addf(&request, "%s %s HTTP/1.0\r\nHost: localhost\r\n\r\n", method, target);
	if (request.failed)
		return -EINVAL;
	r = connect_to(socket_path, deadline_ns, &fd);
	if (r == 0)
		r = send_all(fd, &request, deadline_ns);
	if (r == 0)
		r = receive_all(fd, deadline_ns, &reply);
	if (r < 0)
		return r;
	return parse_reply(&reply, ret_body, ret_status);
}
