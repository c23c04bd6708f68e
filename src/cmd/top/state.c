// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process_id.h"
#include "base/text.h"

const unsigned scale_seconds[SCALES] = { 60, 120, 300, 900 };

static void init_view(struct top *top, enum tab tab)
{
	struct tab_view *view = &top->views[tab];
	unsigned n;
	const struct column *columns = tab_columns(tab, &n);

	view->shown_n = 0;
	for (unsigned i = 0; i < n && i < TAB_COLUMNS_MAX; i++)
		if (!columns[i].spare)
			view->shown[view->shown_n++] = i;
}

/* Sorts by a column from the beginning. */
static void sort_by(struct top *top, enum tab tab, const char *title)
{
	unsigned n;
	const struct column *columns = tab_columns(tab, &n);

	for (unsigned i = 0; i < n; i++)
		if (STRV_EQ(columns[i].title, title)) {
			top->views[tab].keys[0] = (struct sort_key){ .column = i };
			top->views[tab].keys_n = 1;
		}
}

void top_init(struct top *top)
{
	top->bars = true;
	top->scale = 1;
	top->owners_by = GROUP_CONTAINER;
	for (unsigned i = 0; i < TABS; i++)
		init_view(top, (enum tab)i);
	sort_by(top, TAB_PROCESSES, "GPU MEM");
	sort_by(top, TAB_OWNERS, "GPU MEM");
	sort_by(top, TAB_CALLS, "TOTAL");
	sort_by(top, TAB_KERNELS, "TIME");
	sort_by(top, TAB_COLLECTIVES, "IN CALLS");
	sort_by(top, TAB_OPERATORS, "TIME");
	sort_by(top, TAB_SERVERS, "TOKENS OUT");
	sort_by(top, TAB_FINDINGS, "NOW");
	sort_by(top, TAB_EVENTS, "TIME");
	top->views[TAB_EVENTS].keys[0].reversed = true; /* the newest first */
}

void top_done(struct top *top)
{
	tab_rows_done(&top->rows);
	free(top->closed.except);
	sample_free(top->sample);
	trails_free(top->trails);
	past_free(top->past);
}

const struct sample *top_shown(const struct top *top)
{
	const struct sample *all = top->sample;

	if (!all || !all->parts || !top->host[0] || top->tab == TAB_HOSTS)
		return all;
	for (uint32_t i = 0; i < all->parts_n; i++)
		if (STRV_EQ(all->parts[i].name, top->host))
			return all->parts[i].sample;
	return NULL;
}

unsigned top_tabs(const struct top *top)
{
	return top->several ? TABS : TAB_HOSTS;
}

void top_choose_host(struct top *top, const char *name)
{
	snprintf(top->host, sizeof(top->host), "%s", name);
	for (unsigned i = 0; i < TABS; i++)
		if (i != TAB_HOSTS)
			top->views[i].selected_id = 0;
}

enum tab top_table(const struct top *top)
{
	return top->tab == TAB_GPUS && top->bars ? TAB_PROCESSES : top->tab;
}

struct tab_view *top_view(struct top *top)
{
	return &top->views[top_table(top)];
}

/* Rows come and go: what was selected stays so where it is now. */
static void keep_selection(struct top *top)
{
	struct tab_view *view = top_view(top);

	for (uint32_t i = 0; view->selected_id && i < top->rows.n; i++)
		if (row_id(&top->rows.list[i]) == view->selected_id) {
			view->selected = (int)i;
			return;
		}
	view->selected = CLAMP(view->selected, 0, MAX((int)top->rows.n - 1, 0));
}

static void make_rows(struct top *top, const struct closed *closed, struct rows *rows)
{
	const struct tab_view *view = top_view(top);
	struct rows_wanted wanted = {
		.tab = top_table(top), .types = top->types, .by = top->by, .closed = closed
	};

	tab_rows_done(rows);
	if (!top_shown(top) || wanted.tab == TAB_TOPOLOGY || wanted.tab == TAB_MACHINE)
		return;
	if (wanted.tab == TAB_OWNERS)
		wanted.by = top->owners_by;
	snprintf(wanted.filter, sizeof(wanted.filter), "%s",
		 top->prompt == PROMPT_FILTER ? top->typed : view->filter);
	wanted.keys_n = view->keys_n;
	for (unsigned i = 0; i < view->keys_n; i++)
		wanted.keys[i] = view->keys[i];
	if (tab_rows_make(top_shown(top), &wanted, rows) < 0)
		top_say(top, "out of memory");
}

void top_make_rows(struct top *top)
{
	make_rows(top, &top->closed, &top->rows);
	top->rows_tab = top_table(top);
	if (top->rows.list)
		keep_selection(top);
}

void top_make_open_rows(struct top *top, struct rows *rows)
{
	make_rows(top, NULL, rows);
}

unsigned top_pages(const struct top *top)
{
	unsigned pages = 1u << tabs[top->tab].page;

	if (top->mode == MODE_FINDING)
		pages |= 1u << PAGE_FINDINGS;
	if (top->mode == MODE_PROCESS)
		pages |= 1u << PAGE_TRACE | 1u << PAGE_KERNELS | 1u << PAGE_FINDINGS;
	if (top->mode == MODE_PROCESS && top->stacks)
		pages |= 1u << PAGE_STACKS;
	return pages;
}

const struct row *top_selected(const struct top *top)
{
	int selected = top->views[top->rows_tab].selected;

	return selected >= 0 && selected < (int)top->rows.n ? &top->rows.list[selected] : NULL;
}

void top_say(struct top *top, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(top->message, sizeof(top->message), fmt, ap);
	va_end(ap);
}

static void join_process(const struct sample *sample, const char *uuid, struct row *row)
{
	const struct snapshot *s = sample->snapshot;
	json_int_t pid = json_integer_value(json_object_get(row->object, "pid"));

	for (uint32_t k = 0; s && k < s->processes_n && !row->process; k++)
		if (s->processes[k].id.pid == pid &&
		    STRV_EQ(s->entities[s->processes[k].entity].id.uuid, uuid))
			row->process = &s->processes[k];
}

/* @first_seen "": whenever that was. */
static bool find_row(const struct sample *sample, uint32_t pid, const char *uuid, const char *first_seen,
		     struct row *ret_row)
{
	json_t *object;
	size_t i;

	json_array_foreach(json_object_get(sample->pages[PAGE_NODE], "processes"), i, object) {
		if (json_integer_value(json_object_get(object, "pid")) != (json_int_t)pid ||
		    (*uuid && !STRV_EQ(text_member(object, "uuid"), uuid)) ||
		    (*first_seen && !STRV_EQ(text_member(object, "first_seen"), first_seen)))
			continue;
		*ret_row = (struct row){ .sample = sample, .object = object };
		join_process(sample, text_member(object, "uuid"), ret_row);
		return true;
	}
	return false;
}

bool top_process_row(const struct sample *sample, uint32_t pid, const char *uuid, struct row *ret_row)
{
	return find_row(sample, pid, uuid, "", ret_row) || (*uuid && find_row(sample, pid, "", "", ret_row));
}

/*
 * What the row's PID is of on this machine; 0: of nothing, or of a process that has started since the row's
 * was first seen, and so is another one.
 */
static uint64_t start_of(const struct row *row, uint32_t pid)
{
	const struct host_process *host = sample_process(row->sample, pid);
	int64_t boot_real_ns = clock_real_ns() - clock_boot_ns();

	if (!host || !row->process ||
	    boot_real_ns + process_boot_ns(host->start_ticks) > row->process->first_real_ns + NSEC_PER_SEC)
		return 0;
	return host->start_ticks;
}

void top_choose_process(struct top *top, const struct row *row)
{
	uint32_t pid = (uint32_t)json_integer_value(json_object_get(row->object, "pid"));
	struct chosen_process *chosen = &top->process;

	*chosen = (struct chosen_process){ .pid = pid, .start_ticks = start_of(row, pid) };
	snprintf(chosen->host, sizeof(chosen->host), "%s", row->sample->host);
	snprintf(chosen->first_seen, sizeof(chosen->first_seen), "%s",
		 text_member(row->object, "first_seen"));
	snprintf(chosen->uuid, sizeof(chosen->uuid), "%s", text_member(row->object, "uuid"));
	snprintf(chosen->comm, sizeof(chosen->comm), "%s", text_member(row->object, "comm"));
	utf8_sanitize(chosen->comm);
}

bool top_find_process(const struct top *top, struct row *ret_row)
{
	for (uint32_t i = 0; top->sample && i < sample_parts(top->sample); i++) {
		const struct sample *part = sample_part(top->sample, i);

		if (part && STRV_EQ(part->host, top->process.host) &&
		    find_row(part, top->process.pid, top->process.uuid, top->process.first_seen, ret_row))
			return true;
	}
	return false;
}
