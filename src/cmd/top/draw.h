// SPDX-License-Identifier: Apache-2.0
/* Draws the state. Each part is told its first row, and how many it has. */
#pragma once

#include "cmd/top/state.h"
#include "screen/canvas.h"

/* All of it. */
void draw_screen(struct top *top, struct canvas *canvas);

/* Host, GPUs, what they use together, what is wrong, the tabs. Returns the rows that it took. */
int draw_header(struct top *top, struct canvas *canvas);
/* GPUs as bars: two lines each, one, or several in a line, as there is room. Returns the rows it took. */
int draw_bars(const struct top *top, struct canvas *canvas, int row, int rows);
/* Curves of GPUs in rows that nothing else needs. Returns those that it took; 0: there are too few. */
int draw_charts(const struct top *top, struct canvas *canvas, int row, int rows);
/* The rows of the tab's table. */
void draw_table(struct top *top, struct canvas *canvas, int row, int rows);
void draw_topology(const struct top *top, struct canvas *canvas, int row, int rows);
/* The machine that the GPUs are in. */
void draw_machine(const struct top *top, struct canvas *canvas, int row, int rows);
void draw_process(struct top *top, struct canvas *canvas, int row, int rows);
void draw_finding(struct top *top, struct canvas *canvas, int row, int rows);
/* Columns or signals to choose from. */
void draw_columns(const struct top *top, struct canvas *canvas, int row, int rows);
void draw_signals(const struct top *top, struct canvas *canvas, int row, int rows);
/* The last line: what is typed, a message, or what keys there are. */
void draw_status(const struct top *top, struct canvas *canvas);

/* The column of the table whose title stands there, by its index; TAB_COLUMNS_MAX: none. */
unsigned draw_column_at(const struct top *top, int columns, int column);
/* The tab whose name stands at a column of the bar of tabs, for the mouse; TABS: none. */
enum tab draw_tab_at(const struct top *top, int columns, int column);
