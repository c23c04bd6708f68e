// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "exposition/exposition.h"

#define GPU_TEMP "DCGM_FI_DEV_GPU_TEMP"
#define POWER "DCGM_FI_DEV_POWER_USAGE"

struct got {
	unsigned n;
	double sum, newest;
	const char *name;
};

static const char *const families[] = { GPU_TEMP, POWER };

static const void *find(const char *name, size_t length, _unused_ void *userdata)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (length == strlen(families[i]) && memcmp(name, families[i], length) == 0)
			return families[i];
	return NULL;
}

static void take(const void *family, const struct line *line, void *userdata)
{
	struct got *got = userdata;

	got->n++;
	got->sum += line->value;
	got->newest = line->value;
	got->name = family;
}

/* In pieces of this many bytes. 0 or an error. */
static int read_in_pieces(struct exposition *e, const char *page, size_t n, size_t piece)
{
	int r = 0;

	for (size_t at = 0; r == 0 && at < n; at += piece)
		r = exposition_feed(e, page + at, MIN(piece, n - at));
	return r == 0 ? exposition_end(e) : r;
}

/* The result is the same whatever the pieces are. */
static int read_page(const char *page, bool strict, struct got *got, uint64_t dropped[SCRAPE_LINES])
{
	size_t n = strlen(page);
	int first = 0;

	for (size_t piece = 1; piece <= n + 1; piece++) {
		struct got now = { 0 };
		struct exposition e;
		int r;

		exposition_init(&e, strict, find, take, &now);
		r = read_in_pieces(&e, page, n, piece);
		if (piece == 1) {
			first = r;
			*got = now;
			memcpy(dropped, e.dropped, sizeof(e.dropped));
		}
		assert_int_equal(r, first);
		assert_int_equal(now.n, got->n);
		assert_true(now.sum == got->sum);
		assert_memory_equal(dropped, e.dropped, sizeof(e.dropped));
		exposition_done(&e);
	}
	return first;
}

static const char mixed[] = "# HELP " GPU_TEMP " Temperature.\n"
			    "# TYPE " GPU_TEMP " gauge\n" GPU_TEMP "{gpu=\"0\"} 40\n"
			    "other{broken 7\n" POWER "{gpu=\"0\"} 100.5\n"
			    "\n  # a comment\n" GPU_TEMP "{gpu=\"1\"} 41 1700000000000\n" GPU_TEMP
			    "{gpu=\"1\"\"} 99\n" GPU_TEMP " x\n"
			    "# TYPE " GPU_TEMP " counter\n" GPU_TEMP "{gpu=\"2\"} 42";

static void lenient_a_bad_line_is_lost_alone(void **state)
{
	uint64_t dropped[SCRAPE_LINES];
	struct got got;

	(void)state;
	assert_int_equal(read_page(mixed, false, &got, dropped), 0);
	assert_int_equal(got.n, 4);
	assert_true(got.sum == 40 + 100.5 + 41 + 42);
	assert_int_equal(dropped[SCRAPE_LINE_LABELS], 1);
	assert_int_equal(dropped[SCRAPE_LINE_VALUE], 1);
	assert_int_equal(dropped[SCRAPE_LINE_COMMENT], 1);
}

static void strict_one_line_loses_the_page(void **state)
{
	static const struct {
		const char *page;
		enum scrape_line why; /* SCRAPE_LINE_TAKEN: it is read */
	} rows[] = {
		{ "", SCRAPE_LINE_TAKEN },
		{ "\n\n \t\n", SCRAPE_LINE_TAKEN },
		{ "x 1\n \t", SCRAPE_LINE_TAKEN },
		{ "x 1\ny 1\nx 2\n", SCRAPE_LINE_TAKEN },
		{ "x 1", SCRAPE_LINE_END },
		{ "# a comment", SCRAPE_LINE_END },
		{ "# HELP x a\n# HELP x b\n", SCRAPE_LINE_COMMENT },
		{ "# TYPE x gauge\n# TYPE x gauge\n", SCRAPE_LINE_COMMENT },
		{ "x 1\n# TYPE x gauge\n", SCRAPE_LINE_COMMENT },
		{ "x 1\n# HELP x a\n", SCRAPE_LINE_TAKEN },
		{ "# TYPE x GaUgE\n", SCRAPE_LINE_TAKEN },
		{ "# TYPE x gauge_histogram\n", SCRAPE_LINE_TAKEN },
		{ "# TYPE x info\n", SCRAPE_LINE_COMMENT },
		{ "# TYPE x gauge \n", SCRAPE_LINE_COMMENT },
		{ "# TYPE x\n", SCRAPE_LINE_TAKEN },
		{ "# HELP x a\\b\n", SCRAPE_LINE_ESCAPE },
		{ "x{a=\"1\",a=\"2\"} 1\n", SCRAPE_LINE_DUPLICATE },
		{ "x{a=\"\xc3\"} 1\n", SCRAPE_LINE_UTF8 },
		{ "x 1 1.5\n", SCRAPE_LINE_TIMESTAMP },
		{ "x 1\r\n", SCRAPE_LINE_VALUE },
		/* Samples of a summary are no family of their own. */
		{ "# TYPE x summary\nx_sum 1\nx_count 2\n# TYPE x_sum gauge\n", SCRAPE_LINE_COMMENT },
		{ "# TYPE x summary\nx{quantile=\"a\"} 1\n", SCRAPE_LINE_LABELS },
		{ "# TYPE x histogram\nx_bucket{le=\"+Inf\"} 1\nx_sum 1\n", SCRAPE_LINE_TAKEN },
		{ "# TYPE x histogram\nx_bucket{le=\"\"} 1\n", SCRAPE_LINE_LABELS },
		{ "# TYPE x gauge\nx_sum 1\n# TYPE x_sum gauge\n", SCRAPE_LINE_COMMENT },
	};
	uint64_t dropped[SCRAPE_LINES];
	struct got got;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r = read_page(rows[i].page, true, &got, dropped);

		if (r != (rows[i].why == SCRAPE_LINE_TAKEN ? 0 : -EBADMSG) ||
		    (r < 0 && dropped[rows[i].why] != 1))
			fail_msg("%s: %d", rows[i].page, r);
	}
	assert_int_equal(read_page(mixed, true, &got, dropped), -EBADMSG);
}

static void strict_only_gauges_and_counters_are_numbers(void **state)
{
	uint64_t dropped[SCRAPE_LINES];
	struct got got;

	(void)state;
	assert_int_equal(read_page(GPU_TEMP " 40\n", true, &got, dropped), 0);
	assert_int_equal(got.n, 1);
	assert_true(got.newest == 0);
	assert_int_equal(read_page(GPU_TEMP " 40\n", false, &got, dropped), 0);
	assert_true(got.newest == 40);
	assert_int_equal(read_page("# TYPE " GPU_TEMP " counter\n" GPU_TEMP " 40\n", true, &got, dropped), 0);
	assert_true(got.newest == 40);
	assert_int_equal(read_page("# TYPE " GPU_TEMP " histogram\n" GPU_TEMP " 40\n", false, &got, dropped),
			 0);
	assert_int_equal(got.n, 0);
}

/* A line that does not fit is left out, and the next one is read again. */
static void lines_that_are_too_long(void **state)
{
	const size_t length = EXPOSITION_LINE_MAX + 1;
	char *page = malloc(length + 64);
	struct got got;
	struct exposition e;

	(void)state;
	assert_non_null(page);
	for (unsigned strict = 0; strict < 2; strict++)
		for (size_t piece = 1000; piece <= 2 * length; piece *= 3) {
			memset(page, '#', length);
			strcpy(page + length, "\n" GPU_TEMP " 5\n");
			got = (struct got){ 0 };
			exposition_init(&e, strict, find, take, &got);
			assert_int_equal(read_in_pieces(&e, page, strlen(page), piece),
					 strict ? -EBADMSG : 0);
			assert_int_equal(e.dropped[SCRAPE_LINE_TOO_LONG], 1);
			assert_int_equal(got.n, !strict);
			exposition_done(&e);
		}
	free(page);
}

static void strict_remembers_so_many_families(void **state)
{
	char line[64];
	struct got got = { 0 };
	struct exposition e;
	int r = 0;

	(void)state;
	exposition_init(&e, true, find, take, &got);
	for (unsigned i = 0; r == 0 && i < EXPOSITION_FAMILIES_MAX + 2; i++)
		r = exposition_feed(&e, line, (size_t)snprintf(line, sizeof(line), "family_%u 1\n", i));
	assert_int_equal(r, -EBADMSG);
	assert_int_equal(e.seen_n, EXPOSITION_FAMILIES_MAX);
	exposition_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lenient_a_bad_line_is_lost_alone),
		cmocka_unit_test(strict_one_line_loses_the_page),
		cmocka_unit_test(strict_only_gauges_and_counters_are_numbers),
		cmocka_unit_test(lines_that_are_too_long),
		cmocka_unit_test(strict_remembers_so_many_families),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
