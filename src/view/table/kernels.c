// SPDX-License-Identifier: Apache-2.0
/*
 * Table of kernels: a row for each kernel of a process on a device.
 */
#include "view/table/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "view/kernels.h"
#include "view/shown.h"

struct kernel_row {
	const struct traced_kernel *kernel;
	const struct snapshot *s;
	double seconds; /* of all kernels */
	bool full; /* show full names */
	double v[KERNEL_METRICS];
	uint8_t p[KERNEL_METRICS];
};

/* ---- cells ---- */

static const char *mark(const struct kernel_row *row, unsigned metric)
{
	return row->p[metric] & PRESENCE_ESTIMATED ? "~" : "";
}

static void pid_cell(struct table *table, const struct kernel_row *row)
{
	table_cellf(table, COLOUR_NONE, "%" PRIu32, row->s->trace->processes[row->kernel->process].id.pid);
}

void kernels_gpu_cell(struct table *table, const struct snapshot *s, const char *uuid)
{
	const struct entity *e = entity_by_uuid(s, uuid);

	if (e && entity_is_mig(e))
		table_cellf(table, COLOUR_NONE, "%" PRIu32 "/%" PRIu32 "/%" PRIu32,
			    snapshot_gpu(s, e)->id.index, e->id.gi, e->id.ci);
	else if (e)
		table_cellf(table, COLOUR_NONE, "%" PRIu32, e->id.index);
	else
		table_cellf(table, COLOUR_NONE, "%.12s", uuid);
}

static void gpu_cell(struct table *table, const struct kernel_row *row)
{
	kernels_gpu_cell(table, row->s, row->kernel->uuid);
}

static void name_cell(struct table *table, const struct kernel_row *row)
{
	const struct kernel *k = row->kernel->kernel;

	if (!k)
		table_cell(table, COLOUR_DIM, "(others, of graphs too)");
	else
		table_cell(table, k->source == KERNEL_SOURCE_UNRESOLVED ? COLOUR_WARN : COLOUR_NONE,
			   row->full || !*k->brief ? k->name : k->brief);
}

static void launches_cell(struct table *table, const struct kernel_row *row)
{
	if (presence_is(row->p[KERNEL_METRIC_LAUNCHES]))
		table_cellf(table, COLOUR_NONE, "%s%" PRIu64, mark(row, KERNEL_METRIC_LAUNCHES),
			    row->kernel->all.launches);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void busy_cell(struct table *table, const struct kernel_row *row)
{
	static const struct {
		double unit;
		const char *name;
	} units[] = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" } };
	double seconds = row->v[KERNEL_METRIC_BUSY];
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(units) && seconds < units[i].unit)
		i++;
	if (presence_is(row->p[KERNEL_METRIC_BUSY]) && seconds <= 0)
		table_cell(table, COLOUR_NONE, "~0 s");
	else if (presence_is(row->p[KERNEL_METRIC_BUSY]))
		table_cellf(table, COLOUR_NONE, "%s%.1f %s", mark(row, KERNEL_METRIC_BUSY),
			    seconds / units[i].unit, units[i].name);
	else
		table_cell(table, COLOUR_NONE, "");
}

/* Mean of those that were measured. */
static void measured_cell(struct table *table, const struct kernel_row *row)
{
	const struct traced_kernel *k = row->kernel;

	if (k->measured > 0)
		table_cellf(table, COLOUR_NONE, "%" PRIu64 " x %.1f us", k->measured,
			    k->measured_seconds * 1e6 / (double)k->measured);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void share_cell(struct table *table, const struct kernel_row *row)
{
	if (presence_is(row->p[KERNEL_METRIC_BUSY]) && row->seconds > 0)
		table_cellf(table, COLOUR_NONE, "%s%.1f %%", mark(row, KERNEL_METRIC_BUSY),
			    row->v[KERNEL_METRIC_BUSY] / row->seconds * 100);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void occupancy_cell(struct table *table, const struct kernel_row *row)
{
	if (presence_is(row->p[KERNEL_METRIC_OCCUPANCY]))
		table_cellf(table, COLOUR_NONE, "%.0f %%", row->v[KERNEL_METRIC_OCCUPANCY] * 100);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void limiter_cell(struct table *table, const struct kernel_row *row)
{
	bool known = presence_is(row->p[KERNEL_METRIC_OCCUPANCY]);

	table_cell(table, COLOUR_NONE, known ? occupancy_limiter_name(row->kernel->occupancy.limiter) : "");
}

/* Average over the launches. */
static void threads_cell(struct table *table, const struct kernel_row *row)
{
	const struct traced_launches *all = &row->kernel->all;

	if (presence_is(row->p[KERNEL_METRIC_THREADS]) && all->launches > 0)
		table_cellf(table, COLOUR_NONE, "%.0f", (double)all->threads / (double)all->launches);
	else
		table_cell(table, COLOUR_NONE, "");
}

/* "64x2": without trailing ones; with "+" if there are other shapes. */
static void size_cell(struct table *table, const uint32_t size[3], bool more)
{
	unsigned n = size[2] != 1 ? 3 : size[1] != 1 ? 2 : 1;
	char text[40];
	int used = 0;

	for (unsigned i = 0; i < n; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%" PRIu32, i > 0 ? "x" : "",
				 size[i]);
	table_cellf(table, COLOUR_NONE, "%s%s", text, more ? "+" : "");
}

/* The grid of the most frequent shape; marked with "+" if there are others, since grids vary the most. */
static void grid_cell(struct table *table, const struct kernel_row *row)
{
	const struct traced_kernel *k = row->kernel;

	if (k->shapes_n > 0)
		size_cell(table, k->shapes[0].grid, k->shapes_n > 1 || k->other_shapes > 0);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void block_cell(struct table *table, const struct kernel_row *row)
{
	if (row->kernel->shapes_n > 0)
		size_cell(table, row->kernel->shapes[0].block, false);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void registers_cell(struct table *table, const struct kernel_row *row)
{
	const struct kernel *k = row->kernel->kernel;

	if (k && k->figures[KERNEL_REGISTERS] >= 0)
		table_cellf(table, COLOUR_NONE, "%" PRId64, k->figures[KERNEL_REGISTERS]);
	else
		table_cell(table, COLOUR_NONE, "");
}

/* Declared plus the dynamic memory of the most frequent shape. */
static void shared_cell(struct table *table, const struct kernel_row *row)
{
	const struct kernel *k = row->kernel->kernel;

	if (k && k->figures[KERNEL_STATIC_SHARED] >= 0 && row->kernel->shapes_n > 0)
		table_cellf(table, COLOUR_NONE, "%" PRId64 "+%" PRIu64, k->figures[KERNEL_STATIC_SHARED],
			    row->kernel->shapes[0].shared_bytes);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void source_cell(struct table *table, const struct kernel_row *row)
{
	const struct kernel *k = row->kernel->kernel;

	table_cell(table, k && k->source == KERNEL_SOURCE_UNRESOLVED ? COLOUR_WARN : COLOUR_NONE,
		   k ? kernel_source_name(k->source) : "");
}

/* ---- the table ---- */

/* Shown only if there is more than one, or any that was measured. */
enum condition { ALWAYS, IF_PROCESSES, IF_DEVICES, IF_MEASURED };

static const struct {
	struct table_column column;
	void (*cell)(struct table *table, const struct kernel_row *row);
	enum condition when;
} columns[] = {
	{ { .title = "PID", .right = true, .dispensable = 3 }, pid_cell, IF_PROCESSES },
	{ { .title = "GPU", .dispensable = 4 }, gpu_cell, IF_DEVICES },
	{ { .title = "LAUNCHES", .right = true }, launches_cell, ALWAYS },
	{ { .title = "BUSY", .right = true, .dispensable = 2 }, busy_cell, ALWAYS },
	{ { .title = "MEASURED", .right = true, .dispensable = 2 }, measured_cell, IF_MEASURED },
	{ { .title = "SHARE", .right = true, .dispensable = 1 }, share_cell, ALWAYS },
	{ { .title = "MEAN THREADS", .right = true, .dispensable = 8 }, threads_cell, ALWAYS },
	{ { .title = "GRID", .right = true, .dispensable = 9 }, grid_cell, ALWAYS },
	{ { .title = "BLOCK", .right = true, .dispensable = 5 }, block_cell, ALWAYS },
	{ { .title = "REGS", .right = true, .dispensable = 10 }, registers_cell, ALWAYS },
	{ { .title = "SHARED", .right = true, .dispensable = 11 }, shared_cell, ALWAYS },
	{ { .title = "OCC", .right = true, .dispensable = 6 }, occupancy_cell, ALWAYS },
	{ { .title = "LIMITED BY", .dispensable = 7 }, limiter_cell, ALWAYS },
	{ { .title = "NAMED BY", .dispensable = 12 }, source_cell, ALWAYS },
	{ { .title = "KERNEL", .flexible = true, .least = 20 }, name_cell, ALWAYS },
};

/* The view's rows in the order of the table. */
struct kernel_list {
	const struct snapshot *s;
	const struct traced_kernel **rows;
	size_t n;
	bool conditions[IF_MEASURED + 1];
	double seconds;
	/* of all; of kernels without a name; of kernels beyond the limit */
	uint64_t launches, unnamed, apart;
};

static int by_time(const void *a, const void *b)
{
	const struct traced_kernel *x = *(const struct traced_kernel *const *)a,
				   *y = *(const struct traced_kernel *const *)b;

	/* Rows that summarise several kernels come last. */
	if (!x->kernel != !y->kernel)
		return x->kernel ? -1 : 1;
	if (x->all.seconds != y->all.seconds)
		return x->all.seconds < y->all.seconds ? 1 : -1;
	if (x->all.launches != y->all.launches)
		return x->all.launches < y->all.launches ? 1 : -1;
	return x < y ? -1 : x > y;
}

static int list_init(struct kernel_list *list, const struct snapshot *s)
{
	const struct trace_view *view = s->trace;

	*list = (struct kernel_list){ .s = s, .n = view->kernels_n, .conditions[ALWAYS] = true };
	list->rows = calloc(list->n + 1, sizeof(*list->rows));
	if (!list->rows)
		return -ENOMEM;
	for (size_t i = 0; i < list->n; i++) {
		const struct traced_kernel *k = list->rows[i] = &view->kernels[i];

		list->conditions[IF_PROCESSES] |= k->process != view->kernels[0].process;
		list->conditions[IF_DEVICES] |= !STRV_EQ(k->uuid, view->kernels[0].uuid);
		list->conditions[IF_MEASURED] |= k->measured > 0;
		list->seconds += k->all.seconds;
		list->launches += k->all.launches;
		if (!k->kernel)
			list->apart += k->all.launches;
		else if (k->kernel->source == KERNEL_SOURCE_UNRESOLVED)
			list->unnamed += k->all.launches;
	}
	qsort(list->rows, list->n, sizeof(*list->rows), by_time);
	return 0;
}

static int write_table(const struct kernel_list *list, const struct table_options *options, bool full,
		       size_t rows, struct strbuf *out)
{
	struct table_column chosen[ARRAY_SIZE(columns)];
	unsigned n = 0;
	struct table table;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		if (list->conditions[columns[i].when])
			chosen[n++] = columns[i].column;
	table_init(&table, chosen, n);
	for (size_t i = 0; i < rows; i++) {
		struct kernel_row row = { list->rows[i], list->s, list->seconds, full, { 0 }, { 0 } };

		kernel_numbers(row.kernel, &row.kernel->all, row.v, row.p);
		for (size_t k = 0; k < ARRAY_SIZE(columns); k++)
			if (list->conditions[columns[k].when])
				columns[k].cell(&table, &row);
	}
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}

static const struct table_column unnamed_columns[] = {
	{ .title = "NOT NAMED", .flexible = true, .least = 16 },
	{ .title = "PID", .right = true },
	{ .title = "LAUNCHES", .right = true },
	{ .title = "OFFSET", .right = true },
	{ .title = "FILE", .flexible = true },
};

/* Lists the addresses of kernels without a name. */
static int write_unnamed(const struct kernel_list *list, const struct table_options *options,
			 struct strbuf *out)
{
	struct table table;
	int r;

	table_init(&table, unnamed_columns, ARRAY_SIZE(unnamed_columns));
	for (size_t i = 0; i < list->n; i++) {
		const struct traced_kernel *row = list->rows[i];
		const struct kernel *k = row->kernel;

		if (!k || k->source != KERNEL_SOURCE_UNRESOLVED)
			continue;
		table_cell(&table, COLOUR_WARN, k->symbol);
		table_cellf(&table, COLOUR_NONE, "%" PRIu32, list->s->trace->processes[row->process].id.pid);
		table_cellf(&table, COLOUR_NONE, "%" PRIu64, row->all.launches);
		if (*k->file)
			table_cellf(&table, COLOUR_NONE, "0x%" PRIx64, k->offset);
		else
			table_cell(&table, COLOUR_NONE, "");
		table_cell(&table, COLOUR_NONE, k->file);
	}
	strbuf_addc(out, '\n');
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}

static _printf_(3, 4) void add_line(const struct table_options *options, struct strbuf *out,
				    const char *format, ...)
{
	char line[200];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	table_line(options, out, COLOUR_WARN, line);
}

static void write_rest(const struct kernel_list *list, const struct table_options *options, size_t rows,
		       struct strbuf *out)
{
	uint64_t launches = 0;

	for (size_t i = rows; i < list->n; i++)
		launches += list->rows[i]->all.launches;
	if (rows < list->n)
		add_line(options, out, "and %zu more, with %" PRIu64 " launches", list->n - rows, launches);
	if (list->apart > 0)
		add_line(options, out,
			 "%" PRIu64 " of %" PRIu64
			 " launches are not told apart: beyond a limit, or function not read",
			 list->apart, list->launches);
	if (list->unnamed > 0)
		add_line(options, out, "%" PRIu64 " of %" PRIu64 " launches could not be named",
			 list->unnamed, list->launches);
}

int table_kernels(const struct snapshot *s, const struct table_options *options, bool full, size_t rows,
		  struct strbuf *out)
{
	struct kernel_list list;
	int r;

	if (!s->trace || s->trace->kernels_n == 0) {
		table_line(options, out, COLOUR_NONE, "No launch of a kernel was seen.");
		return 0;
	}
	r = list_init(&list, s);
	rows = r == 0 && rows > 0 ? MIN(rows, list.n) : list.n;
	if (r == 0)
		r = write_table(&list, options, full, rows, out);
	if (r == 0 && list.unnamed > 0)
		r = write_unnamed(&list, options, out);
	if (r == 0)
		write_rest(&list, options, rows, out);
	free(list.rows);
	return r;
}
