// SPDX-License-Identifier: Apache-2.0
/* What the agent does with a process that listens and misbehaves: fake_web. */
#include "needs.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/web/web.h"
#include "base/clock.h"
#include "serve/address.h"

#define PATIENCE_NS (30 * NSEC_PER_SEC)
#define PING_NS (200 * NSEC_PER_MSEC)

static struct {
	sd_event *event;
	struct web *web;
	char address[64];
	double replaced;
} t;

/* An address that is free: nobody else gets the port while we try. */
static void choose_address(void)
{
	int fds[ADDRESS_MAX];
	unsigned n;

	assert_int_equal(listen_tcp_text("127.0.0.1:0", fds, &n), 0);
	snprintf(t.address, sizeof(t.address), "127.0.0.1:%u", listen_port(fds[0]));
	close_all(fds, n);
}

static bool web_runs(void)
{
	return t.web && web_pid(t.web) > 0;
}

/* How the process is that is started next. */
static void next_is(const char *how)
{
	int64_t until = clock_mono_ns() + PATIENCE_NS;
	FILE *file;

	while (web_runs() && access("how", F_OK) == 0 && clock_mono_ns() < until)
		usleep(1000);
	file = fopen("how", "we");
	assert_non_null(file);
	fputs(how, file);
	assert_int_equal(fclose(file), 0);
}

static int listen_at(struct web *web, const char *address, const char *second)
{
	const char *const addresses[WEB_ADDRESSES] = {
		[WEB_ADDRESS_HTTP] = address,
		[WEB_ADDRESS_CONTAINER] = second,
	};

	return web_listen(web, addresses);
}

static void start_with(const char *how)
{
	static char program[4096];
	const struct web_config config = { .program = program, .max_connections = 16, .ping_ns = PING_NS };

	need_programs();
	snprintf(program, sizeof(program), "%s/test/unit/agent/fake_web", test_build_root());
	next_is(how);
	choose_address();
	assert_true(sd_event_new(&t.event) >= 0);
	assert_int_equal(web_new(t.event, &config, &t.web), 0);
}

/* The processes have it as their folder, too. */
static int enter_folder(_unused_ void **state)
{
	static char folder[] = "/tmp/gpusonde-test-web-XXXXXX";

	return mkdtemp(folder) ? chdir(folder) : -1;
}

static int leave_folder(_unused_ void **state)
{
	char folder[PATH_MAX];

	unlink("how"); /* of one that did not start */
	return getcwd(folder, sizeof(folder)) ? rmdir(folder) : -1;
}

static int stop(_unused_ void **state)
{
	web_free(t.web);
	sd_event_unref(t.event);
	memset(&t, 0, sizeof(t));
	return 0;
}

static bool is_served(void)
{
	struct addresses a;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool served;

	assert_int_equal(address_parse(t.address, &a), 0);
	served = connect(fd, &a.list[0].sa, sizeof(a.list[0].in)) == 0;
	close(fd);
	return served;
}

static double replaced(void)
{
	struct web_figures figures;

	web_take_figures(t.web, &figures);
	t.replaced += figures.replaced;
	return t.replaced;
}

#define WAIT_FOR(condition_)                                            \
	do {                                                            \
		int64_t until = clock_mono_ns() + PATIENCE_NS;          \
                                                                        \
		while (!(condition_)) {                                 \
			if (clock_mono_ns() > until)                    \
				fail_msg("in vain: %s", #condition_);   \
			assert_true(sd_event_run(t.event, 50000) >= 0); \
		}                                                       \
	} while (0)

/* From now on what is started behaves. */
static void is_replaced_and_serves_again(const char *how)
{
	pid_t first;

	start_with(how);
	assert_int_equal(listen_at(t.web, t.address, NULL), 0);
	first = web_pid(t.web);
	next_is("behaves");
	WAIT_FOR(replaced() >= 1);
	WAIT_FOR(web_pid(t.web) && web_pid(t.web) != first && is_served());
}

static void starts_nothing_where_nothing_is_served(_unused_ void **state)
{
	start_with("behaves");
	assert_int_equal(listen_at(t.web, NULL, NULL), 0);
	web_listen_atop(t.web, NULL, NULL);
	assert_int_equal(web_pid(t.web), 0);
	assert_int_equal(replaced(), 0);
}

static void leaves_one_that_behaves(_unused_ void **state)
{
	int64_t until;
	pid_t first;

	start_with("behaves");
	assert_int_equal(listen_at(t.web, t.address, NULL), 0);
	first = web_pid(t.web);
	assert_true(first > 0);
	until = clock_mono_ns() + 3 * WEB_HUNG_PINGS * PING_NS;
	while (clock_mono_ns() < until)
		sd_event_run(t.event, 50000);
	assert_int_equal(web_pid(t.web), first);
	assert_int_equal(replaced(), 0);
	assert_true(is_served());
}

static void replaces_one_that_dies(_unused_ void **state)
{
	is_replaced_and_serves_again("dies");
}

static void replaces_one_that_dies_with_the_address(_unused_ void **state)
{
	is_replaced_and_serves_again("dies when it listens");
}

static void replaces_one_that_is_silent(_unused_ void **state)
{
	is_replaced_and_serves_again("is silent");
}

static void replaces_one_that_ignores_pings(_unused_ void **state)
{
	is_replaced_and_serves_again("ignores pings");
}

static void replaces_one_that_computes(_unused_ void **state)
{
	is_replaced_and_serves_again("computes");
}

static void replaces_one_that_says_too_much(_unused_ void **state)
{
	is_replaced_and_serves_again("says too much");
}

static void replaces_one_that_says_what_is_unknown(_unused_ void **state)
{
	is_replaced_and_serves_again("says nothing known");
}

/* Answers that nobody asked for, each with a descriptor, as fast as they are taken. */
static void replaces_one_that_talks(_unused_ void **state)
{
	is_replaced_and_serves_again("talks");
}

static void backs_off_from_one_that_dies_and_dies(_unused_ void **state)
{
	int64_t until;

	start_with("dies");
	assert_int_equal(listen_at(t.web, t.address, NULL), 0);
	until = clock_mono_ns() + 3 * NSEC_PER_SEC;
	while (clock_mono_ns() < until)
		sd_event_run(t.event, 50000);
	/* 0.1, 0.2, 0.4, 0.8 and 1.6 s apart */
	assert_in_range((int)replaced(), 2, 6);
}

static void frees_an_address_that_it_moves_from(_unused_ void **state)
{
	char former[sizeof(t.address)], next[sizeof(t.address)];

	start_with("behaves");
	assert_int_equal(listen_at(t.web, t.address, NULL), 0);
	memcpy(former, t.address, sizeof(former));
	choose_address();
	memcpy(next, t.address, sizeof(next));
	assert_int_equal(listen_at(t.web, next, NULL), 0);
	assert_true(is_served());
	memcpy(t.address, former, sizeof(former));
	assert_false(is_served());
	assert_int_equal(replaced(), 0);
}

static void serves_two_addresses(_unused_ void **state)
{
	char first[sizeof(t.address)], second[sizeof(t.address)];

	start_with("behaves");
	memcpy(first, t.address, sizeof(first));
	choose_address();
	memcpy(second, t.address, sizeof(second));
	assert_int_equal(listen_at(t.web, first, second), 0);
	assert_true(is_served());
	memcpy(t.address, first, sizeof(first));
	assert_true(is_served());

	/* One of them goes. */
	assert_int_equal(listen_at(t.web, NULL, second), 0);
	assert_false(is_served());
	memcpy(t.address, second, sizeof(second));
	assert_true(is_served());
	assert_int_equal(replaced(), 0);
}

/* It would hold the port that the next listener wants. */
static void replaces_one_that_keeps_its_address(_unused_ void **state)
{
	start_with("keeps addresses");
	assert_int_equal(listen_at(t.web, t.address, NULL), 0);
	next_is("behaves");
	assert_int_equal(listen_at(t.web, t.address, NULL), 0);
	WAIT_FOR(replaced() == 1 && is_served());
}

static void frees_addresses_at_the_end(_unused_ void **state)
{
	start_with("behaves");
	assert_int_equal(listen_at(t.web, t.address, NULL), 0);
	assert_true(is_served());
	web_free(t.web);
	t.web = NULL;
	assert_false(is_served());
}

static void says_that_the_program_is_missing(_unused_ void **state)
{
	const struct web_config config = { .program = "/nonexistent/gpusonde-web" };

	choose_address();
	assert_true(sd_event_new(&t.event) >= 0);
	assert_int_equal(web_new(t.event, &config, &t.web), 0);
	assert_int_equal(listen_at(t.web, t.address, NULL), -ENOENT);
}

#define CASE(name_) cmocka_unit_test_teardown(name_, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(starts_nothing_where_nothing_is_served),
		CASE(leaves_one_that_behaves),
		CASE(replaces_one_that_dies),
		CASE(replaces_one_that_dies_with_the_address),
		CASE(replaces_one_that_is_silent),
		CASE(replaces_one_that_ignores_pings),
		CASE(replaces_one_that_computes),
		CASE(replaces_one_that_says_too_much),
		CASE(replaces_one_that_says_what_is_unknown),
		CASE(replaces_one_that_talks),
		CASE(backs_off_from_one_that_dies_and_dies),
		CASE(frees_an_address_that_it_moves_from),
		CASE(serves_two_addresses),
		CASE(replaces_one_that_keeps_its_address),
		CASE(frees_addresses_at_the_end),
		CASE(says_that_the_program_is_missing),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
