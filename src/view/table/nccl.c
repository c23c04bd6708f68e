// SPDX-License-Identifier: Apache-2.0
#include "view/nccl.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/macro.h"
#include "view/number.h"
#include "view/table/parts.h"
#include "view/table/table.h"

static const struct table_column row_columns[] = {
	{ .title = "PID", .right = true },
	{ .title = "OPERATION", .flexible = true, .least = 12 },
	{ .title = "RANKS", .right = true },
	{ .title = "CALLS", .right = true },
	{ .title = "FAILED", .right = true, .dispensable = 2 },
	{ .title = "GROUPED", .right = true, .dispensable = 3 },
	{ .title = "ARGUMENT", .right = true, .dispensable = 4 },
	{ .title = "TRAFFIC", .right = true },
	{ .title = "IN CALLS", .right = true, .dispensable = 1 },
};

static void operation_row(struct table *table, const struct nccl_process *process, const struct nccl_row *row)
{
	char ranks[NCCL_SIZE_TEXT], bytes[BYTES_TEXT], traffic[BYTES_TEXT];

	nccl_size_text(row->ranks, ranks);
	bytes_text((double)row->bytes, bytes);
	bytes_text((double)row->traffic, traffic);
	table_cellf(table, process->exited ? COLOUR_DIM : COLOUR_NONE, "%" PRIu32, process->pid);
	table_cell(table, COLOUR_NONE, nccl_operation_name((enum nccl_operation)row->operation));
	table_cell(table, COLOUR_NONE, row->ranks == NCCL_RANKS_UNKNOWN ? "" : ranks);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, row->calls);
	table_cellf(table, row->failed ? COLOUR_BAD : COLOUR_NONE, "%" PRIu64, row->failed);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, row->grouped);
	table_cell(table, COLOUR_NONE, bytes);
	table_cell(table, COLOUR_NONE, row->unsized ? "" : traffic);
	table_seconds(table, row->seconds);
}

static const struct table_column communicator_columns[] = {
	{ .title = "PID", .right = true },         { .title = "COMMUNICATOR", .flexible = true, .least = 18 },
	{ .title = "RANK", .right = true },        { .title = "RANKS", .right = true },
	{ .title = "COLLECTIVES", .right = true }, { .title = "SEND/RECV", .right = true },
	{ .title = "STATE", .flexible = true },
};

static void number_cell(struct table *table, bool known, int64_t number)
{
	if (known)
		table_cellf(table, COLOUR_NONE, "%" PRId64, number);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void communicator_row(struct table *table, const struct nccl_process *process,
			     const struct nccl_communicator *c)
{
	table_cellf(table, process->exited ? COLOUR_DIM : COLOUR_NONE, "%" PRIu32, process->pid);
	if (c->id)
		table_cellf(table, COLOUR_NONE, "0x%" PRIx64, c->id);
	else
		table_cell(table, COLOUR_NONE, "");
	number_cell(table, c->rank >= 0, c->rank);
	number_cell(table, c->ranks > 0, c->ranks);
	table_cellf(table, COLOUR_NONE, "%s%" PRIu64, c->late ? ">" : "", c->sequence);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, c->point_to_point);
	if (c->async_error)
		table_cell(table, COLOUR_BAD,
			   nccl_error_words(c->async_error) ? nccl_error_words(c->async_error) : "failed");
	else
		table_cell(table, COLOUR_NONE, c->ended ? "ended" : "alive");
}

static int write_table(struct table *table, const struct table_options *options, struct strbuf *out)
{
	int r = 0;

	if (table->cells_n > 0) {
		strbuf_addc(out, '\n');
		r = table_write(table, options, out);
	}
	table_done(table);
	return r;
}

static int write_communicators(const struct nccl_view *view, const struct table_options *options,
			       struct strbuf *out)
{
	struct table table;

	table_init(&table, communicator_columns, ARRAY_SIZE(communicator_columns));
	for (uint32_t i = 0; i < view->processes_n; i++)
		for (uint32_t k = 0; k < view->processes[i].communicators_n; k++)
			communicator_row(&table, &view->processes[i],
					 &view->communicators[view->processes[i].communicators_first + k]);
	return write_table(&table, options, out);
}

int table_nccl(const struct nccl_view *view, const struct table_options *options, struct strbuf *out)
{
	struct table table;
	char text[160];
	int r;

	if (view->rows_n == 0 && view->communicators_n == 0) {
		table_line(options, out, COLOUR_NONE, "No operation of NCCL was seen.");
		return 0;
	}
	table_init(&table, row_columns, ARRAY_SIZE(row_columns));
	for (uint32_t i = 0; i < view->processes_n; i++)
		for (uint32_t k = 0; k < view->processes[i].rows_n; k++)
			operation_row(&table, &view->processes[i],
				      &view->rows[view->processes[i].rows_first + k]);
	r = write_table(&table, options, out);
	if (r == 0)
		r = write_communicators(view, options, out);
	if (r == 0 && view->groups > 0) {
		snprintf(text, sizeof(text), "%" PRIu64 " groups, %.3f ms each from their start to their end",
			 view->groups, view->group_seconds * 1e3 / (double)view->groups);
		table_line(options, out, COLOUR_NONE, text);
	}
	if (r == 0 && view->beyond > 0) {
		snprintf(text, sizeof(text), "%" PRIu64 " operations are of further processes, and in no row",
			 view->beyond);
		table_line(options, out, COLOUR_NONE, text);
	}
	return r;
}
