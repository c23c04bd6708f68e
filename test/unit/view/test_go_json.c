// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "view/container/go_writer.h"

static void assert_string(const char *text, const char *expected)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	go_json_string(&out, text);
	assert_string_equal(out.data, expected);
	strbuf_done(&out);
}

static void strings_are_safe_in_html(_unused_ void **state)
{
	assert_string("", "\"\"");
	assert_string("pod-0", "\"pod-0\"");
	assert_string("a\"b\\c/d'e", "\"a\\\"b\\\\c/d'e\"");
	assert_string("<script>&amp;", "\"\\u003cscript\\u003e\\u0026amp;\"");
	assert_string("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"");
	assert_string("\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\"");
	assert_string("\u2027\u2028\u2029\u202a", "\"\u2027\\u2028\\u2029\u202a\"");
	assert_string("\u00e4\u20ac\U0001f600\ufffd\xc2\x85", "\"\u00e4\u20ac\U0001f600\ufffd\xc2\x85\"");
}

/* Each byte of its own: as Go decodes them. */
static void bytes_that_are_no_utf8_are_replaced(_unused_ void **state)
{
	assert_string("a\xff"
		      "b",
		      "\"a\\ufffdb\"");
	assert_string("\xc3", "\"\\ufffd\"");
	assert_string("\xe2\x80", "\"\\ufffd\\ufffd\"");
	assert_string("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");
	assert_string("\xc0\xaf\xf5\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

static void numbers_are_as_go_writes_them(_unused_ void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
		{ 0, "0" },
		{ -0.0, "-0" },
		{ 1, "1" },
		{ -42, "-42" },
		{ 0.5, "0.5" },
		{ 0.482113, "0.482113" },
		{ 412.533, "412.533" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ 123456789.123456, "123456789.123456" },
		{ 0.000001, "0.000001" },
		{ 0.0000012345, "0.0000012345" },
		{ 9.99999e-7, "9.99999e-7" },
		{ 1e-7, "1e-7" },
		{ 1.5e-10, "1.5e-10" },
		{ 9007199254740993.0, "9007199254740992" },
		{ 1e15, "1000000000000000" },
		{ 1e20, "100000000000000000000" },
		{ 123456789012345680000.0, "123456789012345680000" },
		{ 1e21, "1e+21" },
		{ -1.25e22, "-1.25e+22" },
		{ 1e100, "1e+100" },
		/* powers of two, whose neighbours are unevenly far */
		{ 5.684341886080802e-14, "5.684341886080802e-14" },
		{ 9.5367431640625e-07, "9.5367431640625e-7" },
		{ 5e-324, "5e-324" },
		{ 1.7976931348623157e308, "1.7976931348623157e+308" },
		/* what JSON does not have */
		{ NAN, "0" },
		{ INFINITY, "0" },
		{ -INFINITY, "0" },
	};
	struct strbuf out;

	strbuf_init(&out, 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		strbuf_reset(&out);
		go_json_number(&out, rows[i].value);
		assert_string_equal(out.data, rows[i].text);
	}
	strbuf_done(&out);
}

static void assert_time(int64_t real_ns, const char *expected)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	go_json_time(&out, real_ns);
	assert_string_equal(out.data, expected);
	strbuf_done(&out);
}

static void times_have_as_many_decimals_as_they_need(_unused_ void **state)
{
	assert_time(0, "\"1970-01-01T00:00:00Z\"");
	assert_time(-1, "\"1970-01-01T00:00:00Z\"");
	assert_time(INT64_C(1790000000250000000), "\"2026-09-21T14:13:20.25Z\"");
	assert_time(INT64_C(1790000000000000001), "\"2026-09-21T14:13:20.000000001Z\"");
	assert_time(INT64_C(1790000000123456789), "\"2026-09-21T14:13:20.123456789Z\"");
	assert_time(INT64_C(1790000000000001000), "\"2026-09-21T14:13:20.000001Z\"");
}

static void documents_are_indented_by_two(_unused_ void **state)
{
	struct strbuf out;
	struct go_writer w = { .out = &out };

	strbuf_init(&out, 0);
	go_open(&w, NULL, '[');
	go_close(&w, ']');
	assert_string_equal(out.data, "[]\n");

	strbuf_reset(&out);
	go_open(&w, NULL, '{');
	go_text(&w, "a", "<");
	go_open(&w, "b", '[');
	go_number(&w, NULL, 1);
	go_null(&w, NULL);
	go_open(&w, NULL, '{');
	go_close(&w, '}');
	go_close(&w, ']');
	go_time(&w, "c", 0);
	go_close(&w, '}');
	assert_string_equal(out.data,
			    "{\n  \"a\": \"\\u003c\",\n  \"b\": [\n    1,\n    null,\n    {}\n  ],\n"
			    "  \"c\": \"1970-01-01T00:00:00Z\"\n}\n");
	strbuf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_safe_in_html),
		cmocka_unit_test(bytes_that_are_no_utf8_are_replaced),
		cmocka_unit_test(numbers_are_as_go_writes_them),
		cmocka_unit_test(times_have_as_many_decimals_as_they_need),
		cmocka_unit_test(documents_are_indented_by_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
