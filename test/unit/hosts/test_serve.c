// SPDX-License-Identifier: Apache-2.0
/* What gpusonde-hosts is told, and what it says of an agent: a listener of this test's that answers once. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "config.h"
#include "hosts/fetch.h"
#include "hosts/serve.h"

static int pair[2];
static struct hosts_begin begin, got;

static int set_up(_unused_ void **state)
{
	begin = (struct hosts_begin){ .version = GPUSONDE_VERSION, .message = HOSTS_BEGIN };
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int tear_down(_unused_ void **state)
{
	return close(pair[0]) | close(pair[1]);
}

/* ---- what it is told ---- */

static void texts_of_the_first_message_end(_unused_ void **state)
{
	memset(begin.ca, 'x', sizeof(begin.ca));
	memset(begin.key, 'x', sizeof(begin.key));
	memset(begin.paths, 'x', sizeof(begin.paths));
	assert_int_equal(send_with_fd(pair[0], &begin, sizeof(begin), -1), 0);
	assert_int_equal(hosts_receive_begin(pair[1], &got), 0);
	assert_int_equal(strlen(got.ca), HOSTS_PEM_MAX - 1);
	assert_int_equal(strlen(got.key), HOSTS_PEM_MAX - 1);
	for (unsigned i = 0; i < HOSTS_PATHS; i++)
		assert_int_equal(strlen(got.paths[i]), HOSTS_PATH_MAX - 1);
}

static void other_first_messages_are_refused(_unused_ void **state)
{
	assert_int_equal(send_with_fd(pair[0], &begin, sizeof(begin) - 1, -1), 0);
	assert_int_equal(hosts_receive_begin(pair[1], &got), -EPROTONOSUPPORT);
	begin.message = HOSTS_ROUND;
	assert_int_equal(send_with_fd(pair[0], &begin, sizeof(begin), -1), 0);
	assert_int_equal(hosts_receive_begin(pair[1], &got), -EBADMSG);
	begin.version[0] ^= 1;
	assert_int_equal(send_with_fd(pair[0], &begin, sizeof(begin), -1), 0);
	assert_int_equal(hosts_receive_begin(pair[1], &got), -EPROTONOSUPPORT);
	close(pair[0]);
	assert_int_equal(hosts_receive_begin(pair[1], &got), 1);
	pair[0] = dup(pair[1]);
}

static void a_list_ends_where_it_says(_unused_ void **state)
{
	static const struct fetcher_ops ops;
	struct fetcher *fetcher = NULL;

	begin.n = HOSTS_MAX;
	assert_int_equal(fetcher_new(&begin, &ops, NULL, &fetcher), 0);
	fetcher_free(fetcher);
	begin.n = HOSTS_MAX + 1;
	assert_int_equal(fetcher_new(&begin, &ops, NULL, &fetcher), -EBADMSG);
	begin.n = 1;
	memset(begin.urls, 'x', sizeof(begin.urls));
	assert_int_equal(fetcher_new(&begin, &ops, NULL, &fetcher), -EBADMSG);
}

static void other_rounds_end_it(_unused_ void **state)
{
	struct hosts_round round = { .message = HOSTS_ROUND };

	assert_int_equal(send_with_fd(pair[0], &round, sizeof(round) - 1, -1), 0);
	assert_int_equal(hosts_serve(pair[1], &begin), -EBADMSG);
	round.message = HOSTS_BEGIN;
	assert_int_equal(send_with_fd(pair[0], &round, sizeof(round), -1), 0);
	assert_int_equal(hosts_serve(pair[1], &begin), -EBADMSG);
}

/* ---- what it says ---- */

static struct {
	int listener;
	unsigned port;
	const char *answer;
	char asked[1024];
} agent;

static void *answer_once(_unused_ void *userdata)
{
	int fd = accept(agent.listener, NULL, NULL);
	size_t n = 0;
	ssize_t got_n;

	while (!strstr(agent.asked, "\r\n\r\n") &&
	       (got_n = read(fd, agent.asked + n, sizeof(agent.asked) - 1 - n)) > 0)
		n += (size_t)got_n;
	write_all(fd, agent.answer, strlen(agent.answer));
	close(fd);
	return NULL;
}

static void *serve_rounds(void *userdata)
{
	*(int *)userdata = hosts_serve(pair[1], &got);
	return NULL;
}

/* The end of a round of one page of the agent at @host, which answers so; @ret_part: the last part of it. */
static struct hosts_end ask_at(const char *host, const char *answer, const char *token,
			       struct hosts_part *ret_part)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { inet_addr(host) } };
	struct hosts_round round = { .message = HOSTS_ROUND, .pages = 1 };
	static struct hosts_part message;
	struct hosts_end end = { 0 };
	socklen_t n = sizeof(address);
	pthread_t threads[2];
	int fd, served = 0;

	memset(&agent, 0, sizeof(agent));
	memset(ret_part, 0, sizeof(*ret_part));
	agent.answer = answer;
	agent.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(agent.listener, (struct sockaddr *)&address, n), 0);
	assert_int_equal(listen(agent.listener, 1), 0);
	assert_int_equal(getsockname(agent.listener, (struct sockaddr *)&address, &n), 0);
	got = begin;
	got.n = 1;
	snprintf(got.urls, sizeof(got.urls), "http://%s:%u", host, ntohs(address.sin_port));
	snprintf(got.paths[0], HOSTS_PATH_MAX, "/page");
	snprintf(round.token, sizeof(round.token), "%s", token);
	assert_int_equal(pthread_create(&threads[0], NULL, answer_once, NULL), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, serve_rounds, &served), 0);
	assert_int_equal(send_with_fd(pair[0], &round, sizeof(round), -1), 0);
	while (end.message != HOSTS_END && receive_with_fd(pair[0], &message, sizeof(message), &fd) > 0) {
		if (message.message == HOSTS_PART)
			*ret_part = message;
		else
			memcpy(&end, &message, sizeof(end));
	}
	shutdown(pair[0], SHUT_RDWR);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	close(agent.listener);
	assert_int_equal(served, 1);
	return end;
}

static struct hosts_end ask(const char *answer, const char *token, struct hosts_part *ret_part)
{
	return ask_at("127.0.0.1", answer, token, ret_part);
}

static void a_page_comes(_unused_ void **state)
{
	static struct hosts_part part;
	struct hosts_end end = ask("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage", "secret", &part);

	assert_int_equal(end.message, HOSTS_END);
	assert_false(end.failed);
	assert_int_equal(part.n, 4);
	assert_int_equal(part.rest, 0);
	assert_memory_equal(part.data, "page", 4);
	assert_non_null(strstr(agent.asked, "GET /page HTTP/1.1\r\n"));
	assert_non_null(strstr(agent.asked, "Authorization: Bearer secret\r\n"));
}

static void without_a_token_none_is_sent(_unused_ void **state)
{
	static struct hosts_part part;

	assert_false(ask("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1", "", &part).failed);
	assert_null(strstr(agent.asked, "Authorization"));
}

/* To an address that is none of those which are this machine for sure, as those of others are. */
static void over_http_no_token_is_sent_to_elsewhere(_unused_ void **state)
{
	static struct hosts_part part;
	struct hosts_end end =
		ask_at("127.0.0.12", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1", "secret", &part);

	assert_false(end.failed);
	assert_non_null(strstr(agent.asked, "GET /page HTTP/1.1\r\n"));
	assert_null(strstr(agent.asked, "Authorization"));
	assert_null(strstr(agent.asked, "secret"));
}

static void what_fails_says_why(_unused_ void **state)
{
	static const struct {
		const char *answer, *why;
	} cases[] = {
		{ "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "status 404: is an agent there?" },
		{ "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "refuses us, with status 401" },
		{ "HTTP/1.1 302 No\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", "302" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npage", "" },
		{ "\x1b[31mno HTTP\r\n\r\n", "" },
	};
	static struct hosts_part part;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct hosts_end end = ask(cases[i].answer, "", &part);

		assert_true(end.failed);
		assert_non_null(memchr(end.words, '\0', sizeof(end.words)));
		assert_true(*end.words);
		assert_non_null(strstr(end.words, cases[i].why));
		assert_int_equal(part.message, 0);
		tear_down(NULL);
		set_up(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(texts_of_the_first_message_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_first_messages_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_list_ends_where_it_says, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_rounds_end_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_page_comes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_token_none_is_sent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(over_http_no_token_is_sent_to_elsewhere, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_fails_says_why, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
