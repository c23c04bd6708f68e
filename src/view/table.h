// SPDX-License-Identifier: Apache-2.0
/*
 * Columns of text for a terminal. Cells are filled row by row; table_write() measures them, leaves out
 * columns and shrinks flexible ones when a row is wider than the terminal, and cuts what is still too long.
 *
 * Text comes from processes and drivers: control characters, and what turns the direction of writing, never
 * reach the terminal.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "view/view.h"

enum table_colour { COLOUR_NONE, COLOUR_HEAD, COLOUR_GOOD, COLOUR_WARN, COLOUR_BAD, COLOUR_DIM, COLOURS };

struct table_column {
	const char *title;
	bool right; /* aligned */
	bool flexible; /* gives way when space is short */
	/* left out altogether when that is not enough, the highest first; 0 never */
	unsigned char dispensable;
	unsigned char least; /* a flexible one is not made narrower; 0: 8 */
};

struct table_cell {
	size_t at; /* of its text */
	unsigned width;
	enum table_colour colour;
};

struct table {
	const struct table_column *columns;
	unsigned columns_n;
	struct strbuf text; /* of all cells, NUL-terminated each */
	struct table_cell *cells; /* row by row */
	size_t cells_n, cells_cap;
	bool failed;
};

void table_init(struct table *table, const struct table_column *columns, unsigned n);
void table_done(struct table *table);

/* The next cell; an empty text is written "-", which stands for what is not known. */
void table_cell(struct table *table, enum table_colour colour, const char *text);
void table_cellf(struct table *table, enum table_colour colour, const char *fmt, ...) _printf_(3, 4);

/* Title line and rows. 0, or -ENOMEM/-E2BIG. */
int table_write(const struct table *table, const struct table_options *options, struct strbuf *out);

/* A line of prose: cleaned, cut to the terminal's width, with a newline. */
void table_line(const struct table_options *options, struct strbuf *out, enum table_colour colour,
		const char *text);

/* Terminal columns that @text takes up; cleaned text only. */
unsigned text_width(const char *text);

/* Appends @text without anything that could act on a terminal. */
void text_clean(struct strbuf *out, const char *text);
