// SPDX-License-Identifier: Apache-2.0
#include "view/page.h"

#include <errno.h>
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
}

void page_family(struct page *page, const struct family *family)
{
	page->family = *family;
	page->suffix = "";
	page->opened = false;
}

void page_suffix(struct page *page, const char *suffix)
{
	page->suffix = suffix;
}

static bool ends_with(const char *s, size_t n, const char *suffix, size_t suffix_n)
{
	return n >= suffix_n && memcmp(s + n - suffix_n, suffix, suffix_n) == 0;
}

/* OpenMetrics names a family without the suffix that its samples have. */
static size_t family_name_length(const struct page *page)
{
	size_t n = strlen(page->family.name);

	if (page->format != EXPOSITION_OPENMETRICS)
		return n;
	if (page->family.type == FAMILY_COUNTER && ends_with(page->family.name, n, "_total", 6))
		return n - 6;
	if (page->family.type == FAMILY_INFO && ends_with(page->family.name, n, "_info", 5))
		return n - 5;
	return n;
}

static void add_line_start(struct page *page, const char *keyword, size_t name_n)
{
	strbuf_adds(page->out, keyword);
	strbuf_adds(page->out, page->family.prefix);
	strbuf_add(page->out, page->family.name, name_n);
	strbuf_addc(page->out, ' ');
}

/* Quotes need escaping in OpenMetrics' HELP only, and must not be escaped in the older format's. */
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
	add_line_start(page, "# HELP ", n);
	add_help(page, family->help);
	add_help(page, family->help_more);
	strbuf_addc(page->out, '\n');
	add_line_start(page, "# TYPE ", n);
	strbuf_adds(page->out, type_names[page->format][family->type]);
	strbuf_addc(page->out, '\n');
	if (page->format == EXPOSITION_OPENMETRICS && family->unit != UNIT_NONE) {
		const char *unit = unit_name(family->unit);
		size_t unit_n = strlen(unit);

		/* A unit that the name does not end in is an error in OpenMetrics. */
		if (n > unit_n && family->name[n - unit_n - 1] == '_' &&
		    ends_with(family->name, n, unit, unit_n)) {
			add_line_start(page, "# UNIT ", n);
			strbuf_adds(page->out, unit);
			strbuf_addc(page->out, '\n');
		}
	}
}

void page_labels(struct page *page, const char *labels, const char *tail, const char *index_name,
		 unsigned index)
{
	struct strbuf *out = page->out;
	char separator = '{';

	if (!page->opened)
		open_family(page);
	strbuf_adds(out, page->family.prefix);
	strbuf_adds(out, page->family.name);
	strbuf_adds(out, page->suffix);
	if (*labels) {
		strbuf_addc(out, separator);
		strbuf_adds(out, labels);
		separator = ',';
	}
	if (*tail) {
		strbuf_addc(out, separator);
		strbuf_adds(out, tail);
		separator = ',';
	}
	if (index_name) {
		strbuf_addc(out, separator);
		strbuf_adds(out, index_name);
		strbuf_adds(out, "=\"");
		strbuf_add_u64(out, index);
		strbuf_addc(out, '"');
		separator = ',';
	}
	strbuf_adds(out, separator == ',' ? "} " : " ");
}

void page_sample(struct page *page, const char *labels, const char *tail, double value)
{
	page_labels(page, labels, tail, NULL, 0);
	number_add(page->out, value);
	strbuf_addc(page->out, '\n');
}

int page_end(struct page *page)
{
	if (page->format == EXPOSITION_OPENMETRICS)
		strbuf_adds(page->out, "# EOF\n");
	if (page->out->failed)
		return page->out->limit > 0 ? -E2BIG : -ENOMEM;
	return 0;
}

static void add_escaped(struct strbuf *out, const char *value)
{
	size_t plain;

	for (; *value; value++) {
		plain = strcspn(value, "\\\"\n");
		strbuf_add(out, value, plain);
		value += plain;
		if (!*value)
			return;
		strbuf_addc(out, '\\');
		strbuf_addc(out, *value == '\n' ? 'n' : *value);
	}
}

static void add_label_start(struct strbuf *out, const char *name)
{
	if (out->len > 0)
		strbuf_addc(out, ',');
	strbuf_adds(out, name);
	strbuf_adds(out, "=\"");
}

void label_add(struct strbuf *out, const char *name, const char *value)
{
	char clean[LABEL_VALUE_MAX];

	add_label_start(out, name);
	if (utf8_valid(value, strlen(value))) {
		add_escaped(out, value);
	} else {
		size_t n = strnlen(value, sizeof(clean) - 1);

		memcpy(clean, value, n);
		clean[n] = '\0';
		utf8_sanitize(clean);
		add_escaped(out, clean);
	}
	strbuf_addc(out, '"');
}

void label_add_u64(struct strbuf *out, const char *name, uint64_t value)
{
	add_label_start(out, name);
	strbuf_add_u64(out, value);
	strbuf_addc(out, '"');
}
