// SPDX-License-Identifier: Apache-2.0
/* What the agent answers to questions, good and hostile, on the sockets of the process that listens. */
#include "needs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/web/pages.h"
#include "base/clock.h"
#include "base/fd.h"
#include "helper/message.h"
#include "web/ask.h"
#include "web/routes.h"

enum { LONG_BYTES = 300 << 10, PATIENCE_MS = 20000 };

static struct {
	struct web_pages *pages;
	struct web_channel channel;
	int atop;
	atomic_uint rendered;
	unsigned variant, version;
	uint64_t exit_seq;
	enum http_method method;
	char who[ACCESS_NAME_MAX];
	int64_t number;
} t;

static int short_page(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	assert_ptr_equal(userdata, &t);
	assert_null(request->argument(request, "names"));
	atomic_fetch_add(&t.rendered, 1);
	t.variant = (unsigned)request->variant;
	reply->status = 203;
	reply->content_type = "text/x-short";
	strbuf_adds(&reply->body, "short");
	return 0;
}

static int control_page(const struct http_request *request, _unused_ struct http_reply *reply,
			_unused_ void *userdata)
{
	atomic_fetch_add(&t.rendered, 1);
	t.method = request->method;
	t.number = request->numbers[1];
	strcpy(t.who, request->who);
	return 0;
}

static int long_page(_unused_ const struct http_request *request, struct http_reply *reply,
		     _unused_ void *userdata)
{
	atomic_fetch_add(&t.rendered, 1);
	for (unsigned i = 0; i < LONG_BYTES; i++)
		strbuf_addc(&reply->body, (char)('a' + i % 26));
	return 0;
}

static int failing_page(_unused_ const struct http_request *request, _unused_ struct http_reply *reply,
			_unused_ void *userdata)
{
	return -ENODATA;
}

/* At most a third of a second of CPU time: a snapshot of a huge machine. */
static int costly_page(_unused_ const struct http_request *request, struct http_reply *reply,
		       _unused_ void *userdata)
{
	int64_t until = clock_thread_cpu_ns() + 300 * NSEC_PER_MSEC;

	while (clock_thread_cpu_ns() < until)
		continue;
	atomic_fetch_add(&t.rendered, 1);
	strbuf_adds(&reply->body, "dear");
	return 0;
}

static const struct http_route routes[WEB_PAGES] = {
	[PAGE_get_index] = { .path = "/", .handle = short_page },
	[PAGE_get_metrics] = { .path = "/metrics", .handle = long_page },
	[PAGE_get_dcgm] = { .path = "/metrics/dcgm", .handle = failing_page },
	[PAGE_get_trace] = { .path = "/api/v1/trace", .handle = costly_page },
	[PAGE_control_record] = { .path = "/control/record",
				  .methods = HTTP_GET | HTTP_POST,
				  .right = ACCESS_CONTROL,
				  .handle = control_page },
	[PAGE_post_release] = { .path = "/control/release", .right = ACCESS_LOCAL, .handle = short_page },
};

static int types(unsigned version, struct strbuf *out, _unused_ void *userdata)
{
	t.version = version;
	strbuf_adds(out, "types");
	return 0;
}

static int stats(unsigned version, uint64_t exit_seq, struct strbuf *out, uint64_t *ret_exit_seq,
		 _unused_ void *userdata)
{
	t.version = version;
	t.exit_seq = exit_seq;
	*ret_exit_seq = exit_seq + 1;
	strbuf_adds(out, "stats");
	return 0;
}

static const struct atop_source atop = { .types = types, .stats = stats };

static int start(_unused_ void **state)
{
	const struct web_pages_config config = { routes, &t, &atop, &t };

	memset(&t, 0, sizeof(t));
	assert_int_equal(web_pages_new(&config, &t.pages), 0);
	return web_pages_connect(t.pages, &t.channel.socket, &t.atop);
}

static int stop(_unused_ void **state)
{
	closep(&t.channel.socket);
	closep(&t.atop);
	web_pages_free(t.pages);
	return 0;
}

static int ask(enum web_page page, unsigned variant, struct strbuf *body)
{
	const struct web_ask question = { .question = WEB_PAGE,
					  .page = (uint8_t)page,
					  .variant = (uint8_t)variant };

	strbuf_reset(body);
	return web_ask(&t.channel, &question, body);
}

static void answers_short_and_long(_unused_ void **state)
{
	_cleanup_(strbuf_done) struct strbuf body;

	strbuf_init(&body, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ask(PAGE_get_index, 3, &body), 0);
		assert_string_equal(body.data, "short");
		assert_int_equal(t.variant, 3);
		assert_int_equal(t.channel.answer.status, 203);
		assert_string_equal(t.channel.answer.content_type, "text/x-short");
		assert_int_equal(ask(PAGE_get_metrics, 0, &body), 0);
		assert_int_equal(body.len, LONG_BYTES);
		assert_int_equal(body.data[LONG_BYTES - 1], 'a' + (LONG_BYTES - 1) % 26);
		assert_int_equal(t.channel.answer.status, 200);
	}
	assert_int_equal(ask(PAGE_get_dcgm, 0, &body), -ENODATA);
	assert_int_equal(body.len, 0);
}

static void answers_atop(_unused_ void **state)
{
	_cleanup_(strbuf_done) struct strbuf body;
	struct web_ask question = { .question = WEB_ATOP_TYPES, .atop_version = 1 };

	strbuf_init(&body, 0);
	assert_int_equal(web_ask(&t.channel, &question, &body), 0);
	assert_string_equal(body.data, "types");
	assert_int_equal(t.version, 1);
	question = (struct web_ask){ .question = WEB_ATOP_STATS,
				     .atop_version = 250,
				     .exit_seq = UINT64_MAX - 1 };
	assert_int_equal(web_ask(&t.channel, &question, &body), 0);
	assert_int_equal(t.version, ATOP_VERSION_NEWEST);
	assert_true(t.exit_seq == UINT64_MAX - 1);
	assert_true(t.channel.answer.exit_seq == UINT64_MAX);
}

/* Whatever is asked: only the pages that everybody may read. */
static void refuses_every_other_number(_unused_ void **state)
{
	_cleanup_(strbuf_done) struct strbuf body;

	strbuf_init(&body, 0);
	assert_int_equal(ask(PAGE_post_release, 0, &body), -EACCES);
	for (unsigned page = WEB_PAGES; page <= UINT8_MAX; page++)
		assert_int_equal(ask((enum web_page)page, 0, &body), -EACCES);
	for (unsigned variant = HTTP_VARIANTS; variant <= UINT8_MAX; variant++)
		assert_int_equal(ask(PAGE_get_index, variant, &body), -EACCES);
	for (unsigned question = WEB_ATOP_STATS + 1; question <= UINT8_MAX; question++)
		assert_int_equal(web_ask(&t.channel, &(struct web_ask){ .question = (uint8_t)question },
					 &body),
				 -EPROTO);
	assert_int_equal(t.rendered, 0);
	assert_int_equal(ask(PAGE_get_index, 0, &body), 0);
}

static int post(enum web_page page, const char *who, struct strbuf *body)
{
	struct web_ask question = {
		.question = WEB_PAGE, .page = (uint8_t)page, .posts = 1, .numbers = { 0, 7 }
	};

	snprintf(question.who, sizeof(question.who), "%s", who);
	strbuf_reset(body);
	return web_ask(&t.channel, &question, body);
}

/* Only where somebody may over the network, only that page, and not often. */
static void has_the_agent_do_something(_unused_ void **state)
{
	_cleanup_(strbuf_done) struct strbuf body;
	unsigned taken = 0;

	strbuf_init(&body, 0);
	assert_int_equal(post(PAGE_control_record, "alice", &body), -EACCES);
	assert_int_equal(ask(PAGE_control_record, 0, &body), -EACCES);
	web_pages_allow_control(t.pages, true);
	assert_int_equal(post(PAGE_get_index, "alice", &body), -EACCES);
	assert_int_equal(post(PAGE_post_release, "alice", &body), -EACCES);
	assert_int_equal(ask(PAGE_post_release, 0, &body), -EACCES);
	assert_int_equal(post(PAGE_control_record, "alice", &body), 0);
	assert_int_equal(t.method, HTTP_POST);
	assert_int_equal(t.number, 7);
	assert_string_equal(t.who, "alice");
	assert_int_equal(post(PAGE_control_record, "a\033[31m", &body), 0);
	assert_string_equal(t.who, "?");
	for (unsigned i = 0; i < 40; i++) {
		assert_int_equal(post(PAGE_control_record, "bob", &body), 0);
		taken += t.channel.answer.status == 200;
	}
	assert_in_range(taken, 8, 20); /* more than 8 after 6 seconds */
	assert_int_equal(t.channel.answer.status, 429);
	assert_int_equal(ask(PAGE_control_record, 0, &body), 0); /* looking is free */
	assert_int_equal(t.channel.answer.status, 200);
	assert_int_equal(t.method, HTTP_GET);
	web_pages_allow_control(t.pages, false);
	assert_int_equal(ask(PAGE_control_record, 0, &body), -EACCES);
}

static bool is_closed(int socket)
{
	struct pollfd p = { .fd = socket, .events = POLLIN };
	char byte;

	return poll(&p, 1, PATIENCE_MS) == 1 && recv(socket, &byte, 1, MSG_DONTWAIT) == 0;
}

/* And a closed one does not end the other, nor the thread. */
static void closes_on_a_message_of_another_length(_unused_ void **state)
{
	static char data[sizeof(struct web_ask) + 1];
	static const size_t lengths[] = { 1, sizeof(struct web_ask) - 1, sizeof(struct web_ask) + 1 };
	_cleanup_(strbuf_done) struct strbuf body;

	strbuf_init(&body, 0);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		assert_int_equal(send(t.channel.socket, data, lengths[i], 0), lengths[i]);
		assert_true(is_closed(t.channel.socket));
		closep(&t.channel.socket);
		closep(&t.atop);
		assert_int_equal(web_pages_connect(t.pages, &t.channel.socket, &t.atop), 0);
		assert_int_equal(ask(PAGE_get_index, 0, &body), 0);
	}
}

static unsigned ask_without_reading(enum web_page page, unsigned n)
{
	const struct web_ask question = { .question = WEB_PAGE, .page = (uint8_t)page };
	unsigned sent = 0;

	for (unsigned i = 0; i < n; i++)
		sent += send(t.channel.socket, &question, sizeof(question), MSG_DONTWAIT) > 0;
	return sent;
}

/* It costs itself the answers, and the agent one page. */
static void who_does_not_read_gets_no_further_answer(_unused_ void **state)
{
	struct pollfd p = { .fd = t.channel.socket, .events = POLLIN };
	_cleanup_(strbuf_done) struct strbuf body;

	strbuf_init(&body, 0);
	assert_true(ask_without_reading(PAGE_get_metrics, 30) > 10);
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	usleep(300000);
	assert_int_equal(t.rendered, 1);
	/* Who reads late gets all of them, and then the answer to a new question. */
	t.channel.id = 1000;
	assert_int_equal(ask(PAGE_get_index, 0, &body), 0);
	assert_string_equal(body.data, "short");
}

/* However many descriptors it keeps. */
static void long_answers_lie_in_the_same_memory(_unused_ void **state)
{
	struct stat first = { 0 }, next;

	for (unsigned i = 0; i < 5; i++) {
		struct pollfd p = { .fd = t.channel.socket, .events = POLLIN };
		int fd;

		assert_int_equal(ask_without_reading(PAGE_get_metrics, 1), 1);
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		assert_true(receive_with_fd(t.channel.socket, &t.channel.answer, sizeof(t.channel.answer),
					    &fd) > 0);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, i ? &next : &first), 0);
		if (i)
			assert_int_equal(next.st_ino, first.st_ino);
		close(fd);
	}
	assert_int_equal(first.st_size, LONG_BYTES);
}

/* Two pages of 300 ms are 600, the third waits for the next second. */
static void takes_its_share_of_a_core(_unused_ void **state)
{
	int64_t start_ns = clock_mono_ns();
	_cleanup_(strbuf_done) struct strbuf body;

	strbuf_init(&body, 0);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(ask(PAGE_get_trace, 0, &body), 0);
	assert_true(clock_mono_ns() - start_ns > 2 * NSEC_PER_SEC);
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(answers_short_and_long),
		CASE(answers_atop),
		CASE(refuses_every_other_number),
		CASE(has_the_agent_do_something),
		CASE(closes_on_a_message_of_another_length),
		CASE(who_does_not_read_gets_no_further_answer),
		CASE(long_answers_lie_in_the_same_memory),
		CASE(takes_its_share_of_a_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
