// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "view/lines.h"

static const struct stack_place places[] = {
	{ .name = "main", .file = "a.py", .line = 3, .first_line = 1 },
	{ .name = "f", .file = "a.py", .line = 12, .first_line = 10 },
	{ .name = "f", .file = "a.py", .line = 0, .first_line = 10 },
	{ .name = "cudaMalloc@plt", .file = "libx.so" },
	{ .name = "[no Python code running]", .file = "" },
};
/* The innermost first; f calls itself. */
static const uint32_t recursive[] = { 3, 1, 1, 0 }, direct[] = { 0 }, lineless[] = { 2, 0 },
		      none[] = { 3, 4 };
static const struct stack_row rows[] = {
	{ recursive, 4, 7, "python3 7", "cudaMalloc", { [STACK_CALLS] = 5, [STACK_BYTES_HELD] = 100 } },
	{ recursive, 4, 7, "python3 7", "cudaMemcpy", { [STACK_CALLS] = 2, [STACK_BYTES_COPIED] = 30 } },
	{ recursive, 4, 8, "python3 8", "cudaMalloc", { [STACK_CALLS] = 1 } },
	{ direct, 1, 7, "python3 7", "cudaMalloc", { [STACK_CALLS] = 1 } },
	{ lineless, 2, 7, "python3 7", "cudaMalloc", { [STACK_CALLS] = 3 } },
	{ none, 2, 7, "python3 7", "cudaMalloc", { [STACK_CALLS] = 4 } },
	{ direct, 1, 9, "python3 9", "cudaMalloc", { [STACK_CALLS] = 0 } },
};
static const struct stack_page page = {
	.places = places, .places_n = ARRAY_SIZE(places), .rows = rows, .rows_n = ARRAY_SIZE(rows)
};

static void expect(const struct stack_line *line, uint32_t pid, uint32_t place, double itself, double calls)
{
	assert_int_equal(line->pid, pid);
	assert_int_equal(line->place, place);
	assert_true(line->itself == itself);
	assert_true(line->weights[STACK_CALLS] == calls);
}

/* A call counts once for each line of its stack, and for the innermost one by itself. */
static void test_sums(_unused_ void **state)
{
	_cleanup_(stack_lines_freep) struct stack_lines *lines = NULL;

	assert_int_equal(stack_lines_new(&page, &lines), 0);
	assert_int_equal(lines->lines_n, 6);
	expect(&lines->lines[0], 7, 1, 7, 7);
	expect(&lines->lines[1], 7, 4, 4, 4);
	expect(&lines->lines[2], 7, 2, 3, 3);
	expect(&lines->lines[3], 7, 0, 1, 11);
	expect(&lines->lines[4], 8, 1, 1, 1);
	expect(&lines->lines[5], 8, 0, 0, 1);
	assert_true(lines->lines[0].weights[STACK_BYTES_HELD] == 100);
	assert_true(lines->lines[3].weights[STACK_BYTES_COPIED] == 30);
	assert_int_equal(lines->lines[0].calls_n, 2);
	assert_string_equal(lines->lines[0].calls[0].call, "cudaMalloc");
	assert_true(lines->lines[0].calls[0].count == 5);
	assert_string_equal(lines->lines[0].calls[1].call, "cudaMemcpy");
	assert_int_equal(lines->lines[5].calls_n, 0);
}

static void test_nothing(_unused_ void **state)
{
	const struct stack_page empty = { 0 };
	const struct table_options options = { 0 };
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(table_lines(&empty, &options, 0, &out), 0);
	assert_string_equal(out.data, "No call of CUDA was made by Python.\n");
	strbuf_reset(&out);
	assert_int_equal(json_lines(&empty, &out), 0);
	assert_string_equal(out.data, "[]");
	strbuf_done(&out);
}

static void test_texts(_unused_ void **state)
{
	struct stack_page estimated = page;
	const struct table_options options = { 0 };
	struct strbuf out;

	estimated.estimated = true;
	strbuf_init(&out, 0);
	assert_int_equal(table_lines(&estimated, &options, 2, &out), 0);
	assert_non_null(strstr(out.data, "a.py:12"));
	assert_non_null(strstr(out.data, "~7"));
	assert_non_null(strstr(out.data, "[no Python code running]"));
	assert_null(strstr(out.data, "main"));
	assert_non_null(strstr(out.data, "4 more lines; --json has all\n"));
	strbuf_reset(&out);
	assert_int_equal(json_lines(&page, &out), 0);
	assert_non_null(
		strstr(out.data, "\"file\":\"a.py\",\"line\":12,\"function\":\"f\",\"calls_itself\":7"));
	assert_non_null(strstr(out.data, "\"file\":\"a.py\",\"line\":null"));
	assert_non_null(
		strstr(out.data, "\"file\":null,\"line\":null,\"function\":\"[no Python code running]\""));
	assert_null(strstr(out.data, "gpu_time"));
	strbuf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
