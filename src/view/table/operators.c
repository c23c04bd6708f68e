// SPDX-License-Identifier: Apache-2.0
/* Operators of PyTorch, for "gpusonde trace --torch". */
#include <inttypes.h>

#include "base/macro.h"
#include "model/trace.h"
#include "view/number.h"
#include "view/table/table.h"
#include "view/view.h"

enum { OF_PROCESS_MAX = 20 /* rows of a process; JSON has more */ };

static const struct table_column columns[] = {
	{ .title = "PID", .right = true }, /* only of processes */
	{ .title = "OPERATOR", .flexible = true },
	{ .title = "CALLS", .right = true },
	{ .title = "OUTERMOST", .right = true, .dispensable = 3 },
	{ .title = "PYTHON", .right = true, .dispensable = 2 },
	{ .title = "LAUNCHES", .right = true },
	{ .title = "BUSY", .right = true },
	{ .title = "SHARE", .right = true },
	{ .title = "COPIED", .right = true, .dispensable = 1 },
	{ .title = "ALLOCATED", .right = true, .dispensable = 1 },
	{ .title = "WAITED", .right = true, .dispensable = 1 },
	{ .title = "TENSORS", .right = true, .dispensable = 1 },
	{ .title = "HELD", .right = true },
	{ .title = "NODES", .right = true, .dispensable = 2 },
	{ .title = "BACKWARD", .right = true, .dispensable = 1 },
};

static const char *estimate_mark(uint8_t presence)
{
	return presence & PRESENCE_ESTIMATED ? "~" : "";
}

static void count_cell(struct table *table, const struct traced_operator *op, enum operator_metric row)
{
	if (presence_is(op->p[row]))
		table_cellf(table, COLOUR_NONE, "%s%.0f", estimate_mark(op->p[row]), op->v[row]);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void bytes_cell(struct table *table, const struct traced_operator *op, enum operator_metric row)
{
	char bytes[BYTES_TEXT];

	if (!presence_is(op->p[row])) {
		table_cell(table, COLOUR_NONE, "");
		return;
	}
	bytes_text(op->v[row], bytes);
	table_cellf(table, COLOUR_NONE, "%s%s", estimate_mark(op->p[row]), bytes);
}

static void seconds_cell(struct table *table, const struct traced_operator *op, enum operator_metric row)
{
	if (presence_is(op->p[row]))
		table_cellf(table, COLOUR_NONE, "%s%.3f s", estimate_mark(op->p[row]), op->v[row]);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void operator_row(struct table *table, const struct traced_operator *op, double seconds)
{
	double busy = op->v[OPERATOR_METRIC_BUSY];

	table_cell(table, *op->name ? COLOUR_NONE : COLOUR_DIM,
		   *op->name ? op->name : "(outside of operators)");
	count_cell(table, op, OPERATOR_METRIC_CALLS);
	count_cell(table, op, OPERATOR_METRIC_OUTERMOST);
	count_cell(table, op, OPERATOR_METRIC_BINDING);
	count_cell(table, op, OPERATOR_METRIC_LAUNCHES);
	seconds_cell(table, op, OPERATOR_METRIC_BUSY);
	if (presence_is(op->p[OPERATOR_METRIC_BUSY]) && seconds > 0)
		table_cellf(table, COLOUR_NONE, "~%.1f %%", busy / seconds * 100);
	else
		table_cell(table, COLOUR_NONE, "");
	bytes_cell(table, op, OPERATOR_METRIC_COPIED);
	bytes_cell(table, op, OPERATOR_METRIC_ALLOCATED);
	seconds_cell(table, op, OPERATOR_METRIC_WAIT);
	bytes_cell(table, op, OPERATOR_METRIC_TENSORS);
	bytes_cell(table, op, OPERATOR_METRIC_HELD);
	count_cell(table, op, OPERATOR_METRIC_NODES);
	seconds_cell(table, op, OPERATOR_METRIC_BACKWARD_BUSY);
}

/* Whether anything is known of it. */
static bool has_figures(const struct traced_operator *op)
{
	for (unsigned row = 0; row < OPERATOR_METRICS; row++)
		if (presence_is(op->p[row]) && op->v[row] > 0)
			return true;
	return false;
}

static double seconds_of(const struct traced_operator *operators, uint32_t n)
{
	double seconds = 0;

	for (uint32_t i = 0; i < n; i++)
		seconds += operators[i].v[OPERATOR_METRIC_BUSY];
	return seconds;
}

static void process_rows(struct table *table, const struct torch_view *view,
			 const struct torch_process *process)
{
	const struct traced_operator *operators = &view->operators[process->operators_first];
	double seconds = seconds_of(operators, process->operators_n);

	for (uint32_t i = 0; i < process->operators_n && i < OF_PROCESS_MAX; i++) {
		table_cellf(table, process->exited ? COLOUR_DIM : COLOUR_NONE, "%" PRIu32, process->pid);
		operator_row(table, &operators[i], seconds);
	}
}

/* Of one process alone there would be the same as of all. */
static int table_by_process(const struct torch_view *view, const struct table_options *options,
			    struct strbuf *out)
{
	struct table table;
	uint32_t callers = 0;
	int r;

	for (uint32_t i = 0; i < view->processes_n; i++)
		callers += view->processes[i].operators_n > 0;
	if (callers < 2)
		return 0;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; i < view->processes_n; i++)
		process_rows(&table, view, &view->processes[i]);
	strbuf_addc(out, '\n');
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}

int table_operators(const struct trace_view *view, const struct table_options *options, size_t rows,
		    struct strbuf *out)
{
	double seconds = seconds_of(view->operators, view->operators_n);
	struct table table;
	size_t shown = 0;
	int r = 0;

	table_init(&table, columns + 1, ARRAY_SIZE(columns) - 1);
	for (uint32_t i = 0; i < view->operators_n && (rows == 0 || shown < rows); i++)
		if (has_figures(&view->operators[i])) {
			operator_row(&table, &view->operators[i], seconds);
			shown++;
		}
	if (shown > 0)
		r = table_write(&table, options, out);
	else
		strbuf_adds(out, "No operator of PyTorch was called.\n");
	table_done(&table);
	return r == 0 && view->torch ? table_by_process(view->torch, options, out) : r;
}
