// SPDX-License-Identifier: Apache-2.0
#include "view/lines.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/macro.h"
#include "view/number.h"
#include "view/table/parts.h"
#include "view/table/table.h"

static const struct table_column columns[] = {
	{ .title = "PID", .right = true },
	{ .title = "LINE OF PYTHON", .flexible = true, .least = 20 },
	{ .title = "FUNCTION", .flexible = true, .least = 12 },
	{ .title = "ITSELF", .right = true },
	{ .title = "CALLS", .right = true },
	{ .title = "LAUNCHES", .right = true },
	{ .title = "COPIED", .right = true, .dispensable = 1 },
	{ .title = "HELD", .right = true, .dispensable = 1 },
	{ .title = "WAITED", .right = true, .dispensable = 2 },
};

static void calls_cell(struct table *table, const char *mark, double count)
{
	table_cellf(table, COLOUR_NONE, "%s%lld", mark, llround(count));
}

static void bytes_cell(struct table *table, const char *mark, double bytes)
{
	char text[BYTES_TEXT];

	bytes_text(bytes, text);
	table_cellf(table, COLOUR_NONE, "%s%s", bytes > 0 ? mark : "", bytes > 0 ? text : "");
}

static void place_cells(struct table *table, const struct stack_place *place)
{
	if (!place->file[0]) {
		table_cell(table, COLOUR_DIM, place->name);
		table_cell(table, COLOUR_NONE, "");
		return;
	}
	if (place->line)
		table_cellf(table, COLOUR_NONE, "%s:%" PRIu32, place->file, place->line);
	else
		table_cell(table, COLOUR_NONE, place->file);
	table_cell(table, COLOUR_NONE, place->name);
}

static void line_row(struct table *table, const struct stack_page *page, const struct stack_line *line)
{
	const char *mark = page->estimated ? "~" : "";

	table_cellf(table, COLOUR_NONE, "%" PRIu32, line->pid);
	place_cells(table, &page->places[line->place]);
	calls_cell(table, mark, line->itself);
	calls_cell(table, mark, line->weights[STACK_CALLS]);
	calls_cell(table, mark, line->weights[STACK_LAUNCHES]);
	bytes_cell(table, mark, line->weights[STACK_BYTES_COPIED]);
	bytes_cell(table, mark, line->weights[STACK_BYTES_HELD]);
	if (line->weights[STACK_SYNC_WAIT] > 0)
		table_seconds(table, line->weights[STACK_SYNC_WAIT] / 1e9);
	else
		table_cell(table, COLOUR_NONE, "");
}

int table_lines(const struct stack_page *page, const struct table_options *options, size_t rows,
		struct strbuf *out)
{
	_cleanup_(stack_lines_freep) struct stack_lines *lines = NULL;
	struct table table;
	char text[80];
	int r = stack_lines_new(page, &lines);
	size_t n;

	if (r < 0)
		return r;
	if (lines->lines_n == 0) {
		table_line(options, out, COLOUR_NONE, "No call of CUDA was made by Python.");
		return 0;
	}
	n = rows && rows < lines->lines_n ? rows : lines->lines_n;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++)
		line_row(&table, page, &lines->lines[i]);
	strbuf_addc(out, '\n');
	r = table_write(&table, options, out);
	table_done(&table);
	if (r == 0 && n < lines->lines_n) {
		snprintf(text, sizeof(text), "%zu more lines; --json has all", lines->lines_n - n);
		table_line(options, out, COLOUR_DIM, text);
	}
	return r;
}
