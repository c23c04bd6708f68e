// SPDX-License-Identifier: Apache-2.0
/* Lines of text that scroll: of a process's own screen, and of a finding's. */
#pragma once

#include "cmd/top/state.h"
#include "screen/canvas.h"

enum { LINES_MAX = 400, LINE_TEXT = 200 };

struct lines {
	int n;
	struct {
		enum role role;
		char text[LINE_TEXT];
	} list[LINES_MAX];
};

/* One line, cut at LINE_TEXT. Where there would be more than LINES_MAX, the last one says so. */
void say_line(struct lines *lines, enum role role, const char *fmt, ...) _printf_(3, 4);
/* As many as a text needs in so many cells, broken between words; @name stands before the first one. */
void say_wrapped(struct lines *lines, enum role role, int width, const char *name, const char *text);
/* From top->process_scroll on, which is kept within them; for pages, top->table_rows. */
void draw_lines(struct top *top, struct canvas *canvas, int row, int rows, const struct lines *lines);
