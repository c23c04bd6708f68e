// SPDX-License-Identifier: Apache-2.0
/* What keeps a scrape from waiting while others misbehave: who gives way, and that nothing grows. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "harness.h"

enum { HELD = 1000, SCRAPES = 20 };

/* Clients that hold on to their end for good, opened again and again until told to stop. */
struct flood {
	const struct server *server;
	const char *says;
	atomic_bool stop;
	atomic_uint opened;
	pthread_t thread;
};

static void *run_flood(void *userdata)
{
	struct flood *f = userdata;
	int held[HELD];
	unsigned n = 0;

	while (!atomic_load(&f->stop)) {
		if (n >= HELD)
			close(held[n % HELD]);
		held[n % HELD] = dial(f->server);
		put_try(held[n % HELD], f->says);
		n++;
		atomic_store(&f->opened, n);
	}
	for (unsigned i = 0; i < MIN(n, (unsigned)HELD); i++)
		close(held[i]);
	return NULL;
}

static void wait_open(struct server *s, unsigned want)
{
	struct http_stats stats;

	for (unsigned i = 0; i < PATIENCE_MS; i++) {
		http_stats(s->http, &stats);
		if (stats.connections == want)
			return;
		sleep_ms(1);
	}
	fail_msg("%u connections, not %u", stats.connections, want);
}

static unsigned evicted(struct server *s)
{
	struct http_stats stats;

	http_stats(s->http, &stats);
	return (unsigned)stats.evicted;
}

/* A scrape would wait for the idle timeout of the stuck clients. */
enum { WITHOUT_EVICTION_MS = 30000 };

/* SCRAPES or more while hundreds of stuck clients give way; the longest of them in ms. */
static int64_t scrape_under(const char *says)
{
	struct server *s = server_start(0);
	struct flood f = { .server = s, .says = says };
	struct strbuf reply;
	struct http_stats stats;
	int64_t longest_ns = 0;
	unsigned lost = 0;

	strbuf_init(&reply, 0);
	assert_int_equal(pthread_create(&f.thread, NULL, run_flood, &f), 0);
	while (atomic_load(&f.opened) < 200)
		sleep_ms(1);
	for (unsigned i = 0; i < SCRAPES || evicted(s) < 300; i++) {
		int64_t begin_ns = clock_mono_ns();

		int status = ask(s, "GET /page HTTP/1.1\r\nHost: x\r\n\r\n", &reply);

		/* It gives way, too, where the flood opens all connections anew before it is read. */
		lost += status == 0;
		assert_true(status == 200 || status == 0);
		assert_true(lost <= 1 + i / 10);
		longest_ns = MAX(longest_ns, clock_mono_ns() - begin_ns);
		http_stats(s->http, &stats);
		assert_true(stats.connections <= 128);
	}
	atomic_store(&f.stop, true);
	pthread_join(f.thread, NULL);
	server_stop(s);
	strbuf_done(&reply);
	return longest_ns / NSEC_PER_MSEC;
}

static void test_flood_of_stuck_clients(void **state)
{
	static const char *const says[] = {
		"",
		"GET /pa",
		"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n",
		"\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(says); i++) {
		int64_t ms = scrape_under(says[i]);

		print_message("# longest scrape in flood %zu: %lld ms\n", i, (long long)ms);
		assert_true(ms < WITHOUT_EVICTION_MS / 2);
	}
}

static void test_flood_of_clients_that_do_not_read(void **state)
{
	(void)state;
	assert_true(scrape_under("GET /big HTTP/1.1\r\nHost: x\r\n\r\nGET /big HTTP/1.1\r\nHost: x\r\n\r\n"
				 "GET /big HTTP/1.1\r\nHost: x\r\n\r\nGET /big HTTP/1.1\r\nHost: x\r\n\r\n"
				 "GET /big HTTP/1.1\r\nHost: x\r\n\r\nGET /big HTTP/1.1\r\nHost: x\r\n\r\n") <
		    WITHOUT_EVICTION_MS / 2);
}

/*
 * By then the server has begun with the connections, and read the bytes, that came before: the first answer
 * may be of a round that began earlier, the second is of a later one.
 */
static void served(int fd, struct strbuf *reply)
{
	for (unsigned i = 0; i < 2; i++) {
		put(fd, "GET /page HTTP/1.1\r\nHost: x\r\n\r\n");
		assert_true(read_reply(fd, false, reply));
	}
}

/* The oldest incomplete request goes first; one that has had an answer and is idle stays. */
static void test_who_gives_way(void **state)
{
	struct server *s = server_start(4);
	struct strbuf reply;
	int idle, half[3], more;

	(void)state;
	strbuf_init(&reply, 0);
	idle = dial(s);
	served(idle, &reply);
	for (unsigned i = 0; i < 3; i++) {
		half[i] = dial(s);
		put(half[i], i == 1 ? "" : "GET /page HTTP/1.1\r\n");
		wait_open(s, 2 + i);
		sleep_ms(2);
	}
	served(idle, &reply);
	assert_int_equal(ask(s, "GET /page HTTP/1.1\r\nHost: x\r\n\r\n", &reply), 200);
	assert_int_equal(evicted(s), 1);
	assert_true(hung_up(half[0], PATIENCE_MS));
	assert_false(hung_up(half[1], 0));
	wait_open(s, 3);
	more = dial(s);
	wait_open(s, 4);
	served(idle, &reply);
	assert_int_equal(ask(s, "GET /page HTTP/1.1\r\nHost: x\r\n\r\n", &reply), 200);
	assert_true(hung_up(half[1], PATIENCE_MS));
	/* The survivors are served. */
	put(half[2], "\r\n");
	assert_true(read_reply(half[2], false, &reply));
	served(idle, &reply);
	served(more, &reply);
	assert_int_equal(evicted(s), 2);
	for (unsigned i = 0; i < 3; i++)
		close(half[i]);
	close(idle);
	close(more);
	server_stop(s);
	strbuf_done(&reply);
}

/* Pages that are no longer current live only in their slow readers: the oldest of these give way. */
static void test_old_pages_are_bounded(void **state)
{
	enum { READERS = 30 };
	struct server *s = server_start(0);
	int fds[READERS];

	(void)state;
	/* More than the kernel buffers for a client that does not read. */
	atomic_store(&s->page_bytes, 12 << 20);
	for (unsigned i = 0; i < READERS; i++) {
		atomic_store(&s->generation, 10 + i);
		fds[i] = dial(s);
		put(fds[i], "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
		while (atomic_load(&s->renders) < i + 1)
			sleep_ms(1);
	}
	/* The current one and eight old ones may stay. */
	assert_int_equal(evicted(s), READERS - 9);
	for (unsigned i = 0; i < READERS; i++) {
		assert_true(hung_up(fds[i], i < READERS - 9 ? PATIENCE_MS : 0) == (i < READERS - 9));
		close(fds[i]);
	}
	server_stop(s);
}

static void test_free_with_stuck_clients(void **state)
{
	struct server *s = server_start(0);
	int fds[100];
	int64_t begin_ns;

	(void)state;
	atomic_store(&s->page_bytes, 12 << 20);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = dial(s);
		put(fds[i], i % 3 == 0 ? "GET /big HTTP/1.1\r\nHost: x\r\n\r\n" : i % 3 == 1 ? "GET" : "");
	}
	wait_open(s, ARRAY_SIZE(fds));
	begin_ns = clock_mono_ns();
	server_stop(s);
	assert_true(clock_mono_ns() - begin_ns < 1 * NSEC_PER_SEC);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

static void test_unlisten_leaves_open_connections_alone(void **state)
{
	struct server *s = server_start(0);
	_cleanup_close_ int fd = dial(s), local = -1;
	struct strbuf reply;

	(void)state;
	strbuf_init(&reply, 0);
	wait_open(s, 1);
	local = dial_unix(s);
	wait_open(s, 2);
	server_unlisten(s);
	_cleanup_close_ int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)s->port) };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(late, (struct sockaddr *)&a, sizeof(a)), -1);
	assert_int_equal(errno, ECONNREFUSED);
	assert_int_equal(access(s->socket, F_OK), 0);
	put(local, "GET /page HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_true(read_reply(local, false, &reply));
	strbuf_reset(&reply);
	put(fd, "GET /page HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_true(read_reply(fd, false, &reply));
	server_stop(s);
	strbuf_done(&reply);
}

static int64_t cpu_ns(pthread_t thread)
{
	clockid_t clock;
	struct timespec t;

	assert_int_equal(pthread_getcpuclockid(thread, &clock), 0);
	clock_gettime(clock, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* Without descriptors nobody is served, nothing spins, and all is well when there are some again. */
static void test_out_of_descriptors(void **state)
{
	struct server *s = server_start(0);
	struct rlimit before, low;
	struct strbuf reply;
	int fds[20], next;
	int64_t cpu;

	(void)state;
	strbuf_init(&reply, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	next = dup(0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		dial_with(s, fds[i]);
	cpu = cpu_ns(s->thread);
	sleep_ms(500);
	assert_true(cpu_ns(s->thread) - cpu < 250 * NSEC_PER_MSEC);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++) {
		put(fds[i], "GET /page HTTP/1.1\r\nHost: x\r\n\r\n");
		assert_true(read_reply(fds[i], false, &reply));
		close(fds[i]);
	}
	server_stop(s);
	strbuf_done(&reply);
}

/* Both ends of every connection are ours. */
static int raise_descriptors(void **state)
{
	struct rlimit limit;

	(void)state;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -1;
	limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)4096);
	return setrlimit(RLIMIT_NOFILE, &limit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flood_of_stuck_clients),
		cmocka_unit_test(test_flood_of_clients_that_do_not_read),
		cmocka_unit_test(test_who_gives_way),
		cmocka_unit_test(test_old_pages_are_bounded),
		cmocka_unit_test(test_free_with_stuck_clients),
		cmocka_unit_test(test_unlisten_leaves_open_connections_alone),
		cmocka_unit_test(test_out_of_descriptors),
	};

	return cmocka_run_group_tests(tests, raise_descriptors, NULL);
}
