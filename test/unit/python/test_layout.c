// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"
#include "python/layout.h"

/* _Py_DebugOffsets of CPython 3.13.0 on x86-64, as far as it is used; others are 0. */
static const uint64_t offsets_3_13[73] = {
	[1] = 0x030d00f0, [5] = 632, [8] = 7264, [9] = 7344, [20] = 0,  [21] = 8,  [22] = 16,  [23] = 72,
	[24] = 152,       [27] = 32, [29] = 8,   [30] = 0,   [31] = 56, [33] = 70, [35] = 112, [37] = 128,
	[38] = 136,       [39] = 68, [43] = 200, [65] = 16,  [66] = 32, [68] = 32, [69] = 16,  [70] = 40,
};

static void fill(uint64_t numbers[static ARRAY_SIZE(offsets_3_13)])
{
	memcpy(numbers, offsets_3_13, sizeof(offsets_3_13));
	memcpy(numbers, "xdebugpy", 8);
}

static void test_debug_offsets(void **state)
{
	uint64_t numbers[ARRAY_SIZE(offsets_3_13)];
	struct trace_python python;
	uint32_t version;

	(void)state;
	fill(numbers);
	assert_int_equal(python_debug_offsets(numbers, sizeof(numbers), &version, &python), 0);
	assert_int_equal(version, 0x030d00f0);
	assert_int_equal(python.interpreters, 632);
	assert_int_equal(python.interpreter_threads, 7344);
	assert_int_equal(python.thread_frame, 72);
	assert_int_equal(python.thread_n, 160);
	assert_int_equal(python.frame_from, 0);
	assert_int_equal(python.frame_n, 72);
	assert_int_equal(python.frame_owner, 70);
	assert_int_equal(python.code_from, 64);
	assert_int_equal(python.code_from + python.code_lines, 136);
	assert_int_equal(python.code_from + python.code_first_line, 68);
	assert_int_equal(python.code_instructions, 200);
	assert_int_equal(python.text_compact, 56);
}

static void test_debug_offsets_hostile(void **state)
{
	uint64_t numbers[ARRAY_SIZE(offsets_3_13)];
	struct trace_python python;
	uint32_t version;

	(void)state;
	fill(numbers);
	assert_int_equal(python_debug_offsets(numbers, 500, &version, &python), -EBADMSG); /* cut */
	assert_int_equal(python_debug_offsets(numbers, 4, &version, &python), -ENODATA);
	numbers[24] = 1 << 20; /* thread_id */
	assert_int_equal(python_debug_offsets(numbers, sizeof(numbers), &version, &python), -EBADMSG);
	fill(numbers);
	numbers[31] = 57; /* instr_ptr */
	assert_int_equal(python_debug_offsets(numbers, sizeof(numbers), &version, &python), -EBADMSG);
	fill(numbers);
	numbers[38] = 2000; /* the line table, too far from the rest */
	assert_int_equal(python_debug_offsets(numbers, sizeof(numbers), &version, &python), -EBADMSG);
	fill(numbers);
	numbers[1] = 0x03630000;
	assert_int_equal(python_debug_offsets(numbers, sizeof(numbers), &version, &python), -ENOTSUP);
	numbers[0] = 0;
	assert_int_equal(python_debug_offsets(numbers, sizeof(numbers), &version, &python), -ENODATA);
}

static void test_layouts(void **state)
{
	struct trace_python python;

	(void)state;
	for (unsigned minor = 0; minor < 20; minor++)
		assert_int_equal(python_layout(PYTHON_VERSION(3, minor), &python),
				 minor >= PYTHON_OLDEST_MINOR && minor <= 12 ? 0 : -ENOTSUP);
	assert_int_equal(python_layout(PYTHON_VERSION(2, 8), &python), -ENOTSUP);
	assert_int_equal(python_layout(PYTHON_VERSION(3, 8), &python), 0);
	assert_int_equal(python.frame_from + python.frame_at, 104);
	assert_int_equal(python.lines, TRACE_LINES_LNOTAB);
	assert_true(python.flags & TRACE_PYTHON_LASTI);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debug_offsets),
		cmocka_unit_test(test_debug_offsets_hostile),
		cmocka_unit_test(test_layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
