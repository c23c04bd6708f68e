// SPDX-License-Identifier: Apache-2.0
#include "view/blas.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/macro.h"
#include "view/table/table.h"

enum { ROWS_MAX = 20 }; /* of a process; JSON has all */

static const struct table_column columns[] = {
	{ .title = "PID", .right = true },
	{ .title = "PRECISION" },
	{ .title = "M", .right = true },
	{ .title = "N", .right = true },
	{ .title = "K", .right = true },
	{ .title = "BATCH", .right = true, .dispensable = 1 },
	{ .title = "TYPES", .flexible = true, .least = 10, .dispensable = 2 },
	{ .title = "CALLS", .right = true },
	{ .title = "FLOP", .right = true },
};

enum { FLOP_TEXT = 24 };

static void flop_text(double flop, char buf[static FLOP_TEXT])
{
	static const char *const units[] = { "", " k", " M", " G", " T", " P", " E", " Z" };
	size_t i = 0;

	while (flop >= 999.95 && i + 1 < ARRAY_SIZE(units)) {
		flop /= 1000;
		i++;
	}
	snprintf(buf, FLOP_TEXT, i == 0 ? "%.0f%s" : "%.1f%s", flop, units[i]);
}

static void types_cell(struct table *table, const struct blas_shape *shape)
{
	const char *names[BLAS_COMPUTE], *compute = blas_compute_name(shape->types[BLAS_COMPUTE]);

	for (unsigned i = 0; i < BLAS_COMPUTE; i++)
		names[i] = blas_type_name(shape->types[i]) ? blas_type_name(shape->types[i]) : "?";
	table_cellf(table, COLOUR_NONE, "%s x %s > %s%s%s", names[BLAS_A], names[BLAS_B], names[BLAS_C],
		    compute ? ", " : "", compute ? compute : "");
}

static void pid_cell(struct table *table, const struct blas_process *process)
{
	table_cellf(table, process->exited ? COLOUR_DIM : COLOUR_NONE, "%" PRIu32, process->pid);
}

static void sum_cells(struct table *table, const struct blas_sum *sum)
{
	char text[FLOP_TEXT];

	flop_text(sum->flop, text);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, sum->calls);
	table_cell(table, COLOUR_NONE, text);
}

static void shape_row(struct table *table, const struct blas_process *process, const struct blas_row *row)
{
	const struct blas_shape *shape = &row->shape;

	pid_cell(table, process);
	table_cell(table, COLOUR_NONE, blas_precision_name((enum blas_precision)shape->precision));
	table_cellf(table, COLOUR_NONE, "%" PRIu64, shape->m);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, shape->n);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, shape->k);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, shape->batch);
	types_cell(table, shape);
	sum_cells(table, &row->sum);
}

/* Shapes that have no row here. */
static void others_row(struct table *table, const struct blas_process *process, const struct blas_sum *others)
{
	if (others->calls == 0)
		return;
	pid_cell(table, process);
	table_cell(table, COLOUR_NONE, "other shapes");
	for (unsigned i = 0; i < 5; i++)
		table_cell(table, COLOUR_NONE, "");
	sum_cells(table, others);
}

static void process_rows(struct table *table, const struct blas_view *view,
			 const struct blas_process *process)
{
	struct blas_sum others = process->others;

	for (uint32_t k = 0; k < process->rows_n; k++) {
		const struct blas_row *row = &view->rows[process->rows_first + k];

		if (k < ROWS_MAX) {
			shape_row(table, process, row);
			continue;
		}
		others.calls += row->sum.calls;
		others.flop += row->sum.flop;
	}
	others_row(table, process, &others);
}

static void process_lines(const struct blas_process *process, const struct table_options *options,
			  struct strbuf *out)
{
	char text[200];

	if (process->unsized > 0) {
		snprintf(text, sizeof(text),
			 "PID %" PRIu32 ": the sizes of %" PRIu64
			 " multiplications are not known; they are in no sum",
			 process->pid, process->unsized);
		table_line(options, out, COLOUR_NONE, text);
	}
	if (process->failed > 0) {
		snprintf(text, sizeof(text), "PID %" PRIu32 ": %" PRIu64 " multiplications failed",
			 process->pid, process->failed);
		table_line(options, out, COLOUR_BAD, text);
	}
	if (process->peak_share >= 0) {
		snprintf(text, sizeof(text),
			 "PID %" PRIu32
			 ": at its peak the board would take %.1f %% of the time that it worked "
			 "(estimated)",
			 process->pid, process->peak_share * 100);
		table_line(options, out, COLOUR_NONE, text);
	}
}

int table_blas(const struct blas_view *view, const struct table_options *options, struct strbuf *out)
{
	struct table table;
	char text[96];
	int r = 0;

	if (view->processes_n == 0) {
		table_line(options, out, COLOUR_NONE, "No multiplication of cuBLAS was seen.");
		return 0;
	}
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; i < view->processes_n; i++)
		process_rows(&table, view, &view->processes[i]);
	if (table.cells_n > 0) {
		strbuf_addc(out, '\n');
		r = table_write(&table, options, out);
	}
	table_done(&table);
	for (uint32_t i = 0; r == 0 && i < view->processes_n; i++)
		process_lines(&view->processes[i], options, out);
	if (r == 0 && view->beyond > 0) {
		snprintf(text, sizeof(text),
			 "%" PRIu64 " multiplications are of further processes, and in no row", view->beyond);
		table_line(options, out, COLOUR_NONE, text);
	}
	return r;
}
