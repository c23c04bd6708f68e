// SPDX-License-Identifier: Apache-2.0
/* What the process that listens makes of the agent's answers, good and broken. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "helper/message.h"
#include "web/ask.h"

enum { HEAD = offsetof(struct web_answer, body) };

static struct {
	struct web_channel channel;
	int agent;
	struct strbuf body;
} t;

static int start(_unused_ void **state)
{
	int ends[2];

	memset(&t, 0, sizeof(t));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	t.channel.socket = ends[0];
	t.agent = ends[1];
	strbuf_init(&t.body, 0);
	return 0;
}

static int stop(_unused_ void **state)
{
	closep(&t.channel.socket);
	closep(&t.agent);
	strbuf_done(&t.body);
	return 0;
}

/* The answer to the @id-th question lies there before it is asked. */
static struct web_answer *answer_to(uint32_t id)
{
	static struct web_answer answer;

	memset(&answer, 0, sizeof(answer));
	answer.id = id;
	return &answer;
}

static void give(const struct web_answer *answer, size_t n, int fd)
{
	assert_int_equal(send_with_fd(t.agent, answer, n, fd), 0);
}

static int ask(void)
{
	return web_ask(&t.channel, &(struct web_ask){ .question = WEB_PAGE }, &t.body);
}

static void takes_a_body(_unused_ void **state)
{
	struct web_answer *answer = answer_to(1);

	answer->bytes = 4;
	memcpy(answer->body, "body", 4);
	memset(answer->content_type, 'x', sizeof(answer->content_type));
	give(answer, HEAD + 4, -1);
	assert_int_equal(ask(), 0);
	assert_string_equal(t.body.data, "body");
	assert_int_equal(strlen(t.channel.answer.content_type), WEB_CONTENT_TYPE_MAX - 1);
}

static void passes_errors_on(_unused_ void **state)
{
	struct web_answer *answer = answer_to(1);

	answer->error = -ENODATA;
	answer->bytes = 100;
	give(answer, HEAD, -1);
	assert_int_equal(ask(), -ENODATA);
	assert_int_equal(t.body.len, 0);
	answer = answer_to(2);
	answer->error = 77; /* none: never taken for success */
	give(answer, HEAD, -1);
	assert_true(ask() < 0);
}

static void skips_late_answers(_unused_ void **state)
{
	struct web_answer *answer = answer_to(17);

	answer->bytes = 4;
	give(answer, HEAD + 4, -1);
	answer = answer_to(1);
	give(answer, HEAD, -1);
	assert_int_equal(ask(), 0);
	assert_int_equal(t.body.len, 0);
}

/* Nothing is read behind what was received. */
static void refuses_wrong_lengths(_unused_ void **state)
{
	struct web_answer *answer = answer_to(1);

	answer->bytes = 5;
	give(answer, HEAD + 4, -1);
	assert_int_equal(ask(), -EPROTO);
	answer = answer_to(2);
	answer->bytes = UINT32_MAX;
	give(answer, HEAD + 4, -1);
	assert_int_equal(ask(), -EPROTO);
	answer = answer_to(3);
	give(answer, HEAD - 1, -1);
	assert_int_equal(ask(), -EPROTO);
	assert_int_equal(t.body.len, 0);
}

static void refuses_memory_that_is_too_short(_unused_ void **state)
{
	_cleanup_close_ int fd = memfd_create("short", MFD_CLOEXEC);
	struct web_answer *answer = answer_to(1);

	assert_int_equal(write(fd, "0123456789", 10), 10);
	answer->bytes = 10;
	give(answer, HEAD, fd);
	assert_int_equal(ask(), 0);
	assert_string_equal(t.body.data, "0123456789");
	answer = answer_to(2);
	answer->bytes = 11;
	give(answer, HEAD, fd);
	assert_int_equal(ask(), -EPROTO);
}

static void notices_that_the_agent_has_gone(_unused_ void **state)
{
	closep(&t.agent);
	t.agent = -1;
	assert_true(ask() == -EPIPE || ask() == -ECONNRESET);
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(takes_a_body),
		CASE(passes_errors_on),
		CASE(skips_late_answers),
		CASE(refuses_wrong_lengths),
		CASE(refuses_memory_that_is_too_short),
		CASE(notices_that_the_agent_has_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
