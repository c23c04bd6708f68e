// SPDX-License-Identifier: Apache-2.0
#include "view/page.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "view/number.h"

static const char *const type_names[EXPOSITIONS][FAMILY_TYPES] = {
	[EXPOSITION_PROMETHEUS] = { "gauge", "counter", "gauge", "untyped", "histogram" },
	[EXPOSITION_OPENMETRICS] = { "gauge", "counter", "info", "unknown", "histogram" },
};

void page_init(struct page *page, enum exposition format, struct strbuf *out)
{
	*page = (struct page){ .out = out, .format = format, .suffix = "" };
	strbuf_init(&page->name, 0);
	set_texts_init(&page->texts);
}

void page_done(struct page *page)
{
	strbuf_done(&page->name);
	set_texts_done(&page->texts);
}

void page_family(struct page *page, const struct family *family)
{
	page->family = *family;
	page->suffix = "";
	page->opened = false;
}

static bool ends_with(const char *s, size_t n, const char *suffix, size_t suffix_n)
{
	return n >= suffix_n && memcmp(s + n - suffix_n, suffix, suffix_n) == 0;
}

/* Without the suffix of its samples. */
static size_t bare_length(const struct family *family)
{
	size_t n = strlen(family->name);

	if (family->type == FAMILY_COUNTER && ends_with(family->name, n, "_total", 6))
		return n - 6;
	if (family->type == FAMILY_INFO && ends_with(family->name, n, "_info", 5))
		return n - 5;
	return n;
}

static size_t family_name_length(const struct page *page)
{
	return page->format == EXPOSITION_OPENMETRICS ? bare_length(&page->family) :
							strlen(page->family.name);
}

bool page_names_unit(const struct family *family)
{
	const char *unit = unit_name(family->unit);
	size_t n = bare_length(family), unit_n = strlen(unit);

	return family->unit != UNIT_NONE && n > unit_n && family->name[n - unit_n - 1] == '_' &&
	       ends_with(family->name, n, unit, unit_n);
}

static void add_line_start(struct page *page, const char *keyword, size_t name_n)
{
	strbuf_adds(page->out, keyword);
	strbuf_adds(page->out, page->family.prefix);
	strbuf_add(page->out, page->family.name, name_n);
	strbuf_addc(page->out, ' ');
}

/* Quotes in HELP must be escaped in OpenMetrics, and must not be in the older format. */
static void add_help(struct page *page, const char *help)
{
	for (; help && *help; help++) {
		if (*help == '\n') {
			strbuf_adds(page->out, "\\n");
			continue;
		}
		if (*help == '\\' || (*help == '"' && page->format == EXPOSITION_OPENMETRICS))
			strbuf_addc(page->out, '\\');
		strbuf_addc(page->out, *help);
	}
}

static void open_family(struct page *page)
{
	const struct family *family = &page->family;
	size_t n = family_name_length(page);

	page->opened = true;
	strbuf_reset(&page->name);
	strbuf_adds(&page->name, family->prefix);
	strbuf_adds(&page->name, family->name);
	add_line_start(page, "# HELP ", n);
	add_help(page, family->help);
	add_help(page, family->help_more);
	strbuf_addc(page->out, '\n');
	add_line_start(page, "# TYPE ", n);
	strbuf_adds(page->out, type_names[page->format][family->type]);
	strbuf_addc(page->out, '\n');
	if (page->format == EXPOSITION_OPENMETRICS && page_names_unit(family)) {
		add_line_start(page, "# UNIT ", n);
		strbuf_adds(page->out, unit_name(family->unit));
		strbuf_addc(page->out, '\n');
	}
}

void page_add_spelt(struct strbuf *out, uint32_t c)
{
	strbuf_addf(out, c < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)c);
}

/*
 * The format has no escape for control characters, which would reach the terminal of the page's reader. So
 * they are spelt: a label's value has the four characters \x1b for one, or the six \u202e.
 */
static void add_spelt(struct strbuf *out, uint32_t c)
{
	/* Of the label's value, in which the page escapes the backslash. */
	strbuf_addc(out, '\\');
	page_add_spelt(out, c);
}

static size_t plain_bytes(const char *value)
{
	size_t n = 0;

	while (value[n] >= ' ' && value[n] < 0x7f && value[n] != '\\' && value[n] != '"')
		n++;
	return n;
}

static void add_escaped(struct strbuf *out, const char *value)
{
	for (;;) {
		size_t plain = plain_bytes(value);
		const char *start = value + plain;
		uint32_t c;

		strbuf_add(out, value, plain);
		value = start;
		if (!*value)
			return;
		c = utf8_next(&value);
		if (c == '\n')
			strbuf_adds(out, "\\n");
		else if (character_is_unsafe(c))
			add_spelt(out, c);
		else if (c == '\\' || c == '"')
			strbuf_addf(out, "\\%c", (char)c);
		else
			strbuf_add(out, start, (size_t)(value - start));
	}
}

const char *page_valid_value(const char *value, char room[static LABEL_VALUE_MAX])
{
	size_t n = strlen(value);

	if (utf8_valid(value, n))
		return value;
	n = MIN(n, (size_t)LABEL_VALUE_MAX - 1);
	memcpy(room, value, n);
	room[n] = '\0';
	utf8_sanitize(room);
	return room;
}

const char *page_clean_value(const char *value, struct strbuf *clean)
{
	char room[LABEL_VALUE_MAX];

	if (text_is_printable(value))
		return value;
	value = page_valid_value(value, room);
	strbuf_reset(clean);
	while (*value) {
		const char *start = value;
		uint32_t c = utf8_next(&value);

		if (c != '\n' && character_is_unsafe(c))
			page_add_spelt(clean, c);
		else
			strbuf_add(clean, start, (size_t)(value - start));
	}
	return clean->data;
}

static void add_label(struct strbuf *out, const struct label *label)
{
	char room[LABEL_VALUE_MAX];

	strbuf_adds(out, label->name);
	strbuf_add(out, "=\"", 2);
	add_escaped(out, page_valid_value(label->value, room));
	strbuf_addc(out, '"');
}

static void add_set(struct strbuf *out, const struct label_set *set, _unused_ void *userdata)
{
	for (uint32_t i = 0; i < set->n; i++) {
		if (i > 0)
			strbuf_addc(out, ',');
		add_label(out, &set->labels[i]);
	}
}

/* @more: an additional last label, or NULL. */
static void add_sample_start(struct page *page, const struct label_set *const *sets, unsigned n,
			     const struct label *more)
{
	struct strbuf *out = page->out;
	char separator = '{';

	if (!page->opened)
		open_family(page);
	strbuf_add(out, page->name.data, page->name.len);
	if (*page->suffix)
		strbuf_adds(out, page->suffix);
	for (unsigned i = 0; i < n; i++) {
		if (!sets[i] || sets[i]->n == 0)
			continue;
		strbuf_addc(out, separator);
		separator = ',';
		set_texts_add(&page->texts, sets[i], add_set, NULL, out);
	}
	if (more) {
		strbuf_addc(out, separator);
		separator = ',';
		add_label(out, more);
	}
	if (separator == ',')
		strbuf_add(out, "} ", 2);
	else
		strbuf_addc(out, ' ');
}

void page_labels(struct page *page, const struct label_set *const *sets, unsigned n)
{
	add_sample_start(page, sets, n, NULL);
}

static void add_value(struct page *page, double value)
{
	number_add(page->out, value);
	strbuf_addc(page->out, '\n');
}

static void add_histogram(struct page *page, const struct series *series)
{
	const struct histogram *h = series->histogram;
	struct strbuf bound;

	strbuf_init(&bound, 0);
	page->suffix = "_bucket";
	for (unsigned i = 0; i <= h->n; i++) {
		strbuf_reset(&bound);
		number_add_bound(&bound, i < h->n ? h->bounds[i] : INFINITY);
		add_sample_start(page, series->sets, SERIES_SETS, &(struct label){ "le", bound.data });
		add_value(page, (double)(i < h->n ? h->within[i] : h->count));
	}
	page->suffix = "_sum";
	add_sample_start(page, series->sets, SERIES_SETS, NULL);
	add_value(page, h->sum);
	page->suffix = "_count";
	add_sample_start(page, series->sets, SERIES_SETS, NULL);
	add_value(page, (double)h->count);
	if (bound.failed)
		page->texts.text.failed = true;
	strbuf_done(&bound);
}

void page_series(struct page *page, const struct series *series)
{
	if (series->histogram) {
		add_histogram(page, series);
		return;
	}
	add_sample_start(page, series->sets, SERIES_SETS, NULL);
	add_value(page, series->value);
}

int page_end(struct page *page)
{
	if (page->format == EXPOSITION_OPENMETRICS)
		strbuf_adds(page->out, "# EOF\n");
	if (page->name.failed || page->texts.text.failed)
		return -ENOMEM;
	if (page->out->failed)
		return page->out->limit > 0 ? -E2BIG : -ENOMEM;
	return 0;
}
