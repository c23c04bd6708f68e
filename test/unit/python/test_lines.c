// SPDX-License-Identifier: Apache-2.0
/* Tables as CPython makes them; test/e2e/stacks.py compares with each interpreter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "python/lines.h"

#define LINE(kind_, table_, first_, offset_) \
	python_line((kind_), (table_), sizeof(table_), (first_), (offset_))

static void test_lnotab(void **state)
{
	/* 6 bytes on the first line, then 2 lines on, 300 lines on in two pairs, and one line back */
	static const uint8_t table[] = { 6, 2, 8, 127, 0, 127, 0, 46, 4, 0xff };

	(void)state;
	assert_int_equal(LINE(TRACE_LINES_LNOTAB, table, 10, 0), 10);
	assert_int_equal(LINE(TRACE_LINES_LNOTAB, table, 10, 5), 10);
	assert_int_equal(LINE(TRACE_LINES_LNOTAB, table, 10, 6), 12);
	assert_int_equal(LINE(TRACE_LINES_LNOTAB, table, 10, 14), 312);
	assert_int_equal(LINE(TRACE_LINES_LNOTAB, table, 10, 17), 312);
	assert_int_equal(LINE(TRACE_LINES_LNOTAB, table, 10, 18), 311);
	assert_int_equal(LINE(TRACE_LINES_LNOTAB, table, 10, 5000), 311);
}

static void test_table(void **state)
{
	/* 4 bytes a line on, 6 bytes without a line, 2 bytes a line back */
	static const uint8_t table[] = { 4, 1, 6, 0x80, 2, 0xff };

	(void)state;
	assert_int_equal(LINE(TRACE_LINES_TABLE, table, 10, 0), 11);
	assert_int_equal(LINE(TRACE_LINES_TABLE, table, 10, 3), 11);
	assert_int_equal(LINE(TRACE_LINES_TABLE, table, 10, 4), 0);
	assert_int_equal(LINE(TRACE_LINES_TABLE, table, 10, 9), 0);
	assert_int_equal(LINE(TRACE_LINES_TABLE, table, 10, 10), 10);
	assert_int_equal(LINE(TRACE_LINES_TABLE, table, 10, 12), 0); /* beyond the code */
}

static void test_locations(void **state)
{
	static const uint8_t table[] = {
		0x80 | 3 << 3 | 0,  0x12, /* short form: 1 unit, the same line */
		0x80 | 11 << 3 | 1, 4,         9, /* one line form: 2 units, a line on */
		0x80 | 13 << 3 | 0, 0x40 | 40, 1, /* no columns: 104 >> 1 lines on */
		0x80 | 14 << 3 | 0, 3,         0, 1, 1, /* long form: a line back */
		0x80 | 15 << 3 | 7, /* 8 units without a line */
	};

	(void)state;
	assert_int_equal(LINE(TRACE_LINES_LOCATIONS, table, 10, 0), 10);
	assert_int_equal(LINE(TRACE_LINES_LOCATIONS, table, 10, 2), 11);
	assert_int_equal(LINE(TRACE_LINES_LOCATIONS, table, 10, 4), 11);
	assert_int_equal(LINE(TRACE_LINES_LOCATIONS, table, 10, 6), 11 + 52);
	assert_int_equal(LINE(TRACE_LINES_LOCATIONS, table, 10, 8), 11 + 51);
	assert_int_equal(LINE(TRACE_LINES_LOCATIONS, table, 10, 10), 0);
	assert_int_equal(LINE(TRACE_LINES_LOCATIONS, table, 10, 26), 0);
}

/* A table that is cut, or none: no line rather than a wrong one. */
static void test_hostile(void **state)
{
	static const uint8_t no_start[] = { 3 << 3, 0x12 }, cut[] = { 0x80 | 14 << 3, 3, 0 };
	static const uint8_t endless[] = { 0x80 | 13 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	static const uint8_t back[] = { 0, 0x81, 0, 0x81, 4, 0x81 };

	(void)state;
	assert_int_equal(LINE(TRACE_LINES_LOCATIONS, no_start, 10, 0), 0);
	assert_int_equal(LINE(TRACE_LINES_LOCATIONS, cut, 10, 0), 0);
	assert_int_equal(LINE(TRACE_LINES_LOCATIONS, endless, 10, 0), 0);
	assert_int_equal(LINE(TRACE_LINES_LNOTAB, back, 10, 4), 0);
	assert_int_equal(python_line(TRACE_LINES_LNOTAB, back, 0, -3, 0), 0);
	assert_int_equal(python_line((enum trace_lines)77, back, sizeof(back), 1, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lnotab),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_locations),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
