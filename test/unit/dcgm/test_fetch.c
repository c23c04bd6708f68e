// SPDX-License-Identifier: Apache-2.0
/* Many exporters at once, all of which a thread of this process plays. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "dcgm/family.h"
#include "dcgm/fetch.h"

enum { EXPORTERS = 20, WAIT_MS = 60000 };

static const char page[] = "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
			   "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-0\",device=\"nvidia0\",pod=\"p\"} 41\n";

static struct fetcher *fetcher;
static struct dcgm_asked asked[EXPORTERS];
static const char *const no_nodes[] = { NULL };
static struct dcgm_outcome outcomes[EXPORTERS];
static unsigned outcomes_n, pages_n;
static int listener = -1;

static int on_outcome(const struct dcgm_outcome *outcome, const struct page *of, _unused_ void *userdata)
{
	pages_n += of != NULL && page_rows(of) == 1;
	if (outcomes_n < EXPORTERS)
		outcomes[outcomes_n] = *outcome;
	outcomes_n++;
	return 0;
}

static const struct fetch_config config = { .nodes = no_nodes, .ca_file = "", .done = on_outcome };

static int begin(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(address);

	(void)state;
	outcomes_n = pages_n = 0;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&address, n) < 0 || listen(listener, EXPORTERS) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &n) < 0)
		return -1;
	for (unsigned i = 0; i < EXPORTERS; i++)
		snprintf(asked[i].url, sizeof(asked[i].url), "http://127.0.0.1:%u/%u",
			 ntohs(address.sin_port), i);
	return families_init() < 0 ? -1 : fetcher_new(&fetcher);
}

static int end(void **state)
{
	(void)state;
	fetcher_free(fetcher);
	fetcher = NULL;
	closep(&listener);
	listener = -1;
	clock_freeze(false);
	return 0;
}

/* The next exporter's connection, with its request; -1: none comes. */
static int next_request(int wait_ms)
{
	struct pollfd fd = { .fd = listener, .events = POLLIN };
	char request[4096];
	int peer;

	if (poll(&fd, 1, wait_ms) <= 0)
		return -1;
	peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (read(peer, request, sizeof(request)) <= 0)
		closep(&peer);
	return peer;
}

static void answer(int peer)
{
	char text[512];
	int n = snprintf(text, sizeof(text),
			 "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
			 strlen(page), page);

	(void)!send(peer, text, (size_t)n, MSG_NOSIGNAL);
	close(peer);
}

/* ---- at once, and within which time ---- */

static atomic_uint at_once, after_one;

/* Nobody is answered but one, after which one more may come; then time is over. */
static void *play_slow_exporters(_unused_ void *arg)
{
	int peers[EXPORTERS + 1], peer;
	unsigned n = 0;

	while (n < FETCH_AT_ONCE && (peer = next_request(WAIT_MS)) >= 0)
		peers[n++] = peer;
	while (n < EXPORTERS && (peer = next_request(300)) >= 0)
		peers[n++] = peer;
	at_once = n;
	answer(peers[0]);
	peers[0] = next_request(WAIT_MS);
	after_one = n + (peers[0] >= 0);
	clock_advance(31 * NSEC_PER_SEC);
	while ((peer = next_request(300)) >= 0)
		close(peer);
	for (unsigned i = 0; i < n; i++)
		close(peers[i]);
	return NULL;
}

static void fifteen_at_once_and_all_in_thirty_seconds(void **state)
{
	unsigned failed = 0;
	pthread_t thread;

	(void)state;
	clock_freeze(true);
	assert_int_equal(pthread_create(&thread, NULL, play_slow_exporters, NULL), 0);
	assert_int_equal(fetcher_run(fetcher, &config, asked, EXPORTERS), 0);
	pthread_join(thread, NULL);
	assert_int_equal(at_once, FETCH_AT_ONCE);
	assert_int_equal(after_one, FETCH_AT_ONCE + 1);
	/* Each has an outcome, those too that were never asked. */
	assert_int_equal(outcomes_n, EXPORTERS);
	for (unsigned i = 0; i < EXPORTERS; i++)
		failed += outcomes[i].failure == SCRAPE_FAILED_DEADLINE;
	assert_int_equal(failed, EXPORTERS - 1);
	assert_int_equal(pages_n, 1);
}

/* ---- what a page costs ---- */

static void *play_exporters(_unused_ void *arg)
{
	int peer;

	for (unsigned i = 0; i < 2 && (peer = next_request(WAIT_MS)) >= 0; i++)
		answer(peer);
	return NULL;
}

static void run_two(int64_t page_cpu_ns)
{
	struct fetch_config limited = config;
	pthread_t thread;

	limited.page_cpu_ns = page_cpu_ns;
	assert_int_equal(pthread_create(&thread, NULL, play_exporters, NULL), 0);
	assert_int_equal(fetcher_run(fetcher, &limited, asked, 2), 0);
	pthread_join(thread, NULL);
	assert_int_equal(outcomes_n, 2);
}

static void a_page_that_takes_more_than_its_share_is_given_up(void **state)
{
	(void)state;
	run_two(1);
	assert_int_equal(pages_n, 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(outcomes[i].failure, SCRAPE_FAILED_CPU);
}

static void one_within_its_share_is_read(void **state)
{
	(void)state;
	run_two(60 * NSEC_PER_SEC);
	assert_int_equal(pages_n, 2);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fifteen_at_once_and_all_in_thirty_seconds),
		TEST(a_page_that_takes_more_than_its_share_is_given_up),
		TEST(one_within_its_share_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
