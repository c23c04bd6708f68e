// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/row_list.h"

struct row {
	char text[8];
};

static void put(struct row_list *table, const char *text)
{
	struct row *row = row_list_add(table);

	if (row)
		PUT_TEXT(row->text, text);
}

static void counts_what_does_not_fit(void **state)
{
	struct row_list table = { .size = sizeof(struct row), .max = 2 };

	(void)state;
	put(&table, "a");
	put(&table, "b");
	put(&table, "c");
	assert_int_equal(table.n, 2);
	assert_int_equal(table.dropped, 1);
	row_list_clear(&table);
	assert_int_equal(table.n + table.dropped, 0);
	row_list_done(&table);
}

static void a_digest_is_of_the_rows_in_any_order(void **state)
{
	struct row_list one = { .size = sizeof(struct row), .max = 9 }, other = one;
	uint64_t empty = row_list_digest(&one);

	(void)state;
	assert_true(empty != 0);
	put(&one, "a");
	put(&one, "b");
	put(&other, "b");
	put(&other, "a");
	assert_true(row_list_digest(&one) == row_list_digest(&other));
	assert_true(row_list_digest(&one) != empty);
	put(&other, "c");
	assert_true(row_list_digest(&one) != row_list_digest(&other));
	row_list_done(&one);
	row_list_done(&other);
}

static void texts_are_cut_and_made_valid(void **state)
{
	char text[4];

	(void)state;
	put_text(text, sizeof(text),
		 "\xff"
		 "bcdef",
		 6);
	assert_string_equal(text, "?bc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_what_does_not_fit),
		cmocka_unit_test(a_digest_is_of_the_rows_in_any_order),
		cmocka_unit_test(texts_are_cut_and_made_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
