// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "harness.h"
#include "serve/address.h"
#include "serve/client.h"

static struct strbuf body;
static unsigned status;

static int setup(void **state)
{
	(void)state;
	strbuf_init(&body, 0);
	status = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	strbuf_done(&body);
	return 0;
}

static void test_real_server(void **state)
{
	struct server *s = server_start(0);

	(void)state;
	assert_int_equal(control_request(s->socket, "POST", "/do?a=1", &body, &status), 0);
	assert_int_equal(status, 200);
	assert_string_equal(body.data, "1 local -\n");
	strbuf_reset(&body);
	assert_int_equal(control_request(s->socket, "GET", "/nope", &body, &status), 0);
	assert_int_equal(status, 404);
	strbuf_reset(&body);
	atomic_store(&s->page_bytes, 3 << 20);
	assert_int_equal(control_request(s->socket, "GET", "/big", &body, &status), 0);
	assert_true(status == 200 && body.len >= 3 << 20);
	server_stop(s);
}

static void test_nobody_there(void **state)
{
	char folder[] = "/tmp/gpusonde-test-XXXXXX", path[64];
	int fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	assert_int_equal(control_request(path, "GET", "/", &body, &status), -ENOENT);
	assert_int_equal(listen_unix(path, 0600, &fd), 0);
	close(fd);
	assert_int_equal(control_request(path, "GET", "/", &body, &status), -ECONNREFUSED);
	assert_int_equal(chmod(path, 0), 0);
	if (geteuid() != 0)
		assert_int_equal(control_request(path, "GET", "/", &body, &status), -EACCES);
	unlink(path);
	rmdir(folder);
	assert_int_equal(status, 0);
	assert_int_equal(body.len, 0);
}

/* Answers one connection with this text, then closes, or keeps it open. */
struct liar {
	const char *says;
	bool stays;
	int listen_fd;
	int fd;
	pthread_t thread;
	char name[64];
};

static void *lie(void *userdata)
{
	struct liar *l = userdata;
	char request[1024];

	while ((l->fd = accept4(l->listen_fd, NULL, NULL, SOCK_CLOEXEC)) < 0)
		sleep_ms(1);
	if (recv(l->fd, request, sizeof(request), 0) > 0)
		(void)!send(l->fd, l->says, strlen(l->says), MSG_NOSIGNAL);
	if (!l->stays)
		shutdown(l->fd, SHUT_RDWR);
	return NULL;
}

static int ask_liar(const char *says, bool stays)
{
	struct liar l = { .says = says, .stays = stays };
	int r;

	snprintf(l.name, sizeof(l.name), "@gpusonde-test-client-%d", getpid());
	assert_int_equal(listen_unix(l.name, 0600, &l.listen_fd), 0);
	assert_int_equal(pthread_create(&l.thread, NULL, lie, &l), 0);
	r = control_request(l.name, "GET", "/", &body, &status);
	pthread_join(l.thread, NULL);
	close(l.fd);
	close(l.listen_fd);
	return r;
}

static void test_odd_but_whole(void **state)
{
	(void)state;
	assert_int_equal(ask_liar("HTTP/1.0 201 Made\ncontent-length:3\nX: y\n\nabc", false), 0);
	assert_int_equal(status, 201);
	assert_string_equal(body.data, "abc");
	strbuf_reset(&body);
	assert_int_equal(ask_liar("HTTP/1.1 204 None\r\n\r\n", false), 0);
	assert_int_equal(status, 204);
	assert_string_equal(body.data, "");
}

static void test_no_http(void **state)
{
	static const char *const cases[] = {
		"",
		"SSH-2.0-x\r\n\r\n",
		"HTTP/1.1",
		"HTTP/1.1 200 OK\r\n",
		"HTTP/1.1 999 OK\r\n\r\n",
		"HTTP/1.1 99999999999999999999 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nX: y\r\nabc",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = ask_liar(cases[i], false);

		if (r != -EPROTO || status != 0 || body.len != 0)
			fail_msg("%s: %d, status %u, body %s", cases[i], r, status, body.data);
	}
}

static void test_silence_ends(void **state)
{
	int64_t begin_ns = clock_mono_ns();

	(void)state;
	assert_int_equal(ask_liar("HTTP/1.1 200 OK\r\n", true), -ETIMEDOUT);
	assert_true(clock_mono_ns() - begin_ns >= CONTROL_TIMEOUT_MS * NSEC_PER_MSEC);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_real_server), CASE(test_nobody_there), CASE(test_odd_but_whole),
		CASE(test_no_http),     CASE(test_silence_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
