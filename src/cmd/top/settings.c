// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/text.h"

enum { FILE_BYTES = 16 << 10, LINE_TEXT = 1024, NAME_TEXT = 32 };

/* Whole titles, whatever the case. */
static unsigned find_column(const struct column *columns, unsigned n, const char *title)
{
	for (unsigned i = 0; i < n; i++)
		if (strcasecmp(columns[i].title, title) == 0)
			return i;
	return n;
}

/* The next of @list's names, separated by commas. False: no more. */
static bool next_name(const char **list, char name[static NAME_TEXT])
{
	size_t length = strcspn(*list, ",");

	if (!**list)
		return false;
	snprintf(name, NAME_TEXT, "%.*s", (int)length, *list);
	*list += length + ((*list)[length] == ',');
	return true;
}

static void parse_columns(struct top *top, enum tab tab, const char *list)
{
	struct tab_view *view = &top->views[tab];
	unsigned n, shown[TAB_COLUMNS_MAX], shown_n = 0;
	const struct column *columns = tab_columns(tab, &n);
	char name[NAME_TEXT];

	while (next_name(&list, name) && shown_n < TAB_COLUMNS_MAX) {
		unsigned column = find_column(columns, n, name);
		bool twice = column == n;

		for (unsigned i = 0; i < shown_n; i++)
			twice |= shown[i] == column;
		if (!twice)
			shown[shown_n++] = column;
	}
	if (shown_n == 0)
		return;
	memcpy(view->shown, shown, sizeof(shown));
	view->shown_n = shown_n;
}

/* "GPU MEM,-PID": a sign in front is the other direction. */
static void parse_order(struct top *top, enum tab tab, const char *list)
{
	struct tab_view *view = &top->views[tab];
	unsigned n;
	const struct column *columns = tab_columns(tab, &n);
	char name[NAME_TEXT];

	view->keys_n = 0;
	while (next_name(&list, name) && view->keys_n < SORT_KEYS) {
		bool reversed = name[0] == '-';
		unsigned column = find_column(columns, n, name + reversed);

		if (column < n)
			view->keys[view->keys_n++] = (struct sort_key){ column, reversed };
	}
}

static void parse_group(enum group_by *by, const char *word)
{
	for (unsigned i = 0; i < GROUPS_BY; i++)
		if (STRV_EQ(group_by_name((enum group_by)i), word))
			*by = (enum group_by)i;
}

static void parse_line(struct top *top, char *line)
{
	char *value = strchr(line, '=');
	char *tab = strchr(line, '.');
	uint64_t number;

	if (!value)
		return;
	*value++ = '\0';
	if (STRV_EQ(line, "bars"))
		top->bars = STRV_EQ(value, "yes");
	else if (STRV_EQ(line, "scale") && parse_u64(value, &number) == 0 && number < SCALES)
		top->scale = (unsigned)number;
	else if (STRV_EQ(line, "group"))
		parse_group(&top->by, value);
	else if (STRV_EQ(line, "owners") && !STRV_EQ(value, group_by_name(GROUP_NONE)))
		parse_group(&top->owners_by, value);
	if (!tab)
		return;
	*tab++ = '\0';
	for (unsigned i = 0; i < TABS; i++) {
		if (strcasecmp(tabs[i].brief, tab) != 0)
			continue;
		if (STRV_EQ(line, "columns"))
			parse_columns(top, (enum tab)i, value);
		else if (STRV_EQ(line, "order"))
			parse_order(top, (enum tab)i, value);
	}
}

void settings_parse(struct top *top, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");
		char line[LINE_TEXT];

		if (length < sizeof(line)) {
			snprintf(line, sizeof(line), "%.*s", (int)length, text);
			parse_line(top, line);
		}
		text += length + (text[length] == '\n');
	}
}

static void add_tab(const struct top *top, enum tab tab, struct strbuf *out)
{
	const struct tab_view *view = &top->views[tab];
	unsigned n;
	const struct column *columns = tab_columns(tab, &n);

	if (n == 0)
		return;
	strbuf_addf(out, "columns.%s=", tabs[tab].brief);
	for (unsigned i = 0; i < view->shown_n; i++)
		strbuf_addf(out, "%s%s", i > 0 ? "," : "", columns[view->shown[i]].title);
	strbuf_addf(out, "\norder.%s=", tabs[tab].brief);
	for (unsigned i = 0; i < view->keys_n; i++)
		strbuf_addf(out, "%s%s%s", i > 0 ? "," : "", view->keys[i].reversed ? "-" : "",
			    columns[view->keys[i].column].title);
	strbuf_addc(out, '\n');
}

void settings_format(const struct top *top, struct strbuf *out)
{
	strbuf_addf(out, "bars=%s\nscale=%u\ngroup=%s\nowners=%s\n", top->bars ? "yes" : "no", top->scale,
		    group_by_name(top->by), group_by_name(top->owners_by));
	for (unsigned i = 0; i < TABS; i++)
		add_tab(top, (enum tab)i, out);
}

/* The folder, made if it is missing, and the file in it. False: there is no home. */
static bool settings_path(bool make, char path[static PATH_MAX])
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char folder[PATH_MAX / 2];

	if (config && config[0] == '/')
		snprintf(folder, sizeof(folder), "%s", config);
	else if (home && home[0] == '/')
		snprintf(folder, sizeof(folder), "%.1000s/.config", home);
	else
		return false;
	if (make)
		mkdir(folder, 0700);
	snprintf(path, PATH_MAX, "%s/gpusonde", folder);
	if (make)
		mkdir(path, 0700);
	snprintf(path, PATH_MAX, "%s/gpusonde/top", folder);
	return true;
}

void settings_load(struct top *top)
{
	char path[PATH_MAX];
	_cleanup_free_ char *text = malloc(FILE_BYTES);

	if (text && settings_path(false, path) && read_file(path, text, FILE_BYTES, NULL) == 0)
		settings_parse(top, text);
}

void settings_save(const struct top *top)
{
	char path[PATH_MAX];
	_cleanup_free_ char *before = malloc(FILE_BYTES);
	_cleanup_(strbuf_done) struct strbuf text = { 0 };

	strbuf_init(&text, FILE_BYTES - 1);
	settings_format(top, &text);
	if (!before || text.failed || !settings_path(false, path))
		return;
	if (read_file(path, before, FILE_BYTES, NULL) == 0 && STRV_EQ(before, text.data))
		return;
	if (settings_path(true, path))
		write_file_atomic(path, text.data, text.len, 0600);
}
