// SPDX-License-Identifier: Apache-2.0
#include "view/table/table.h"

#include <limits.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum {
	GAP = 2, /* columns between two cells */
	FLEXIBLE_MIN = 8, /* minimum width of a flexible column, unless it has its own */
	CONTINUED = 4, /* columns by which further lines of a text are indented that is not indented itself */
	COLUMNS_MAX = 40, /* a topology matrix of READING_TOPOLOGY_MAX GPUs, and more */
};

#define NO_VALUE "-"

static const char *const colour_codes[COLOURS] = {
	[COLOUR_NONE] = "",         [COLOUR_HEAD] = "\033[1m",   [COLOUR_GOOD] = "\033[32m",
	[COLOUR_WARN] = "\033[33m", [COLOUR_BAD] = "\033[1;31m", [COLOUR_DIM] = "\033[2m",
};
#define COLOUR_END "\033[0m"

void text_clean(struct strbuf *out, const char *text)
{
	size_t n = strlen(text);

	if (!utf8_valid(text, n)) {
		char *copy = strdup(text);

		if (!copy) {
			out->failed = true;
			return;
		}
		utf8_sanitize(copy);
		text_clean(out, copy);
		free(copy);
		return;
	}
	while (*text) {
		const char *start = text;

		if (character_is_unsafe(utf8_next(&text)))
			strbuf_addc(out, '?');
		else
			strbuf_add(out, start, (size_t)(text - start));
	}
}

unsigned text_width(const char *text)
{
	unsigned width = 0;

	while (*text)
		width += character_width(utf8_next(&text));
	return width;
}

const char *text_shorten(const char *text, char to[static SHORT_TEXT])
{
	static const char cut[] = "...";
	const char *at = to;
	unsigned used = 0;
	size_t room = 0; /* up to where it is cut if it does not fit */

	snprintf(to, SHORT_TEXT, "%s", text);
	utf8_sanitize(to);
	while (*at) {
		used += character_width(utf8_next(&at));
		if (used > SHORT_COLUMNS)
			break;
		if (used <= SHORT_COLUMNS - strlen(cut) && (size_t)(at - to) <= SHORT_TEXT - sizeof(cut))
			room = (size_t)(at - to);
	}
	if (used > SHORT_COLUMNS || strlen(text) > strlen(to))
		strcpy(to + room, cut);
	return to;
}

/*
 * Writes at most @width columns of @text, with '~' as the last one if it is cut. Returns the columns written.
 */
static unsigned add_cut(struct strbuf *out, const char *text, unsigned width)
{
	unsigned used = 0;

	if (text_width(text) <= width) {
		strbuf_adds(out, text);
		return text_width(text);
	}
	while (*text && width > 0) {
		const char *start = text;
		unsigned w = character_width(utf8_next(&text));

		if (used + w > width - 1)
			break;
		strbuf_add(out, start, (size_t)(text - start));
		used += w;
	}
	if (width > 0) {
		strbuf_addc(out, '~');
		used++;
	}
	return used;
}

static void add_spaces(struct strbuf *out, unsigned n)
{
	for (; n > 0; n--)
		strbuf_addc(out, ' ');
}

void table_init(struct table *table, const struct table_column *columns, unsigned n)
{
	*table = (struct table){ .columns = columns, .columns_n = n, .failed = n == 0 || n > COLUMNS_MAX };
	strbuf_init(&table->text, 0);
}

void table_done(struct table *table)
{
	strbuf_done(&table->text);
	free(table->cells);
	*table = (struct table){ 0 };
}

void table_cell(struct table *table, enum table_colour colour, const char *text)
{
	size_t at = table->text.len;

	if (table->cells_n == table->cells_cap) {
		size_t cap = table->cells_cap > 0 ? table->cells_cap * 2 : 64;
		struct table_cell *cells = realloc(table->cells, cap * sizeof(*cells));

		if (!cells) {
			table->failed = true;
			return;
		}
		table->cells = cells;
		table->cells_cap = cap;
	}
	text_clean(&table->text, text && *text ? text : NO_VALUE);
	if (table->text.failed) {
		table->failed = true;
		return;
	}
	table->cells[table->cells_n++] = (struct table_cell){ at, text_width(table->text.data + at), colour };
	strbuf_addc(&table->text, '\0');
}

void table_cellf(struct table *table, enum table_colour colour, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	table_cell(table, colour, text);
}

struct layout {
	unsigned widths[COLUMNS_MAX];
	bool hidden[COLUMNS_MAX];
};

static unsigned least_width(const struct table_column *column)
{
	return column->least > 0 ? column->least : (unsigned)FLEXIBLE_MIN;
}

/* Width of a row; with @least, with all flexible columns at their minimum. */
static unsigned row_width(const struct table *table, const struct layout *layout, bool least)
{
	unsigned total = 0;

	for (unsigned i = 0; i < table->columns_n; i++) {
		if (layout->hidden[i])
			continue;
		total += total > 0 ? GAP : 0;
		total += least && table->columns[i].flexible ?
				 MIN(layout->widths[i], least_width(&table->columns[i])) :
				 layout->widths[i];
	}
	return total;
}

/* The last column that has no value in any row; columns_n if there is none. */
static unsigned last_empty(const struct table *table, const struct layout *layout)
{
	bool used[COLUMNS_MAX] = { true }; /* the first stays, whatever it has */

	for (size_t k = 0; k < table->cells_n; k++)
		if (!STRV_EQ(table->text.data + table->cells[k].at, NO_VALUE))
			used[k % table->columns_n] = true;
	for (unsigned i = table->columns_n; i-- > 0;)
		if (!used[i] && !layout->hidden[i])
			return i;
	return table->columns_n;
}

/* The column to be dropped next, those without values first; columns_n if there is none. */
static unsigned most_dispensable(const struct table *table, const struct layout *layout)
{
	unsigned found = last_empty(table, layout);

	if (found < table->columns_n)
		return found;
	for (unsigned i = 0; i < table->columns_n; i++)
		if (!layout->hidden[i] && table->columns[i].dispensable > 0 &&
		    (found == table->columns_n ||
		     table->columns[i].dispensable > table->columns[found].dispensable))
			found = i;
	return found;
}

static unsigned widest_flexible(const struct table *table, const struct layout *layout)
{
	unsigned found = table->columns_n;

	for (unsigned i = 0; i < table->columns_n; i++)
		if (!layout->hidden[i] && table->columns[i].flexible &&
		    layout->widths[i] > least_width(&table->columns[i]) &&
		    (found == table->columns_n || layout->widths[i] > layout->widths[found]))
			found = i;
	return found;
}

static void arrange(const struct table *table, unsigned limit, struct layout *ret_layout)
{
	struct layout layout = { 0 };
	unsigned i;

	for (i = 0; i < table->columns_n; i++)
		layout.widths[i] = text_width(table->columns[i].title);
	i = 0;
	for (size_t k = 0; k < table->cells_n; k++) {
		layout.widths[i] = MAX(layout.widths[i], table->cells[k].width);
		i = i + 1 < table->columns_n ? i + 1 : 0;
	}
	while (limit > 0 && row_width(table, &layout, true) > limit) {
		i = most_dispensable(table, &layout);
		if (i == table->columns_n)
			break;
		layout.hidden[i] = true;
	}
	while (limit > 0 && row_width(table, &layout, false) > limit) {
		i = widest_flexible(table, &layout);
		if (i == table->columns_n)
			break;
		layout.widths[i]--;
	}
	*ret_layout = layout;
}

struct row_writer {
	const struct table *table;
	const struct table_options *options;
	struct strbuf *out;
	const struct layout *layout;
	unsigned used; /* columns written in this line */
};

/* Padding is written before the next cell, so that lines have no trailing spaces. */
static void write_cell(struct row_writer *w, unsigned column, const char *text, unsigned width,
		       enum table_colour colour, unsigned *pad)
{
	unsigned limit = w->options->width, room = w->layout->widths[column];
	unsigned shown = MIN(width, room), before;

	if (w->layout->hidden[column])
		return;
	before = *pad + (w->table->columns[column].right ? room - shown : 0);
	if (limit > 0 && w->used + before >= limit) {
		*pad = limit;
		return;
	}
	add_spaces(w->out, before);
	w->used += before;
	if (limit > 0)
		room = MIN(room, limit - w->used);
	if (w->options->colour)
		strbuf_adds(w->out, colour_codes[colour]);
	shown = add_cut(w->out, text, room);
	if (w->options->colour && colour != COLOUR_NONE)
		strbuf_adds(w->out, COLOUR_END);
	w->used += shown;
	*pad = GAP + (w->table->columns[column].right ?
			      0 :
			      w->layout->widths[column] - MIN(shown, w->layout->widths[column]));
}

int table_write(const struct table *table, const struct table_options *options, struct strbuf *out)
{
	struct layout layout;
	struct row_writer w = { table, options, out, &layout, 0 };
	unsigned pad = 0, column = 0;

	if (table->failed)
		return -ENOMEM;
	if (options->html)
		return html_table(table, out);
	arrange(table, options->width, &layout);
	for (unsigned i = 0; i < table->columns_n; i++)
		write_cell(&w, i, table->columns[i].title, text_width(table->columns[i].title), COLOUR_HEAD,
			   &pad);
	strbuf_addc(out, '\n');
	for (size_t i = 0; i < table->cells_n; i++) {
		const struct table_cell *cell = &table->cells[i];

		if (column == 0)
			w.used = pad = 0;
		write_cell(&w, column, table->text.data + cell->at, cell->width, cell->colour, &pad);
		if (++column == table->columns_n) {
			strbuf_addc(out, '\n');
			column = 0;
		}
	}
	if (out->failed)
		return out->limit > 0 ? -E2BIG : -ENOMEM;
	return 0;
}

/*
 * The bytes of @text that fit into @width columns, without the blanks at their end; at least one character.
 */
static size_t fitting(const char *text, unsigned width)
{
	const char *at = text, *word = NULL;
	unsigned used = 0;

	while (*at) {
		const char *start = at;

		used += character_width(utf8_next(&at));
		if (*start == ' ' && start > text && start[-1] != ' ')
			word = start;
		if (used > width && start > text)
			return (size_t)((word ? word : start) - text);
	}
	return (size_t)(at - text);
}

/* @width 0: unlimited. Between words; a word that is longer than a line is broken. */
static void add_wrapped(struct strbuf *out, const char *text, unsigned width)
{
	unsigned left = (unsigned)strspn(text, " "), further = left ? left : CONTINUED;

	text += left;
	if (width > 0 && further >= width / 2)
		left = further = 0;
	for (;;) {
		size_t n = width > 0 ? fitting(text, width - left) : strlen(text);

		add_spaces(out, left);
		strbuf_add(out, text, n);
		text += n + strspn(text + n, " ");
		if (!*text)
			return;
		strbuf_addc(out, '\n');
		left = further;
	}
}

static void write_text(const struct table_options *options, struct strbuf *out, enum table_colour colour,
		       const char *text, bool cut)
{
	if (options->colour)
		strbuf_adds(out, colour_codes[colour]);
	if (cut)
		add_cut(out, text, options->width ? options->width : UINT_MAX);
	else
		add_wrapped(out, text, options->width);
	if (options->colour && colour != COLOUR_NONE)
		strbuf_adds(out, COLOUR_END);
	strbuf_addc(out, '\n');
}

static void write_line(const struct table_options *options, struct strbuf *out, enum table_colour colour,
		       const char *text, bool cut)
{
	struct strbuf clean;

	strbuf_init(&clean, 0);
	text_clean(&clean, text);
	if (options->html)
		html_line(out, colour, clean.data ? clean.data : "");
	else
		write_text(options, out, colour, clean.data ? clean.data : "", cut);
	if (clean.failed)
		out->failed = true;
	strbuf_done(&clean);
}

void table_line(const struct table_options *options, struct strbuf *out, enum table_colour colour,
		const char *text)
{
	write_line(options, out, colour, text, false);
}

void table_cut_line(const struct table_options *options, struct strbuf *out, enum table_colour colour,
		    const char *text)
{
	write_line(options, out, colour, text, true);
}
