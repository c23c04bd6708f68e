// SPDX-License-Identifier: Apache-2.0
#include "cmd/recording/document.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

/* Colours of both schemes, and of lines in both. What is wide is moved within itself. */
static const char style[] =
	":root{color-scheme:light dark;--ink:#222;--soft:#555;--rule:#ddd;--page:#fff}"
	"@media(prefers-color-scheme:dark)"
	"{:root{--ink:#ddd;--soft:#aaa;--rule:#444;--page:#181818}}"
	"body{font:14px/1.5 sans-serif;margin:2em auto;max-width:72em;padding:0 1em;color:var(--ink);"
	"background:var(--page);overflow-wrap:anywhere}"
	".t{overflow-x:auto;margin:.5em 0 1.5em}"
	"table{border-collapse:collapse;width:max-content;overflow-wrap:normal}"
	"th,td{padding:.2em .8em;border-bottom:1px solid var(--rule);text-align:right;vertical-align:top;"
	"max-width:32em}"
	"th.l,td.l{text-align:left}th{color:var(--soft);white-space:nowrap}td:not(.l){white-space:nowrap}"
	"figure{margin:1em 0}figcaption{display:flex;flex-wrap:wrap;gap:0 1em}"
	"svg{display:block;width:100%;height:7em;margin:.3em 0 1em;border:1px solid var(--rule);"
	"border-width:0 0 1px 1px}"
	"polyline{fill:none;stroke-width:1.5;vector-effect:non-scaling-stroke}"
	"@media print{.t{overflow:visible}}"
	"h2{margin-top:1.6em}";

/* ---- texts ---- */

void document_escape(struct strbuf *out, const char *text)
{
	while (*text) {
		const char *start = text;
		uint32_t c = utf8_next(&text);

		if (c == '<')
			strbuf_adds(out, "&lt;");
		else if (c == '>')
			strbuf_adds(out, "&gt;");
		else if (c == '&')
			strbuf_adds(out, "&amp;");
		else if (c == '"')
			strbuf_adds(out, "&quot;");
		else if (c == '\'')
			strbuf_adds(out, "&#39;");
		else if (c < 0x20 || c == 0x7f || character_is_unsafe(c))
			strbuf_addc(out, '?');
		else
			strbuf_add(out, start, (size_t)(text - start));
	}
}

static void add_plain_text(struct strbuf *out, const char *text, const char *escaped)
{
	while (*text) {
		const char *start = text;
		uint32_t c = utf8_next(&text);

		if (c < 0x80 && strchr(escaped, (int)c))
			strbuf_addc(out, '\\');
		if (c < 0x20 || c == 0x7f || character_is_unsafe(c))
			strbuf_addc(out, '?');
		else
			strbuf_add(out, start, (size_t)(text - start));
	}
}

static void add_escaped(struct document *d, const char *text)
{
	if (d->format == DOCUMENT_HTML)
		document_escape(d->out, text);
	else
		add_plain_text(d->out, text, d->format == DOCUMENT_MARKDOWN ? "\\`*_{}[]<>#|!" : "");
}

static unsigned width_of(const char *text)
{
	unsigned n = 0;

	for (; *text; n++)
		utf8_next(&text);
	return n;
}

/* ---- parts ---- */

void document_begin(struct document *d, enum document_format format, const char *title, struct strbuf *out)
{
	*d = (struct document){ .format = format, .out = out };
	strbuf_init(&d->cells, 0);
	switch (format) {
	case DOCUMENT_HTML:
		strbuf_adds(out, "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
				 "<meta name=\"viewport\" content=\"width=device-width\">"
				 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
				 "style-src 'unsafe-inline'\"><title>");
		document_escape(out, title);
		strbuf_addf(out, "</title><style>%s</style>\n<h1>", style);
		document_escape(out, title);
		strbuf_adds(out, "</h1>\n");
		break;
	case DOCUMENT_MARKDOWN:
		strbuf_adds(out, "# ");
		add_escaped(d, title);
		strbuf_adds(out, "\n\n");
		break;
	default:
		add_escaped(d, title);
		strbuf_adds(out, "\n\n");
	}
}

void document_heading(struct document *d, const char *text)
{
	static const char *const marks[DOCUMENT_FORMATS][2] = {
		[DOCUMENT_TEXT] = { "", "\n" },
		[DOCUMENT_MARKDOWN] = { "## ", "\n\n" },
		[DOCUMENT_HTML] = { "<h2>", "</h2>\n" },
	};

	strbuf_adds(d->out, marks[d->format][0]);
	add_escaped(d, text);
	strbuf_adds(d->out, marks[d->format][1]);
}

void document_say(struct document *d, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	utf8_sanitize(text);
	if (d->format == DOCUMENT_HTML)
		strbuf_adds(d->out, "<p>");
	add_escaped(d, text);
	strbuf_adds(d->out, d->format == DOCUMENT_HTML ? "</p>\n" : "\n\n");
}

void document_raw(struct document *d, const char *html)
{
	if (d->format == DOCUMENT_HTML)
		strbuf_adds(d->out, html);
}

void document_end(struct document *d)
{
	if (d->format == DOCUMENT_HTML)
		strbuf_adds(d->out, "</html>\n");
	strbuf_done(&d->cells);
}

/* ---- tables ---- */

void document_table(struct document *d, unsigned columns, const char *const *headings)
{
	d->columns = MIN(columns, (unsigned)DOCUMENT_COLUMNS);
	d->rows = 0;
	memcpy(d->headings, headings, d->columns * sizeof(*headings));
	strbuf_reset(&d->cells);
}

void document_cell(struct document *d, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	utf8_sanitize(text);
	strbuf_add(&d->cells, text, strlen(text) + 1);
	d->rows++; /* cells, until the table ends */
}

static bool is_left(const struct document *d, unsigned column)
{
	return d->headings[column][0] == '<';
}

static const char *heading_of(const struct document *d, unsigned column)
{
	return d->headings[column] + is_left(d, column);
}

static void pad(struct strbuf *out, unsigned n)
{
	while (n-- > 0)
		strbuf_addc(out, ' ');
}

static void write_text_cell(struct document *d, unsigned column, const char *text, unsigned width)
{
	unsigned used = MIN(width_of(text), width);

	if (column > 0)
		strbuf_adds(d->out, "  ");
	if (!is_left(d, column))
		pad(d->out, width - used);
	add_escaped(d, text);
	if (is_left(d, column) && column + 1 < d->columns)
		pad(d->out, width - used);
}

static void write_text_table(struct document *d)
{
	unsigned widths[DOCUMENT_COLUMNS];
	const char *at = d->cells.data;

	for (unsigned c = 0; c < d->columns; c++)
		widths[c] = width_of(heading_of(d, c));
	for (unsigned i = 0; i < d->rows; i++, at += strlen(at) + 1)
		widths[i % d->columns] = MAX(widths[i % d->columns], width_of(at));
	for (unsigned c = 0; c < d->columns; c++)
		write_text_cell(d, c, heading_of(d, c), widths[c]);
	strbuf_addc(d->out, '\n');
	at = d->cells.data;
	for (unsigned i = 0; i < d->rows; i++, at += strlen(at) + 1) {
		write_text_cell(d, i % d->columns, at, widths[i % d->columns]);
		if ((i + 1) % d->columns == 0)
			strbuf_addc(d->out, '\n');
	}
	strbuf_addc(d->out, '\n');
}

static void write_markdown_table(struct document *d)
{
	const char *at = d->cells.data;

	for (unsigned c = 0; c < d->columns; c++)
		strbuf_addf(d->out, "| %s ", heading_of(d, c));
	strbuf_adds(d->out, "|\n");
	for (unsigned c = 0; c < d->columns; c++)
		strbuf_adds(d->out, is_left(d, c) ? "| :-- " : "| --: ");
	strbuf_adds(d->out, "|\n");
	for (unsigned i = 0; i < d->rows; i++, at += strlen(at) + 1) {
		strbuf_adds(d->out, "| ");
		add_escaped(d, at);
		strbuf_adds(d->out, (i + 1) % d->columns == 0 ? " |\n" : " ");
	}
	strbuf_addc(d->out, '\n');
}

static void write_html_table(struct document *d)
{
	const char *at = d->cells.data;

	/* Who has no mouse moves it by keys. */
	strbuf_adds(d->out, "<div class=\"t\" tabindex=\"0\"><table><tr>");
	for (unsigned c = 0; c < d->columns; c++)
		strbuf_addf(d->out, "<th%s>%s", is_left(d, c) ? " class=\"l\"" : "", heading_of(d, c));
	for (unsigned i = 0; i < d->rows; i++, at += strlen(at) + 1) {
		if (i % d->columns == 0)
			strbuf_adds(d->out, "\n<tr>");
		strbuf_adds(d->out, is_left(d, i % d->columns) ? "<td class=\"l\">" : "<td>");
		document_escape(d->out, at);
	}
	strbuf_adds(d->out, "</table></div>\n");
}

void document_table_end(struct document *d, const char *nothing)
{
	if (d->rows == 0)
		document_say(d, "%s", nothing);
	else if (d->format == DOCUMENT_HTML)
		write_html_table(d);
	else if (d->format == DOCUMENT_MARKDOWN)
		write_markdown_table(d);
	else
		write_text_table(d);
}
