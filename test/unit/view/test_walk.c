// SPDX-License-Identifier: Apache-2.0
/* The walk, by a sink that is no format of ours: what a sender of OTLP or remote write would see. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "client.h"
#include "fixture.h"
#include "view/metrics/family_names.h"
#include "view/number.h"
#include "view/view.h"
#include "view/walk/walk.h"

enum { SAMPLES_MAX = 20000, NAME = 120 };

struct sample {
	char name[NAME];
	double value;
};

struct collector {
	struct family family;
	unsigned refused; /* subjects whose families are not wanted */
	unsigned families, of_subjects;
	uint32_t series;
	struct sample *samples; /* as Prometheus counts them: a histogram is many */
	uint32_t samples_n;
	const struct label_set *sets[SAMPLES_MAX]; /* by id */
	bool raw_quote, raw_newline; /* labels that need escaping were seen, as they are */
	uint32_t estimated, created;
};

/* What "gpusonde lint" judges queries by is what the pages have. */
static void expect_known(const struct family *family, const char *suffix, const struct label *label)
{
	struct strbuf name, labels;
	const char *label_name = label ? label->name : "";

	strbuf_init(&name, 0);
	strbuf_init(&labels, 0);
	strbuf_addf(&name, "%s%s%s", family->prefix, family->name, suffix);
	if (!series_labels(name.data, name.len, &labels) ||
	    (label && !label_is_listed(labels.data, label_name, strlen(label_name))))
		fail_msg("%s: not known, or its label \"%s\" is not, but: %s", name.data, label_name,
			 labels.data);
	strbuf_done(&labels);
	strbuf_done(&name);
}

static bool collect_family(void *userdata, const struct family *family)
{
	struct collector *c = userdata;
	bool durations = family->type == FAMILY_HISTOGRAM;

	expect_known(family, durations ? "_count" : "", NULL);
	expect_known(family, durations ? "_bucket" : "", durations ? &(struct label){ "le", "1" } : NULL);
	c->family = *family;
	c->families++;
	c->of_subjects |= family->subject;
	for (unsigned i = 0; i < family->rows_n; i++)
		assert_int_equal(family->rows[i].unit, family->unit);
	return !(c->refused & family->subject);
}

static void add_sample(struct collector *c, const char *suffix, double value)
{
	struct sample *sample = &c->samples[c->samples_n++];

	assert_true(c->samples_n < SAMPLES_MAX);
	snprintf(sample->name, NAME, "%s%s%s", c->family.prefix, c->family.name, suffix);
	sample->value = value;
}

static void collect_label(struct collector *c, const struct label *label)
{
	expect_known(&c->family, "", label);
	assert_non_null(label->name);
	assert_non_null(label->value);
	if (STRV_EQ(label->name, "comm") && STRV_EQ(label->value, "train \"a\\b\"\n"))
		c->raw_quote = c->raw_newline = true;
	assert_null(strstr(label->value, "\\\""));
	assert_null(strstr(label->value, "\\n"));
}

static void collect_labels(struct collector *c, const struct series *series)
{
	for (unsigned k = 0; k < SERIES_SETS; k++) {
		const struct label_set *set = series->sets[k];

		for (uint32_t i = 0; set && i < set->n; i++)
			collect_label(c, &set->labels[i]);
		if (!set || set->id == 0)
			continue;
		assert_true(set->id < SAMPLES_MAX);
		if (!c->sets[set->id])
			c->sets[set->id] = set;
		assert_ptr_equal(c->sets[set->id], set);
	}
}

static void collect_series(void *userdata, const struct series *series)
{
	struct collector *c = userdata;
	const struct histogram *h = series->histogram;

	assert_false(c->refused & c->family.subject);
	assert_true(presence_is(series->presence));
	assert_int_equal(h != NULL, c->family.type == FAMILY_HISTOGRAM);
	if (series->row)
		assert_true(series->row >= c->family.rows && series->row < c->family.rows + c->family.rows_n);
	collect_labels(c, series);
	c->series++;
	c->estimated += (series->presence & PRESENCE_ESTIMATED) != 0;
	c->created += series->created_real_ns > 0;
	if (!h) {
		add_sample(c, "", series->value);
		return;
	}
	for (unsigned i = 0; i < h->n; i++)
		add_sample(c, "_bucket", (double)h->within[i]);
	add_sample(c, "_bucket", (double)h->count);
	add_sample(c, "_sum", h->sum);
	add_sample(c, "_count", (double)h->count);
}

static struct collector *collect(const struct snapshot *s, unsigned subjects, unsigned refused)
{
	struct collector *c = calloc(1, sizeof(*c));
	const struct walk_sink sink = { collect_family, collect_series, c };

	assert_non_null(c);
	c->samples = calloc(SAMPLES_MAX, sizeof(*c->samples));
	assert_non_null(c->samples);
	c->refused = refused;
	assert_int_equal(walk_snapshot(s, subjects, &sink), 0);
	return c;
}

static void collector_free(struct collector *c)
{
	free(c->samples);
	free(c);
}

/* Name and value of each sample of the page are those of the walk, one after the other. */
static void compare(const struct collector *c, char *page)
{
	char *rest = NULL;
	uint32_t n = 0;

	for (char *line = strtok_r(page, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const struct sample *sample = &c->samples[n];
		size_t name = strcspn(line, "{ ");
		double value = strtod(strrchr(line, ' ') + 1, NULL);

		if (*line == '#')
			continue;
		assert_true(n++ < c->samples_n);
		if (strlen(sample->name) != name || strncmp(sample->name, line, name) != 0)
			fail_msg("%s in the walk, in the page: %s", sample->name, line);
		if (number_rounded(sample->value) != value)
			fail_msg("%.17g in the walk, in the page: %s", sample->value, line);
	}
	assert_int_equal(n, c->samples_n);
}

static void same_numbers_as_the_page(void **state)
{
	struct snapshot *all[] = { fixture_small(), fixture_full(), fixture_traced(), fixture_untraced(),
				   fixture_empty() };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		_cleanup_free_ char *page = client_page(all[i], EXPOSITION_PROMETHEUS);
		struct collector *c = collect(all[i], WALK_ALL, 0);

		assert_true(c->series > 3);
		compare(c, page);
		collector_free(c);
		fixture_free(all[i]);
	}
}

static void labels_are_raw(void **state)
{
	struct snapshot *s = fixture_traced();
	struct collector *c = collect(s, WALK_ALL, 0);

	(void)state;
	assert_true(c->raw_quote && c->raw_newline);
	assert_true(c->estimated > 0);
	assert_true(c->created > 0);
	collector_free(c);
	fixture_free(s);
}

static void subjects_are_chosen(void **state)
{
	struct snapshot *s = fixture_traced();
	uint32_t series = 0, all;
	struct collector *c;

	(void)state;
	for (unsigned subject = 1; subject < WALK_ALL; subject <<= 1) {
		c = collect(s, subject, 0);
		assert_int_equal(c->of_subjects, subject);
		series += c->series;
		collector_free(c);
		c = collect(s, subject, subject);
		assert_true(c->families > 0);
		assert_int_equal(c->series, 0);
		collector_free(c);
	}
	c = collect(s, WALK_ALL, 0);
	all = c->series;
	collector_free(c);
	assert_int_equal(series, all);
	fixture_free(s);
}

struct find {
	const char *family, *label, *value;
	double found;
};

static bool find_family(void *userdata, const struct family *family)
{
	const struct find *find = userdata;

	return STRV_EQ(family->name, find->family);
}

static void find_series(void *userdata, const struct series *series)
{
	struct find *find = userdata;
	const char *value = series_label(series, find->label);

	assert_null(series_label(series, "no such label"));
	if (value && STRV_EQ(value, find->value))
		find->found = series->value;
}

static void series_are_found_by_label(void **state)
{
	struct find find = { "process_gpu_memory_bytes", "pid", "2001", -1 };
	const struct walk_sink sink = { find_family, find_series, &find };
	struct snapshot *s = fixture_small();

	(void)state;
	assert_int_equal(walk_snapshot(s, WALK_PROCESSES, &sink), 0);
	assert_float_equal(find.found, 2147483648.0, 0);
	fixture_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_numbers_as_the_page),
		cmocka_unit_test(labels_are_raw),
		cmocka_unit_test(subjects_are_chosen),
		cmocka_unit_test(series_are_found_by_label),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
