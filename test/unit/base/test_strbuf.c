// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

static void starts_empty_without_memory(_unused_ void **state)
{
	struct strbuf sb;

	strbuf_init(&sb, 0);
	assert_string_equal(sb.data, "");
	assert_int_equal(sb.len, 0);
	assert_int_equal(sb.cap, 0);
	strbuf_done(&sb);
	strbuf_done(NULL);
}

static void appends_every_kind(_unused_ void **state)
{
	_cleanup_(strbuf_done) struct strbuf sb;

	strbuf_init(&sb, 0);
	strbuf_adds(&sb, "a");
	strbuf_addc(&sb, 'b');
	strbuf_add(&sb, "cde", 2);
	strbuf_addf(&sb, "-%d-%s", 42, "x");
	strbuf_add_u64(&sb, UINT64_MAX);
	strbuf_addc(&sb, ' ');
	strbuf_add_u64(&sb, 0);
	strbuf_addc(&sb, ' ');
	strbuf_add_i64(&sb, INT64_MIN);
	assert_string_equal(sb.data, "abcd-42-x18446744073709551615 0 -9223372036854775808");
	assert_int_equal(sb.len, strlen(sb.data));
	assert_false(sb.failed);
}

static void formats_longer_than_its_room(_unused_ void **state)
{
	_cleanup_(strbuf_done) struct strbuf sb;

	strbuf_init(&sb, 0);
	strbuf_adds(&sb, "head ");
	strbuf_addf(&sb, "%0500d", 7);
	assert_int_equal(sb.len, 505);
	assert_int_equal(sb.data[504], '7');
	assert_int_equal(sb.data[505], '\0');
}

static void limit_is_exact_and_sticky(_unused_ void **state)
{
	_cleanup_(strbuf_done) struct strbuf sb;

	strbuf_init(&sb, 8);
	strbuf_adds(&sb, "12345678");
	assert_false(sb.failed);
	strbuf_addc(&sb, '9');
	assert_true(sb.failed);
	assert_string_equal(sb.data, "12345678");
	strbuf_reset(&sb);
	assert_string_equal(sb.data, "");
	strbuf_adds(&sb, "1234");
	strbuf_addf(&sb, "%s", "56789");
	assert_true(sb.failed);
	assert_string_equal(sb.data, "1234");
	strbuf_adds(&sb, "");
	strbuf_addc(&sb, 'x');
	assert_string_equal(sb.data, "1234");
}

static void is_truncated(_unused_ void **state)
{
	_cleanup_(strbuf_done) struct strbuf sb;

	strbuf_init(&sb, 0);
	strbuf_truncate(&sb, 0);
	strbuf_adds(&sb, "1234");
	strbuf_truncate(&sb, 4);
	assert_string_equal(sb.data, "1234");
	strbuf_truncate(&sb, 2);
	assert_string_equal(sb.data, "12");
	strbuf_addc(&sb, 'x');
	assert_string_equal(sb.data, "12x");
}

static void keeps_memory_on_reset(_unused_ void **state)
{
	_cleanup_(strbuf_done) struct strbuf sb;
	const char *data;

	strbuf_init(&sb, 0);
	strbuf_addf(&sb, "%0300d", 1);
	data = sb.data;
	strbuf_reset(&sb);
	strbuf_addf(&sb, "%0300d", 1);
	assert_ptr_equal(sb.data, data);
}

static void take_hands_over_or_refuses(_unused_ void **state)
{
	struct strbuf sb;
	char *text;

	strbuf_init(&sb, 4);
	text = strbuf_take(&sb);
	assert_string_equal(text, "");
	free(text);
	strbuf_adds(&sb, "four");
	text = strbuf_take(&sb);
	assert_string_equal(text, "four");
	assert_string_equal(sb.data, "");
	free(text);
	strbuf_adds(&sb, "longer");
	assert_null(strbuf_take(&sb));
	assert_false(sb.failed);
}

static void wraps_between_words(_unused_ void **state)
{
	struct strbuf sb;

	strbuf_init(&sb, 0);
	strbuf_add_wrapped(&sb, "one two  three fourteenletters", "> ", 10);
	assert_string_equal(sb.data, "> one two\n> three\n> fourteen\n> letters\n");
	strbuf_done(&sb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_empty_without_memory),
		cmocka_unit_test(appends_every_kind),
		cmocka_unit_test(formats_longer_than_its_room),
		cmocka_unit_test(limit_is_exact_and_sticky),
		cmocka_unit_test(is_truncated),
		cmocka_unit_test(keeps_memory_on_reset),
		cmocka_unit_test(take_hands_over_or_refuses),
		cmocka_unit_test(wraps_between_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
