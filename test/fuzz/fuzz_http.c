// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "serve/request.h"

enum { PATIENCE_MS = 30000 };

static int page(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	const char *a = request->argument(request, "a");

	(void)userdata;
	strbuf_addf(&reply->body, "%s %s %s %d\n", request->path, a ? a : "-",
		    request->accept ? request->accept : "-", request->local);
	return 0;
}

static int variant(const struct http_request *request, void *userdata)
{
	(void)userdata;
	return request->argument(request, "a") ? -1 : 0;
}

static uint64_t generation(void *userdata)
{
	(void)userdata;
	return 1;
}

/* As much of the page as the argument is long. */
static int filter(const struct http_request *request, const struct strbuf *page, struct strbuf *out)
{
	const char *part = request->argument(request, "part");

	if (!part)
		return 0;
	strbuf_add(out, page->data, MIN(strlen(part), page->len));
	return 1;
}

static const struct http_manner manner = {
	.method_refused = "no",
	.encodes = true,
	.max_age_ns = 1,
	.filter = filter,
};

static const struct http_route routes[] = {
	{ .path = "/f", .methods = HTTP_GET, .variant = variant, .handle = page, .manner = &manner },
	{ .path = "/m", .methods = HTTP_GET, .variant = variant, .handle = page },
	{ .path = "/p", .methods = HTTP_POST, .right = ACCESS_CONTROL, .variant = variant, .handle = page },
	{ 0 },
};

/* One server for all inputs, so that what one leaves behind can hurt the next. */
static struct http *server(void)
{
	static struct http *http;
	struct http_config config = { .routes = routes, .generation = generation, .hosts = "x" };
	sd_event *event;

	if (!http && (sd_event_new(&event) < 0 || http_new(event, &config, &http) < 0))
		abort();
	return http;
}

/*
 * Everything until the other side closes, which it must. True when the first bytes are those of an HTTP
 * reply, or none came.
 */
static bool answers_or_closes(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char part[4096], first[9] = "";
	size_t n = 0;

	for (;;) {
		ssize_t got;
		int ready = poll(&p, 1, PATIENCE_MS);

		/* The fuzzer keeps its time by signals. */
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready != 1)
			return false;
		got = recv(fd, part, sizeof(part), 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno != ECONNRESET)
			return false;
		if (got <= 0)
			return n == 0 || memcmp(first, "HTTP/1.1 ", MIN(n, sizeof(first))) == 0;
		if (n < sizeof(first))
			memcpy(first + n, part, MIN((size_t)got, sizeof(first) - n));
		n += (size_t)got;
	}
}

static void serve(const uint8_t *data, size_t size, bool local)
{
	struct http *http = server();
	_cleanup_close_ int fd = -1;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 || fd_nonblock(pair[0]) < 0)
		abort();
	fd = pair[1];
	/* What does not fit into the socket is not sent. */
	(void)!send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	shutdown(fd, SHUT_WR);
	if (!conns_add(&http->conns, pair[0], local))
		abort();
	eventfd_write(http->wake_fd, 1);
	if (!answers_or_closes(fd))
		abort();
}

int fuzz_one(const uint8_t *data, size_t size)
{
	static const char good[] = "GET /m HTTP/1.0\r\n\r\n";

	if (size == 0)
		return 0;
	serve(data + 1, size - 1, data[0] & 1);
	/* And the next client is served. */
	serve((const uint8_t *)good, sizeof(good) - 1, false);
	return 0;
}
