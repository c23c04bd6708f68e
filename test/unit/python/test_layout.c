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

/* Of 3.14.10 and 3.15.2, with the lock and without, as their headers have them. */
static const uint64_t offsets_later[][103] = {
	{ [1] = 0x030e0af0, [5] = 808, [8] = 7280, [9] = 7272, [24] = 8,  [25] = 16,  [26] = 72,
	  [27] = 152,       [30] = 32, [32] = 8,   [34] = 56,  [36] = 74, [40] = 112, [42] = 128,
	  [43] = 136,       [44] = 68, [48] = 208, [75] = 16,  [76] = 32, [78] = 32,  [79] = 16,
	  [80] = 40,        [37] = 64, [51] = 8,   [63] = 24,  [85] = 72, [86] = 67 },
	{ [1] = 0x030e0af0, [2] = 1,   [5] = 808,  [8] = 7280, [9] = 7272, [24] = 8,  [25] = 16,  [26] = 72,
	  [27] = 152,       [30] = 32, [32] = 8,   [34] = 56,  [36] = 78,  [38] = 72, [40] = 128, [42] = 144,
	  [43] = 152,       [44] = 84, [48] = 232, [49] = 224, [75] = 32,  [76] = 48, [78] = 48,  [79] = 32,
	  [80] = 56,        [37] = 64, [51] = 24,  [63] = 40,  [85] = 88,  [86] = 83 },
	{ [1] = 0x030f02f0, [5] = 936, [8] = 7272, [9] = 7264, [24] = 8,   [25] = 16,  [26] = 72,
	  [30] = 176,       [33] = 32, [40] = 8,   [42] = 56,  [44] = 74,  [48] = 112, [50] = 128,
	  [51] = 136,       [52] = 68, [56] = 208, [87] = 16,  [88] = 32,  [90] = 32,  [91] = 16,
	  [92] = 40,        [45] = 64, [59] = 8,   [75] = 24,  [101] = 72, [102] = 67 },
	{ [1] = 0x030f02f0, [2] = 1,   [5] = 936,  [8] = 7272, [9] = 7264, [24] = 8,  [25] = 16,  [26] = 72,
	  [30] = 176,       [33] = 32, [40] = 8,   [42] = 56,  [44] = 78,  [46] = 72, [48] = 128, [50] = 144,
	  [51] = 152,       [52] = 84, [56] = 232, [57] = 224, [87] = 32,  [88] = 48, [90] = 48,  [91] = 32,
	  [92] = 56,        [45] = 64, [59] = 24,  [75] = 40,  [101] = 88, [102] = 83 },
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
	assert_int_equal(python.thread_task, 0);
}

static void test_later_debug_offsets(void **state)
{
	uint64_t numbers[ARRAY_SIZE(offsets_later[0])];
	struct trace_python python;
	uint32_t version;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(offsets_later); i++) {
		bool free_threaded = i % 2;

		memcpy(numbers, offsets_later[i], sizeof(numbers));
		memcpy(numbers, "xdebugpy", 8);
		assert_int_equal(python_debug_offsets(numbers, sizeof(numbers), &version, &python), 0);
		assert_int_equal(version, i < 2 ? 0x030e0af0 : 0x030f02f0);
		assert_int_equal(python.interpreters, i < 2 ? 808 : 936);
		assert_int_equal(python.thread_id, i < 2 ? 152 : 176);
		assert_int_equal(python.thread_status, 32);
		assert_int_equal(python.frame_from + python.frame_owner, free_threaded ? 78 : 74);
		assert_int_equal(python.code_from + python.code_first_line, free_threaded ? 84 : 68);
		assert_int_equal(python.code_instructions, free_threaded ? 232 : 208);
		assert_int_equal(python.code_tlbc, free_threaded ? 224 : 0);
		assert_int_equal(python.frame_tlbc, free_threaded ? 72 : 0);
		assert_int_equal(python.text_kind_shift, free_threaded ? 8 : 2);
		assert_int_equal(python.text_compact, free_threaded ? 72 : 56);
		assert_true(python.flags & TRACE_PYTHON_TAGGED);
		assert_int_equal(python.thread_task, free_threaded ? 0 : i < 2 ? 872 : 1032);
		assert_int_equal(python.task_coroutine, free_threaded ? 0 : 128);
		assert_int_equal(python.generator_frame, free_threaded ? 0 : 72);
		assert_int_equal(python.frame_stack, free_threaded ? 0 : 64);
		/* An alpha version's strings are others. */
		numbers[1] = (numbers[1] & ~0xffffULL) | 0xa7;
		assert_int_equal(python_debug_offsets(numbers, sizeof(numbers), &version, &python), -ENOTSUP);
	}
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
		cmocka_unit_test(test_later_debug_offsets),
		cmocka_unit_test(test_debug_offsets_hostile),
		cmocka_unit_test(test_layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
