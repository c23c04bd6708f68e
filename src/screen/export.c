// SPDX-License-Identifier: Apache-2.0
#include "screen/export.h"

#include <errno.h>

#include "base/text.h"

enum { CELL_WIDTH = 9, CELL_HEIGHT = 20, MARGIN = 12, FONT_SIZE = 15 };
#define BACKGROUND "#11151c"

static const char *const colours[ROLES] = {
	[ROLE_TEXT] = "#d5dbe3", [ROLE_HEAD] = "#ffffff", [ROLE_GOOD] = "#5fd38d",   [ROLE_WARN] = "#f2c14e",
	[ROLE_BAD] = "#ff6b6b",  [ROLE_DIM] = "#66707f",  [ROLE_ACCENT] = "#6cb6ff", [ROLE_TAB] = "#9aa5b5",
};

static void add_utf8(struct strbuf *out, uint32_t c)
{
	char text[UTF8_TEXT];

	canvas_utf8(c, text);
	strbuf_adds(out, text);
}

static void add_xml(struct strbuf *out, uint32_t c)
{
	switch (c) {
	case '&':
		strbuf_adds(out, "&amp;");
		return;
	case '<':
		strbuf_adds(out, "&lt;");
		return;
	case '>':
		strbuf_adds(out, "&gt;");
		return;
	case '"':
		strbuf_adds(out, "&quot;");
		return;
	default:
		add_utf8(out, c);
	}
}

static void write_cell_text(struct strbuf *out, const struct cell *cell, bool xml)
{
	for (int i = 0; i <= CELL_MARKS && cell->c[i]; i++) {
		if (xml)
			add_xml(out, (uint32_t)cell->c[i]);
		else
			add_utf8(out, (uint32_t)cell->c[i]);
	}
}

/* The columns up to the last one that is not empty. */
static int used_columns(const struct canvas *canvas, int row)
{
	int n = canvas->columns;

	while (n > 0 && canvas_cell(canvas, row, n - 1)->c[0] == L' ')
		n--;
	return n;
}

int canvas_as_text(const struct canvas *canvas, struct strbuf *out)
{
	for (int row = 0; row < canvas->rows; row++) {
		int n = used_columns(canvas, row);

		for (int i = 0; i < n; i++)
			write_cell_text(out, canvas_cell(canvas, row, i), false);
		strbuf_addc(out, '\n');
	}
	return out->failed ? -ENOMEM : 0;
}

/* From @first on, the columns that look alike, so that a line is few elements. */
static int alike(const struct canvas *canvas, int row, int first)
{
	const struct cell *cell = canvas_cell(canvas, row, first);
	int n = 1;

	while (first + n < canvas->columns) {
		const struct cell *next = canvas_cell(canvas, row, first + n);

		if (next->role != cell->role || next->reversed != cell->reversed)
			break;
		n++;
	}
	return n;
}

/* A run of cells; its length is given, so that the viewer's font does not move the columns. */
static void svg_run(const struct canvas *canvas, int row, int first, int n, struct strbuf *out)
{
	const struct cell *cell = canvas_cell(canvas, row, first);
	int x = MARGIN + first * CELL_WIDTH, y = MARGIN + row * CELL_HEIGHT;
	bool any = false;

	for (int i = 0; i < n; i++)
		any |= canvas_cell(canvas, row, first + i)->c[0] != L' ';
	if (cell->reversed)
		strbuf_addf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", x, y,
			    n * CELL_WIDTH, CELL_HEIGHT, colours[cell->role]);
	if (!any)
		return;
	strbuf_addf(out, "<text x=\"%d\" y=\"%d\" textLength=\"%d\" fill=\"%s\"%s>", x,
		    y + CELL_HEIGHT - CELL_HEIGHT / 4, n * CELL_WIDTH,
		    cell->reversed ? BACKGROUND : colours[cell->role],
		    cell->role == ROLE_HEAD || cell->role == ROLE_BAD ? " font-weight=\"bold\"" : "");
	for (int i = 0; i < n; i++)
		write_cell_text(out, canvas_cell(canvas, row, first + i), true);
	strbuf_adds(out, "</text>\n");
}

int canvas_as_svg(const struct canvas *canvas, const char *title, struct strbuf *out)
{
	int width = 2 * MARGIN + canvas->columns * CELL_WIDTH;
	int height = 2 * MARGIN + canvas->rows * CELL_HEIGHT;

	strbuf_addf(out,
		    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		    "viewBox=\"0 0 %d %d\" role=\"img\" font-family=\"DejaVu Sans Mono,monospace\" "
		    "font-size=\"%d\" xml:space=\"preserve\">\n<title>",
		    width, height, width, height, FONT_SIZE);
	while (*title)
		add_xml(out, utf8_next(&title));
	strbuf_addf(out, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"" BACKGROUND "\"/>\n", width,
		    height);
	for (int row = 0; row < canvas->rows; row++)
		for (int i = 0; i < canvas->columns;) {
			int n = alike(canvas, row, i);

			svg_run(canvas, row, i, n, out);
			i += n;
		}
	strbuf_adds(out, "</svg>\n");
	return out->failed ? -ENOMEM : 0;
}
