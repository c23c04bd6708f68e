// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "serve/address.h"
#include "serve/atop_server.h"

/*
 * A source that shows what it was asked. Exit records exist up to newest; each answer delivers up to two of
 * them.
 */
static struct {
	uint64_t newest;
	size_t pad; /* answers are filled up to this length */
	int fails; /* errno of both functions */
	uint64_t layout;
} source;

static sd_event *event;
static struct atop_server *server;

static void fill(struct strbuf *out)
{
	while (out->len < source.pad && !out->failed)
		strbuf_addc(out, '.');
}

static int types(unsigned version, struct strbuf *out, void *userdata)
{
	(void)userdata;
	strbuf_addf(out, "types %u", version);
	fill(out);
	return source.fails;
}

static int stats(unsigned version, uint64_t exit_seq, struct strbuf *out, uint64_t *ret_exit_seq,
		 void *userdata)
{
	(void)userdata;
	*ret_exit_seq = MIN(source.newest, exit_seq + 2);
	strbuf_addf(out, "stats %u after %u to %u", version, (unsigned)exit_seq, (unsigned)*ret_exit_seq);
	fill(out);
	return source.fails;
}

static uint64_t newest_exit(void *userdata)
{
	(void)userdata;
	return source.newest;
}

static uint64_t layout(void *userdata)
{
	(void)userdata;
	return source.layout;
}

static const struct atop_source ops = {
	.types = types, .stats = stats, .layout = layout, .newest_exit = newest_exit
};

static int setup(void **state)
{
	(void)state;
	memset(&source, 0, sizeof(source));
	if (sd_event_new(&event) < 0)
		return -1;
	return atop_server_new(event, &ops, NULL, &server);
}

static int teardown(void **state)
{
	(void)state;
	atop_server_free(server);
	sd_event_unref(event);
	return 0;
}

static void listen_abstractly(const char *name)
{
	int fd;

	assert_int_equal(listen_abstract(name, &fd), 0);
	assert_int_equal(atop_server_listen_fd(server, fd), 0);
}

/* Runs the loop until it has nothing to do. */
static void settle(void)
{
	while (sd_event_run(event, 0) > 0)
		;
}

static struct atop_server_stats counters(void)
{
	struct atop_server_stats s;

	atop_server_stats(server, &s);
	return s;
}

/* A client of a server without listeners. */
static int join(void)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(fd_nonblock(pair[0]), 0);
	atop_server_add(server, pair[0]);
	return pair[1];
}

static void put(int fd, const char *bytes, size_t n)
{
	assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
	settle();
}

/* This many requests for statistics at once. */
static void put_many(int fd, unsigned n)
{
	char many[1000];

	assert_true(2 * n <= sizeof(many));
	for (unsigned i = 0; i < n; i++)
		memcpy(many + 2 * i, "S\1", 2);
	put(fd, many, 2 * n);
}

/* The next answer whole; its version. 0: the server has hung up. */
static unsigned get(int fd, char *text, size_t cap)
{
	uint32_t head;
	size_t n, done = 0;

	if (recv(fd, &head, sizeof(head), MSG_WAITALL | MSG_DONTWAIT) != sizeof(head))
		return 0;
	n = ntohl(head) & 0xffffff;
	assert_true(n < cap);
	while (done < n) {
		ssize_t got = recv(fd, text + done, n - done, MSG_DONTWAIT);

		if (got < 0 && errno == EAGAIN) {
			assert_true(sd_event_run(event, 1000000) > 0);
			continue;
		}
		assert_true(got > 0);
		done += (size_t)got;
	}
	text[n] = '\0';
	return ntohl(head) >> 24;
}

static void expect(int fd, unsigned version, const char *text)
{
	char got[ATOP_TEXT_MAX + 1];

	assert_int_equal(get(fd, got, sizeof(got)), version);
	assert_string_equal(got, text);
}

static bool ended(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN);
}

static void test_versions(void **state)
{
	_cleanup_close_ int fd = join();

	(void)state;
	put(fd, "T\1", 2);
	expect(fd, 1, "types 1");
	put(fd, "S\2", 2);
	expect(fd, 2, "stats 2 after 0 to 0");
	/* None, and newer ones than there are, get the newest. */
	put(fd, "T\0", 2);
	expect(fd, 2, "types 2");
	put(fd, "T\3S\377", 4);
	expect(fd, 2, "types 2");
	expect(fd, 2, "stats 2 after 0 to 0");
	assert_int_equal(counters().requests, 5);
}

static void test_requests_together_and_apart(void **state)
{
	_cleanup_close_ int fd = join();

	(void)state;
	put(fd, "T", 1);
	assert_int_equal(counters().requests, 0);
	put(fd, "\1S", 2);
	expect(fd, 1, "types 1");
	put(fd, "\1", 1);
	expect(fd, 1, "stats 1 after 0 to 0");
	put_many(fd, 100);
	for (unsigned i = 0; i < 100; i++)
		expect(fd, 1, "stats 1 after 0 to 0");
}

static void test_nonsense_is_hung_up_on(void **state)
{
	static const char *const cases[] = { "X\1", "x", "GET / HTTP/1.1\r\n\r\n", "\1T", "t\1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_close_ int fd = join(), other = join();

		put(other, "T", 1);
		put(fd, cases[i], strlen(cases[i]));
		assert_true(ended(fd));
		put(other, "\1", 1);
		expect(other, 1, "types 1");
	}
	settle();
	assert_int_equal(counters().malformed, ARRAY_SIZE(cases));
	assert_int_equal(counters().clients, 0);
}

static void test_half_open_and_gone(void **state)
{
	int fd = join();

	(void)state;
	put(fd, "S\1", 2);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	settle();
	expect(fd, 1, "stats 1 after 0 to 0");
	assert_true(ended(fd));
	close(fd);
	fd = join();
	put(fd, "S", 1);
	close(fd);
	settle();
	assert_int_equal(counters().clients, 0);
}

static void test_exit_records_are_each_clients_own(void **state)
{
	_cleanup_close_ int a = -1, b = -1;

	(void)state;
	source.newest = 7;
	a = join();
	source.newest = 8;
	b = join();
	source.newest = 10;
	/* Those from before its connection are not a client's. */
	put(a, "S\1", 2);
	expect(a, 1, "stats 1 after 7 to 9");
	put(b, "T\1S\1", 4);
	expect(b, 1, "types 1");
	expect(b, 1, "stats 1 after 8 to 10");
	put(a, "S\1", 2);
	expect(a, 1, "stats 1 after 9 to 10");
	put(a, "S\1", 2);
	expect(a, 1, "stats 1 after 10 to 10");
}

/* It would take one GPU's figures for another's. */
static void test_who_knows_other_gpus_is_hung_up_on(void **state)
{
	_cleanup_close_ int told = join(), never = join();

	(void)state;
	put(told, "T\2S\2", 4);
	expect(told, 2, "types 2");
	expect(told, 2, "stats 2 after 0 to 0");
	source.layout++;
	put(told, "S\2", 2);
	assert_true(ended(told));
	put(never, "S\2", 2);
	expect(never, 2, "stats 2 after 0 to 0");
}

/* More than the socket takes at once: completed piece by piece, in order, and nothing is read ahead of it. */
static void test_partial_sends(void **state)
{
	enum { REQUESTS = 200 };
	_cleanup_close_ int fd = join(); /* before there are any records */
	char text[ATOP_TEXT_MAX + 1];

	(void)state;
	source.pad = ATOP_TEXT_MAX;
	source.newest = 2 * REQUESTS;
	put_many(fd, REQUESTS);
	assert_true(counters().requests < REQUESTS);
	for (unsigned i = 0; i < REQUESTS; i++) {
		char begin[64];

		settle();
		assert_int_equal(get(fd, text, sizeof(text)), 1);
		assert_int_equal(strlen(text), ATOP_TEXT_MAX);
		snprintf(begin, sizeof(begin), "stats 1 after %u to %u.", 2 * i, 2 * i + 2);
		assert_memory_equal(text, begin, strlen(begin));
	}
	assert_int_equal(counters().requests, REQUESTS);
	assert_int_equal(counters().dropped, 0);
}

static void test_client_that_does_not_read_is_dropped(void **state)
{
	_cleanup_close_ int fd = join(), other = join();

	(void)state;
	source.pad = ATOP_TEXT_MAX;
	put_many(fd, 500);
	assert_true(counters().requests < 500);
	clock_advance(ATOP_STUCK_S * NSEC_PER_SEC);
	for (unsigned i = 0; i < 20 && counters().dropped == 0; i++)
		sd_event_run(event, 1000000);
	assert_int_equal(counters().dropped, 1);
	assert_int_equal(counters().clients, 1);
	source.pad = 0;
	put(other, "T\1", 2);
	expect(other, 1, "types 1");
}

static void test_failing_source_hangs_up(void **state)
{
	_cleanup_close_ int fd = join(), longer = join();

	(void)state;
	source.fails = -ENOMEM;
	put(fd, "T\1", 2);
	assert_true(ended(fd));
	source.fails = 0;
	source.pad = ATOP_TEXT_MAX + 1;
	put(longer, "T\1", 2);
	assert_true(ended(longer));
}

static int dial_abstract(const char *name)
{
	struct sockaddr_un sun;
	socklen_t len;
	char at[64];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at, sizeof(at), "@%s", name);
	assert_int_equal(unix_address(at, &sun, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, len), 0);
	return fd;
}

static void test_listening(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	_cleanup_close_ int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), sun = -1;
	char name[64];
	int fds[ADDRESS_MAX];
	unsigned n;

	(void)state;
	snprintf(name, sizeof(name), "gpusonde-test-atop-%d", getpid());
	assert_int_equal(listen_tcp_text("127.0.0.1:0", fds, &n), 0);
	a.sin_port = htons((uint16_t)listen_port(fds[0]));
	assert_int_equal(atop_server_listen_fd(server, fds[0]), 0);
	listen_abstractly(name);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(tcp, (struct sockaddr *)&a, sizeof(a)), 0);
	sun = dial_abstract(name);
	put(tcp, "T\1", 2);
	put(sun, "T\2", 2);
	expect(tcp, 1, "types 1");
	expect(sun, 2, "types 2");
	atop_server_unlisten(server);
	put(tcp, "S\1", 2);
	expect(tcp, 1, "stats 1 after 0 to 0");
}

/* At the bound one that never asked anything gives way, then the one silent for longest. */
static void test_who_gives_way(void **state)
{
	int fds[ATOP_CLIENTS + 2];
	char name[64];

	(void)state;
	snprintf(name, sizeof(name), "gpusonde-test-atop-%d", getpid());
	listen_abstractly(name);
	for (unsigned i = 0; i < ATOP_CLIENTS; i++) {
		fds[i] = dial_abstract(name);
		settle();
		if (i != 5)
			put(fds[i], "T\1", 2);
		clock_advance(NSEC_PER_MSEC);
	}
	assert_int_equal(counters().clients, ATOP_CLIENTS);
	clock_advance(NSEC_PER_SEC);
	for (unsigned i = 0; i < 2; i++) {
		fds[ATOP_CLIENTS + i] = dial_abstract(name);
		settle();
		put(fds[ATOP_CLIENTS + i], "T\1", 2);
		expect(fds[ATOP_CLIENTS + i], 1, "types 1");
		assert_int_equal(counters().dropped, i + 1);
		clock_advance(NSEC_PER_SEC);
	}
	assert_true(ended(fds[5]));
	expect(fds[0], 1, "types 1");
	assert_true(ended(fds[0]));
	expect(fds[1], 1, "types 1");
	assert_false(ended(fds[1]));
	assert_int_equal(counters().clients, ATOP_CLIENTS);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	settle();
	assert_int_equal(counters().clients, 0);
}

static void test_flood_keeps_a_client_alive(void **state)
{
	char name[64];
	int fds[200];
	_cleanup_close_ int old = -1;

	(void)state;
	snprintf(name, sizeof(name), "gpusonde-test-atop-%d", getpid());
	listen_abstractly(name);
	old = dial_abstract(name);
	settle();
	put(old, "T\1", 2);
	expect(old, 1, "types 1");
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = dial_abstract(name);
		assert_int_equal(send(fds[i], "S", i % 2, MSG_NOSIGNAL), i % 2);
		clock_advance(20 * NSEC_PER_MSEC);
		/* Where the house is full and all are new, the listener looks away for a few milliseconds. */
		for (unsigned n = 0; n < 20 && counters().dropped + ATOP_CLIENTS < i + 1; n++)
			sd_event_run(event, 100000);
	}
	assert_true(counters().clients <= ATOP_CLIENTS);
	put(old, "S\1", 2);
	expect(old, 1, "stats 1 after 0 to 0");
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

/* A house full of clients that ask without end: the one that asks as atop does comes in, and has its turn. */
static void test_the_greedy_give_way(void **state)
{
	char name[64];
	int fds[ATOP_CLIENTS];
	_cleanup_close_ int honest = -1;

	(void)state;
	snprintf(name, sizeof(name), "gpusonde-test-atop-greedy-%d", getpid());
	listen_abstractly(name);
	for (unsigned i = 0; i < ATOP_CLIENTS; i++) {
		fds[i] = dial_abstract(name);
		settle();
		put_many(fds[i], 400);
	}
	assert_int_equal(counters().clients, ATOP_CLIENTS);
	assert_true(counters().requests < ATOP_CLIENTS * 300);
	honest = dial_abstract(name);
	settle();
	put(honest, "T\1", 2);
	expect(honest, 1, "types 1");
	assert_int_equal(counters().clients, ATOP_CLIENTS);
	for (unsigned i = 0; i < ATOP_CLIENTS; i++)
		close(fds[i]);
}

/* Who has had too much is listened to again in the next second. */
static void test_pause_ends(void **state)
{
	_cleanup_close_ int fd = join();
	char text[ATOP_TEXT_MAX + 1];
	unsigned had = 0;

	(void)state;
	put_many(fd, 400);
	while (get(fd, text, sizeof(text)) == 1)
		had++;
	assert_in_range(had, 1, 399);
	clock_advance(2 * NSEC_PER_SEC);
	while (had < 400) {
		assert_true(sd_event_run(event, 5000000) > 0);
		while (get(fd, text, sizeof(text)) == 1)
			had++;
		clock_advance(NSEC_PER_SEC);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_versions),
		CASE(test_requests_together_and_apart),
		CASE(test_nonsense_is_hung_up_on),
		CASE(test_half_open_and_gone),
		CASE(test_exit_records_are_each_clients_own),
		CASE(test_who_knows_other_gpus_is_hung_up_on),
		CASE(test_partial_sends),
		CASE(test_client_that_does_not_read_is_dropped),
		CASE(test_failing_source_hangs_up),
		CASE(test_listening),
		CASE(test_who_gives_way),
		CASE(test_flood_keeps_a_client_alive),
		CASE(test_the_greedy_give_way),
		CASE(test_pause_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
