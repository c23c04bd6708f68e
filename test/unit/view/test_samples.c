// SPDX-License-Identifier: Apache-2.0
/* A page of samples has all of /metrics: the text is made of it again, and is the same. */
#include "test.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "fixture.h"
#include "samples/read.h"
#include "view/number.h"
#include "view/view.h"

enum { LABELS_MAX = 64 };

static void *page;
static struct samples samples;
static struct strbuf out;

static void take(const struct snapshot *snapshot, const char *families)
{
	_cleanup_close_ int fd = -1;
	uint32_t bytes;

	free(page);
	fd = view_samples(snapshot, families, &bytes);
	assert_true(fd >= 0);
	page = malloc(bytes);
	assert_non_null(page);
	assert_int_equal(pread(fd, page, bytes, 0), bytes);
	assert_int_equal(samples_read(page, bytes, &samples), 0);
}

static void add_escaped(const char *text, const char *which)
{
	for (; *text; text++) {
		if (strchr(which, *text))
			strbuf_addc(&out, '\\');
		strbuf_addc(&out, *text == '\n' ? 'n' : *text);
	}
}

static void add_line(const struct page_family *family, const struct page_series *series, const char *suffix,
		     const char *le, double value)
{
	struct page_label labels[LABELS_MAX];
	uint32_t n = samples_labels(&samples, series, labels, LABELS_MAX);

	strbuf_addf(&out, "%s%s", samples_text(&samples, family->name), suffix);
	for (uint32_t i = 0; i < n; i++) {
		strbuf_addf(&out, "%c%s=\"", i ? ',' : '{', samples_text(&samples, labels[i].name));
		add_escaped(samples_text(&samples, labels[i].value), "\\\"\n");
		strbuf_addc(&out, '"');
	}
	if (le)
		strbuf_addf(&out, "%cle=\"%s\"", n ? ',' : '{', le);
	strbuf_adds(&out, n || le ? "} " : " ");
	number_add(&out, value);
	strbuf_addc(&out, '\n');
}

static void add_series(const struct page_family *family, const struct page_series *series)
{
	const struct page_histogram *h;

	if (!series->histogram) {
		add_line(family, series, "", NULL, series->value);
		return;
	}
	h = &samples.histograms[series->histogram - 1];
	for (uint32_t i = 0; i < h->n; i++)
		add_line(family, series, "_bucket",
			 samples_text(&samples, samples.bounds[h->bounds + i].text),
			 (double)samples.counts[h->counts + i]);
	add_line(family, series, "_bucket", "+Inf", (double)samples_count(&samples, h));
	add_line(family, series, "_sum", NULL, series->value);
	add_line(family, series, "_count", NULL, (double)samples_count(&samples, h));
}

static void make_text_again(void)
{
	static const char *const types[PAGE_TYPES] = { "gauge", "counter", "gauge", "untyped", "histogram" };

	strbuf_reset(&out);
	for (uint32_t i = 0; i < samples.n[PAGE_FAMILIES]; i++) {
		const struct page_family *family = &samples.families[i];
		const char *name = samples_text(&samples, family->name);

		if (family->n == 0)
			continue;
		strbuf_addf(&out, "# HELP %s ", name);
		add_escaped(samples_text(&samples, family->help), "\\\n");
		strbuf_addf(&out, "\n# TYPE %s %s\n", name, types[family->type]);
		for (uint32_t k = 0; k < family->n; k++)
			add_series(family, &samples.series[family->first + k]);
	}
}

static void compare(const struct snapshot *snapshot, const char *families)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	strbuf_init(&out, 0);
	assert_int_equal(view_prometheus(snapshot, EXPOSITION_PROMETHEUS, families, &text), 0);
	take(snapshot, families);
	make_text_again();
	assert_string_equal(out.data, text.data);
	assert_int_equal(out.len, text.len);
	assert_int_equal(samples.real_ns, snapshot->real_ns);
	strbuf_done(&text);
	strbuf_done(&out);
}

static void the_page_is_all_of_metrics(void **state)
{
	struct snapshot *(*const fixtures[])(void) = { fixture_small, fixture_full, fixture_empty,
						       fixture_traced, fixture_untraced };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++) {
		struct snapshot *s = fixtures[i]();

		compare(s, NULL);
		compare(s, "gpusonde_gpu_*");
		fixture_free(s);
	}
	free(page);
	page = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_page_is_all_of_metrics) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
