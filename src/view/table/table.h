// SPDX-License-Identifier: Apache-2.0
/*
 * Text tables for a terminal. Cells are filled row by row; table_write() measures them, and if a row is wider
 * than the terminal it shrinks flexible columns, drops dispensable ones, and cuts the rest.
 *
 * Text comes from processes and drivers: control characters, and those that change the writing direction, are
 * removed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "view/view.h"

#define TABLE_SIMULATED "SIMULATED DATA: these GPUs do not exist."

enum table_colour { COLOUR_NONE, COLOUR_HEAD, COLOUR_GOOD, COLOUR_WARN, COLOUR_BAD, COLOUR_DIM, COLOURS };

struct table_column {
	const char *title;
	bool right; /* aligned */
	bool flexible; /* shrinks if the row is too wide */
	/* order of dropping if shrinking is not sufficient, the highest first; 0: never dropped */
	unsigned char dispensable;
	unsigned char least; /* minimum width if flexible; 0: 8 */
};

struct table_cell {
	size_t at; /* offset of its text */
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

/* Adds the next cell; an empty text is written as "-" (unknown). */
void table_cell(struct table *table, enum table_colour colour, const char *text);
void table_cellf(struct table *table, enum table_colour colour, const char *fmt, ...) _printf_(3, 4);

/* As elements of HTML; these two are called by those below with options->html. */
int html_table(const struct table *table, struct strbuf *out);
void html_line(struct strbuf *out, enum table_colour colour, const char *text);

/* Writes the title line and rows. 0, or -ENOMEM/-E2BIG. */
int table_write(const struct table *table, const struct table_options *options, struct strbuf *out);

/* Writes a text as lines: cleaned, wrapped at the terminal's width, with a newline. */
void table_line(const struct table_options *options, struct strbuf *out, enum table_colour colour,
		const char *text);

/* The same as one line, cut at the terminal's width. */
void table_cut_line(const struct table_options *options, struct strbuf *out, enum table_colour colour,
		    const char *text);

/* Terminal columns that @text takes up; cleaned text only. */
unsigned text_width(const char *text);

/*
 * The text cut to SHORT_COLUMNS with "..." at its end, if it is longer: names that users choose at any length
 * must not push columns out of sight. Valid UTF-8 also where @text is not. Returns @to.
 */
enum { SHORT_COLUMNS = 32, SHORT_TEXT = 4 * SHORT_COLUMNS + 4 };
const char *text_shorten(const char *text, char to[static SHORT_TEXT]);

/* Appends @text without control characters. */
void text_clean(struct strbuf *out, const char *text);
