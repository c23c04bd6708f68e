// SPDX-License-Identifier: Apache-2.0
/*
 * src/screen draws on terminals. A *canvas* is what a screen shows: cells, each with a character and a
 * *role*, which says what it means, not how it looks. Widgets (bar.h, sparkline.h) draw on a canvas and know
 * nothing else; terminal.h shows one by ncurses, which sends only what has changed; export.h writes one as
 * text or SVG. So what people see is tested without a terminal.
 *
 * Texts come from processes and drivers. Nothing that is drawn can leave its place: control characters,
 * characters that change the writing direction and invalid UTF-8 become '?', marks are joined with the
 * character before them or left out, and what lies outside the canvas is not drawn. A canvas belongs to one
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

#include "base/macro.h"

/* What a cell means. */
enum role {
	ROLE_TEXT,
	ROLE_HEAD, /* titles */
	ROLE_GOOD,
	ROLE_WARN,
	ROLE_BAD,
	ROLE_DIM,
	ROLE_ACCENT, /* names that one looks for: keys, indexes */
	ROLE_TAB, /* the bar of tabs */
	ROLES
};

enum {
	CELL_MARKS = 2, /* combining marks of one character */
	CANVAS_ROWS_MAX = 400,
	CANVAS_COLUMNS_MAX = 800,
};

struct cell {
	wchar_t c[1 + CELL_MARKS]; /* c[0] 0: the second half of the wide character before it */
	uint8_t role;
	bool reversed; /* selected */
};

struct canvas {
	int rows, columns;
	bool ascii; /* the terminal shows nothing else */
	struct cell *cells;
};

/* Empties it. Sizes beyond the limits are cut. -ENOMEM: as before. */
int canvas_resize(struct canvas *canvas, int rows, int columns);
void canvas_done(struct canvas *canvas);
void canvas_clear(struct canvas *canvas);

/* The cell, or NULL if it lies outside. */
struct cell *canvas_cell(const struct canvas *canvas, int row, int column);

/*
 * Draws @text in at most @width columns from there on, with a mark at its end if it does not fit. Returns the
 * columns that it took.
 */
int canvas_text(struct canvas *canvas, int row, int column, int width, enum role role, const char *text);
int canvas_textf(struct canvas *canvas, int row, int column, int width, enum role role, const char *fmt, ...)
	_printf_(6, 7);
/* The same, at the right end of these columns. */
void canvas_right(struct canvas *canvas, int row, int column, int width, enum role role, const char *text);
/* One character, or what stands for it where only ASCII is shown. */
void canvas_put(struct canvas *canvas, int row, int column, enum role role, wchar_t c, char ascii);
/* A character as UTF-8, with the NUL that ends it. */
enum { UTF8_TEXT = 5 };
void canvas_utf8(uint32_t c, char ret_text[static UTF8_TEXT]);
/* The columns that the text would take. */
int canvas_width(const char *text);

/* Selected: these columns are shown reversed. */
void canvas_reverse(struct canvas *canvas, int row, int column, int width);
/* All of a row has this role from now on, what is empty included. */
void canvas_role(struct canvas *canvas, int row, enum role role);
