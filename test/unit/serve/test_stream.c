// SPDX-License-Identifier: Apache-2.0
/* Viewers of pages: what they are sent, how many there may be, and what becomes of those who do not read. */
#include "test.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "harness.h"
#include "serve/address.h"
#include "serve/stream.h"

enum { CONNECTIONS = 8 };

static struct server *server;
static struct strbuf got;

static int start(_unused_ void **state)
{
	strbuf_init(&got, 0);
	server = server_start(CONNECTIONS);
	atomic_store(&server->page_bytes, 100);
	return 0;
}

static int stop(_unused_ void **state)
{
	server_stop(server);
	strbuf_done(&got);
	return 0;
}

static int look_at(const char *pages)
{
	char request[128];
	int fd = dial(server);

	snprintf(request, sizeof(request), "GET /api/v1/stream?pages=%s HTTP/1.1\r\nHost: x\r\n\r\n", pages);
	put(fd, request);
	return fd;
}

/* Reads into `got` until @text is in it. */
static void read_until(int fd, const char *text)
{
	int64_t end_ns = clock_mono_ns() + PATIENCE_MS * NSEC_PER_MSEC;

	while (!got.data || !strstr(got.data, text)) {
		char piece[65536];
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		assert_true(clock_mono_ns() < end_ns);
		if (poll(&p, 1, 100) != 1)
			continue;
		n = read(fd, piece, sizeof(piece));
		assert_true(n > 0);
		strbuf_add(&got, piece, (size_t)n);
	}
}

static void test_all_first_and_then_what_changes(_unused_ void **state)
{
	int fd = look_at("numbers");

	read_until(fd, "\"start\":true,\"changes\":[[[],{\"n\":1,");
	assert_non_null(strstr(got.data, "Content-Type: text/event-stream"));
	assert_non_null(strstr(got.data, "stays as it is"));
	strbuf_reset(&got);
	atomic_store(&server->generation, 2);
	read_until(fd, "data: {\"page\":\"numbers\",\"changes\":[[[\"n\"],2]]}");
	assert_null(strstr(got.data, "stays as it is"));
	/* Nothing changes: a sign of life. */
	read_until(fd, "event: beat");
	close(fd);
}

static void test_a_page_that_is_not_there_says_why(_unused_ void **state)
{
	int fd = look_at("missing,numbers");

	read_until(fd, "event: absent\ndata: {\"page\":\"missing\",\"text\":\"404 not \\\"there\\\"\"}\n\n");
	read_until(fd, "\"page\":\"numbers\"");
	close(fd);
}

static void test_what_is_no_json_is_not_sent(_unused_ void **state)
{
	int fd = look_at("broken,numbers");

	read_until(fd, "\"page\":\"numbers\"");
	assert_null(strstr(got.data, "broken"));
	close(fd);
}

static void test_names_must_be_pages(_unused_ void **state)
{
	static const char *const names[] = {
		"",       "nothing", "numbers,nothing", ",",
		"stream", "number",  "numberss",        "numbers,missing,broken,fourth,fifth"
	};
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char request[128];

		snprintf(request, sizeof(request), "GET /api/v1/stream?pages=%s HTTP/1.1\r\nHost: x\r\n\r\n",
			 names[i]);
		assert_int_equal(ask(server, request, &got), 400);
	}
	fd = look_at("numbers,missing,broken,fourth");
	strbuf_reset(&got);
	read_until(fd, "HTTP/1.1 200");
	close(fd);
}

static void test_one_rendering_for_all(_unused_ void **state)
{
	int a = look_at("numbers"), b = look_at("numbers");

	read_until(a, "\"n\":1");
	strbuf_reset(&got);
	read_until(b, "\"n\":1");
	strbuf_reset(&got);
	atomic_store(&server->renders, 0);
	atomic_store(&server->generation, 7);
	read_until(a, "[[\"n\"],7]");
	strbuf_reset(&got);
	read_until(b, "[[\"n\"],7]");
	assert_int_equal(atomic_load(&server->renders), 1);
	close(a);
	close(b);
}

static struct http_stats stats(void)
{
	struct http_stats s;

	http_stats(server->http, &s);
	return s;
}

static void wait_for_streams(unsigned n)
{
	int64_t end_ns = clock_mono_ns() + PATIENCE_MS * NSEC_PER_MSEC;

	while (stats().streams != n) {
		assert_true(clock_mono_ns() < end_ns);
		sleep_ms(20);
	}
}

static void test_half_of_the_connections(_unused_ void **state)
{
	int fds[CONNECTIONS / 2];

	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = look_at("numbers");
	wait_for_streams(ARRAY_SIZE(fds));
	assert_int_equal(ask(server, "GET /api/v1/stream?pages=numbers HTTP/1.1\r\nHost: x\r\n\r\n", &got),
			 503);
	close_all(fds, ARRAY_SIZE(fds));
	/* Those that have hung up are found when they are sent something. */
	wait_for_streams(0);
}

/* One viewer reads and the other does not, until that one is closed; after how many changes. */
static unsigned changes_until_it_is_closed(size_t page_bytes)
{
	static const char whole[] = "\"]]}\n\n"; /* ends an event whose last change is the text */
	int64_t end_ns = clock_mono_ns() + 5 * PATIENCE_MS * NSEC_PER_MSEC;
	int small = 16 << 10, idle, other;
	uint64_t n = 1;

	/* Little waits in the kernel. */
	setsockopt(server->listen_fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	atomic_store(&server->page_bytes, page_bytes);
	idle = look_at("numbers");
	setsockopt(idle, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	other = look_at("numbers");
	read_until(other, whole);
	while (stats().streams_dropped == 0) {
		assert_true(clock_mono_ns() < end_ns);
		strbuf_reset(&got);
		atomic_store(&server->generation, ++n);
		read_until(other, whole);
	}
	assert_int_equal(stats().streams_dropped, 1);
	wait_for_streams(1);
	close(idle);
	close(other);
	return (unsigned)n;
}

static void test_who_does_not_read_is_closed(_unused_ void **state)
{
	assert_true(changes_until_it_is_closed(LONG_TEXT_BYTES) >= STREAM_QUEUE);
}

/* So long events that not even a queue of them may wait. */
static void test_what_is_not_read_has_a_bound_in_bytes(_unused_ void **state)
{
	assert_true(changes_until_it_is_closed(8 * LONG_TEXT_BYTES) < STREAM_QUEUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_first_and_then_what_changes, start, stop),
		cmocka_unit_test_setup_teardown(test_a_page_that_is_not_there_says_why, start, stop),
		cmocka_unit_test_setup_teardown(test_what_is_no_json_is_not_sent, start, stop),
		cmocka_unit_test_setup_teardown(test_names_must_be_pages, start, stop),
		cmocka_unit_test_setup_teardown(test_one_rendering_for_all, start, stop),
		cmocka_unit_test_setup_teardown(test_half_of_the_connections, start, stop),
		cmocka_unit_test_setup_teardown(test_who_does_not_read_is_closed, start, stop),
		cmocka_unit_test_setup_teardown(test_what_is_not_read_has_a_bound_in_bytes, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
