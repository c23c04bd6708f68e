// SPDX-License-Identifier: Apache-2.0
#include "view/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "view/names.h"
#include "view/shown.h"
#include "view/table/parts.h"
#include "view/traced.h"

/*
 * Columns of `gpusonde ps`; some are shown only while calls are traced. Of these, the column that marks the
 * others as unreliable is dropped last.
 */
static const struct table_column columns[] = {
	{ .title = "GPU", .right = true },
	{ .title = "MIG" },
	{ .title = "PID", .right = true },
	{ .title = "USER", .dispensable = 6 },
	{ .title = "TYPE", .dispensable = 7 },
	{ .title = "SM", .right = true },
	{ .title = "MEMORY", .right = true },
	{ .title = "BUSY", .right = true, .dispensable = 3 },
	{ .title = "LAUNCHES", .right = true, .dispensable = 2 },
	{ .title = "ERRORS", .right = true, .dispensable = 4 },
	{ .title = "CUDA BUSY", .right = true, .dispensable = 5 },
	{ .title = "CUDA MEM", .right = true, .dispensable = 8 },
	{ .title = "INCOMPLETE", .flexible = true, .dispensable = 1 },
	{ .title = "RANK", .right = true, .dispensable = 9 },
	{ .title = "WORKLOAD", .flexible = true },
	{ .title = "RUN", .flexible = true, .dispensable = 10 },
	{ .title = "COMMAND", .flexible = true },
};
enum {
	COLUMNS = ARRAY_SIZE(columns),
	TRACED_FIRST = 8,
	TRACED_LAST = 12,
	COLUMN_RANK = 13,
	COLUMN_RUN = 15,
	UNTRACED_CELLS = 5
};

/* Columns that are shown only where a process has something in them. */
struct shown_columns {
	bool traced, rank, run;
};

/* "C", "G", "M" for each type the driver lists it under. */
static void types_cell(struct table *table, uint8_t types)
{
	char letters[9] = "";
	const char *name;
	size_t n = 0;

	for (unsigned i = 0; i < 8 && (name = process_type_name(i)); i++)
		if (types & (1u << i))
			letters[n++] = (char)(*name - 'a' + 'A');
	letters[n] = '\0';
	table_cell(table, COLOUR_NONE, letters);
}

/* ---- traced data ---- */

struct traced_cells {
	const struct snapshot *s;
	const struct traced_process *process; /* NULL: not traced */
	const struct traced_device *device;
};

static bool traced_number(const struct traced_cells *cells, enum traced_metric row, double *ret_value)
{
	if (!cells->process || !presence_is(cells->device->p[row]) ||
	    !traced_shows(cells->s, cells->process, &traced_metrics[row]))
		return false;
	*ret_value = cells->device->v[row];
	return true;
}

static bool is_estimated(const struct traced_cells *cells, enum traced_metric row)
{
	double v;

	return traced_number(cells, row, &v) && (cells->device->p[row] & PRESENCE_ESTIMATED);
}

static void count_cell(struct table *table, const struct traced_cells *cells, enum traced_metric row,
		       enum table_colour if_any)
{
	double v;

	if (traced_number(cells, row, &v))
		table_cellf(table, v > 0 ? if_any : COLOUR_NONE, "%.0f", v);
	else
		table_cell(table, COLOUR_NONE, "");
}

/*
 * Sum of the kinds of memory that lie on the device, from the traced calls. "-" if one kind is unknown, since
 * the sum would be too low.
 */
static void ledger_cell(struct table *table, const struct traced_cells *cells)
{
	static const enum traced_metric kinds[] = { TRACED_LIVE_DEVICE, TRACED_LIVE_ASYNC,
						    TRACED_LIVE_MANAGED, TRACED_LIVE_PHYSICAL,
						    TRACED_LIVE_ARRAY };
	bool any = false, all = true, doubtful = false;
	double sum = 0, v;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		bool known = traced_number(cells, kinds[i], &v);

		doubtful |= !known || is_estimated(cells, kinds[i]);
		any |= known && v > 0;
		all &= known;
		sum += known ? v : 0;
	}
	table_bytes(table, doubtful ? "~" : "", any || all ? &sum : NULL);
}

static void traced_cells(struct table *table, const struct traced_cells *cells)
{
	struct strbuf reasons;
	const char *reason;
	double busy;

	count_cell(table, cells, TRACED_LAUNCHES, COLOUR_NONE);
	count_cell(table, cells, TRACED_ERRORS, COLOUR_BAD);
	if (traced_number(cells, TRACED_BUSY_ESTIMATED, &busy))
		table_cellf(table, COLOUR_NONE, "%s%.1f s",
			    is_estimated(cells, TRACED_BUSY_ESTIMATED) ? "~" : "", busy);
	else
		table_cell(table, COLOUR_NONE, "");
	ledger_cell(table, cells);
	strbuf_init(&reasons, 0);
	for (unsigned bit = 0; cells->process && (reason = traced_incomplete_name(bit)); bit++)
		if (cells->process->incomplete & (1u << bit))
			strbuf_addf(&reasons, "%s%s", reasons.len > 0 ? "," : "", reason);
	table_cell(table, COLOUR_WARN, reasons.data);
	strbuf_done(&reasons);
}

/* ---- ranks and runs ---- */

static void rank_cell(struct table *table, const struct rank *rank)
{
	if (rank->rank == RANK_UNKNOWN)
		table_cell(table, COLOUR_NONE, "");
	else if (rank->world == RANK_UNKNOWN)
		table_cellf(table, COLOUR_NONE, "%" PRIu32, rank->rank);
	else
		table_cellf(table, COLOUR_NONE, "%" PRIu32 "/%" PRIu32, rank->rank, rank->world);
}

static void run_cell(struct table *table, const struct snapshot *s, const struct process *process)
{
	struct run_names names = run_of(s, process);
	char run[SHORT_TEXT], group[SHORT_TEXT];

	text_shorten(names.run, run);
	text_shorten(names.group, group);
	table_cellf(table, COLOUR_NONE, "%s%s%s", group, *run && *group ? "/" : "", run);
}

/* ---- rows ---- */

/* @last 0: of the newest interval, else of recent_seconds[last - 1]. */
static void utilization_cell(struct table *table, const struct snapshot *s, const struct process *process,
			     unsigned last)
{
	const struct recent *recent = &process->recent[last > 0 ? last - 1 : 0];
	double ratio = last > 0 ? recent->v[RECENT_UTILIZATION] : process->v[PROCESS_UTILIZATION];
	uint8_t p = last > 0 ? recent->p[RECENT_UTILIZATION] : process->p[PROCESS_UTILIZATION];

	if (!entity_is_old(snapshot_gpu(s, &s->entities[process->entity])) && presence_is(p))
		table_cellf(table, COLOUR_NONE, "%.0f %%", ratio * 100);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void add_process(struct table *table, const struct snapshot *s, const struct process *process,
			struct shown_columns shown, unsigned last)
{
	const struct entity *e = &s->entities[process->entity];
	struct traced_cells cells = { .s = s, .device = traced_device_of(s, process) };

	if (cells.device)
		cells.process = &s->trace->processes[cells.device->process];
	table_gpu_index(table, s, e);
	table_instance(table, e);
	table_cellf(table, COLOUR_NONE, "%" PRIu32, process->id.pid);
	table_user(table, process->uid);
	types_cell(table, process->types);
	utilization_cell(table, s, process, last);
	table_process_bytes(table, process->v, process->p, PROCESS_MEMORY);
	table_process_duration(table, process->v, process->p, PROCESS_BUSY);
	if (shown.traced)
		traced_cells(table, &cells);
	if (shown.rank)
		rank_cell(table, &process->rank);
	table_process_workload(table, s, process);
	if (shown.run)
		run_cell(table, s, process);
	table_cell(table, COLOUR_NONE, process->comm);
}

/* A process that the driver does not list: columns from the driver are unknown. */
static void add_apart(struct table *table, const struct traced_apart *apart, struct shown_columns shown)
{
	const struct traced_cells cells = { apart->s, apart->process, apart->device };

	if (apart->entity) {
		table_gpu_index(table, apart->s, apart->entity);
		table_instance(table, apart->entity);
	} else {
		table_cell(table, COLOUR_NONE, "");
		table_cell(table, COLOUR_NONE, "");
	}
	table_cellf(table, COLOUR_NONE, "%" PRIu32, apart->process->id.pid);
	for (unsigned i = 0; i < UNTRACED_CELLS; i++)
		table_cell(table, COLOUR_NONE, "");
	traced_cells(table, &cells);
	if (shown.rank)
		table_cell(table, COLOUR_NONE, "");
	table_traced_workload(table, traced_workload(apart->s, apart->process));
	if (shown.run)
		table_cell(table, COLOUR_NONE, "");
	table_cell(table, COLOUR_NONE, apart->process->comm);
}

static uint32_t add_rows(struct table *table, const struct snapshot *s, struct shown_columns columns_shown,
			 unsigned last)
{
	struct traced_apart apart = { .s = s };
	uint32_t shown = 0, left_out = s->trace ? s->trace->left_out : 0;

	for (uint32_t i = 0; i < s->processes_n; i++)
		add_process(table, s, &s->processes[i], columns_shown, last);
	while (traced_apart_next(&apart)) {
		if (shown++ < TRACED_SHOWN_MAX)
			add_apart(table, &apart, columns_shown);
		else
			left_out++;
	}
	return left_out;
}

/* ---- notes below the table ---- */

/* Reports traced processes missing from the list, and tracing that delivers nothing new. */
static void add_trace_note(const struct snapshot *s, uint32_t left_out, const struct table_options *options,
			   struct strbuf *out)
{
	char text[96];

	if (left_out > 0) {
		snprintf(text, sizeof(text), "%" PRIu32 " more traced processes are not shown", left_out);
		table_line(options, out, COLOUR_WARN, text);
	}
	if (presence_is(s->agent_p[AGENT_SOURCE_UP_TRACE]) && s->agent[AGENT_SOURCE_UP_TRACE] == 0)
		table_line(options, out, COLOUR_WARN,
			   "tracing delivers nothing new: its counts are old (gpusonde doctor says more)");
}

static void add_last_note(const struct table_options *options, struct strbuf *out)
{
	char text[120];

	if (options->last == 0)
		return;
	snprintf(text, sizeof(text), "SM is of the last %u seconds, or since the process was first seen",
		 recent_seconds[options->last - 1]);
	table_line(options, out, COLOUR_DIM, text);
}

static struct shown_columns shown_columns(const struct snapshot *s)
{
	struct shown_columns shown = { .traced = s->trace && s->trace->enabled };

	for (uint32_t i = 0; i < s->processes_n; i++) {
		struct run_names names = run_of(s, &s->processes[i]);

		shown.rank |= s->processes[i].rank.rank != RANK_UNKNOWN;
		shown.run |= names.run[0] || names.group[0];
	}
	return shown;
}

static bool is_shown(unsigned column, struct shown_columns shown)
{
	if (column >= TRACED_FIRST && column <= TRACED_LAST)
		return shown.traced;
	return column == COLUMN_RANK ? shown.rank : column == COLUMN_RUN ? shown.run : true;
}

int table_processes(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	struct shown_columns wanted = shown_columns(s);
	struct table_column shown[COLUMNS];
	uint32_t left_out;
	unsigned shown_n = 0;
	struct table table;
	int r = 0;

	table_simulated(s, options, out);
	for (unsigned k = 0; k < COLUMNS; k++)
		if (is_shown(k, wanted))
			shown[shown_n++] = columns[k];
	table_init(&table, shown, shown_n);
	left_out = add_rows(&table, s, wanted, options->last);
	if (table.cells_n == 0 && !table.failed) {
		table_no_processes(s, options, out);
		table_unlisted(s, options, out);
	} else {
		table_outage(s, options, out);
		r = table_write(&table, options, out);
		add_last_note(options, out);
		table_old_gpus(s, options, out);
		table_unlisted(s, options, out);
	}
	table_unrecognised(s, options, out);
	if (wanted.traced && table.cells_n > 0)
		add_trace_note(s, left_out, options, out);
	table_done(&table);
	return r;
}
