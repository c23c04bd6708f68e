// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAME_WIDTH = 13 };

void say_line(struct lines *lines, enum role role, const char *fmt, ...)
{
	va_list ap;

	if (lines->n == LINES_MAX) {
		snprintf(lines->list[LINES_MAX - 1].text, LINE_TEXT, "  and more");
		return;
	}
	lines->list[lines->n].role = role;
	va_start(ap, fmt);
	vsnprintf(lines->list[lines->n].text, LINE_TEXT, fmt, ap);
	va_end(ap);
	lines->n++;
}

/* How many bytes of the text fit so many cells, up to the end of a word; of a word that is longer, a part. */
static size_t bytes_that_fit(const char *text, int width)
{
	size_t n = 0, fits = 0;

	while (text[n] && n < LINE_TEXT - 1) {
		size_t word = n + strspn(text + n, " ");
		char part[LINE_TEXT];

		word += strcspn(text + word, " ");
		word = MIN(word, (size_t)LINE_TEXT - 1);
		snprintf(part, sizeof(part), "%.*s", (int)word, text);
		if (canvas_width(part) > width)
			break;
		n = fits = word;
	}
	/* Characters stay whole. */
	for (; fits == 0 && text[n] && (n < (size_t)MAX(width, 1) || ((unsigned char)text[n] & 0xc0) == 0x80);
	     n++)
		;
	return fits ? fits : n;
}

void say_wrapped(struct lines *lines, enum role role, int width, const char *name, const char *text)
{
	do {
		size_t n = bytes_that_fit(text, MIN(width, (int)LINE_TEXT - NAME_WIDTH) - NAME_WIDTH);

		say_line(lines, role, "%-*s%.*s", NAME_WIDTH, name, (int)n, text);
		text += n;
		text += strspn(text, " ");
		name = "";
	} while (*text && lines->n < LINES_MAX);
}

void draw_lines(struct top *top, struct canvas *canvas, int row, int rows, const struct lines *lines)
{
	top->process_scroll = CLAMP(top->process_scroll, 0, MAX(lines->n - rows, 0));
	top->table_rows = MAX(rows, 1);
	for (int i = top->process_scroll; i < lines->n && rows > 0; i++, row++, rows--)
		canvas_text(canvas, row, 0, canvas->columns, lines->list[i].role, lines->list[i].text);
}
