// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "exposition/line.h"

static struct line line;

static enum scrape_line begin(const char *text)
{
	return line_begin(text, strlen(text), &line);
}

static enum scrape_line sample(const char *text)
{
	enum scrape_line why = begin(text);

	return why == SCRAPE_LINE_TAKEN && line.kind == LINE_SAMPLE ? line_sample(&line, NULL) : why;
}

static void kinds_of_lines(void **state)
{
	static const struct {
		const char *text;
		enum line_kind kind;
		const char *name, *rest;
	} rows[] = {
		{ "", LINE_NOTHING, "", "" },
		{ " \t", LINE_NOTHING, "", "" },
		{ "#", LINE_NOTHING, "", "" },
		{ "# a comment", LINE_NOTHING, "", "" },
		{ "# HELP", LINE_NOTHING, "", "" },
		{ "# HELP x", LINE_NOTHING, "x", "" },
		{ "# HELP x ", LINE_HELP, "x", "" },
		{ "\t#HELP x  a  b ", LINE_HELP, "x", "a  b " },
		{ "# TYPE a:b gauge", LINE_TYPE, "a:b", "gauge" },
		{ "x 1", LINE_SAMPLE, "x", "1" },
		{ "  x{} 1", LINE_SAMPLE, "x", "{} 1" },
		{ ":x_9 1 2", LINE_SAMPLE, ":x_9", "1 2" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(begin(rows[i].text), SCRAPE_LINE_TAKEN);
		assert_int_equal(line.kind, rows[i].kind);
		if (rows[i].kind == LINE_NOTHING)
			continue;
		assert_true(cursor_equals(&line.name, rows[i].name));
		assert_true(cursor_equals(&line.rest, rows[i].rest));
	}
	assert_int_equal(begin("# HELP 9x y"), SCRAPE_LINE_NAME);
	assert_int_equal(begin("9x 1"), SCRAPE_LINE_NAME);
	assert_int_equal(begin("{a=\"b\"} 1"), SCRAPE_LINE_NAME);
}

static void samples_that_are_of_the_format(void **state)
{
	static const char *const texts[] = {
		"x 1",
		"x\t1",
		"x{}1",
		"x {} 1",
		"x{a=\"b\"} 1",
		"x { a = \"b\" , c=\"d\" , } 1 -5",
		"x{a=\"b\",} NaN 1700000000000",
		"x{a=\"\\\\ \\\" \\n\"} 1 +9223372036854775807",
		"x{a=\"}\"} 1 -9223372036854775808",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (sample(texts[i]) != SCRAPE_LINE_TAKEN)
			fail_msg("%s is refused", texts[i]);
}

static void samples_that_are_not(void **state)
{
	static const struct {
		const char *text;
		enum scrape_line why;
	} rows[] = {
		{ "x", SCRAPE_LINE_VALUE },
		{ "x ", SCRAPE_LINE_VALUE },
		{ "x{}", SCRAPE_LINE_VALUE },
		{ "x 1_0", SCRAPE_LINE_VALUE },
		{ "x$ 1", SCRAPE_LINE_VALUE },
		{ "x 1 ", SCRAPE_LINE_TIMESTAMP },
		{ "x 1 2 ", SCRAPE_LINE_TIMESTAMP },
		{ "x 1 2 3", SCRAPE_LINE_TIMESTAMP },
		{ "x 1 1.5", SCRAPE_LINE_TIMESTAMP },
		{ "x 1 9223372036854775808", SCRAPE_LINE_TIMESTAMP },
		{ "x{", SCRAPE_LINE_LABELS },
		{ "x{,} 1", SCRAPE_LINE_LABELS },
		{ "x{a} 1", SCRAPE_LINE_LABELS },
		{ "x{a=b} 1", SCRAPE_LINE_LABELS },
		{ "x{a=\"b} 1", SCRAPE_LINE_LABELS },
		{ "x{a=\"b\" c=\"d\"} 1", SCRAPE_LINE_LABELS },
		{ "x{a=\"b\"", SCRAPE_LINE_LABELS },
		{ "x{a:b=\"c\"} 1", SCRAPE_LINE_LABELS },
		{ "x{9=\"c\"} 1", SCRAPE_LINE_LABELS },
		{ "x{__name__=\"y\"} 1", SCRAPE_LINE_LABELS },
		{ "x{hpc_job=\"a\"b\"} 1", SCRAPE_LINE_LABELS },
		{ "x{a=\"\\t\"} 1", SCRAPE_LINE_ESCAPE },
		{ "x{a=\"b\\", SCRAPE_LINE_ESCAPE },
		{ "x{a=\"\xff\"} 1", SCRAPE_LINE_UTF8 },
		{ "x{a=\"1\",a=\"1\"} 1", SCRAPE_LINE_DUPLICATE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (sample(rows[i].text) != rows[i].why)
			fail_msg("%s is %d", rows[i].text, (int)sample(rows[i].text));
}

static void labels_of_summaries_are_numbers(void **state)
{
	(void)state;
	assert_int_equal(begin("x{quantile=\"0.5\",quantile=\"1\"} 1"), SCRAPE_LINE_TAKEN);
	assert_int_equal(line_sample(&line, "quantile"), SCRAPE_LINE_TAKEN);
	assert_int_equal(begin("x{le=\"many\"} 1"), SCRAPE_LINE_TAKEN);
	assert_int_equal(line_sample(&line, "le"), SCRAPE_LINE_LABELS);
	assert_int_equal(sample("x{le=\"many\"} 1"), SCRAPE_LINE_TAKEN);
}

static void values_lose_their_escapes(void **state)
{
	char text[16];

	(void)state;
	assert_int_equal(sample("x{a=\"q\\\"b\\\\n\\n\",b=\"\\\\n\",c=\"plain\"} 1"), SCRAPE_LINE_TAKEN);
	assert_int_equal(line.labels_n, 3);
	assert_int_equal(line_unescape(&line.labels[0], text, sizeof(text)), 6);
	assert_memory_equal(text, "q\"b\\n\n", 6);
	assert_int_equal(line_unescape(&line.labels[0], text, 5), 6);
	assert_int_equal(line_unescape(&line.labels[2], text, sizeof(text)), 5);
	assert_false(line.labels[2].escaped);
}

static void helps_have_two_escapes(void **state)
{
	(void)state;
	assert_int_equal(begin("# HELP x a \\\\ b \\n"), SCRAPE_LINE_TAKEN);
	assert_int_equal(line_help(&line), SCRAPE_LINE_TAKEN);
	assert_int_equal(begin("# HELP x a \\t"), SCRAPE_LINE_TAKEN);
	assert_int_equal(line_help(&line), SCRAPE_LINE_ESCAPE);
	assert_int_equal(begin("# HELP x a \\"), SCRAPE_LINE_TAKEN);
	assert_int_equal(line_help(&line), SCRAPE_LINE_ESCAPE);
}

static void more_labels_than_fit(void **state)
{
	char text[4096];
	size_t n = (size_t)snprintf(text, sizeof(text), "x{");

	(void)state;
	for (unsigned i = 0; i < LINE_LABELS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "l%u=\"\",", i);
	snprintf(text + n, sizeof(text) - n, "} 1");
	assert_int_equal(sample(text), SCRAPE_LINE_TAKEN);
	snprintf(text + n, sizeof(text) - n, "more=\"\"} 1");
	assert_int_equal(sample(text), SCRAPE_LINE_LABELS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_of_lines),
		cmocka_unit_test(samples_that_are_of_the_format),
		cmocka_unit_test(samples_that_are_not),
		cmocka_unit_test(labels_of_summaries_are_numbers),
		cmocka_unit_test(values_lose_their_escapes),
		cmocka_unit_test(helps_have_two_escapes),
		cmocka_unit_test(more_labels_than_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
