// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"
#include "base/macro.h"

/* A heap copy of exactly the text, so that a sanitizer sees one byte too far. */
static char *exact(const char *text)
{
	size_t n = strlen(text);
	char *copy = malloc(n > 0 ? n : 1);

	assert_non_null(copy);
	memcpy(copy, text, n);
	return copy;
}

static void reads_a_line_of_fields(_unused_ void **state)
{
	_cleanup_free_ char *text = exact("6,4242,5140900,-;NVRM: Xid (PCI:0000:3b:00): 79");
	struct cursor c = cursor_over(text, 47), token;
	uint64_t v;

	assert_int_equal(cursor_u64(&c, &v), 0);
	assert_int_equal(v, 6);
	assert_true(cursor_literal(&c, ","));
	assert_int_equal(cursor_until(&c, ';', &token), 0);
	assert_true(cursor_equals(&token, "4242,5140900,-"));
	assert_false(cursor_literal(&c, "NVRM: Xie"));
	assert_true(cursor_literal(&c, "NVRM: Xid (PCI:"));
	assert_int_equal(cursor_until(&c, ')', &token), 0);
	assert_int_equal(cursor_u64(&token, &v), 0);
	assert_true(cursor_literal(&token, ":"));
	assert_int_equal(cursor_hex(&token, &v), 0);
	assert_int_equal(v, 0x3b);
	assert_true(cursor_literal(&c, ":"));
	cursor_skip_space(&c);
	assert_int_equal(cursor_u64(&c, &v), 0);
	assert_int_equal(v, 79);
	assert_true(cursor_eof(&c));
}

static void failure_leaves_the_cursor_alone(_unused_ void **state)
{
	struct cursor c = cursor_over("18446744073709551616x", 21), token = { NULL, NULL };
	const char *start = c.p;
	uint64_t v = 5;

	assert_int_equal(cursor_u64(&c, &v), -ERANGE);
	assert_int_equal(cursor_until(&c, '!', &token), -EINVAL);
	assert_int_equal(cursor_hex(&c, &v), -ERANGE);
	assert_false(cursor_literal(&c, "19"));
	assert_ptr_equal(c.p, start);
	assert_int_equal(v, 5);
	assert_null(token.p);
}

static void numbers_reach_their_limits(_unused_ void **state)
{
	struct cursor c = cursor_over("18446744073709551615", 20);
	uint64_t v;

	assert_int_equal(cursor_u64(&c, &v), 0);
	assert_true(v == UINT64_MAX);
	c = cursor_over("fFfFffffFFFFffffg", 17);
	assert_int_equal(cursor_hex(&c, &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(cursor_hex(&c, &v), -EINVAL);
	assert_true(cursor_literal(&c, "g"));
}

static void never_looks_past_its_end(_unused_ void **state)
{
	_cleanup_free_ char *text = exact("12  ");
	struct cursor c = cursor_over(text, 2), token;
	uint64_t v;

	assert_false(cursor_literal(&c, "123"));
	assert_int_equal(cursor_u64(&c, &v), 0);
	assert_int_equal(v, 12);
	assert_int_equal(cursor_u64(&c, &v), -EINVAL);
	assert_int_equal(cursor_until(&c, ' ', &token), -EINVAL);
	cursor_skip_space(&c);
	assert_true(c.p == c.end);
	assert_true(cursor_literal(&c, ""));
	assert_true(cursor_equals(&c, ""));
	c = cursor_over(text, 4);
	assert_int_equal(cursor_u64(&c, &v), 0);
	cursor_skip_space(&c);
	assert_true(cursor_eof(&c));
}

static void spaces_end_at_the_line(_unused_ void **state)
{
	struct cursor c = cursor_over(" \t \nx", 5);

	cursor_skip_space(&c);
	assert_int_equal(cursor_left(&c), 2);
	assert_true(cursor_literal(&c, "\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_line_of_fields),
		cmocka_unit_test(failure_leaves_the_cursor_alone),
		cmocka_unit_test(numbers_reach_their_limits),
		cmocka_unit_test(never_looks_past_its_end),
		cmocka_unit_test(spaces_end_at_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
