// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "harness.h"
#include "serve/address.h"

#define PACKED(method_, more_, encodings_) \
	method_ " /packed" more_ " HTTP/1.1\r\nHost: x\r\nAccept-Encoding: " encodings_ "\r\n\r\n"

static struct server *server;
static struct strbuf reply;

static int start(void **state)
{
	(void)state;
	strbuf_init(&reply, 0);
	server = server_start(16);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	server_stop(server);
	strbuf_done(&reply);
	return 0;
}

/* A body of this many bytes, sent with its declared length or in chunks. */
static void put_body(int fd, size_t bytes, bool chunked)
{
	static const char kib[1025] = { [0 ... 1023] = 'b' };

	for (size_t done = 0; done < bytes; done += 1024) {
		if (chunked)
			put_try(fd, "400\r\n");
		put_try(fd, kib);
		if (chunked)
			put_try(fd, "\r\n");
	}
	if (chunked)
		put_try(fd, "0\r\n\r\n");
}

static void test_statuses(void **state)
{
	static const struct {
		const char *request;
		unsigned status;
		const char *holds;
	} cases[] = {
		{ "GET /page HTTP/1.1\r\nHost: x\r\n\r\n", 200, "/page 1 -\n" },
		{ "GET /page?v=2 HTTP/1.1\r\nHost: x\r\n\r\n", 200, "/page 1 2\n" },
		{ "GET http://host:1/page HTTP/1.1\r\nHost: x\r\n\r\n", 200, "/page 1 -\n" },
		{ "GET /echo?a=x%20y&b HTTP/1.1\r\nHost: x\r\nAccept: a/b\r\n\r\n", 200, "x y remote a/b\n" },
		{ "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", 200, "Content-Type: text/x-echo\r\n" },
		{ "GET /echo?busy HTTP/1.1\r\nHost: x\r\n\r\n", 503, "remote" },
		{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 200, "remote" },
		{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 413,
		  "413 content too large" },
		{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", 400,
		  "" },
		{ "HEAD /page HTTP/1.1\r\nHost: x\r\n\r\n", 200, "Content-Length: 10\r\n" },
		{ "GET /page HTTP/1.0\r\n\r\n", 200, "Connection: close\r\n" },
		{ "GET /empty HTTP/1.1\r\nHost: x\r\n\r\n", 200, "Content-Length: 0\r\n" },
		{ "GET /page HTTP/1.1\r\nHost: x\r\n\r\n", 200, "Cache-Control: no-store\r\n" },
		{ "GET /page HTTP/1.1\r\nHost: x\r\n\r\n", 200, "X-Content-Type-Options: nosniff\r\n" },
		{ "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 404, "404 not found" },
		{ "GET /pages HTTP/1.1\r\nHost: x\r\n\r\n", 404, "404 not found" },
		{ "GET http://host HTTP/1.1\r\nHost: x\r\n\r\n", 404, "404 not found" },
		{ "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 404, "404 not found" },
		{ "POST /page HTTP/1.1\r\nHost: x\r\n\r\n", 405, "Allow: GET, HEAD\r\n" },
		{ "BREW /echo HTTP/1.1\r\nHost: x\r\n\r\n", 405, "Allow: GET, HEAD, POST\r\n" },
		{ "get /page HTTP/1.1\r\nHost: x\r\n\r\n", 405, "405 method not allowed" },
		{ "POST /do HTTP/1.1\r\nHost: x\r\n\r\n", 403, "403 forbidden" },
		{ "GET /do HTTP/1.1\r\nHost: x\r\n\r\n", 403, "UNIX socket" },
		{ "GET /fail HTTP/1.1\r\nHost: x\r\n\r\n", 500, "No such device\n" },
		{ "GET /page HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400, "" },
		{ "GET /page%00.html HTTP/1.1\r\nHost: x\r\n\r\n", 400, "400 bad request" },
		{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 413, "" },
		{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400, "" },
		{ "GET /page HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400, "" },
		{ "GET /page HTTP/2.0\r\n\r\n", 505, "" },
		{ "GET /page\r\n\r\n", 400, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned status = ask(server, cases[i].request, &reply);

		if (status != cases[i].status || !strstr(reply.data, cases[i].holds))
			fail_msg("%s: got %u\n%s", cases[i].request, status, reply.data);
	}
}

/* What the kernel tells of a connection is how we know that a client was left without an answer. */
static void need_tcp_info(void)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct tcp_info info;
	socklen_t n = sizeof(info);

	assert_true(fd >= 0);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) < 0 || n == sizeof(int))
		need_unmet("nothing is told of TCP connections here (TCP_INFO)");
}

static void test_no_request(void **state)
{
	static const char *const lines[] = { "GARBAGE\r\n\r\n", "\x16\x03\x01\x02\x01\x01\xfc\n", " \n" };

	(void)state;
	need_tcp_info();
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		unsigned status = ask(server, lines[i], &reply);

		if (status != 400 || !strstr(reply.data, "400 bad request"))
			fail_msg("%s: got %u\n%s", lines[i], status, reply.data);
	}
}

static void test_error_bodies_are_one_line(void **state)
{
	static const char *const targets[] = { "/nope", "/do", "/fail", "/%00" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		char request[64];
		const char *body;

		snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n\r\n", targets[i]);
		assert_true(ask(server, request, &reply) >= 400);
		body = body_of(&reply);
		assert_ptr_equal(strchr(body, '\n'), body + strlen(body) - 1);
		assert_non_null(strstr(reply.data, "Content-Type: text/plain; charset=utf-8\r\n"));
	}
}

static void test_keep_alive_and_close(void **state)
{
	_cleanup_close_ int fd = dial(server);

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		put(fd, "GET /page HTTP/1.1\r\nHost: x\r\n\r\n");
		assert_true(read_reply(fd, false, &reply));
		assert_string_equal(body_of(&reply), "/page 1 -\n");
	}
	put(fd, "HEAD /page HTTP/1.1\r\nHost: x\r\n\r\nGET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		"\r\n");
	assert_true(read_reply(fd, true, &reply));
	strbuf_reset(&reply);
	assert_true(read_to_end(fd, &reply));
	assert_string_equal(body_of(&reply), "/page 1 -\n");
}

static void test_pipeline_of_a_thousand(void **state)
{
	_cleanup_close_ int fd = dial(server);

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		put(fd, "GET /echo?a=1 HTTP/1.1\r\nHost: x\r\n\r\n");
	for (unsigned i = 0; i < 1000; i++) {
		assert_true(read_reply(fd, false, &reply));
		assert_string_equal(body_of(&reply), "1 remote -\n");
	}
}

static void test_bytes_one_by_one(void **state)
{
	static const char request[] = "POST /echo?a=slow HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
	_cleanup_close_ int fd = dial(server);

	(void)state;
	for (const char *p = request; *p; p++)
		put(fd, (char[]){ *p, '\0' });
	assert_true(read_reply(fd, false, &reply));
	assert_string_equal(body_of(&reply), "slow remote -\n");
}

/* A body is refused by the headers, and the connection closed: nothing of the body is parsed. */
static void test_no_body_is_read(void **state)
{
	static const char *const heads[] = {
		"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET /page HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		_cleanup_close_ int fd = dial(server);

		put(fd, heads[i]);
		assert_true(read_reply(fd, false, &reply));
		assert_int_equal(status_of(&reply), 413);
		put_body(fd, 1 << 20, i < 2);
		assert_true(hung_up(fd, PATIENCE_MS));
	}
	assert_int_equal(ask(server, "GET /page HTTP/1.0\r\n\r\n", &reply), 200);
}

/* The extension of a chunk, without end: libmicrohttpd 0.9.75 searches it again for each byte. */
static void test_chunk_extension_costs_nothing(void **state)
{
	_cleanup_close_ int fd = dial(server);
	struct timespec before, after;

	(void)state;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	put(fd, "GET /page HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;");
	for (unsigned i = 0; i < 17; i++)
		put_try(fd, (char[1025]){ [0 ... 1023] = 'a' });
	assert_true(read_reply(fd, false, &reply));
	assert_int_equal(status_of(&reply), 413);
	assert_true(hung_up(fd, PATIENCE_MS));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	assert_in_range(after.tv_sec - before.tv_sec, 0, 5); /* it was 31 s */
}

static void test_hosts(void **state)
{
	static const struct {
		const char *request;
		unsigned status;
	} cases[] = {
		{ "GET /page HTTP/1.1\r\nHost: 127.0.0.1:9470\r\n\r\n", 200 },
		{ "GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n", 200 },
		{ "GET /page HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421 },
		{ "GET /page HTTP/1.0\r\nHost: evil.example\r\n\r\n", 421 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(ask(server, cases[i].request, &reply), cases[i].status);
	assert_non_null(strstr(reply.data, "http.hosts"));
}

static void test_zero_bytes(void **state)
{
	static const char *const targets[] = { "/pa\0ge", "/page\0x", "/page?a\0b" };
	static const size_t lengths[] = { 7, 7, 9 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		static const char rest[] = " HTTP/1.1\r\nHost: x\r\n\r\n";
		_cleanup_close_ int fd = dial(server);

		assert_int_equal(write_all(fd, "GET ", 4), 4);
		assert_true(write_all(fd, targets[i], lengths[i]) == (ssize_t)lengths[i]);
		put(fd, rest);
		assert_true(read_reply(fd, false, &reply));
		assert_int_equal(status_of(&reply), 400);
	}
}

static void test_too_many_arguments(void **state)
{
	static const unsigned counts[] = { 32, 33, 300, 4000 };
	struct strbuf request;

	(void)state;
	strbuf_init(&request, 0);
	for (size_t k = 0; k < ARRAY_SIZE(counts); k++) {
		strbuf_reset(&request);
		strbuf_adds(&request, "GET /page?a");
		for (unsigned i = 1; i < counts[k]; i++)
			strbuf_adds(&request, "&a");
		strbuf_adds(&request, " HTTP/1.1\r\nHost: x\r\n\r\n");
		assert_int_equal(ask(server, request.data, &reply), counts[k] == 32 ? 200 : 400);
	}
	strbuf_done(&request);
}

static void test_long_target_and_long_headers(void **state)
{
	char *request = malloc(70000);

	(void)state;
	assert_non_null(request);
	memcpy(request, "GET /", 5);
	memset(request + 5, 'a', 64000);
	strcpy(request + 64005, " HTTP/1.1\r\n\r\n");
	assert_int_equal(ask(server, request, &reply), 414);
	strcpy(request, "GET /page HTTP/1.1\r\nX: ");
	memset(request + 23, 'a', 64000);
	strcpy(request + 64023, "\r\n\r\n");
	assert_int_equal(ask(server, request, &reply), 431);
	free(request);
}

static void test_page_is_rendered_once_per_generation_and_variant(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(ask(server, "GET /page HTTP/1.0\r\n\r\n", &reply), 200);
		assert_int_equal(ask(server, "HEAD /page HTTP/1.0\r\n\r\n", &reply), 200);
		assert_int_equal(ask(server, "GET /page?v=b HTTP/1.0\r\n\r\n", &reply), 200);
	}
	assert_int_equal(atomic_load(&server->renders), 2);
	atomic_store(&server->generation, 2);
	assert_int_equal(ask(server, "GET /page HTTP/1.0\r\n\r\n", &reply), 200);
	assert_string_equal(body_of(&reply), "/page 2 -\n");
	assert_int_equal(ask(server, "GET /page HTTP/1.0\r\n\r\n", &reply), 200);
	assert_int_equal(atomic_load(&server->renders), 3);
	assert_int_equal(ask(server, "GET /page?v=c HTTP/1.0\r\n\r\n", &reply), 200);
	assert_string_equal(body_of(&reply), "/page 2 c\n");
	assert_int_equal(atomic_load(&server->renders), 4);
}

/* A page that a slow client has begun to read must not change under it when newer ones are made. */
static void test_slow_reader_gets_the_page_it_asked_for(void **state)
{
	_cleanup_close_ int fd = dial(server);
	size_t bytes = 8 << 20, length;
	const char *body;

	(void)state;
	atomic_store(&server->page_bytes, bytes);
	put(fd, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
	while (atomic_load(&server->renders) < 1)
		sleep_ms(1);
	for (unsigned g = 2; g < 6; g++) {
		atomic_store(&server->generation, g);
		assert_int_equal(ask(server, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n", &reply), 200);
	}
	assert_true(read_reply(fd, false, &reply));
	body = body_of(&reply);
	assert_memory_equal(body, "/big 1 -\n", 9);
	length = strlen(body);
	assert_true(length >= bytes);
	for (size_t i = 9; i + 64 <= length; i += 64)
		assert_memory_equal(body + i, "0123456789ab", 12);
}

/* Refusals in another program's words, and methods that it does not have. */
static void test_manner_of_another_program(void **state)
{
	static const struct {
		const char *request;
		unsigned status;
		const char *body;
	} cases[] = {
		{ "GET /part HTTP/1.1\r\nHost: x\r\n\r\n", 200, "/part 1 -\n" },
		{ "POST /part HTTP/1.1\r\nHost: x\r\n\r\n", 405, "not this method\n" },
		{ "BREW /part HTTP/1.1\r\nHost: x\r\n\r\n", 405, "not this method\n" },
		{ "POST /part HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 405,
		  "not this method\n" },
		{ "POST /part HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 405,
		  "not this method\n" },
		{ "GET /part HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 200, "/part 1 -\n" },
		{ "GET /part HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 3\r\n\r\nabc", 421, NULL },
		{ "GET /part?bad HTTP/1.1\r\nHost: x\r\n\r\n", 400, "no such variant\n" },
		{ "GET /part?keep=no HTTP/1.1\r\nHost: x\r\n\r\n", 500, "in other words\n" },
		{ "GET /sour HTTP/1.1\r\nHost: x\r\n\r\n", 500, "in other words\n" },
		{ "POST /any HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 200, "" },
		{ "BREW /any HTTP/1.1\r\nHost: x\r\n\r\n", 200, "" },
	};

	(void)state;
	atomic_store(&server->page_bytes, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned status = ask(server, cases[i].request, &reply);

		if (status != cases[i].status ||
		    (cases[i].body && strcmp(body_of(&reply), cases[i].body) != 0))
			fail_msg("%s: got %u\n%s", cases[i].request, status, reply.data);
		assert_null(strstr(reply.data, "Allow:"));
	}
	assert_int_equal(ask(server, "HEAD /part HTTP/1.0\r\n\r\n", &reply), 405);
	assert_non_null(strstr(reply.data, "Content-Length: 16\r\n"));
	assert_int_equal(ask(server, "HEAD /any HTTP/1.0\r\n\r\n", &reply), 200);
}

static void test_a_part_has_the_headers_of_its_page(void **state)
{
	(void)state;
	atomic_store(&server->page_bytes, 0);
	assert_int_equal(ask(server, "GET /part?keep=5 HTTP/1.0\r\n\r\n", &reply), 200);
	assert_string_equal(body_of(&reply), "/part");
	assert_non_null(strstr(reply.data, "X-Gpusonde-State: ready\r\n"));
	assert_non_null(strstr(reply.data, "X-Gpusonde-Age: 1.250\r\n"));
	assert_non_null(strstr(reply.data, "X-Gpusonde-Time: 1790000000.250\r\n"));
	assert_non_null(strstr(reply.data, "Cache-Control: no-store\r\n"));
	assert_int_equal(ask(server, "GET /part?keep=0 HTTP/1.0\r\n\r\n", &reply), 200);
	assert_string_equal(body_of(&reply), "");
	assert_int_equal(ask(server, "GET /part?keep=99 HTTP/1.0\r\n\r\n", &reply), 200);
	assert_string_equal(body_of(&reply), "/part 1 -\n");
	/* All of them of one page. */
	assert_int_equal(atomic_load(&server->renders), 1);
}

static void test_a_page_that_ages_is_made_again(void **state)
{
	(void)state;
	assert_int_equal(ask(server, "GET /part HTTP/1.0\r\n\r\n", &reply), 200);
	sleep_ms(2 * PART_AGE_NS / NSEC_PER_MSEC);
	assert_int_equal(ask(server, "GET /part HTTP/1.0\r\n\r\n", &reply), 200);
	assert_int_equal(atomic_load(&server->renders), 2);
}

/* Each has a copy of its own: those who were first are closed, and a client that reads is served. */
static void test_parts_that_nobody_reads_are_bounded(void **state)
{
	enum { SLOW = 12 };
	struct http_stats stats;
	int fds[SLOW];

	(void)state;
	atomic_store(&server->page_bytes, 12 << 20);
	for (unsigned i = 0; i < SLOW; i++) {
		fds[i] = dial(server);
		put(fds[i], "GET /part?keep=12000000 HTTP/1.1\r\nHost: x\r\n\r\n");
		assert_int_equal(ask(server, "GET /part?keep=5 HTTP/1.0\r\n\r\n", &reply), 200);
		assert_string_equal(body_of(&reply), "/part");
	}
	http_stats(server->http, &stats);
	assert_true(stats.evicted >= 2);
	assert_true(stats.evicted < SLOW);
	/* The last one is still served. */
	assert_true(read_reply(fds[SLOW - 1], false, &reply));
	assert_int_equal(status_of(&reply), 200);
	close_all(fds, SLOW);
}

static uint64_t encodings(void)
{
	struct http_stats stats;

	http_stats(server->http, &stats);
	return stats.encodings;
}

static void test_a_page_is_encoded_once_per_generation_variant_and_encoding(void **state)
{
	(void)state;
	atomic_store(&server->page_bytes, 100000);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ask(server, PACKED("GET", "", "gzip"), &reply), 200);
		assert_non_null(strstr(reply.data, "Content-Encoding: gzip\r\n"));
		assert_memory_equal(body_of(&reply), "\x1f\x8b", 2);
		assert_true(reply.len < 10000);
		assert_int_equal(ask(server, PACKED("HEAD", "", "gzip"), &reply), 200);
		assert_non_null(strstr(reply.data, "Content-Encoding: gzip\r\n"));
		assert_null(strstr(reply.data, "Content-Length: 100"));
	}
	assert_int_equal(atomic_load(&server->renders), 1);
	assert_int_equal(encodings(), 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ask(server, PACKED("GET", "", "gzip, zstd"), &reply), 200);
		assert_non_null(strstr(reply.data, "Content-Encoding: zstd\r\n"));
		assert_memory_equal(body_of(&reply), "\x28\xb5\x2f\xfd", 4);
	}
	assert_int_equal(atomic_load(&server->renders), 1);
	assert_int_equal(encodings(), 2);
	assert_int_equal(ask(server, PACKED("GET", "?v=b", "gzip"), &reply), 200);
	assert_int_equal(atomic_load(&server->renders), 2);
	assert_int_equal(encodings(), 3);
	atomic_store(&server->generation, 2);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ask(server, PACKED("GET", "", "gzip"), &reply), 200);
	assert_int_equal(atomic_load(&server->renders), 3);
	assert_int_equal(encodings(), 4);
}

static void test_what_is_not_encoded(void **state)
{
	static const struct {
		const char *request;
		unsigned status;
	} cases[] = {
		{ PACKED("GET", "", "br"), 200 },
		{ PACKED("GET", "", "*"), 200 },
		{ PACKED("GET", "", "identity;q=0"), 200 },
		{ PACKED("GET", "", "gzip;q=0"), 200 },
		{ PACKED("GET", "?keep=5", "gzip"), 200 },
		{ PACKED("GET", "?keep=no", "gzip"), 500 },
		{ PACKED("GET", "/missing", "gzip"), 404 },
		{ PACKED("POST", "", "gzip"), 405 },
		{ "GET /packed HTTP/1.1\r\nHost: x\r\n\r\n", 200 },
		{ "GET /page HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n", 200 },
		{ "GET /nothing HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n", 404 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned status = ask(server, cases[i].request, &reply);

		if (status != cases[i].status || strstr(reply.data, "Content-Encoding"))
			fail_msg("%s: got %u\n%s", cases[i].request, status, reply.data);
	}
	assert_int_equal(encodings(), 0);
}

static void test_control_socket(void **state)
{
	_cleanup_close_ int fd = dial_unix(server);
	struct stat st;

	(void)state;
	put(fd, "POST /do?a=b HTTP/1.0\r\n\r\n");
	assert_true(read_reply(fd, false, &reply));
	assert_int_equal(status_of(&reply), 200);
	assert_string_equal(body_of(&reply), "b local -\n");
	assert_int_equal(stat(server->socket, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
}

static void test_counters(void **state)
{
	struct http_stats stats;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		ask(server, "GET /page HTTP/1.0\r\n\r\n", &reply);
	http_stats(server->http, &stats);
	assert_int_equal(stats.accepted, 3);
	assert_int_equal(stats.requests, 3);
	assert_int_equal(stats.evicted, 0);
	for (unsigned i = 0; i < PATIENCE_MS && stats.connections > 0; i++) {
		sleep_ms(1);
		http_stats(server->http, &stats);
	}
	assert_int_equal(stats.connections, 0);
}

static void test_listening(void **state)
{
	sd_event *event;
	struct http *other;
	struct http_config config = { .routes = (struct http_route[]){ { 0 } } };

	(void)state;
	assert_int_equal(sd_event_new(&event), 0);
	assert_int_equal(http_new(event, &config, &other), 0);
	assert_int_equal(http_listen_unix(other, server->socket, 0660), -EADDRINUSE);
	assert_int_equal(http_listen_unix(other, "/nonexistent/s", 0660), -ENOENT);
	http_free(other);
	sd_event_unref(event);
}

static void test_nothing_leaks(void **state)
{
	unsigned before = count_fds();
	int idle, half, silent;

	(void)state;
	stop(NULL);
	start(NULL);
	idle = dial(server);
	half = dial(server);
	silent = dial(server);
	put(idle, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
	put(half, "GET /pa");
	for (unsigned i = 0; i < 200; i++)
		ask(server, i % 2 ? "GET /page HTTP/1.1\r\nHost: x\r\n\r\n" : "GARBAGE\r\n\r\n", &reply);
	stop(NULL);
	start(NULL);
	assert_true(hung_up(idle, 0) && hung_up(half, 0) && hung_up(silent, 0));
	close(idle);
	close(half);
	close(silent);
	assert_int_equal(count_fds(), before);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_statuses),
		CASE(test_no_request),
		CASE(test_error_bodies_are_one_line),
		CASE(test_keep_alive_and_close),
		CASE(test_pipeline_of_a_thousand),
		CASE(test_bytes_one_by_one),
		CASE(test_no_body_is_read),
		CASE(test_chunk_extension_costs_nothing),
		CASE(test_hosts),
		CASE(test_zero_bytes),
		CASE(test_too_many_arguments),
		CASE(test_long_target_and_long_headers),
		CASE(test_page_is_rendered_once_per_generation_and_variant),
		CASE(test_slow_reader_gets_the_page_it_asked_for),
		CASE(test_manner_of_another_program),
		CASE(test_a_part_has_the_headers_of_its_page),
		CASE(test_a_page_that_ages_is_made_again),
		CASE(test_parts_that_nobody_reads_are_bounded),
		CASE(test_a_page_is_encoded_once_per_generation_variant_and_encoding),
		CASE(test_what_is_not_encoded),
		CASE(test_control_socket),
		CASE(test_counters),
		CASE(test_listening),
		CASE(test_nothing_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
