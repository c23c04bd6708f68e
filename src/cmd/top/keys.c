// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text.h"
#include "cmd/top/alert.h"
#include "cmd/top/draw.h"
#include "cmd/top/finding.h"
#include "cmd/top/lines.h"
#include "cmd/top/signals.h"

/* ---- tabs and rows ---- */

static void key_quit(struct top *top)
{
	top->ends = true;
}

static void key_help(struct top *top)
{
	top->mode = MODE_HELP;
	top->process_scroll = 0;
}

static void show_tab(struct top *top, enum tab tab)
{
	if (tab == TAB_HOSTS)
		top_choose_host(top, "");
	top->tab = tab;
	top->mode = MODE_TABLE;
}

static void key_next_tab(struct top *top)
{
	show_tab(top, (enum tab)((top->tab + 1) % top_tabs(top)));
}

static void key_previous_tab(struct top *top)
{
	show_tab(top, (enum tab)((top->tab + top_tabs(top) - 1) % top_tabs(top)));
}

static void key_hosts(struct top *top)
{
	if (top->several)
		show_tab(top, TAB_HOSTS);
	else
		top_say(top, "one machine is shown: gpusonde top HOST... shows several");
}

/* Lines that scroll, in place of rows. */
static bool has_lines(const struct top *top)
{
	return top->mode == MODE_PROCESS || top->mode == MODE_FINDING || top->mode == MODE_HELP;
}

static void select_row(struct top *top, int row)
{
	struct tab_view *view = top_view(top);

	if (has_lines(top)) {
		top->process_scroll = MAX(row, 0);
		return;
	}
	if (top->rows.n == 0)
		return;
	view->selected = CLAMP(row, 0, (int)top->rows.n - 1);
	view->selected_id = row_id(&top->rows.list[view->selected]);
}

/* The first key selects the first row that is seen, so that nobody acts on what was not chosen. */
static void move(struct top *top, int by)
{
	const struct tab_view *view = top_view(top);

	if (has_lines(top))
		select_row(top, top->process_scroll + by);
	else
		select_row(top, view->selected_id ? view->selected + by : view->scroll);
}

static void key_up(struct top *top)
{
	move(top, -1);
}

static void key_down(struct top *top)
{
	move(top, 1);
}

static void key_page_up(struct top *top)
{
	move(top, -MAX(top->table_rows - 1, 1));
}

static void key_page_down(struct top *top)
{
	move(top, MAX(top->table_rows - 1, 1));
}

static void key_first(struct top *top)
{
	select_row(top, 0);
}

static void key_last(struct top *top)
{
	select_row(top, has_lines(top) ? (int)LINES_MAX : (int)top->rows.n - 1);
}

/* ---- a process ---- */

/* False: no process is selected. */
static bool choose_process(struct top *top)
{
	const struct row *row = top_selected(top);

	if (top->rows_tab != TAB_PROCESSES || !row || row->heading || !top_view(top)->selected_id) {
		top_say(top, "select a process first: Up and Down in the list of processes");
		return false;
	}
	top_choose_process(top, row);
	return true;
}

static void choose_host(struct top *top)
{
	const struct row *row = top_selected(top);

	if (!row || !row->host || !top_view(top)->selected_id) {
		top_say(top, "select a machine first: Up and Down");
		return;
	}
	top_choose_host(top, row->host->name);
	show_tab(top, TAB_GPUS);
	top_say(top, "%s alone; H: all machines", top->host);
}

/* The heading that is selected; NULL: none. */
static const struct row *selected_heading(const struct top *top)
{
	const struct row *row = top_selected(top);

	return row && row->heading && top->views[top->rows_tab].selected_id ? row : NULL;
}

static void toggle_heading(struct top *top, const struct row *heading)
{
	if (toggle_closed(&top->closed, row_id(heading)) < 0)
		top_say(top, "out of memory");
}

static bool is_grouped(struct top *top)
{
	bool grouped = top->mode == MODE_TABLE && top->rows_tab == TAB_PROCESSES && top->by != GROUP_NONE;

	if (!grouped)
		top_say(top, "processes are not in groups: g, in a list of processes");
	return grouped;
}

/* Selects the heading over the selected row. False: no row is selected. */
static bool select_heading(struct top *top)
{
	struct tab_view *view = top_view(top);
	int at = view->selected;

	while (at > 0 && at < (int)top->rows.n && !top->rows.list[at].heading)
		at--;
	if (!view->selected_id || at >= (int)top->rows.n || !top->rows.list[at].heading)
		return false;
	select_row(top, at);
	return true;
}

static void key_close(struct top *top)
{
	if (!is_grouped(top))
		return;
	if (select_heading(top))
		toggle_heading(top, top_selected(top));
	else
		top_say(top, "select a group, or one of its processes, first: Up and Down");
}

static void key_close_all(struct top *top)
{
	if (!is_grouped(top))
		return;
	select_heading(top);
	toggle_all_closed(&top->closed);
}

static void show_process(struct top *top)
{
	top->mode = MODE_PROCESS;
	top->process_scroll = 0;
	top->stacks = false;
}

static void choose_finding(struct top *top)
{
	const struct row *row = top_selected(top);

	if (row && top_view(top)->selected_id)
		finding_open(top, row->sample, row->object);
	else
		top_say(top, "select a finding first: Up and Down");
}

/* From a process's screen to what was found of it, and back. */
static void enter_from_process(struct top *top)
{
	bool looked = top->sample && top->sample->pages[PAGE_FINDINGS];

	if (!finding_open_of_process(top))
		top_say(top, "nothing was found of this process%s",
			looked ? "" : ": an agent looks for it with trace.analysis: yes");
}

static void enter_from_finding(struct top *top)
{
	if (top->process.comm[0])
		show_process(top);
	else
		top_say(top, "no process on a GPU is known of it");
}

static void key_enter(struct top *top)
{
	if (top->mode == MODE_PROCESS)
		enter_from_process(top);
	else if (top->mode == MODE_FINDING)
		enter_from_finding(top);
	else if (selected_heading(top))
		toggle_heading(top, selected_heading(top));
	else if (top->tab == TAB_HOSTS)
		choose_host(top);
	else if (top->rows_tab == TAB_FINDINGS)
		choose_finding(top);
	else if (choose_process(top))
		show_process(top);
}

/* What the alert is about has a screen of its own, or a tab. */
static void key_alert(struct top *top)
{
	const struct sample *shown = top_shown(top);
	struct alert alert;

	if (!shown || (!shown->snapshot && !shown->parts) || !alert_newest(shown, &alert))
		top_say(top, "nothing is wrong that is known");
	else if (alert.finding)
		finding_open(top, alert.sample, alert.finding);
	else
		show_tab(top, alert.tab);
}

static void key_leave(struct top *top)
{
	if (top->mode == MODE_TABLE)
		top_view(top)->selected_id = 0;
	top->mode = top->mode == MODE_FINDING ? top->before_finding : MODE_TABLE;
	top->process_scroll = 0;
}

static void key_send_signal(struct top *top)
{
	if (top->mode == MODE_TABLE && !choose_process(top))
		return;
	/* A finding knows a PID, but not which of its processes, one after the other, it was of. */
	if (top->mode == MODE_FINDING)
		top_say(top, "signals are sent from a list of processes, or from a process's own screen");
	else if (top->replay > 0)
		top_say(top, "this is a recording");
	else if (top->back > 0 || top->recorded)
		top_say(top, "that was earlier: L goes back to now");
	else if (top->process.start_ticks == 0)
		top_say(top, "process %" PRIu32 " is not one of this machine's, or has ended",
			top->process.pid);
	else
		top->mode = MODE_SIGNALS;
	top->list_selected = 0;
}

static void key_stacks(struct top *top)
{
	if (top->mode != MODE_PROCESS)
		top_say(top, "stacks are shown of a process: Enter");
	top->stacks = top->mode == MODE_PROCESS && !top->stacks;
	top->process_scroll = 0;
}

static void key_timeline(struct top *top)
{
	if (has_lines(top) && top->process.host[0])
		top_say(top, "on %s: gpusonde record start --pid %" PRIu32, top->process.host,
			top->process.pid);
	else if (has_lines(top) && top->process.pid)
		top->start_timeline = true;
	else
		top_say(top, "a timeline is begun from a process's own screen: Enter");
}

/* ---- what is shown, and in which order ---- */

static void key_bars(struct top *top)
{
	top->bars = !top->bars;
	show_tab(top, TAB_GPUS);
}

static void key_scale(struct top *top)
{
	top->scale = (top->scale + 1) % SCALES;
	top_say(top, "the curves show %u minutes", scale_seconds[top->scale] / 60);
}

/* What decided before decides between equals. */
static void sort_by(struct top *top, unsigned column)
{
	struct tab_view *view = top_view(top);
	struct sort_key keys[SORT_KEYS] = { { .column = column } };
	unsigned n = 1;

	for (unsigned i = 0; i < view->keys_n && n < SORT_KEYS; i++)
		if (view->keys[i].column != column)
			keys[n++] = view->keys[i];
	memcpy(view->keys, keys, sizeof(keys));
	view->keys_n = n;
	view->selected_id = 0;
	view->selected = view->scroll = 0;
}

static void sort_beside(struct top *top, int by)
{
	const struct tab_view *view = top_view(top);
	int at = by > 0 ? -1 : (int)view->shown_n;

	if (view->shown_n == 0)
		return;
	for (unsigned i = 0; view->keys_n > 0 && i < view->shown_n; i++)
		if (view->shown[i] == view->keys[0].column)
			at = (int)i;
	at = (at + by + (int)view->shown_n) % (int)view->shown_n;
	sort_by(top, view->shown[at]);
}

static void key_sort_next(struct top *top)
{
	sort_beside(top, 1);
}

static void key_sort_previous(struct top *top)
{
	sort_beside(top, -1);
}

static void key_reverse(struct top *top)
{
	struct tab_view *view = top_view(top);

	if (view->keys_n > 0)
		view->keys[0].reversed = !view->keys[0].reversed;
}

static void key_types(struct top *top)
{
	static const char *const words[TYPES_KINDS] = { "all processes", "processes that compute",
							"processes that draw" };

	top->types = (top->types + 1) % TYPES_KINDS;
	top_say(top, "%s", words[top->types]);
}

static void key_group(struct top *top)
{
	enum group_by *by = top->tab == TAB_OWNERS ? &top->owners_by : &top->by;

	*by = (*by + 1) % GROUPS_BY;
	if (top->tab == TAB_OWNERS && *by == GROUP_NONE)
		*by = GROUP_NONE + 1;
	top_say(top, "%s %s", top->tab == TAB_OWNERS ? "added up by" : "grouped by", group_by_name(*by));
}

static void key_columns(struct top *top)
{
	top->mode = MODE_COLUMNS;
	top->list_selected = 0;
}

/* ---- time ---- */

static void key_freeze(struct top *top)
{
	top->frozen = !top->frozen;
	/* A recording plays on from the moment that is shown. */
	if (top->replay > 0 && !top->frozen)
		top->recorded = false;
}

/* Before what is remembered there is what the agent has recorded. */
static void go_back(struct top *top, int by)
{
	int64_t back = (int64_t)top->back + by, most = (int64_t)past_count(top->past) - 1;

	if (top->sample && top->sample->snapshot &&
	    (top->recorded || top->replay > 0 || (by > 0 && top->back > 0 && back > most))) {
		top->asked_ns = top->sample->snapshot->real_ns - by * top->period_ns;
		top->frozen = true;
		return;
	}
	if (most <= 0) {
		top_say(top, top->several ?
				     "earlier moments are kept of one machine alone: gpusonde top there" :
				     "nothing earlier is known yet");
		return;
	}
	top->back = (uint32_t)CLAMP(back, INT64_C(0), most);
	top->frozen = top->back > 0;
}

static int samples_of_minute(const struct top *top)
{
	return (int)MAX(60 * NSEC_PER_SEC / top->period_ns, INT64_C(1));
}

static void key_earlier(struct top *top)
{
	go_back(top, 1);
}

static void key_later(struct top *top)
{
	go_back(top, -1);
}

static void key_earlier_minute(struct top *top)
{
	go_back(top, samples_of_minute(top));
}

static void key_later_minute(struct top *top)
{
	go_back(top, -samples_of_minute(top));
}

static void key_live(struct top *top)
{
	if (top->replay > 0) {
		top->asked_ns = INT64_MAX;
		top->frozen = true;
		return;
	}
	top->back = 0;
	top->recorded = top->frozen = false;
	top->asked_ns = 0;
}

static void key_save_text(struct top *top)
{
	top->save_text = true;
}

static void key_save_svg(struct top *top)
{
	top->save_svg = true;
}

/* ---- what is typed ---- */

static void begin_typing(struct top *top, enum prompt prompt, const char *text)
{
	top->prompt = prompt;
	snprintf(top->typed, sizeof(top->typed), "%s", text);
}

static void key_filter(struct top *top)
{
	begin_typing(top, PROMPT_FILTER, top_view(top)->filter);
}

static void key_search(struct top *top)
{
	begin_typing(top, PROMPT_SEARCH, "");
}

static bool row_has(const struct top *top, const struct row *row, const char *text)
{
	unsigned n;
	const struct column *columns = tab_columns(top->rows_tab, &n);
	struct value value;

	if (row->heading)
		return strcasestr(row->heading->text, text);
	for (unsigned i = 0; i < n; i++) {
		column_text(row->sample, row, &columns[i], &value);
		if (value.known && strcasestr(value.text, text))
			return true;
	}
	return false;
}

static int row_with_id(const struct rows *rows, uint64_t id)
{
	for (uint32_t i = 0; i < rows->n; i++)
		if (row_id(&rows->list[i]) == id)
			return (int)i;
	return -1;
}

/* Also in a group that is closed, which is opened. */
static void select_found(struct top *top, const struct rows *rows, int at)
{
	uint64_t id = row_id(&rows->list[at]);
	int heading = at;

	while (heading > 0 && !rows->list[heading].heading)
		heading--;
	if (heading < at && rows->list[heading].heading &&
	    is_closed(&top->closed, row_id(&rows->list[heading]))) {
		toggle_heading(top, &rows->list[heading]);
		top_say(top, "its group was closed: o closes it again");
		top_make_rows(top);
	}
	select_row(top, row_with_id(&top->rows, id));
}

/* From the row after that with this id on, and from the beginning again; 0: from there. */
static void search_from(struct top *top, uint64_t id)
{
	_cleanup_(tab_rows_done) struct rows rows = { 0 };
	int from;

	top_make_open_rows(top, &rows);
	from = id ? row_with_id(&rows, id) : -1;
	for (int i = 1; top->search[0] && i <= (int)rows.n; i++) {
		int at = (from + i) % (int)rows.n;

		if (row_has(top, &rows.list[at], top->search)) {
			select_found(top, &rows, at);
			return;
		}
	}
	top_say(top, "no row has \"%.80s\"", top->search);
}

static void key_search_again(struct top *top)
{
	if (top->mode == MODE_FINDING)
		finding_open_next(top);
	else
		search_from(top, top_view(top)->selected_id);
}

static void end_typing(struct top *top, bool keep)
{
	enum prompt prompt = top->prompt;

	top->prompt = PROMPT_NONE;
	if (!keep)
		return;
	if (prompt == PROMPT_FILTER)
		snprintf(top_view(top)->filter, FILTER_TEXT, "%s", top->typed);
	if (prompt != PROMPT_SEARCH)
		return;
	snprintf(top->search, sizeof(top->search), "%s", top->typed);
	search_from(top, 0);
}

/* The last character of UTF-8 goes as a whole. */
static void erase_character(char *text)
{
	size_t n = strlen(text);

	while (n > 0 && ((unsigned char)text[n - 1] & 0xc0) == 0x80)
		n--;
	text[n > 0 ? n - 1 : 0] = '\0';
}

static void type_character(char *text, size_t size, uint32_t c)
{
	char typed[UTF8_TEXT];
	size_t n = strlen(text);

	canvas_utf8(c, typed);
	if (n + strlen(typed) < size)
		strcpy(text + n, typed);
}

static void take_typed(struct top *top, uint32_t key)
{
	if (key == KEY_CODE_ENTER)
		end_typing(top, true);
	else if (key == KEY_CODE_ESCAPE)
		end_typing(top, false);
	else if (key == KEY_CODE_BACKSPACE)
		erase_character(top->typed);
	else if (key >= ' ' && key < KEY_CODE_FIRST && !character_is_unsafe(key))
		type_character(top->typed, sizeof(top->typed), key);
}

/* Only "y" is a yes. */
static void take_confirmation(struct top *top, uint32_t key)
{
	top->prompt = PROMPT_NONE;
	top->mode = MODE_TABLE;
	if (key == 'y')
		signals_send(top, (unsigned)top->list_selected);
	else
		top_say(top, "nothing was sent");
}

/* ---- lists ---- */

static void move_in_list(struct top *top, uint32_t key, int n)
{
	int by = key == KEY_CODE_UP ? -1 : key == KEY_CODE_DOWN ? 1 : 0;

	top->list_selected = CLAMP(top->list_selected + by, 0, MAX(n - 1, 0));
}

static void take_signal_key(struct top *top, uint32_t key)
{
	move_in_list(top, key, (int)signal_table_n);
	if (key == KEY_CODE_ENTER)
		top->prompt = PROMPT_CONFIRM;
	else if (key == KEY_CODE_ESCAPE || key == 'q')
		top->mode = MODE_TABLE;
}

/* Where a column stands among those that are shown; -1: it is not. */
static int column_place(const struct tab_view *view, unsigned column)
{
	for (unsigned i = 0; i < view->shown_n; i++)
		if (view->shown[i] == column)
			return (int)i;
	return -1;
}

static void toggle_column(struct tab_view *view, unsigned column)
{
	int at = column_place(view, column);

	if (at < 0 && view->shown_n < TAB_COLUMNS_MAX) {
		view->shown[view->shown_n++] = column;
	} else if (at >= 0 && view->shown_n > 1) {
		view->shown_n--;
		memmove(&view->shown[at], &view->shown[at + 1],
			(view->shown_n - (unsigned)at) * sizeof(view->shown[0]));
	}
}

static void shift_column(struct tab_view *view, unsigned column, int by)
{
	int at = column_place(view, column), to = at + by;

	if (at < 0 || to < 0 || to >= (int)view->shown_n)
		return;
	view->shown[at] = view->shown[to];
	view->shown[to] = column;
}

static void take_column_key(struct top *top, uint32_t key)
{
	unsigned n, column;

	tab_columns(top_table(top), &n);
	move_in_list(top, key, (int)n);
	column = (unsigned)top->list_selected;
	if (n > 0 && key == ' ')
		toggle_column(top_view(top), column);
	else if (n > 0 && (key == KEY_CODE_LEFT || key == '-'))
		shift_column(top_view(top), column, -1);
	else if (n > 0 && (key == KEY_CODE_RIGHT || key == '+'))
		shift_column(top_view(top), column, 1);
	else if (key == KEY_CODE_ENTER || key == KEY_CODE_ESCAPE || key == 'c' || key == 'q')
		top->mode = MODE_TABLE;
}

/* ---- all ---- */

const struct key_description key_table[] = {
#define KEY(code_, name_, act_, help_) { code_, name_, help_, key_##act_ },
#include "cmd/top/keys.def"
#undef KEY
};
const unsigned key_table_n = ARRAY_SIZE(key_table);

static void take_key(struct top *top, uint32_t key)
{
	for (unsigned i = 0; i < TAB_HOSTS; i++)
		if (key == (unsigned char)tabs[i].key) {
			show_tab(top, (enum tab)i);
			return;
		}
	for (unsigned i = 0; i < key_table_n; i++)
		if (key_table[i].key == key) {
			key_table[i].act(top);
			return;
		}
}

/* What moves through it stays there. */
static void take_help_key(struct top *top, uint32_t key)
{
	static const uint32_t moves[] = { KEY_CODE_UP,        KEY_CODE_DOWN, KEY_CODE_PAGE_UP,
					  KEY_CODE_PAGE_DOWN, KEY_CODE_HOME, KEY_CODE_END };

	for (size_t i = 0; i < ARRAY_SIZE(moves); i++)
		if (key == moves[i] && top->help_scrolls) {
			take_key(top, key);
			return;
		}
	top->mode = MODE_TABLE;
	top->process_scroll = 0;
}

/* Sorts by it; by what it is sorted by already, the other way round. */
static void click_title(struct top *top, unsigned column)
{
	const struct tab_view *view = top_view(top);

	if (column == TAB_COLUMNS_MAX)
		return;
	if (view->keys_n > 0 && view->keys[0].column == column)
		key_reverse(top);
	else
		sort_by(top, column);
}

static void take_click(struct top *top, const struct event *event, int columns)
{
	const struct tab_view *view = top_view(top);
	enum tab tab;
	bool again;

	if (event->row >= top->alert_row && event->row < top->alert_row + top->alert_rows) {
		key_alert(top);
		return;
	}
	if (event->row == top->tabs_row) {
		tab = draw_tab_at(top, columns, event->column);
		if (tab != TABS)
			show_tab(top, tab);
		return;
	}
	if (top->mode == MODE_TABLE && top->table_rows > 0 && event->row == top->table_row - 1) {
		click_title(top, draw_column_at(top, columns, event->column));
		return;
	}
	if (top->mode != MODE_TABLE || event->row < top->table_row ||
	    event->row >= top->table_row + top->table_rows)
		return;
	/* Where the selected row is clicked again, its process is meant. A heading is not chosen first. */
	again = view->selected_id && view->selected == view->scroll + event->row - top->table_row;
	select_row(top, view->scroll + event->row - top->table_row);
	if (again || selected_heading(top))
		key_enter(top);
}

void keys_take(struct top *top, const struct event *event, int columns)
{
	top->message[0] = '\0';
	if (event->type == EVENT_WHEEL)
		move(top, event->wheel);
	else if (event->type == EVENT_CLICK)
		take_click(top, event, columns);
	if (event->type != EVENT_KEY)
		return;
	if (top->prompt == PROMPT_CONFIRM)
		take_confirmation(top, event->key);
	else if (top->prompt != PROMPT_NONE)
		take_typed(top, event->key);
	else if (top->mode == MODE_HELP)
		take_help_key(top, event->key);
	else if (top->mode == MODE_COLUMNS)
		take_column_key(top, event->key);
	else if (top->mode == MODE_SIGNALS)
		take_signal_key(top, event->key);
	else
		take_key(top, event->key);
}
