// SPDX-License-Identifier: Apache-2.0
#include "view/python.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/macro.h"
#include "view/table/parts.h"
#include "view/table/table.h"

static const struct table_column columns[] = {
	{ .title = "PID", .right = true },     { .title = "PYTHON", .flexible = true, .least = 14 },
	{ .title = "TID", .right = true },     { .title = "COUNT", .right = true },
	{ .title = "TIME", .right = true },    { .title = "MEAN", .right = true, .dispensable = 1 },
	{ .title = "LONGEST", .right = true },
};

static void sum_row(struct table *table, const struct python_process *process, const char *what, uint32_t tid,
		    const struct python_sum *sum)
{
	if (sum->count == 0)
		return;
	table_cellf(table, process->exited ? COLOUR_DIM : COLOUR_NONE, "%" PRIu32, process->pid);
	table_cell(table, COLOUR_NONE, what);
	if (tid)
		table_cellf(table, COLOUR_NONE, "%" PRIu32, tid);
	else
		table_cell(table, COLOUR_NONE, "");
	table_cellf(table, COLOUR_NONE, "%" PRIu64, sum->count);
	table_seconds(table, (double)sum->total_ns / 1e9);
	table_seconds(table, (double)sum->total_ns / 1e9 / (double)sum->count);
	table_seconds(table, (double)sum->longest_ns / 1e9);
}

static void process_rows(struct table *table, const struct python_view *view,
			 const struct python_process *process)
{
	char what[40];

	sum_row(table, process, "waits for the GIL", 0, &process->waits);
	for (uint32_t i = 0; i < process->waiters_n; i++) {
		const struct python_waiter *waiter = &view->waiters[process->waiters_first + i];

		sum_row(table, process, "  of a thread", waiter->tid, &waiter->waits);
	}
	for (unsigned i = 0; i < PYTHON_COLLECTIONS; i++) {
		snprintf(what, sizeof(what), "garbage, generation %s", python_generation_name(i));
		sum_row(table, process, what, 0, &process->collections[i]);
	}
}

static void process_lines(const struct python_process *process, const struct table_options *options,
			  struct strbuf *out)
{
	char text[200];

	if (process->more_waits > 0) {
		snprintf(text, sizeof(text),
			 "PID %" PRIu32 ": %" PRIu64 " waits are of %" PRIu32
			 " more threads or of others beyond the limit",
			 process->pid, process->more_waits, process->more_waiters);
		table_line(options, out, COLOUR_NONE, text);
	}
	if (process->incomplete) {
		snprintf(text, sizeof(text), "PID %" PRIu32 ": events were lost: there was more",
			 process->pid);
		table_line(options, out, COLOUR_BAD, text);
	}
}

static void unknown_line(const struct python_view *view, const struct table_options *options,
			 struct strbuf *out)
{
	char text[200], version[24] = "";

	if (view->unknown == 0)
		return;
	if (view->unknown_version)
		snprintf(version, sizeof(version), " (3.%u)", view->unknown_version >> 16 & 0xff);
	snprintf(text, sizeof(text),
		 "The Python of %" PRIu64 " processes is not known%s: their waits are not seen",
		 view->unknown, version);
	table_line(options, out, COLOUR_BAD, text);
}

int table_python(const struct python_view *view, const struct table_options *options, struct strbuf *out)
{
	struct table table;
	int r = 0;

	table_init(&table, columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; i < view->processes_n; i++)
		process_rows(&table, view, &view->processes[i]);
	if (table.cells_n > 0) {
		strbuf_addc(out, '\n');
		r = table_write(&table, options, out);
	} else {
		table_line(options, out, COLOUR_NONE,
			   "No wait for Python's GIL and no collection of garbage was seen.");
	}
	table_done(&table);
	for (uint32_t i = 0; r == 0 && i < view->processes_n; i++)
		process_lines(&view->processes[i], options, out);
	if (r == 0)
		unknown_line(view, options, out);
	return r;
}
