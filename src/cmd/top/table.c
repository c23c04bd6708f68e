// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/top/draw.h"
#include "cmd/top/value.h"
#include "view/names.h"
#include "view/number.h"

enum { GAP = 1, TEXT_LEAST = 10, MARK = 2, DROP_UNKNOWN = 100, PART = 5 /* "(71) " */ };

/* The columns that are drawn, and how wide. */
struct layout {
	const struct column *columns;
	unsigned n, which[TAB_COLUMNS_MAX];
	unsigned drops[TAB_COLUMNS_MAX];
	int widths[TAB_COLUMNS_MAX];
};

/* Of a text that is always shown, half. */
static int least_width(const struct layout *layout, unsigned i)
{
	const struct column *column = &layout->columns[layout->which[i]];
	int width = (int)column->width;

	if (column->kind != KIND_TEXT)
		return layout->widths[i];
	return MIN(width, column->drop == 0 ? MAX(width / 2, (int)TEXT_LEAST) : (int)TEXT_LEAST);
}

static int row_width(const struct layout *layout, bool least)
{
	int width = 0;

	for (unsigned i = 0; i < layout->n; i++)
		width += (least ? least_width(layout, i) : layout->widths[i]) + GAP;
	return width - GAP;
}

static void remove_column(struct layout *layout, unsigned at)
{
	layout->n--;
	for (unsigned i = at; i < layout->n; i++) {
		layout->which[i] = layout->which[i + 1];
		layout->drops[i] = layout->drops[i + 1];
		layout->widths[i] = layout->widths[i + 1];
	}
}

/* Whether a row has something there. */
static bool any_known(const struct top *top, const struct column *column)
{
	for (uint32_t i = 0; i < top->rows.n; i++) {
		const struct row *row = &top->rows.list[i];
		struct value value;

		if (row->heading)
			continue;
		column_value(row->sample, row, column, &value);
		if (value.known)
			return true;
	}
	return top->rows.n == 0;
}

/* What is missed least goes first: that of which nothing is known, then as columns.def says. */
static void weigh_columns(const struct top *top, struct layout *layout)
{
	for (unsigned i = 0; i < layout->n; i++) {
		const struct column *column = &layout->columns[layout->which[i]];

		layout->drops[i] = column->drop;
		if (column->drop > 0 && !any_known(top, column))
			layout->drops[i] += DROP_UNKNOWN;
	}
}

/* The one that can be missed most; n: all are needed. */
static unsigned most_dispensable(const struct layout *layout)
{
	unsigned found = layout->n, drop = 0;

	for (unsigned i = 0; i < layout->n; i++)
		if (layout->drops[i] > drop) {
			drop = layout->drops[i];
			found = i;
		}
	return found;
}

static unsigned widest_text(const struct layout *layout)
{
	unsigned found = layout->n;

	for (unsigned i = 0; i < layout->n; i++) {
		const struct column *column = &layout->columns[layout->which[i]];

		if (column->kind == KIND_TEXT && layout->widths[i] > least_width(layout, i) &&
		    (found == layout->n || layout->widths[i] > layout->widths[found]))
			found = i;
	}
	return found;
}

/* As in `ps`: what calls say of processes is shown only while calls are traced. */
static bool is_meaningful(const struct top *top, const struct column *column)
{
	const struct sample *shown = top_shown(top);

	if (!column->path || strncmp(column->path, "cuda.", 5) != 0)
		return true;
	for (uint32_t i = 0; i < sample_parts(shown); i++) {
		const struct sample *part = sample_part(shown, i);

		if (part && part->snapshot && part->snapshot->trace && part->snapshot->trace->enabled)
			return true;
	}
	return false;
}

static int full_width(const struct top *top, const struct column *column)
{
	int width = (int)column->width;
	struct value value;

	for (uint32_t i = 0; column->total && i < top->rows.n; i++) {
		column_value(top->rows.list[i].sample, &top->rows.list[i], column, &value);
		if (value.part > 0)
			return width + PART;
	}
	return width;
}

/* Of several machines, which one each row is of. */
static void add_host(const struct top *top, struct layout *layout, unsigned all)
{
	if (!top->several || top->host[0] || top->rows_tab == TAB_HOSTS)
		return;
	for (unsigned i = 0; i < all; i++)
		if (layout->columns[i].value == value_host) {
			layout->which[0] = i;
			layout->widths[0] = (int)layout->columns[i].width;
			layout->n = 1;
		}
}

/* Texts shrink first; what is wider than the screen even then goes. What is left over is the last text's. */
static void arrange(const struct top *top, int columns, struct layout *ret_layout)
{
	const struct tab_view *view = &top->views[top->rows_tab];
	struct layout layout = { .n = 0 };
	unsigned all, at;

	layout.columns = tab_columns(top->rows_tab, &all);
	add_host(top, &layout, all);
	for (unsigned i = 0; i < view->shown_n && layout.n < TAB_COLUMNS_MAX; i++) {
		if (!is_meaningful(top, &layout.columns[view->shown[i]]) ||
		    (layout.n > 0 && layout.which[0] == view->shown[i]))
			continue;
		layout.which[layout.n] = view->shown[i];
		layout.widths[layout.n++] = full_width(top, &layout.columns[view->shown[i]]);
	}
	if (row_width(&layout, true) > columns)
		weigh_columns(top, &layout);
	while (row_width(&layout, true) > columns && (at = most_dispensable(&layout)) < layout.n)
		remove_column(&layout, at);
	while (row_width(&layout, false) > columns && (at = widest_text(&layout)) < layout.n)
		layout.widths[at]--;
	for (unsigned i = layout.n; i-- > 0;)
		if (layout.columns[layout.which[i]].kind == KIND_TEXT) {
			layout.widths[i] += MAX(columns - row_width(&layout, false), 0);
			break;
		}
	*ret_layout = layout;
}

unsigned draw_column_at(const struct top *top, int columns, int column)
{
	struct layout layout;

	arrange(top, columns, &layout);
	for (unsigned i = 0; i < layout.n; i++) {
		column -= layout.widths[i] + GAP;
		if (column < 0)
			return layout.which[i];
	}
	return TAB_COLUMNS_MAX;
}

/* The title of what decides the order says so, and in which direction. */
static void draw_titles(const struct top *top, struct canvas *canvas, int row, const struct layout *layout)
{
	const struct tab_view *view = &top->views[top->rows_tab];
	int at = 0;

	canvas_role(canvas, row, ROLE_HEAD);
	for (unsigned i = 0; i < layout->n; i++) {
		const struct column *column = &layout->columns[layout->which[i]];
		bool sorted = view->keys_n > 0 && view->keys[0].column == layout->which[i];
		bool number = column_is_right(column) && column->kind != KIND_TIME; /* the most first */
		bool up = sorted && view->keys[0].reversed == number;
		char title[48];

		snprintf(title, sizeof(title), "%s%s", column->title,
			 !sorted       ? "" :
			 canvas->ascii ? (up ? "^" : "v") :
					 (up ? "\u25b4" : "\u25be"));
		if (column_is_right(column))
			canvas_right(canvas, row, at, layout->widths[i], ROLE_HEAD, title);
		else
			canvas_text(canvas, row, at, layout->widths[i], ROLE_HEAD, title);
		if (sorted)
			canvas_reverse(canvas, row, at, layout->widths[i]);
		at += layout->widths[i] + GAP;
	}
}

static void draw_cell(struct canvas *canvas, int row, int at, int width, const struct row *shown,
		      const struct column *column)
{
	struct value value;

	column_text(shown->sample, shown, column, &value);
	if (column_is_right(column))
		canvas_right(canvas, row, at, width, value.role, value.text);
	else
		canvas_text(canvas, row, at, width, value.role, value.text);
}

/*
 * Neighbouring columns without sums have room for a name: the first such room that is wide enough, or the
 * widest.
 */
static void find_room(const struct layout *layout, int wanted, int *ret_at, int *ret_width)
{
	int at = 0, begin = 0;

	*ret_at = *ret_width = 0;
	for (unsigned i = 0; i < layout->n && *ret_width < wanted; i++) {
		bool summed = layout->columns[layout->which[i]].summed;
		int width = at - GAP - begin + (summed ? 0 : layout->widths[i] + GAP);

		if ((summed || i + 1 == layout->n) && width > *ret_width) {
			*ret_at = begin;
			*ret_width = width;
		}
		at += layout->widths[i] + GAP;
		begin = summed ? at : begin;
	}
}

/* How many processes it has; where a filter hides some, how many of its rows are seen. */
static void count_text(const struct heading *heading, char *text, size_t size)
{
	json_int_t processes = json_integer_value(json_object_get(heading->object, "processes"));

	if (heading->shown < heading->rows)
		snprintf(text, size, "(%" PRIu32 " of %" PRIu32 " rows)", heading->shown, heading->rows);
	else if (processes > 0)
		snprintf(text, size, "(%" JSON_INTEGER_FORMAT ")", processes);
	else
		snprintf(text, size, "(%" PRIu32 " rows)", heading->rows);
}

/* What stands for a group: whether it is open, its name, and its sums. */
static void draw_heading(struct canvas *canvas, int row, const struct layout *layout, const struct row *shown)
{
	const struct heading *heading = shown->heading;
	const char *mark =
		canvas->ascii ? (heading->closed ? "+" : "-") : (heading->closed ? "\u25b8" : "\u25be");
	char count[48];
	int at = 0, first, width, used;

	for (unsigned i = 0; i < layout->n; i++) {
		if (layout->columns[layout->which[i]].summed)
			draw_cell(canvas, row, at, layout->widths[i], shown,
				  &layout->columns[layout->which[i]]);
		at += layout->widths[i] + GAP;
	}
	count_text(heading, count, sizeof(count));
	find_room(layout, MARK, &first, &width);
	canvas_text(canvas, row, first, MIN(width, MARK - 1), ROLE_ACCENT, mark);
	find_room(layout, MARK + canvas_width(heading->text), &at, &width);
	if (at == first) {
		at += MARK;
		width -= MARK;
	}
	used = canvas_textf(canvas, row, at, width, ROLE_ACCENT, "%s ", heading->text);
	canvas_text(canvas, row, at + used, width - used, ROLE_DIM, count);
}

static void draw_row(struct canvas *canvas, int row, const struct layout *layout, const struct row *shown)
{
	int at = 0;

	if (shown->heading) {
		draw_heading(canvas, row, layout, shown);
		return;
	}
	for (unsigned i = 0; i < layout->n; i++) {
		draw_cell(canvas, row, at, layout->widths[i], shown, &layout->columns[layout->which[i]]);
		at += layout->widths[i] + GAP;
	}
}

/* Why there is nothing, within the rows. */
static void draw_nothing(const struct top *top, struct canvas *canvas, int row, int rows)
{
	const struct tab_view *view = &top->views[top->rows_tab];
	const char *text = tabs[top->rows_tab].nothing;
	char mismatch[2 * FILTER_TEXT];

	if (!top->sample)
		return;
	if (top->replay <= 0 && (top->back > 0 || top->recorded) && tabs[top->rows_tab].page != PAGE_NODE)
		text = "Of earlier times, GPUs and processes alone are kept: L goes back to now.";
	if (top->rows.all > 0) {
		snprintf(mismatch, sizeof(mismatch),
			 "None of %" PRIu32 " match%s%s: f changes what is shown.", top->rows.all,
			 view->filter[0] ? " " : "", view->filter);
		text = mismatch;
	}
	for (int i = 0; i < rows && *text; i++) {
		int width = 0, n = 0, word = 0;

		while (text[n] && width < canvas->columns) {
			if (text[n] == ' ')
				word = n;
			width++;
			n++;
		}
		n = text[n] && word > 0 ? word : n;
		canvas_textf(canvas, row + i, 0, canvas->columns, ROLE_DIM, "%.*s", n, text);
		text += n + (text[n] == ' ');
	}
}

void draw_table(struct top *top, struct canvas *canvas, int row, int rows)
{
	struct tab_view *view = &top->views[top->rows_tab];
	struct layout layout;

	arrange(top, canvas->columns, &layout);
	draw_titles(top, canvas, row, &layout);
	top->table_row = row + 1;
	top->table_rows = MAX(rows - 1, 0);
	if (top->rows.n == 0) {
		draw_nothing(top, canvas, row + 1, top->table_rows);
		return;
	}
	view->scroll = CLAMP(view->scroll, 0, MAX((int)top->rows.n - top->table_rows, 0));
	if (view->selected < view->scroll)
		view->scroll = view->selected;
	if (top->table_rows > 0 && view->selected >= view->scroll + top->table_rows)
		view->scroll = view->selected - top->table_rows + 1;
	for (int i = 0; i < top->table_rows && view->scroll + i < (int)top->rows.n; i++) {
		draw_row(canvas, row + 1 + i, &layout, &top->rows.list[view->scroll + i]);
		if (view->scroll + i == view->selected && view->selected_id)
			canvas_reverse(canvas, row + 1 + i, 0, canvas->columns);
	}
}

void draw_topology(const struct top *top, struct canvas *canvas, int row, int rows)
{
	const struct sample *shown = top_shown(top);
	const struct snapshot *s = shown ? shown->snapshot : NULL;
	int n = s ? (int)s->topology_n : 0;

	if (n == 0) {
		canvas_text(canvas, row, 0, canvas->columns, ROLE_DIM,
			    shown && shown->parts ? "Of one machine: H, and Enter on it." :
						    tabs[TAB_TOPOLOGY].nothing);
		return;
	}
	for (int k = 0; k < n; k++)
		canvas_textf(canvas, row, 7 + k * 5, 4, ROLE_HEAD, "%d", k);
	for (int i = 0; i < n && i + 1 < rows; i++) {
		canvas_textf(canvas, row + 1 + i, 0, 6, ROLE_HEAD, "GPU %d", i);
		for (int k = 0; k < n; k++) {
			char text[8];

			link_text(s->topology[i][k], s->topology_nvlinks[i][k], text);
			canvas_text(canvas, row + 1 + i, 7 + k * 5, 4,
				    strncmp(text, "NV", 2) == 0 ? ROLE_GOOD : ROLE_TEXT,
				    i == k  ? "X" :
				    text[0] ? text :
					      "-");
		}
	}
	if (n + 2 < rows)
		canvas_text(canvas, row + n + 2, 0, canvas->columns, ROLE_DIM,
			    "NV#: so many NVLinks. PIX, PXB, PHB: PCIe switches, a host bridge. NODE, SYS: "
			    "within, between NUMA nodes.");
}
