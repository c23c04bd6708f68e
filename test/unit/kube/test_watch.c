// SPDX-License-Identifier: Apache-2.0
/* A watch and requests beside a server of this process, which answers between the steps of the client. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kube/watch.h"

enum { PATIENCE = 20000 }; /* turns of at most 2 ms */

static struct access access_;
static struct client *client;
static struct watch *watch;
static int listener = -1, peer = -1;
static uint16_t port;
static unsigned answered; /* requests */
static bool ended;
static struct outcome outcome;

static int listen_anywhere(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(address);

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(listener, (struct sockaddr *)&address, n) < 0 || listen(listener, 8) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &n) < 0)
		return -1;
	port = ntohs(address.sin_port);
	return 0;
}

static int begin(void **state)
{
	(void)state;
	answered = 0;
	ended = false;
	if (listen_anywhere() < 0 || asprintf(&access_.server, "http://127.0.0.1:%u", port) < 0)
		return -1;
	return client_new(&access_, &client);
}

static int end(void **state)
{
	(void)state;
	watch_free(watch);
	watch = NULL;
	client_free(client);
	closep(&peer);
	closep(&listener);
	peer = listener = -1;
	access_done(&access_);
	clock_freeze(false);
	return 0;
}

/* True: a whole request has come. */
static bool serve(void)
{
	static char request[4096];
	static size_t n;
	ssize_t got;

	if (peer < 0) {
		peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		n = 0;
	}
	if (peer < 0)
		return false;
	got = read(peer, request + n, sizeof(request) - 1 - n);
	if (got == 0) {
		closep(&peer);
		peer = -1;
	}
	if (got <= 0)
		return false;
	n += (size_t)got;
	request[n] = '\0';
	if (!strstr(request, "\r\n\r\n"))
		return false;
	n = 0;
	answered++;
	return true;
}

static void say(const char *text)
{
	if (peer >= 0)
		(void)!send(peer, text, strlen(text), MSG_NOSIGNAL);
}

static void answer(const char *status, const char *body)
{
	char text[1024];

	snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(body),
		 body);
	say(text);
}

static void turn(void)
{
	client_step(client);
	client_wait(client, listener, 1);
}

/* ---- requests ---- */

static void on_done(const struct outcome *how, void *userdata)
{
	(void)userdata;
	outcome = *how;
	ended = true;
}

/* A byte at a time is never quiet: it ends all the same. */
static void what_drips_is_given_up(void **state)
{
	static const struct request_ops ops = { NULL, on_done };
	const struct request_limits limits = { 600 * NSEC_PER_SEC, 300 * NSEC_PER_MSEC };
	struct request *request;

	(void)state;
	assert_int_equal(client_get(client, "/", "application/json", &limits, &ops, NULL, &request), 0);
	for (int turns = 0; !ended; turns++) {
		assert_true(turns < PATIENCE);
		if (serve())
			say("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
		else if (answered)
			say(" ");
		turn();
	}
	assert_int_equal(outcome.status, 200);
	assert_int_equal(outcome.failure, NET_FAILED_TIMEOUT);
}

/* ---- watches ---- */

static int on_value(int id, const struct json_value *value, void *userdata)
{
	(void)id;
	(void)value;
	(void)userdata;
	return 0;
}

static void on_list(void *userdata)
{
	(void)userdata;
}

static void on_object(bool gone, void *userdata)
{
	(void)gone;
	(void)userdata;
}

static void start_watch(void)
{
	static const struct json_path path = { "metadata uid", 1 };
	const struct watch_config config = {
		.path = "/p",
		.query = "",
		.paths = &path,
		.paths_n = 1,
		.ops = { .value = on_value },
		.list_begins = on_list,
		.list_ended = on_list,
		.object_begins = on_list,
		.object_ended = on_object,
		.timeout_ns = 290 * NSEC_PER_SEC,
	};

	assert_int_equal(watch_new(client, &config, &watch), 0);
}

static uint64_t failed(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < NET_FAILURES; i++)
		n += watch_state(watch)->failures[i];
	return n;
}

/* Until the next failure, whatever the server says to each request. Returns for how long it waits then. */
static int64_t wait_after(const char *status)
{
	uint64_t failures = failed();

	/* What is due is due now. */
	watch_step(watch, INT64_MAX);
	for (int turns = 0; failed() == failures; turns++) {
		assert_true(turns < PATIENCE);
		if (serve())
			answer(status, "{}");
		turn();
	}
	return watch_step(watch, 0) - clock_mono_ns();
}

/* It was restarted, perhaps: a client that waits for a minute shows what is old for so long. */
static void a_server_that_is_away_is_found_again_soon(void **state)
{
	int64_t most_ns = 0;

	(void)state;
	closep(&listener);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* nobody listens at the port any more */
	start_watch();
	for (unsigned i = 0; i < 10; i++)
		most_ns = MAX(most_ns, wait_after(""));
	assert_true(most_ns <= 10 * NSEC_PER_SEC);
	assert_true(most_ns > 4 * NSEC_PER_SEC);
}

/* One that has just started refuses for a moment what it permits as soon as it has read its roles. */
static void a_server_that_refuses_is_asked_again_soon(void **state)
{
	int64_t after_ns = 0;

	(void)state;
	start_watch();
	assert_true(wait_after("403 Forbidden") <= NSEC_PER_SEC);
	assert_int_equal(watch_state(watch)->outcome, WATCH_REFUSED);
	assert_true(wait_after("404 Not Found") <= 2 * NSEC_PER_SEC);
	for (unsigned i = 0; i < 8; i++)
		after_ns = wait_after("403 Forbidden");
	assert_true(after_ns > 25 * NSEC_PER_SEC && after_ns <= 60 * NSEC_PER_SEC);
	assert_true(wait_after("500 Internal Server Error") > 25 * NSEC_PER_SEC);
}

/* There is always another page, and each comes within its time. */
static void a_list_without_end_is_given_up(void **state)
{
	static const char page[] =
		"{\"metadata\":{\"resourceVersion\":\"1\",\"continue\":\"x\"},\"items\":[]}";

	(void)state;
	clock_freeze(true);
	start_watch();
	watch_step(watch, INT64_MAX);
	for (int turns = 0; failed() == 0; turns++) {
		assert_true(turns < PATIENCE && answered < 100);
		if (serve()) {
			clock_advance(20 * NSEC_PER_SEC);
			answer("200 OK", page);
		}
		turn();
	}
	assert_non_null(strstr(watch_state(watch)->error, "does not end"));
	assert_true(answered > 10 && answered <= 16);
	assert_true(watch_step(watch, 0) - clock_mono_ns() >= 60 * NSEC_PER_SEC);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_drips_is_given_up),
		TEST(a_server_that_is_away_is_found_again_soon),
		TEST(a_server_that_refuses_is_asked_again_soon),
		TEST(a_list_without_end_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
