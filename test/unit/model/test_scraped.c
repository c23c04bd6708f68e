// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

#define SECOND NSEC_PER_SEC

static struct scraped_row row(const char *uuid, const char *gi, const char *pod)
{
	struct scraped_row r = { .real_ns = 5, .boot_ns = 7 };

	snprintf(r.uuid, sizeof(r.uuid), "%s", uuid);
	snprintf(r.gi, sizeof(r.gi), "%s", gi);
	snprintf(r.pod, sizeof(r.pod), "%s", pod);
	return r;
}

static void give(struct scraped_row *r, unsigned metric, double value)
{
	r->v[metric] = value;
	r->present |= 1u << metric;
}

static const struct scraped *publish(struct lab *lab, const struct scraped_row *rows, uint32_t n)
{
	assert_int_equal(model_set_scraped(lab->model, rows, n, 20 * SECOND), 0);
	lab_wait(lab, SECOND);
	return lab->s->scraped;
}

static void none_unless_something_is_scraped(void **state)
{
	struct lab *lab = *state;
	uint32_t n = 9;

	lab_wait(lab, SECOND);
	assert_null(lab->s->scraped);
	assert_null(scraped_find(NULL, "GPU-1", "", &n));
	assert_int_equal(n, 0);
	/* An exporter without GPUs is another thing than none. */
	assert_non_null(publish(lab, &(struct scraped_row){ .target = 0 }, 0));
	assert_int_equal(lab->s->scraped->n, 0);
	assert_null(publish(lab, NULL, 0));
}

static void rows_are_found_by_device(void **state)
{
	struct lab *lab = *state;
	struct scraped_row rows[] = { row("GPU-2", "", "b"), row("GPU-1", "7", "a"), row("GPU-1", "", ""),
				      row("GPU-2", "", "a"), row("GPU-1", "11", "c") };
	const struct scraped *table = publish(lab, rows, ARRAY_SIZE(rows));
	const struct scraped_row *found;
	uint32_t n;

	assert_int_equal(table->n, 5);
	found = scraped_find(table, "GPU-2", "", &n);
	assert_int_equal(n, 2);
	assert_string_equal(found[0].pod, "a");
	assert_string_equal(found[1].pod, "b");
	found = scraped_find(table, "GPU-1", "7", &n);
	assert_int_equal(n, 1);
	assert_string_equal(found->pod, "a");
	assert_null(scraped_find(table, "GPU-1", "8", &n));
	assert_null(scraped_find(table, "GPU-3", "", &n));
	assert_int_equal(n, 0);
}

/* As the scraper of the contract: the first gives node and model, later ones overwrite values. */
static void of_one_key_the_first_names_and_the_last_counts(void **state)
{
	struct lab *lab = *state;
	struct scraped_row rows[] = { row("GPU-1", "", "p"), row("GPU-1", "", "p"), row("GPU-1", "", "q") };
	const struct scraped *table;

	strcpy(rows[0].node, "n1");
	strcpy(rows[1].node, "n2");
	strcpy(rows[0].model, "first");
	give(&rows[0], 0, 1);
	give(&rows[0], 27, 2);
	give(&rows[1], 0, 3);
	rows[1].boot_ns = 9;
	table = publish(lab, rows, ARRAY_SIZE(rows));
	assert_int_equal(table->n, 2);
	assert_string_equal(table->rows[0].node, "n1");
	assert_string_equal(table->rows[0].model, "first");
	assert_near(table->rows[0].v[0], 3, 0);
	assert_near(table->rows[0].v[27], 2, 0);
	assert_int_equal(table->rows[0].present, 1u << 0 | 1u << 27);
	assert_int_equal(table->rows[0].boot_ns, 9);
	assert_int_equal(table->rows[1].present, 0);
}

static void hostile_rows_are_made_harmless(void **state)
{
	struct lab *lab = *state;
	struct scraped_row r = row("GPU-1", "", "");
	const struct scraped *table;

	memset(r.pod, 0xff, sizeof(r.pod));
	memset(r.container, 'c', sizeof(r.container));
	give(&r, 1, NAN);
	give(&r, 2, INFINITY);
	give(&r, 3, -1);
	r.present |= 0xf0000000;
	table = publish(lab, &r, 1);
	assert_int_equal(strlen(table->rows[0].container), sizeof(r.container) - 1);
	assert_int_equal(table->rows[0].pod[0], '?');
	assert_int_equal(table->rows[0].present, 1u << 3);
	assert_false(scraped_has(&table->rows[0], 1));
	assert_near(table->rows[0].v[1], 0, 0);
}

static void what_does_not_fit_is_counted(void **state)
{
	struct lab *lab = *state;
	struct scraped_row *rows = calloc(SCRAPED_ROWS_MAX + 3, sizeof(*rows));
	char pod[32];

	assert_non_null(rows);
	for (unsigned i = 0; i < SCRAPED_ROWS_MAX + 3; i++) {
		snprintf(pod, sizeof(pod), "p%u", i);
		rows[i] = row("GPU-1", "", pod);
	}
	assert_int_equal(publish(lab, rows, SCRAPED_ROWS_MAX + 3)->n, SCRAPED_ROWS_MAX);
	assert_int_equal(lab->s->sources[SOURCE_DCGM].dropped, 3);
	free(rows);
}

static void rows_age_by_their_page(void **state)
{
	struct lab *lab = *state;
	struct scraped_row rows[] = { row("GPU-1", "", ""), row("GPU-2", "", "") };
	const struct scraped *table;

	rows[0].boot_ns = 100 * SECOND;
	rows[1].boot_ns = 110 * SECOND;
	table = publish(lab, rows, 2);
	assert_false(scraped_is_stale(table, &table->rows[0], 120 * SECOND));
	assert_true(scraped_is_stale(table, &table->rows[0], 121 * SECOND));
	assert_false(scraped_is_stale(table, &table->rows[1], 121 * SECOND));
}

static void snapshots_keep_theirs(void **state)
{
	struct lab *lab = *state;
	struct scraped_row r = row("GPU-1", "", "old");
	struct snapshot *before;

	publish(lab, &r, 1);
	before = snapshot_ref(lab->s);
	strcpy(r.pod, "new");
	assert_string_equal(publish(lab, &r, 1)->rows[0].pod, "new");
	assert_string_equal(before->scraped->rows[0].pod, "old");
	snapshot_unref(before);
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, lab_setup, lab_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(none_unless_something_is_scraped),
		CASE(rows_are_found_by_device),
		CASE(of_one_key_the_first_names_and_the_last_counts),
		CASE(hostile_rows_are_made_harmless),
		CASE(what_does_not_fit_is_counted),
		CASE(rows_age_by_their_page),
		CASE(snapshots_keep_theirs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
