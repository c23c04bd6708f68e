// SPDX-License-Identifier: Apache-2.0
/* A server's page by HTTP, from a thread that plays the server, and what is wrong with it. */
#include "test.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macro.h"
#include "inference/fetch.h"

/* What is sent: a head, and then @repeat times the body; then the connection is closed. */
static struct {
	const char *head, *body;
	unsigned repeat;
	int listener;
	uint16_t port;
	char asked[256];
} server;

static void *serve(_unused_ void *userdata)
{
	int fd = accept(server.listener, NULL, NULL);
	ssize_t n = fd < 0 ? -1 : recv(fd, server.asked, sizeof(server.asked) - 1, 0);

	if (n >= 0 && server.head) {
		server.asked[n] = '\0';
		n = send(fd, server.head, strlen(server.head), MSG_NOSIGNAL);
		for (unsigned i = 0; i < server.repeat && n >= 0; i++)
			n = send(fd, server.body, strlen(server.body), MSG_NOSIGNAL);
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

static int begin(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(address);

	(void)state;
	memset(&server, 0, sizeof(server));
	server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(server.listener, (struct sockaddr *)&address, n) < 0 || listen(server.listener, 1) < 0 ||
	    getsockname(server.listener, (struct sockaddr *)&address, &n) < 0)
		return -1;
	server.port = ntohs(address.sin_port);
	return 0;
}

static int end(void **state)
{
	(void)state;
	close(server.listener);
	return 0;
}

static struct page_answer fetch(enum server_kind kind, const char *head, const char *body, unsigned repeat)
{
	const struct page_asked asked = { .kind = kind, .port = server.port, .address = { 127, 0, 0, 1 } };
	CURL *easy = curl_easy_init();
	struct page_answer answer;
	pthread_t thread;

	server.head = head;
	server.body = body;
	server.repeat = repeat;
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
	page_fetch(easy, &asked, &answer);
	pthread_join(thread, NULL);
	curl_easy_cleanup(easy);
	return answer;
}

#define OK "HTTP/1.1 200 OK\r\n\r\n"

static void test_a_page(_unused_ void **state)
{
	struct page_answer answer = fetch(SERVER_VLLM, OK,
					  "# TYPE vllm:num_requests_running gauge\n"
					  "vllm:num_requests_running{engine=\"0\"} 3\n",
					  1);

	assert_int_equal(answer.read, 1);
	assert_string_equal(answer.error, "");
	assert_true(presence_is(answer.page.p[SERVER_RUNNING]));
	assert_true(answer.page.v[SERVER_RUNNING] == 3);
	assert_int_equal(strncmp(server.asked, "GET /metrics HTTP/1.1\r\n", 23), 0);
}

/* No figures of it are kept, whatever came before. */
static void refused(enum server_kind kind, const char *head, const char *body, unsigned repeat,
		    const char *why)
{
	static const struct server_page nothing;
	struct page_answer answer = fetch(kind, head, body, repeat);

	assert_int_equal(answer.read, 0);
	assert_memory_equal(&answer.page, &nothing, sizeof(nothing));
	if (!strstr(answer.error, why))
		fail_msg("\"%s\" is not in \"%s\"", why, answer.error);
}

static void test_another_status(_unused_ void **state)
{
	refused(SERVER_LLAMA_CPP, "HTTP/1.1 501 Not Implemented\r\n\r\n", "vllm:num_requests_running 3\n", 1,
		"status 501: start it with --metrics");
}

static void test_no_redirection_is_followed(_unused_ void **state)
{
	refused(SERVER_VLLM, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "", 1,
		"status 302");
}

static void test_a_page_of_something_else(_unused_ void **state)
{
	refused(SERVER_VLLM, OK, "<html>hello</html>\n", 1, "a page without the figures of this server");
}

static void test_a_page_without_end(_unused_ void **state)
{
	static char body[64 << 10];

	memset(body, '#', sizeof(body) - 1);
	body[sizeof(body) - 2] = '\n';
	refused(SERVER_VLLM, OK, body, 1 << 20, "a page ");
}

static void test_one_that_says_nothing(_unused_ void **state)
{
	refused(SERVER_VLLM, NULL, NULL, 0, "");
}

static void test_nobody_listens(_unused_ void **state)
{
	const struct page_asked asked = { .kind = SERVER_VLLM, .port = 1, .address = { 127, 0, 0, 1 } };
	CURL *easy = curl_easy_init();
	struct page_answer answer;

	page_fetch(easy, &asked, &answer);
	curl_easy_cleanup(easy);
	assert_int_equal(answer.read, 0);
	assert_true(strlen(answer.error) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_page, begin, end),
		cmocka_unit_test_setup_teardown(test_another_status, begin, end),
		cmocka_unit_test_setup_teardown(test_no_redirection_is_followed, begin, end),
		cmocka_unit_test_setup_teardown(test_a_page_of_something_else, begin, end),
		cmocka_unit_test_setup_teardown(test_a_page_without_end, begin, end),
		cmocka_unit_test_setup_teardown(test_one_that_says_nothing, begin, end),
		cmocka_unit_test(test_nobody_listens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
