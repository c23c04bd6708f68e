// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "harness.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "base/fd.h"
#include "serve/address.h"

static int page(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct server *s = userdata;
	const char *v = request->argument(request, "v");

	atomic_fetch_add(&s->renders, 1);
	strbuf_addf(&reply->body, "%s %llu %s\n", request->path,
		    (unsigned long long)atomic_load(&s->generation), v ? v : "-");
	if (STRV_EQ(request->path, "/part"))
		reply->age = (struct http_age){ "ready", 1.25, INT64_C(1790000000250000000) };
	while (!STRV_EQ(request->path, "/page") && reply->body.len < atomic_load(&s->page_bytes))
		strbuf_adds(&reply->body,
			    "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopq\n");
	return 0;
}

/* JSON of which a number changes with each generation, and from LONG_TEXT_BYTES on a text of page_bytes. */
static int numbers(_unused_ const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct server *s = userdata;
	unsigned long long n = atomic_load(&s->generation);
	size_t bytes = atomic_load(&s->page_bytes);

	atomic_fetch_add(&s->renders, 1);
	strbuf_addf(&reply->body,
		    "{\"n\":%llu,\"same\":\"a text that stays as it is, and is not sent again\",\"text\":\"",
		    n);
	for (size_t i = 0; i < bytes; i++)
		strbuf_addc(&reply->body, (char)('a' + (bytes < LONG_TEXT_BYTES ? 0 : n % 20)));
	strbuf_adds(&reply->body, "\"}\n");
	return 0;
}

static int page_variant(const struct http_request *request, void *userdata)
{
	(void)userdata;
	return request->argument(request, "v") ? 1 : 0;
}

static int echo(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	const char *a = request->argument(request, "a");

	(void)userdata;
	strbuf_addf(&reply->body, "%s %s %s\n", a ? a : "-", request->local ? "local" : "remote",
		    request->accept ? request->accept : "-");
	reply->content_type = "text/x-echo";
	reply->status = request->argument(request, "busy") ? 503 : 200;
	return 0;
}

static int never_cached(const struct http_request *request, void *userdata)
{
	(void)request;
	(void)userdata;
	return -1;
}

static int always_fails(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	(void)request;
	(void)userdata;
	strbuf_adds(&reply->body, "half a page");
	return -ENODEV;
}

static int missing(_unused_ const struct http_request *request, struct http_reply *reply,
		   _unused_ void *userdata)
{
	reply->status = 404;
	strbuf_adds(&reply->body, "404 not \"there\"\n");
	return 0;
}

static int empty(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	(void)request;
	(void)reply;
	(void)userdata;
	return 0;
}

static int refuse_variant(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	(void)request;
	(void)userdata;
	reply->status = 400;
	strbuf_adds(&reply->body, "no such variant\n");
	return 0;
}

static int part_variant(const struct http_request *request, void *userdata)
{
	return request->argument(request, "bad") ? -1 : page_variant(request, userdata);
}

static int keep(const struct http_request *request, const struct strbuf *page, struct strbuf *out)
{
	const char *bytes = request->argument(request, "keep");

	if (!bytes)
		return 0;
	if (STRV_EQ(bytes, "no"))
		return -ERANGE;
	strbuf_add(out, page->data, MIN((size_t)atoi(bytes), page->len));
	return 1;
}

static const struct http_manner part_manner = {
	.method_refused = "not this method",
	.failed = "in other words",
	.ignores_body = true,
	.max_age_ns = PART_AGE_NS,
	.refuse = refuse_variant,
	.filter = keep,
};
static const struct http_manner packed_manner = { .encodes = true, .filter = keep };
static const struct http_manner any_manner = { .ignores_body = true };
static const struct http_manner stream_manner = { .stream = true };

static uint64_t generation(void *userdata)
{
	struct server *s = userdata;

	return atomic_load(&s->generation);
}

static const struct http_route routes[] = {
	{ .path = "/page", .methods = HTTP_GET, .variant = page_variant, .handle = page },
	{ .path = "/big", .methods = HTTP_GET, .variant = page_variant, .handle = page },
	{ .path = "/echo", .methods = HTTP_GET | HTTP_POST, .variant = never_cached, .handle = echo },
	{ .path = "/fail", .methods = HTTP_GET, .handle = always_fails },
	{ .path = "/empty", .methods = HTTP_GET, .handle = empty },
	{ .path = "/do",
	  .methods = HTTP_POST,
	  .right = ACCESS_LOCAL,
	  .variant = never_cached,
	  .handle = echo },
	{ .path = "/part",
	  .methods = HTTP_GET,
	  .variant = part_variant,
	  .handle = page,
	  .manner = &part_manner },
	{ .path = "/packed",
	  .methods = HTTP_GET,
	  .variant = page_variant,
	  .handle = page,
	  .manner = &packed_manner },
	{ .path = "/packed/missing", .methods = HTTP_GET, .handle = missing, .manner = &packed_manner },
	{ .path = "/sour", .methods = HTTP_GET, .handle = always_fails, .manner = &part_manner },
	{ .path = "/api/v1/numbers", .methods = HTTP_GET, .handle = numbers },
	{ .path = "/api/v1/missing", .methods = HTTP_GET, .handle = missing },
	{ .path = "/api/v1/broken", .methods = HTTP_GET, .handle = empty },
	{ .path = "/api/v1/fourth", .methods = HTTP_GET, .handle = missing },
	{ .path = "/api/v1/fifth", .methods = HTTP_GET, .handle = missing },
	{ .path = "/api/v1/stream",
	  .methods = HTTP_GET,
	  .variant = never_cached,
	  .handle = empty,
	  .manner = &stream_manner },
	{ .path = "/any", .methods = HTTP_ANY, .handle = empty, .manner = &any_manner },
	{ 0 },
};

enum { STOP = 1, UNLISTEN = 2 };

static int on_control(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct server *s = userdata;
	eventfd_t what = 0;

	(void)events;
	eventfd_read(fd, &what);
	if (what == STOP)
		return sd_event_exit(sd_event_source_get_event(source), 0);
	http_unlisten_tcp(s->http);
	atomic_store(&s->unlistened, true);
	return 0;
}

static void *run_loop(void *userdata)
{
	struct server *s = userdata;

	sd_event_loop(s->event);
	return NULL;
}

struct server *server_start(unsigned max_connections)
{
	struct server *s = calloc(1, sizeof(*s));
	struct http_config config = {
		.routes = routes,
		.userdata = s,
		.generation = generation,
		.max_connections = max_connections,
		.hosts = "x, host",
		.streams = true,
		.stream_bytes = STREAM_UNREAD_BYTES,
	};
	int fds[ADDRESS_MAX];
	unsigned n;

	assert_non_null(s);
	s->generation = 1;
	s->page_bytes = 100000;
	strcpy(s->folder, "/tmp/gpusonde-test-XXXXXX");
	assert_non_null(mkdtemp(s->folder));
	snprintf(s->socket, sizeof(s->socket), "%s/s", s->folder);
	assert_int_equal(sd_event_new(&s->event), 0);
	assert_int_equal(http_new(s->event, &config, &s->http), 0);
	assert_int_equal(listen_tcp_text("127.0.0.1:0", fds, &n), 0);
	s->listen_fd = fds[0];
	s->port = listen_port(fds[0]);
	assert_int_equal(http_listen_fd(s->http, fds[0]), 0);
	assert_int_equal(http_listen_unix(s->http, s->socket, 0660), 0);
	s->control_fd = eventfd(0, EFD_CLOEXEC);
	assert_true(s->control_fd >= 0);
	assert_true(sd_event_add_io(s->event, NULL, s->control_fd, EPOLLIN, on_control, s) >= 0);
	assert_int_equal(pthread_create(&s->thread, NULL, run_loop, s), 0);
	return s;
}

void server_stop(struct server *server)
{
	eventfd_write(server->control_fd, STOP);
	pthread_join(server->thread, NULL);
	http_free(server->http);
	sd_event_unref(server->event);
	close(server->control_fd);
	rmdir(server->folder);
	free(server);
}

void server_unlisten(struct server *server)
{
	eventfd_write(server->control_fd, UNLISTEN);
	while (!atomic_load(&server->unlistened))
		sleep_ms(1);
}

int dial(const struct server *server)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)server->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

void dial_with(const struct server *server, int fd)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", server->socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

int dial_unix(const struct server *server)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	dial_with(server, fd);
	return fd;
}

void put(int fd, const char *text)
{
	size_t n = strlen(text);

	assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

void put_try(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Bytes received, 0 at the end, reset included. Fails the test when nothing comes. */
static size_t receive(int fd, char *to, size_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t got;

	if (poll(&p, 1, PATIENCE_MS) != 1)
		fail_msg("no answer within %d ms", PATIENCE_MS);
	got = recv(fd, to, n, 0);
	return got > 0 ? (size_t)got : 0;
}

bool read_to_end(int fd, struct strbuf *to)
{
	char part[65536];

	for (;;) {
		size_t n = receive(fd, part, sizeof(part));

		if (n == 0)
			return true;
		strbuf_add(to, part, n);
		if (to->failed)
			return false;
	}
}

static size_t reply_length(const struct strbuf *to, bool head)
{
	const char *end = strstr(to->data, "\r\n\r\n");
	const char *length = strcasestr(to->data, "\r\nContent-Length: ");

	if (!end)
		return SIZE_MAX;
	assert_true(length && length < end);
	return (size_t)(end + 4 - to->data) + (head ? 0 : strtoul(length + 18, NULL, 10));
}

bool read_reply(int fd, bool head, struct strbuf *to)
{
	char part[65536];
	size_t want;

	strbuf_reset(to);
	while ((want = reply_length(to, head)) > to->len) {
		/* Not a byte more, so that what follows stays for the next call. */
		size_t n = receive(fd, part, want == SIZE_MAX ? 1 : MIN(want - to->len, sizeof(part)));

		if (n == 0)
			return false;
		strbuf_add(to, part, n);
		assert_false(to->failed);
	}
	return true;
}

bool hung_up(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char part[65536];

	while (poll(&p, 1, timeout_ms) == 1) {
		if (recv(fd, part, sizeof(part), 0) <= 0)
			return true;
	}
	return false;
}

unsigned status_of(const struct strbuf *reply)
{
	return strncmp(reply->data, "HTTP/1.", 7) == 0 ? (unsigned)strtoul(reply->data + 9, NULL, 10) : 0;
}

const char *body_of(const struct strbuf *reply)
{
	const char *end = strstr(reply->data, "\r\n\r\n");

	return end ? end + 4 : "";
}

unsigned ask(const struct server *server, const char *request, struct strbuf *reply)
{
	_cleanup_close_ int fd = dial(server);

	put_try(fd, request);
	strbuf_reset(reply);
	return read_reply(fd, strncmp(request, "HEAD ", 5) == 0, reply) ? status_of(reply) : 0;
}

unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

void sleep_ms(unsigned ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}
