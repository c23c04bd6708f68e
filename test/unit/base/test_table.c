// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/table.h"

struct row {
	char text[8];
};

static void put(struct table *table, const char *text)
{
	struct row *row = table_add(table);

	if (row)
		PUT_TEXT(row->text, text);
}

static void counts_what_does_not_fit(void **state)
{
	struct table table = { .size = sizeof(struct row), .max = 2 };

	(void)state;
	put(&table, "a");
	put(&table, "b");
	put(&table, "c");
	assert_int_equal(table.n, 2);
	assert_int_equal(table.dropped, 1);
	table_clear(&table);
	assert_int_equal(table.n + table.dropped, 0);
	table_done(&table);
}

static void a_digest_is_of_the_rows_in_any_order(void **state)
{
	struct table one = { .size = sizeof(struct row), .max = 9 }, other = one;
	uint64_t empty = table_digest(&one);

	(void)state;
	assert_true(empty != 0);
	put(&one, "a");
	put(&one, "b");
	put(&other, "b");
	put(&other, "a");
	assert_true(table_digest(&one) == table_digest(&other));
	assert_true(table_digest(&one) != empty);
	put(&other, "c");
	assert_true(table_digest(&one) != table_digest(&other));
	table_done(&one);
	table_done(&other);
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
