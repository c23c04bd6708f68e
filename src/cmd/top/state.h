// SPDX-License-Identifier: Apache-2.0
/* What the screen shows now. One thread has it; draw.h draws it, keys.h changes it. */
#pragma once

#include "cmd/top/past.h"
#include "cmd/top/rows.h"
#include "cmd/top/trail.h"

enum mode {
	MODE_TABLE,
	MODE_PROCESS, /* one process's own screen */
	MODE_FINDING, /* one finding's */
	MODE_HELP,
	MODE_COLUMNS, /* which columns are shown */
	MODE_SIGNALS /* which signal is sent */
};

/* What is typed in the last line. */
enum prompt { PROMPT_NONE, PROMPT_FILTER, PROMPT_SEARCH, PROMPT_CONFIRM };

/* How a tab is looked at. */
struct tab_view {
	int selected, scroll; /* rows */
	uint64_t selected_id; /* row_id(); 0: none was chosen */
	unsigned shown[TAB_COLUMNS_MAX], shown_n; /* columns, in this order */
	struct sort_key keys[SORT_KEYS];
	unsigned keys_n;
	char filter[FILTER_TEXT];
};

enum { MESSAGE_TEXT = 240, SCALES = 4 };
extern const unsigned scale_seconds[SCALES]; /* of curves: the last so many seconds */

/* The process whose screen is shown, or that gets a signal. */
struct chosen_process {
	uint32_t pid;
	uint64_t start_ticks; /* 0: not one of this machine's */
	char first_seen[40], uuid[100], comm[64];
	char host[HOST_NAME_TEXT]; /* ""; of several machines, which */
};

struct top {
	struct sample *sample; /* what is shown; NULL: there is none yet */
	struct trails *trails;
	struct past *past;
	uint32_t back; /* samples before the newest; 0: that one is shown */
	/* what is shown is of the agent's recording; a moment that is asked for, 0: none */
	bool recorded;
	double replay; /* all is of a recording, played so many times as fast as it was; 0: it is now */
	int64_t asked_ns;
	bool frozen; /* new ones are not shown */
	int64_t now_real_ns, now_mono_ns; /* of this drawing */
	int64_t period_ns;
	unsigned scale;
	bool several; /* machines */
	char host[HOST_NAME_TEXT]; /* of these, the one that is shown; "": all */
	enum mode mode;
	enum tab tab;
	bool bars; /* of GPUs: bars, with the processes below; else a table */
	enum group_by by, owners_by;
	struct closed closed; /* groups of processes */
	enum process_types types;
	struct tab_view views[TABS];
	struct rows rows; /* of the table that is shown */
	enum tab rows_tab;
	int alert_row, alert_rows; /* where what is wrong was drawn */
	int tabs_row; /* where the bar of tabs was drawn */
	int table_row, table_rows; /* where its rows were drawn: for the mouse and for pages */
	enum prompt prompt;
	char typed[FILTER_TEXT], search[FILTER_TEXT];
	char message[MESSAGE_TEXT];
	int list_selected; /* of columns or signals */
	struct chosen_process process;
	int process_scroll; /* of its screen, of a finding's and of the help */
	bool help_scrolls; /* there is more of it than is seen */
	bool stacks; /* of it, in place of its figures */
	uint64_t finding; /* row_id() of the one that is shown */
	enum mode before_finding; /* what Esc goes back to */
	bool ends, save_text, save_svg, start_timeline;
};

/* What a screen begins with. */
void top_init(struct top *top);
void top_done(struct top *top);

/* What is shown: of several machines all, or the chosen one; NULL: there is nothing of it. */
const struct sample *top_shown(const struct top *top);
/* How many tabs there are: the last is of several machines. */
unsigned top_tabs(const struct top *top);
/* Shows this machine alone; "": all. */
void top_choose_host(struct top *top, const char *name);

/* The table that is shown: of GPUs as bars, that of the processes below them. */
enum tab top_table(const struct top *top);
struct tab_view *top_view(struct top *top);
/* Makes the rows of what is shown, and keeps the selection on its row. */
void top_make_rows(struct top *top);
/* The same rows, and those in closed groups; into @rows, which is empty or was filled before. */
void top_make_open_rows(struct top *top, struct rows *rows);
/* Pages that it needs: bits 1 << enum page. */
unsigned top_pages(const struct top *top);
/* The row that is selected; NULL: none. */
const struct row *top_selected(const struct top *top);
void top_say(struct top *top, const char *fmt, ...) _printf_(2, 3);
/*
 * The row of a process in the sample; @uuid, of a GPU or instance, "": on any. False: there is no such
 * process.
 */
bool top_process_row(const struct sample *sample, uint32_t pid, const char *uuid, struct row *ret_row);
/* Makes it the chosen one, of which screens are and to which signals go. */
void top_choose_process(struct top *top, const struct row *row);
/* The row of the chosen process in the sample; false: it has ended. */
bool top_find_process(const struct top *top, struct row *ret_row);
