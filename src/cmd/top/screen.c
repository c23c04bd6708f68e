// SPDX-License-Identifier: Apache-2.0
/* The screen as a whole, its last line, and the lists that are chosen from. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/top/draw.h"
#include "cmd/top/keys.h"
#include "cmd/top/lines.h"
#include "cmd/top/signals.h"
#include "view/groups.h"

enum { NAME_WIDTH = 12, LEAST_TABLE = 5, SOME_PROCESSES = 4 };
/* Of the last line: KEY_ENTER and KEYS_ALWAYS are places in its list of keys. */
enum { KEY_ENTER = 3, KEYS_ALWAYS = 6, KEY_GAP = 2, NOTE_GAP = 3 };

/* Whole sentences: what does not fit scrolls. */
static void draw_help(struct top *top, struct canvas *canvas, int row, int rows)
{
	static struct lines lines; /* of the only screen; too large for the stack */
	char titles[LINE_TEXT * 2] = "";
	size_t used = 0;

	lines.n = 0;
	for (unsigned i = 0; i < key_table_n; i++)
		if (key_table[i].help[0])
			say_wrapped(&lines, ROLE_TEXT, canvas->columns, key_table[i].name, key_table[i].help);
	for (unsigned i = 0; i < top_tabs(top) && used < sizeof(titles); i++)
		used += (size_t)snprintf(titles + used, sizeof(titles) - used, "%s%c %s", i > 0 ? ", " : "",
					 tabs[i].key, tabs[i].title);
	say_wrapped(&lines, ROLE_TEXT, canvas->columns, "Tabs", titles);
	top->help_scrolls = lines.n > rows;
	draw_lines(top, canvas, row, rows, &lines);
}

void draw_columns(const struct top *top, struct canvas *canvas, int row, int rows)
{
	const struct tab_view *view = &top->views[top_table(top)];
	unsigned n;
	const struct column *columns = tab_columns(top_table(top), &n);
	int first = MAX(top->list_selected - (rows - 3), 0);

	canvas_text(canvas, row, 0, canvas->columns, ROLE_HEAD,
		    "Space: shown or not; Left, Right: further to the left, to the right; Enter: done");
	for (int i = first; i < (int)n && i - first < rows - 2; i++) {
		unsigned place = 0;

		for (unsigned k = 0; k < view->shown_n; k++)
			place = view->shown[k] == (unsigned)i ? k + 1 : place;
		if (place)
			canvas_textf(canvas, row + 1 + i - first, 0, 5, ROLE_GOOD, "[%u]", place);
		else
			canvas_text(canvas, row + 1 + i - first, 0, 5, ROLE_DIM, "[ ]");
		canvas_text(canvas, row + 1 + i - first, 6, canvas->columns - 6, ROLE_TEXT, columns[i].title);
		if (i == top->list_selected)
			canvas_reverse(canvas, row + 1 + i - first, 0, MIN(canvas->columns, 30));
	}
}

void draw_signals(const struct top *top, struct canvas *canvas, int row, int rows)
{
	canvas_textf(canvas, row, 0, canvas->columns, ROLE_HEAD,
		     "A signal to process %" PRIu32 " (%s): Enter chooses, Esc leaves", top->process.pid,
		     top->process.comm);
	for (int i = 0; i < (int)signal_table_n && i < rows - 1; i++) {
		canvas_text(canvas, row + 1 + i, 0, NAME_WIDTH, ROLE_TEXT, signal_table[i].name);
		canvas_text(canvas, row + 1 + i, NAME_WIDTH, canvas->columns, ROLE_DIM, signal_table[i].what);
		if (i == top->list_selected)
			canvas_reverse(canvas, row + 1 + i, 0, MIN(canvas->columns, 40));
	}
}

/* ---- the last line ---- */

static void draw_typed(const struct top *top, struct canvas *canvas, int row)
{
	const char *name = top->prompt == PROMPT_FILTER ? "filter" : "search";
	int at = canvas_textf(canvas, row, 0, canvas->columns, ROLE_ACCENT, "%s: ", name);

	at += canvas_text(canvas, row, at, canvas->columns - at, ROLE_TEXT, top->typed);
	canvas_reverse(canvas, row, at, 1);
	if (top->prompt == PROMPT_FILTER && !top->typed[0])
		canvas_text(canvas, row, at + 2, canvas->columns - at - 2, ROLE_DIM,
			    "words, gpu=0, user=root, sm>50, gpu_mem>=1G; none: all rows");
	if (top->prompt == PROMPT_FILTER && top->rows.bad_filter)
		canvas_text(canvas, row, at + 2, canvas->columns - at - 2, ROLE_WARN,
			    "no such column here: taken as a text");
}

/* What makes that not all rows are seen, or not in the usual way. */
static void view_text(const struct top *top, char *text, size_t size)
{
	const struct tab_view *view = &top->views[top->rows_tab];
	bool processes = top->rows_tab == TAB_PROCESSES;
	size_t used = 0;

	text[0] = '\0';
	if (view->filter[0])
		used += (size_t)snprintf(text, size, "filter \"%.60s\" ", view->filter);
	if (processes && top->types != TYPES_ALL && used < size)
		used += (size_t)snprintf(text + used, size - used, "%s only ",
					 top->types == TYPES_COMPUTE ? "compute" : "graphics");
	if (top->rows_tab == TAB_OWNERS && used < size)
		snprintf(text + used, size - used, "by %s ", group_by_name(top->owners_by));
	else if (processes && top->by != GROUP_NONE && used < size)
		snprintf(text + used, size - used, "by %s, o closes and opens  ", group_by_name(top->by));
}

/* Keys of a screen of its own; NULL: of the table's. */
static const char *mode_keys(const struct top *top)
{
	if (top->mode == MODE_HELP)
		return top->help_scrolls ? "any key: back  Up Down: more of it" : "any key: back";
	if (top->mode == MODE_PROCESS)
		return "Esc back  Enter findings  s stacks  k signal  t timeline  w scale  Space freeze";
	if (top->mode == MODE_FINDING)
		return "Esc back  Enter its process  n next finding  t timeline  Up Down";
	return NULL;
}

/* Keys of a table, the most used first; those that find no room are in the help. */
static int draw_keys(const struct top *top, struct canvas *canvas, int row, int at)
{
	static const struct {
		const char *text;
		bool of_processes;
	} keys[] = {
		{ "h help", false },        { "q quit", false },          { "Tab next", false },
		{ "Enter process", false }, { "f filter", false },        { "> sort", false },
		{ "k signal", true },       { "g group", true },          { "c columns", false },
		{ "/ search", false },      { "b bars or table", false }, { "w minutes of curves", false },
		{ "Space freeze", false },  { "[ back in time", false },  { "S save", false },
	};
	const char *note = top->sample ? top->sample->note : "", *gap = "";
	int room = canvas->columns - (note[0] ? canvas_width(note) + NOTE_GAP : 0);

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *text =
			i == KEY_ENTER && top->rows_tab == TAB_FINDINGS ? "Enter finding" : keys[i].text;

		if (keys[i].of_processes && top->rows_tab != TAB_PROCESSES)
			continue;
		if (i >= KEYS_ALWAYS && at + KEY_GAP + canvas_width(text) > room)
			break;
		at += canvas_textf(canvas, row, at, canvas->columns - at, ROLE_DIM, "%s%s", gap, text);
		gap = "  ";
	}
	return at;
}

void draw_status(const struct top *top, struct canvas *canvas)
{
	int row = canvas->rows - 1, at = 0;
	const struct sample *sample = top->sample;
	char view[160];

	if (top->prompt == PROMPT_CONFIRM) {
		canvas_textf(canvas, row, 0, canvas->columns, ROLE_WARN,
			     "Send %s to process %" PRIu32 " (%s)? y: yes, any other key: no",
			     signal_table[top->list_selected].name, top->process.pid, top->process.comm);
		return;
	}
	if (top->prompt != PROMPT_NONE) {
		draw_typed(top, canvas, row);
		return;
	}
	if (top->message[0]) {
		canvas_text(canvas, row, 0, canvas->columns, ROLE_ACCENT, top->message);
		return;
	}
	view_text(top, view, sizeof(view));
	at += canvas_text(canvas, row, at, canvas->columns, ROLE_WARN, view);
	if (mode_keys(top))
		at += canvas_text(canvas, row, at, canvas->columns - at, ROLE_DIM, mode_keys(top));
	else
		at = draw_keys(top, canvas, row, at);
	if (sample && sample->note[0] && at + 4 < canvas->columns)
		canvas_textf(canvas, row, at, canvas->columns - at, ROLE_WARN, "   %s", sample->note);
}

/* ---- all ---- */

static void draw_gpus(struct top *top, struct canvas *canvas, int row, int rows)
{
	int below = CLAMP(rows / 3, (int)LEAST_TABLE, 12), used;

	used = draw_bars(top, canvas, row, MAX(rows - below, 1));
	/* So that one more process does not move them. */
	below = 1 + (int)((top->rows.n / SOME_PROCESSES + 1) * SOME_PROCESSES);
	used += draw_charts(top, canvas, row + used, rows - used - below);
	if (rows - used > 2)
		draw_table(top, canvas, row + used, rows - used);
}

static void draw_tab(struct top *top, struct canvas *canvas, int row, int rows)
{
	const struct sample *shown = top_shown(top);

	if (!shown || (!shown->snapshot && !shown->parts))
		return;
	if (top->tab == TAB_TOPOLOGY)
		draw_topology(top, canvas, row, rows);
	else if (top->tab == TAB_MACHINE)
		draw_machine(top, canvas, row, rows);
	else if (top->tab == TAB_GPUS && top->bars)
		draw_gpus(top, canvas, row, rows);
	else
		draw_table(top, canvas, row, rows);
}

void draw_screen(struct top *top, struct canvas *canvas)
{
	int row, rows;

	canvas_clear(canvas);
	top->table_rows = 0;
	row = draw_header(top, canvas);
	rows = MAX(canvas->rows - row - 1, 0);
	switch (top->mode) {
	case MODE_TABLE:
		draw_tab(top, canvas, row, rows);
		break;
	case MODE_PROCESS:
		draw_process(top, canvas, row, rows);
		break;
	case MODE_FINDING:
		draw_finding(top, canvas, row, rows);
		break;
	case MODE_HELP:
		draw_help(top, canvas, row, rows);
		break;
	case MODE_COLUMNS:
		draw_columns(top, canvas, row, rows + 1);
		break;
	case MODE_SIGNALS:
		draw_signals(top, canvas, row, rows);
		break;
	}
	draw_status(top, canvas);
}
