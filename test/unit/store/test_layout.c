// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "store/layout.h"

static struct fields fields[STORE_TABLES];

static int setup(_unused_ void **state)
{
	return fields_new(fields);
}

static int teardown(_unused_ void **state)
{
	fields_done(fields);
	return 0;
}

static void test_every_field_finds_itself(_unused_ void **state)
{
	struct stored_layout layout;
	struct strbuf text;

	strbuf_init(&text, 0);
	assert_int_equal(layout_write(fields, &text), 0);
	assert_int_equal(layout_read(fields, text.data, text.len, &layout), 0);
	assert_int_equal(layout.n, STORE_TABLES);
	for (uint32_t t = 0; t < layout.n; t++) {
		assert_int_equal(layout.tables[t].table, t);
		assert_int_equal(layout.tables[t].n, fields[t].n);
		for (uint32_t f = 0; f < layout.tables[t].n; f++)
			assert_int_equal(layout.tables[t].field[f], f);
	}
	layout_done(&layout);
	strbuf_done(&text);
}

/* A metric is a column without a word here. */
static void test_metrics_are_columns(_unused_ void **state)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	assert_int_equal(layout_write(fields, &text), 0);
	for (unsigned i = 0; i < GPU_METRICS; i++) {
		char line[160];

		snprintf(line, sizeof(line), " id.v.%s[%u]\n", gpu_metrics[i].id, gpu_metrics[i].count - 1u);
		assert_non_null(strstr(text.data, line));
	}
	strbuf_done(&text);
}

static void test_other_versions(_unused_ void **state)
{
	static const char text[] = "later\n 0 x\ngpus\n 4 later.text\n 2 id.v.POWER[0]\n 4 id.v.POWER[0]\n"
				   " 3 id.v.POWER[0]\n";
	struct stored_layout layout;

	assert_int_equal(layout_read(fields, text, strlen(text), &layout), 0);
	assert_int_equal(layout.tables[0].table, -1);
	assert_int_equal(layout.tables[1].table, STORE_GPUS);
	assert_int_equal(layout.tables[1].field[0], -1);
	assert_int_equal(layout.tables[1].field[1], -1); /* a time is no real number */
	assert_int_equal(layout.tables[1].field[2], -1);
	assert_true(layout.tables[1].field[3] >= 0);
	layout_done(&layout);
}

static void test_hostile(_unused_ void **state)
{
	static const char *const texts[] = { "",           "\n",           " 0 x\n", "gpus\n 9 x\n",
					     "gpus\n x\n", "gpus\ngpus\n", "gpus" };
	struct stored_layout layout;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(layout_read(fields, texts[i], strlen(texts[i]), &layout), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_field_finds_itself),
		cmocka_unit_test(test_metrics_are_columns),
		cmocka_unit_test(test_other_versions),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
