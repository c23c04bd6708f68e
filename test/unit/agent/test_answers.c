// SPDX-License-Identifier: Apache-2.0
/* Answers that are made on a thread: at once, later, and not at all. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "agent/answers.h"
#include "base/clock.h"

/* Who answers: it waits until it may, and says what it was asked. */
struct maker {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool may;
	unsigned made;
};

static void make(const struct question *question, struct answer *answer, void *userdata)
{
	struct maker *maker = userdata;

	pthread_mutex_lock(&maker->lock);
	while (!maker->may)
		pthread_cond_wait(&maker->changed, &maker->lock);
	maker->made++;
	pthread_mutex_unlock(&maker->lock);
	answer->status = question->page == 7 ? 418 : 200;
	answer->content_type = "text/test";
	strbuf_addf(&answer->body, "%s %lld", question->text, (long long)question->numbers[1]);
}

static void let(void *userdata)
{
	struct maker *maker = userdata;

	pthread_mutex_lock(&maker->lock);
	maker->may = true;
	pthread_cond_broadcast(&maker->changed);
	pthread_mutex_unlock(&maker->lock);
}

static struct answers *begin(struct maker *maker, int64_t slow_ns)
{
	const struct answers_config config = {
		.name = "test",
		.stuck = "it is stuck",
		.slow_ns = slow_ns,
		.make = make,
		.interrupt = let,
		.userdata = maker,
	};
	struct answers *answers;

	assert_int_equal(answers_new(&config, &answers), 0);
	return answers;
}

/* The status; *ret_body, of @size bytes, is the text. */
static unsigned ask(struct answers *answers, uint32_t page, const char *text, char *ret_body, size_t size)
{
	static unsigned behind;
	struct http_request request = { .numbers = { 0, 5 } };
	struct http_reply reply = { .status = 200, .content_type = "text/plain" };
	struct question question;

	/* What is behind the text's end is nobody's question. */
	memset(request.text, 'a' + behind++ % 26, sizeof(request.text) - 1);
	snprintf(request.text, sizeof(request.text), "%s", text);
	question = question_of(page, 0, &request);
	strbuf_init(&reply.body, 0);
	assert_int_equal(answers_reply(answers, &question, &reply), 0);
	snprintf(ret_body, size, "%s", reply.body.data);
	strbuf_done(&reply.body);
	return reply.status;
}

/* Until it is no 202. */
static unsigned ask_on(struct answers *answers, uint32_t page, const char *text, char *ret_body, size_t size)
{
	const int64_t end_ns = clock_mono_ns() + 60 * NSEC_PER_SEC;
	unsigned status;

	do
		status = ask(answers, page, text, ret_body, size);
	while (status == 202 && clock_mono_ns() < end_ns);
	return status;
}

static void test_an_answer_is_kept(_unused_ void **state)
{
	struct maker maker = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, .may = true };
	struct answers *answers = begin(&maker, 60 * NSEC_PER_SEC);
	char body[64];

	assert_int_equal(ask_on(answers, 1, "who", body, sizeof(body)), 200);
	assert_string_equal(body, "who 5");
	assert_int_equal(ask_on(answers, 7, "who", body, sizeof(body)), 418);
	assert_int_equal(ask_on(answers, 1, "she", body, sizeof(body)), 200);
	assert_string_equal(body, "she 5");
	assert_int_equal(ask(answers, 1, "who", body, sizeof(body)), 200);
	assert_true(answers_free(answers));
	assert_int_equal(maker.made, 3);
}

static void test_who_asks_does_not_wait(_unused_ void **state)
{
	struct maker maker = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, .may = false };
	struct answers *answers = begin(&maker, 60 * NSEC_PER_SEC);
	char body[64];

	assert_int_equal(ask(answers, 1, "who", body, sizeof(body)), 202);
	assert_string_equal(body, "{\"pending\":true}\n");
	/* More than there is room for: all are being waited for. */
	for (unsigned i = 0; i < ANSWERS + 2; i++)
		assert_int_equal(ask(answers, 100 + i, "who", body, sizeof(body)), 202);
	let(&maker);
	assert_int_equal(ask_on(answers, 1, "who", body, sizeof(body)), 200);
	assert_true(answers_free(answers));
}

/* How often one was made while others took room, of those that nobody had had yet. */
static unsigned made_for_all(void)
{
	struct maker maker = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, .may = false };
	struct answers *answers = begin(&maker, 60 * NSEC_PER_SEC);
	char body[64];

	for (unsigned i = 0; i < ANSWERS; i++)
		assert_int_equal(ask(answers, i, "who", body, sizeof(body)), 202);
	let(&maker);
	/* The last one is made after the others: then all are there, and only its room is to be had. */
	for (unsigned i = ANSWERS - 1; i < 3 * ANSWERS; i++)
		assert_int_equal(ask_on(answers, i, "who", body, sizeof(body)), i == 7 ? 418 : 200);
	for (unsigned i = 0; i < ANSWERS - 1; i++)
		assert_int_equal(ask_on(answers, i, "who", body, sizeof(body)), 200);
	assert_true(answers_free(answers));
	return maker.made;
}

/* For a few seconds: on a machine that took longer it says nothing. */
static void test_an_answer_is_kept_for_who_asked(_unused_ void **state)
{
	for (unsigned tries = 0; tries < 10; tries++) {
		const int64_t begin_ns = clock_mono_ns();
		unsigned made = made_for_all();

		if (clock_mono_ns() - begin_ns > 4 * NSEC_PER_SEC)
			continue;
		assert_int_equal(made, 3 * ANSWERS);
		return;
	}
	print_message("this machine is too slow: whether answers are kept is not tested\n");
	skip();
}

static void test_one_that_takes_too_long_is_said_to(_unused_ void **state)
{
	struct maker maker = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, .may = false };
	struct answers *answers = begin(&maker, 0);
	char body[64];

	assert_int_equal(ask_on(answers, 1, "who", body, sizeof(body)), 503);
	assert_string_equal(body, "503 it is stuck\n");
	assert_true(answers_free(answers)); /* which lets it go on */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_is_kept),
		cmocka_unit_test(test_who_asks_does_not_wait),
		cmocka_unit_test(test_an_answer_is_kept_for_who_asked),
		cmocka_unit_test(test_one_that_takes_too_long_is_said_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
