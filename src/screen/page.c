// SPDX-License-Identifier: Apache-2.0
#include "screen/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { LINE_BYTES = 4096, ROWS_AT_ONCE = 256 };

/* A line of the page without its codes. What is longer is cut. */
struct line {
	size_t n;
	char text[LINE_BYTES];
	uint8_t roles[LINE_BYTES];
};

/* A row of the canvas: a part of a line. */
struct page_row {
	const char *line; /* where that begins in the page */
	size_t from, to; /* bytes, without codes */
	bool titles, warning;
};

struct page_rows {
	int n, cap;
	struct page_row *list;
};

static const char *take_code(const char *at, const char *end, enum role *role)
{
	static const struct {
		const char *code;
		enum role role;
	} codes[] = {
		{ "\033[0m", ROLE_TEXT },   { "\033[1m", ROLE_HEAD },  { "\033[2m", ROLE_DIM },
		{ "\033[32m", ROLE_GOOD },  { "\033[33m", ROLE_WARN }, { "\033[31m", ROLE_BAD },
		{ "\033[1;31m", ROLE_BAD },
	};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		size_t n = strlen(codes[i].code);

		if ((size_t)(end - at) >= n && memcmp(at, codes[i].code, n) == 0) {
			*role = codes[i].role;
			return at + n;
		}
	}
	return NULL;
}

/* Returns where the next one begins. */
static const char *read_line(const char *at, const char *end, struct line *line)
{
	enum role role = ROLE_TEXT;

	line->n = 0;
	while (at < end && *at != '\n') {
		const char *after = *at == '\033' ? take_code(at, end, &role) : NULL;

		if (after) {
			at = after;
			continue;
		}
		if (line->n + 1 < LINE_BYTES) {
			line->text[line->n] = *at;
			line->roles[line->n++] = (uint8_t)role;
		}
		at++;
	}
	line->text[line->n] = '\0';
	return at < end ? at + 1 : end;
}

/* How much of the text from @from on fits: to the last blank, if all does not. */
static size_t fitting(const struct line *line, size_t from, int columns)
{
	size_t at = from, blank = 0;
	int used = 0;

	while (at < line->n) {
		unsigned length = MAX(utf8_length(line->text + at), 1u);
		char one[8] = "";

		memcpy(one, line->text + at, MIN((size_t)length, sizeof(one) - 1));
		used += canvas_width(one);
		if (used > columns)
			return blank > from ? blank : MAX(at, from + 1);
		at += length;
		if (line->text[at] == ' ')
			blank = at;
	}
	return line->n;
}

static int add_page_row(struct page_rows *rows, const struct page_row *row)
{
	if (rows->n == rows->cap) {
		struct page_row *longer =
			realloc(rows->list, (size_t)(rows->cap + ROWS_AT_ONCE) * sizeof(*longer));

		if (!longer)
			return -ENOMEM;
		rows->list = longer;
		rows->cap += ROWS_AT_ONCE;
	}
	rows->list[rows->n++] = *row;
	return 0;
}

static int lay_out(const struct strbuf *page, int columns, struct line *line, struct page_rows *rows)
{
	const char *at = page->data, *end = page->data + page->len;
	int r = 0;

	while (r == 0 && at < end) {
		const char *next = read_line(at, end, line);
		enum role role = line->n > 0 ? (enum role)line->roles[0] : ROLE_TEXT;
		struct page_row row = { .line = at,
					.titles = role == ROLE_HEAD,
					.warning = role == ROLE_WARN };

		do {
			row.to = fitting(line, row.from, columns);
			r = add_page_row(rows, &row);
			row.from = row.to + strspn(line->text + row.to, " ");
			row.titles = false;
		} while (r == 0 && row.from < line->n);
		at = next;
	}
	return r;
}

/* What has the same role at a time. */
static void draw_row(struct canvas *canvas, int to_row, const struct strbuf *page, const struct page_row *row,
		     struct line *line)
{
	int column = 0;
	size_t at = row->from;

	read_line(row->line, page->data + page->len, line);
	while (at < row->to) {
		char part[LINE_BYTES];
		size_t n = 1;

		while (at + n < row->to && line->roles[at + n] == line->roles[at])
			n++;
		snprintf(part, sizeof(part), "%.*s", (int)n, line->text + at);
		column += canvas_text(canvas, to_row, column, canvas->columns - column,
				      (enum role)line->roles[at], part);
		at += n;
	}
}

/* What stays in the first rows of a page that is scrolled: a warning that it begins with, and titles. */
static int find_kept(const struct page_rows *rows, int scroll, int kept[static 2])
{
	bool warned = rows->n > 0 && rows->list[0].warning;
	int n = 0, titles = -1;

	if (scroll <= 0)
		return 0;
	if (warned)
		kept[n++] = 0;
	for (int i = 0; i <= scroll + n && i < rows->n; i++)
		if (rows->list[i].titles)
			titles = i;
	if (titles >= 0)
		kept[n++] = titles;
	return n;
}

int page_draw(struct canvas *canvas, const struct strbuf *page, int rows, int scroll)
{
	_cleanup_free_ struct line *line = malloc(sizeof(*line));
	struct page_rows laid_out = { 0 };
	int r = line ? lay_out(page, canvas->columns, line, &laid_out) : -ENOMEM;
	int kept[2] = { 0 }, kept_n = find_kept(&laid_out, scroll, kept);

	for (int i = 0; r == 0 && i < rows && scroll + i < laid_out.n; i++) {
		int from = i < kept_n ? kept[i] : scroll + i;

		draw_row(canvas, i, page, &laid_out.list[from], line);
	}
	free(laid_out.list);
	return r < 0 ? r : laid_out.n;
}
