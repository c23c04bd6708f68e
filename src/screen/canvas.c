// SPDX-License-Identifier: Apache-2.0
#include "screen/canvas.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

enum { TEXT_MAX = 1024, CUT_MARK = 0x2026 };

int canvas_resize(struct canvas *canvas, int rows, int columns)
{
	struct cell *cells;

	rows = CLAMP(rows, 1, (int)CANVAS_ROWS_MAX);
	columns = CLAMP(columns, 1, (int)CANVAS_COLUMNS_MAX);
	cells = calloc((size_t)rows * (size_t)columns, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	free(canvas->cells);
	canvas->cells = cells;
	canvas->rows = rows;
	canvas->columns = columns;
	canvas_clear(canvas);
	return 0;
}

void canvas_done(struct canvas *canvas)
{
	free(canvas->cells);
	*canvas = (struct canvas){ 0 };
}

void canvas_clear(struct canvas *canvas)
{
	for (int i = 0; i < canvas->rows * canvas->columns; i++)
		canvas->cells[i] = (struct cell){ .c = { L' ' } };
}

struct cell *canvas_cell(const struct canvas *canvas, int row, int column)
{
	if (row < 0 || row >= canvas->rows || column < 0 || column >= canvas->columns)
		return NULL;
	return &canvas->cells[row * canvas->columns + column];
}

/* A half of a wide character does not stay alone. */
static void clear_cell(struct canvas *canvas, int row, int column)
{
	struct cell *cell = canvas_cell(canvas, row, column), *next;

	if (!cell)
		return;
	next = canvas_cell(canvas, row, column + 1);
	if (cell->c[0] == 0 && column > 0)
		cell[-1].c[0] = L' ';
	if (next && next->c[0] == 0)
		next->c[0] = L' ';
	*cell = (struct cell){ .c = { L' ' } };
}

static void set_cell(struct canvas *canvas, int row, int column, enum role role, wchar_t c, bool wide)
{
	struct cell *cell = canvas_cell(canvas, row, column);

	if (!cell)
		return;
	clear_cell(canvas, row, column);
	if (wide && column + 1 >= canvas->columns) {
		wide = false;
		c = L'?';
	}
	cell->c[0] = c;
	cell->role = (uint8_t)role;
	if (!wide)
		return;
	clear_cell(canvas, row, column + 1);
	cell[1].c[0] = 0;
	cell[1].role = (uint8_t)role;
}

void canvas_put(struct canvas *canvas, int row, int column, enum role role, wchar_t c, char ascii)
{
	set_cell(canvas, row, column, role, canvas->ascii ? (wchar_t)ascii : c, false);
}

void canvas_utf8(uint32_t c, char ret_text[static UTF8_TEXT])
{
	unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	static const unsigned char leads[] = { 0, 0xc0, 0xe0, 0xf0 };

	ret_text[0] = (char)(leads[more] | c >> 6 * more);
	for (unsigned i = 1; i <= more; i++)
		ret_text[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3f));
	ret_text[more + 1] = '\0';
}

/* The next character of a text that may have anything in it, and its width. */
static uint32_t next_character(const char **text, unsigned *ret_width)
{
	uint32_t c = '?';

	if (utf8_length(*text) > 0)
		c = utf8_next(text);
	else
		(*text)++;
	if (character_is_unsafe(c))
		c = '?';
	*ret_width = character_width(c);
	return c;
}

int canvas_width(const char *text)
{
	unsigned all = 0, width;

	while (*text) {
		next_character(&text, &width);
		all += width;
	}
	return (int)MIN(all, (unsigned)CANVAS_COLUMNS_MAX * 2);
}

/* A mark joins the character before it; joiners and selectors, which change neighbours, are left out. */
static void add_mark(struct canvas *canvas, int row, int column, uint32_t c)
{
	struct cell *cell = canvas_cell(canvas, row, column);

	if (cell && cell->c[0] == 0)
		cell = canvas_cell(canvas, row, column - 1);
	if (!cell || canvas->ascii || c < 0x300 || c > 0x36f)
		return;
	for (int i = 1; i <= CELL_MARKS; i++)
		if (cell->c[i] == 0) {
			cell->c[i] = (wchar_t)c;
			return;
		}
}

int canvas_text(struct canvas *canvas, int row, int column, int width, enum role role, const char *text)
{
	bool cut = canvas_width(text) > width;
	int used = 0, room = width - cut;

	if (width <= 0)
		return 0;
	while (*text) {
		unsigned w;
		uint32_t c = next_character(&text, &w);

		if (used + (int)w > room)
			break;
		if (w == 0) {
			if (used > 0)
				add_mark(canvas, row, column + used - 1, c);
			continue;
		}
		if (canvas->ascii && c > 0x7e)
			c = '?';
		set_cell(canvas, row, column + used, role, (wchar_t)c, w == 2 && !canvas->ascii);
		if (w == 2 && canvas->ascii)
			set_cell(canvas, row, column + used + 1, role, L'?', false);
		used += (int)w;
	}
	if (cut)
		canvas_put(canvas, row, column + used++, role, CUT_MARK, '~');
	return used;
}

int canvas_textf(struct canvas *canvas, int row, int column, int width, enum role role, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return canvas_text(canvas, row, column, width, role, text);
}

void canvas_right(struct canvas *canvas, int row, int column, int width, enum role role, const char *text)
{
	int left = MAX(width - canvas_width(text), 0);

	canvas_text(canvas, row, column + left, width - left, role, text);
}

void canvas_reverse(struct canvas *canvas, int row, int column, int width)
{
	for (int i = 0; i < width; i++) {
		struct cell *cell = canvas_cell(canvas, row, column + i);

		if (cell)
			cell->reversed = true;
	}
}

void canvas_role(struct canvas *canvas, int row, enum role role)
{
	for (int i = 0; i < canvas->columns; i++) {
		struct cell *cell = canvas_cell(canvas, row, i);

		if (cell)
			cell->role = (uint8_t)role;
	}
}
