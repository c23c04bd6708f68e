// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/macro.h"
#include "view/stacks/stacks.h"

static const struct stack_place places[] = {
	{ .name = "main", .file = "a;b.py", .line = 3, .first_line = 1 },
	{ .name = "</script>", .file = "x&\"y'.py" },
	{ .name = "[remark]", .file = "" },
};
static const uint32_t first[] = { 1, 0 }, second[] = { 2 };
static const struct stack_row rows[] = {
	{ first, 2, 7, "python3 7", "cudaMalloc", { [STACK_LAUNCHES] = 2, [STACK_BYTES_HELD] = 1e15 } },
	{ second, 1, 7, "python3 7", "cudaLaunchKernel", { [STACK_LAUNCHES] = 1.6 } },
};
static const struct stack_page page = {
	.places = places, .places_n = ARRAY_SIZE(places), .rows = rows, .rows_n = ARRAY_SIZE(rows)
};

static void test_folded(void **state)
{
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 0);
	assert_int_equal(view_stacks_folded(&page, STACK_LAUNCHES, 0, SIZE_MAX, &out), 2);
	assert_string_equal(out.data, "python3 7;main (a:b.py:3);</script> (x&\"y'.py);cudaMalloc 2\n"
				      "python3 7;[remark];cudaLaunchKernel 2\n");
	strbuf_reset(&out);
	assert_int_equal(view_stacks_folded(&page, STACK_BYTES_HELD, 0, SIZE_MAX, &out), 2);
	assert_string_equal(out.data,
			    "python3 7;main (a:b.py:3);</script> (x&\"y'.py);cudaMalloc 1000000000000000\n");
	strbuf_reset(&out);
	assert_int_equal(view_stacks_folded(&page, STACK_SYNC_WAIT, 0, SIZE_MAX, &out), 2);
	assert_int_equal(out.len, 0);
	strbuf_done(&out);
}

static void test_remarks(void **state)
{
	struct stack_page more = page;
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 0);
	strbuf_adds(&out, "");
	view_stacks_remarks(&more, &out);
	assert_int_equal(out.len, 0);
	more.estimated = true;
	more.incomplete = "3 events were lost";
	view_stacks_remarks(&more, &out);
	assert_string_equal(out.data, "# estimated: from a sample of the calls\n"
				      "# incomplete: 3 events were lost.\n");
	strbuf_done(&out);
}

/* Text that repeats its names is made in pieces. */
static void test_pieces(void **state)
{
	enum { ROWS = 100000, PIECE = 1 << 20 };
	struct stack_row *many = calloc(ROWS, sizeof(*many));
	struct stack_page more = page;
	struct strbuf out;
	size_t row = 0, bytes = 0, pieces = 0;

	(void)state;
	assert_non_null(many);
	for (size_t i = 0; i < ROWS; i++)
		many[i] = rows[0];
	more.rows = many;
	more.rows_n = ROWS;
	strbuf_init(&out, 0);
	for (; row < ROWS; pieces++) {
		row = view_stacks_folded(&more, STACK_LAUNCHES, row, PIECE, &out);
		assert_true(out.len < PIECE + 4096);
		bytes += out.len;
		strbuf_reset(&out);
	}
	assert_int_equal(bytes,
			 ROWS * strlen("python3 7;main (a:b.py:3);</script> (x&\"y'.py);cudaMalloc 2\n"));
	assert_true(pieces > 5);
	strbuf_done(&out);
	free(many);
}

/* The program's author chooses the names. */
static void test_html(void **state)
{
	struct stack_page more = page;
	struct strbuf out;
	const char *data;

	(void)state;
	more.incomplete = "<b>";
	more.estimated = true;
	strbuf_init(&out, 0);
	assert_int_equal(view_stacks_html(&more, &out), 0);
	data = strstr(out.data, "id=\"data\">\n");
	assert_non_null(data);
	assert_null(strstr(data, "<b>"));
	assert_null(strstr(data, "x&"));
	assert_non_null(strstr(data, "\"estimated\":true,\"incomplete\":\"\\u003cb\\u003e\""));
	/* PID, process, call, weights, places; each text is there once. */
	assert_non_null(strstr(data, "[7,0,1,2,0,0,1000000000000000,0,0,0,1],\n[7,0,2,2,0,0,0,0,0,2]],\n"));
	assert_non_null(strstr(data, "\"places\":[[3,4,3],[5,6,0],[7,8,0]],\n\"texts\":[\n\"python3 7\",\n"));
	assert_non_null(strstr(data, "\"\\u003c/script\\u003e\",\n\"x\\u0026\\u0022y\\u0027.py\",\n"));
	assert_null(strstr(strstr(data, "python3 7") + 1, "python3 7"));
	strbuf_done(&out);
}

static bool has(const uint8_t *data, size_t n, const char *text)
{
	return memmem(data, n, text, strlen(text));
}

static void test_pprof(void **state)
{
	struct stack_page more = page;
	uint8_t raw[4096];
	z_stream z = { 0 };
	struct strbuf out;
	size_t n;

	(void)state;
	more.incomplete = "3 events were lost";
	strbuf_init(&out, 0);
	assert_int_equal(view_stacks_pprof(&more, &out), 0);
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_in = (Bytef *)out.data;
	z.avail_in = (uInt)out.len;
	z.next_out = raw;
	z.avail_out = sizeof(raw);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	n = sizeof(raw) - z.avail_out;
	inflateEnd(&z);
	assert_true(has(raw, n, "bytes_held"));
	assert_true(has(raw, n, "a;b.py"));
	assert_true(has(raw, n, "3 events were lost"));
	assert_false(has(raw, n, "gpu_time")); /* not known */
	strbuf_done(&out);
}

static void test_weights(void **state)
{
	enum stack_weight weight;

	(void)state;
	assert_true(stack_weight_parse("sync_wait", &weight));
	assert_int_equal(weight, STACK_SYNC_WAIT);
	assert_string_equal(stack_weight_infos[weight].name, "sync_wait");
	assert_false(stack_weight_parse("sync", &weight));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded), cmocka_unit_test(test_remarks), cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_html),   cmocka_unit_test(test_pprof),   cmocka_unit_test(test_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
