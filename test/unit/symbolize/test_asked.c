// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>

#include "symbolize/asked.h"

enum { MAX_ASKED = 64, SENT = 16 };

static struct asked_table table;

static int set_up(_unused_ void **state)
{
	asked_init(&table, MAX_ASKED, SENT);
	return 0;
}

static int tear_down(_unused_ void **state)
{
	asked_done(&table);
	return 0;
}

static int add(uint64_t id, uint64_t account)
{
	const struct symbolizer_question question = { .id = id, .symbol = "name", .path = "/file" };

	return asked_add(&table, &question, account);
}

static unsigned fill(uint64_t account)
{
	unsigned n = 0;

	while (add(1000 * account + n, account) == 0)
		n++;
	return n;
}

static struct asked *send_next(void)
{
	struct asked *asked = asked_next(&table);

	if (asked)
		assert_int_equal(asked_mark_sent(&table, asked), 0);
	return asked;
}

static void a_flood_leaves_room(_unused_ void **state)
{
	assert_int_equal(fill(1), MAX_ASKED / 2);
	assert_int_equal(add(0, 1), -EAGAIN);
	/* Each further one gets half of what is left. */
	assert_int_equal(fill(2), MAX_ASKED / 4);
	assert_int_equal(add(0, 3), 0);
	assert_int_equal(add(0, 1), -EAGAIN);
}

static void users_take_turns(_unused_ void **state)
{
	unsigned of_first = 0, of_second = 0;
	struct asked *asked;

	fill(1);
	assert_int_equal(add(7, 2), 0);
	assert_int_equal(add(8, 2), 0);
	/* One that floods has half of what is sent; the other's two are among the first four. */
	while ((asked = send_next())) {
		of_second += asked->question.id < 10;
		of_first += asked->question.id >= 10;
		if (of_first + of_second == 4)
			assert_int_equal(of_second, 2);
		assert_string_equal(asked->question.symbol, "name");
		assert_string_equal(asked->question.path, "/file");
	}
	assert_int_equal(of_second, 2);
	assert_in_range(of_first, SENT / 2 - 2, SENT / 2);
}

static void answers_find_their_question(_unused_ void **state)
{
	struct asked *first, *second;
	uint64_t first_id;

	assert_int_equal(add(1, 1), 0);
	assert_int_equal(add(2, 1), 0);
	first = send_next();
	second = send_next();
	assert_int_equal(first->question.id, 1);
	assert_ptr_equal(asked_find(&table, second->id), second);
	first_id = first->id;
	asked_remove(&table, first);
	assert_null(asked_find(&table, first_id));
	assert_ptr_equal(asked_find(&table, second->id), second);
	assert_null(asked_find(&table, 12345));
}

/* A helper was lost: answers of it that come late are of nothing. */
static void what_was_sent_is_sent_again(_unused_ void **state)
{
	struct asked *asked;
	uint64_t before;

	assert_int_equal(add(1, 1), 0);
	asked = send_next();
	before = asked->id;
	asked_take_back(&table);
	assert_int_equal(asked->tries, 1);
	assert_null(asked_find(&table, before));
	assert_ptr_equal(send_next(), asked);
	assert_int_not_equal(asked->id, before);
	assert_ptr_equal(asked_find(&table, asked->id), asked);
	assert_null(send_next());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_flood_leaves_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(users_take_turns, set_up, tear_down),
		cmocka_unit_test_setup_teardown(answers_find_their_question, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_sent_is_sent_again, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
