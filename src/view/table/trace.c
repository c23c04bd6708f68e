// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of "gpusonde trace".
 */
#include "view/trace_summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"
#include "view/number.h"
#include "view/table/table.h"

static void format_ns(double ns, char buf[static 16])
{
	static const struct {
		double unit;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (ns >= units[i].unit || i + 1 == ARRAY_SIZE(units)) {
			snprintf(buf, 16, "%.*f %s", i + 1 == ARRAY_SIZE(units) ? 0 : 1, ns / units[i].unit,
				 units[i].name);
			return;
		}
}

/* Without a return probe errors, bytes and latencies are unknown, not zero. */
static bool ends_seen(const struct traced_call *call)
{
	return call->timed > 0;
}

/* A column of a table; some make sense only in a table that is redrawn, and are omitted from a summary. */
struct column {
	struct table_column column;
	bool live;
};

static unsigned choose_columns(const struct column *from, unsigned n, bool live, struct table_column *to)
{
	unsigned chosen = 0;

	for (unsigned i = 0; i < n; i++)
		if (live || !from[i].live)
			to[chosen++] = from[i].column;
	return chosen;
}

static const struct column call_columns[] = {
	{ { .title = "CALL", .flexible = true, .least = 24 }, false },
	{ { .title = "COUNT", .right = true }, false },
	{ { .title = "/S", .right = true, .dispensable = 1 }, true },
	{ { .title = "ERRORS", .right = true }, false },
	{ { .title = "P50", .right = true }, false },
	{ { .title = "P95", .right = true, .dispensable = 4 }, false },
	{ { .title = "P99", .right = true, .dispensable = 2 }, false },
	{ { .title = "TOTAL", .right = true, .dispensable = 3 }, false },
	{ { .title = "BYTES", .right = true, .dispensable = 5 }, false },
};

static int by_time(const void *a, const void *b)
{
	const struct traced_call *x = *(const struct traced_call *const *)a,
				 *y = *(const struct traced_call *const *)b;

	if (x->seconds != y->seconds)
		return x->seconds < y->seconds ? 1 : -1;
	return x->count < y->count ? 1 : x->count > y->count ? -1 : x < y ? -1 : x > y;
}

static void time_cell(struct table *table, double ns, bool known)
{
	char text[16];

	format_ns(ns, text);
	table_cell(table, COLOUR_NONE, known ? text : "");
}

/* The name that a person reads: of a C++ function that the user named, demangled. */
static void name_cell(struct table *table, const struct trace_summary *summary,
		      const struct traced_call *call)
{
	char name[512];

	if (call->library && summary->name) {
		summary->name(call->api, name, sizeof(name));
		table_cell(table, COLOUR_NONE, name);
	} else {
		table_cell(table, COLOUR_NONE, call->api);
	}
}

static void call_row(struct table *table, const struct trace_summary *summary, const struct traced_call *call,
		     const double *rate)
{
	bool known = ends_seen(call);
	char bytes[BYTES_TEXT], errors[24];

	name_cell(table, summary, call);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, call->count);
	if (rate)
		table_cellf(table, COLOUR_NONE, "%.0f", *rate);
	snprintf(errors, sizeof(errors), "%" PRIu64, call->errors);
	table_cell(table, call->errors > 0 ? COLOUR_BAD : COLOUR_NONE, known ? errors : "");
	time_cell(table, call->p50_ns, known);
	time_cell(table, call->p95_ns, known);
	time_cell(table, call->p99_ns, known);
	time_cell(table, call->seconds * 1e9, known);
	bytes_text((double)call->bytes, bytes);
	table_cell(table, COLOUR_NONE, call->bytes > 0 ? bytes : "");
}

static int write_calls(const struct traced_call *const *calls, size_t n, const struct trace_summary *summary,
		       const struct table_options *options, struct strbuf *out)
{
	struct table_column columns[ARRAY_SIZE(call_columns)];
	unsigned columns_n = choose_columns(call_columns, ARRAY_SIZE(call_columns), summary->rates, columns);
	struct table table;
	int r;

	table_init(&table, columns, columns_n);
	for (size_t i = 0; i < n; i++)
		call_row(&table, summary, calls[i],
			 summary->rates ? &summary->rates[calls[i] - summary->view->all_calls] : NULL);
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}

static const struct table_column error_columns[] = {
	{ .title = "FAILED CALL", .flexible = true, .least = 24 },
	{ .title = "COUNT", .right = true },
	{ .title = "CODE", .right = true },
	{ .title = "MEANING", .flexible = true },
};

static void error_rows(struct table *table, const struct trace_summary *summary,
		       const struct traced_call *call)
{
	for (uint32_t i = 0; i < call->errors_n; i++) {
		const struct traced_error *error = &summary->view->errors[call->errors_first + i];

		name_cell(table, summary, call);
		table_cellf(table, COLOUR_BAD, "%" PRIu64, error->count);
		if (error->code == INT32_MIN)
			table_cell(table, COLOUR_NONE, "others");
		else
			table_cellf(table, COLOUR_NONE, "%" PRId32, error->code);
		table_cell(table, COLOUR_NONE, error->words);
	}
}

static int write_errors(const struct traced_call *const *calls, size_t n, const struct trace_summary *summary,
			const struct table_options *options, struct strbuf *out)
{
	struct table table;
	int r = 0;

	table_init(&table, error_columns, ARRAY_SIZE(error_columns));
	for (size_t i = 0; i < n; i++)
		error_rows(&table, summary, calls[i]);
	if (table.cells_n > 0) {
		strbuf_addc(out, '\n');
		r = table_write(&table, options, out);
	}
	table_done(&table);
	return r;
}

static const struct table_column argument_columns[] = {
	{ .title = "FUNCTION", .flexible = true, .least = 24 },
	{ .title = "ARGUMENT" },
	{ .title = "COUNT", .right = true },
	{ .title = "MIN", .right = true },
	{ .title = "MEAN", .right = true },
	{ .title = "MAX", .right = true },
	{ .title = "VALUES", .flexible = true },
};

static void argument_number(struct table *table, const struct traced_argument *argument, uint64_t value)
{
	if (argument->is_signed)
		table_cellf(table, COLOUR_NONE, "%" PRId64, (int64_t)value);
	else
		table_cellf(table, COLOUR_NONE, argument->type[0] == 'x' ? "0x%" PRIx64 : "%" PRIu64, value);
}

/* The most frequent ones first. */
static void argument_values(struct table *table, const struct traced_argument *argument)
{
	bool shown[TRACED_VALUES] = { false };
	struct strbuf text;

	strbuf_init(&text, 0);
	for (uint32_t n = 0; n < argument->values_n; n++) {
		uint32_t most = argument->values_n;

		for (uint32_t i = 0; i < argument->values_n; i++)
			if (!shown[i] && (most == argument->values_n ||
					  argument->values[i].count > argument->values[most].count))
				most = i;
		shown[most] = true;
		strbuf_addf(&text, "%s%" PRIu64 " x \"%s\"", n ? ", " : "", argument->values[most].count,
			    argument->values[most].text);
	}
	if (argument->others > 0)
		strbuf_addf(&text, ", %" PRIu64 " others", argument->others);
	if (argument->unread > 0)
		strbuf_addf(&text, "%s%" PRIu64 " not readable", text.len ? ", " : "", argument->unread);
	table_cell(table, COLOUR_NONE, text.data);
	strbuf_done(&text);
}

static void argument_row(struct table *table, const struct trace_summary *summary,
			 const struct traced_call *call, const struct traced_argument *argument)
{
	name_cell(table, summary, call);
	table_cellf(table, COLOUR_NONE, "arg%" PRIu32, argument->position);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, argument->count);
	if (argument->is_text) {
		for (unsigned i = 0; i < 3; i++)
			table_cell(table, COLOUR_NONE, "");
		argument_values(table, argument);
		return;
	}
	if (argument->count == 0) {
		for (unsigned i = 0; i < 4; i++)
			table_cell(table, COLOUR_NONE, "");
		return;
	}
	argument_number(table, argument, argument->min);
	if (argument->type[0] == 'x')
		table_cell(table, COLOUR_NONE, "");
	else
		table_cellf(table, COLOUR_NONE, "%.1f", argument->sum / (double)argument->count);
	argument_number(table, argument, argument->max);
	table_cell(table, COLOUR_NONE, "");
}

/* Of functions that the user named. */
static int write_arguments(const struct traced_call *const *calls, size_t n,
			   const struct trace_summary *summary, const struct table_options *options,
			   struct strbuf *out)
{
	struct table table;
	int r = 0;

	table_init(&table, argument_columns, ARRAY_SIZE(argument_columns));
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < calls[i]->arguments_n; k++)
			argument_row(&table, summary, calls[i],
				     &summary->view->arguments[calls[i]->arguments_first + k]);
	if (table.cells_n > 0) {
		strbuf_addc(out, '\n');
		r = table_write(&table, options, out);
	}
	table_done(&table);
	return r;
}

static int write_all_calls(const struct trace_summary *summary, const struct table_options *options,
			   struct strbuf *out)
{
	const struct trace_view *view = summary->view;
	_cleanup_free_ const struct traced_call **sorted = calloc(view->all_calls_n + 1, sizeof(*sorted));
	int r;

	if (!sorted)
		return -ENOMEM;
	if (view->all_calls_n == 0)
		return 0;
	for (uint32_t i = 0; i < view->all_calls_n; i++)
		sorted[i] = &view->all_calls[i];
	qsort(sorted, view->all_calls_n, sizeof(*sorted), by_time);
	r = write_calls(sorted, view->all_calls_n, summary, options, out);
	if (r >= 0)
		r = write_errors(sorted, view->all_calls_n, summary, options, out);
	return r < 0 ? r : write_arguments(sorted, view->all_calls_n, summary, options, out);
}

static const struct column process_columns[] = {
	{ { .title = "PID", .right = true }, false },
	{ { .title = "COMMAND", .flexible = true }, false },
	{ { .title = "CALLS", .right = true }, false },
	{ { .title = "ERRORS", .right = true }, false },
	{ { .title = "IN CALLS", .right = true, .dispensable = 1 }, false },
	{ { .title = "COST", .right = true, .dispensable = 2 }, true },
	{ { .title = "INCOMPLETE" }, false },
};

static void incomplete_text(const struct traced_process *process, struct strbuf *out)
{
	const char *unplaced = traced_unplaced_name(process->unplaced);

	for (unsigned bit = 0; traced_incomplete_name(bit); bit++)
		if (process->incomplete & 1u << bit)
			strbuf_addf(out, "%s%s", out->len > 0 ? "," : "", traced_incomplete_name(bit));
	if (unplaced)
		strbuf_addf(out, "%sdevice_unknown:%s", out->len > 0 ? "," : "", unplaced);
}

static void process_row(struct table *table, const struct trace_view *view,
			const struct traced_process *process, bool live)
{
	uint64_t calls = 0, errors = 0;
	double seconds = 0;
	struct strbuf why;

	for (uint32_t i = 0; i < process->calls_n; i++) {
		const struct traced_call *call = &view->calls[process->calls_first + i];

		calls += call->count;
		errors += call->errors;
		seconds += call->seconds;
	}
	strbuf_init(&why, 0);
	incomplete_text(process, &why);
	table_cellf(table, COLOUR_NONE, "%" PRIu32, process->id.pid);
	table_cell(table, process->exited ? COLOUR_DIM : COLOUR_NONE, process->comm);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, calls);
	if (seconds > 0)
		table_cellf(table, errors > 0 ? COLOUR_BAD : COLOUR_NONE, "%" PRIu64, errors);
	else
		table_cell(table, COLOUR_NONE, "");
	time_cell(table, seconds * 1e9, seconds > 0);
	if (live && process->exited)
		table_cell(table, COLOUR_NONE, "");
	else if (live)
		table_cellf(table, COLOUR_NONE, "~%.2f %%", process->overhead * 100);
	table_cell(table, COLOUR_WARN, why.data);
	strbuf_done(&why);
}

static int write_processes(const struct trace_summary *summary, const struct table_options *options,
			   struct strbuf *out)
{
	struct table_column columns[ARRAY_SIZE(process_columns)];
	unsigned columns_n =
		choose_columns(process_columns, ARRAY_SIZE(process_columns), summary->rates, columns);
	struct table table;
	int r;

	table_init(&table, columns, columns_n);
	for (uint32_t i = 0; i < summary->view->processes_n; i++)
		process_row(&table, summary->view, &summary->view->processes[i], summary->rates);
	r = table_write(&table, options, out);
	strbuf_addc(out, '\n');
	table_done(&table);
	return r;
}

static _printf_(4, 5) void add_line(const struct table_options *options, enum table_colour colour,
				    struct strbuf *out, const char *format, ...)
{
	char line[320];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	table_line(options, out, colour, line);
}

void table_trace_status(const struct trace_summary *s, const struct table_options *options,
			struct strbuf *out)
{
	char cost[16];

	format_ns(s->cost_seconds * 1e9, cost);
	if (s->attached > 0) {
		add_line(options, COLOUR_DIM, out, "%" PRIu32 " %s on %" PRIu32 " %s, attached by %s",
			 s->attached, s->attached == 1 ? "probe" : "probes", s->files,
			 s->files == 1 ? "file" : "files", s->backend);
		add_line(options, COLOUR_DIM, out, "they cost the traced programs about %s", cost);
	}
	if (s->dropped > 0)
		add_line(options, COLOUR_WARN, out,
			 "%" PRIu64 " of %" PRIu64 " events were lost; a larger --trace-buffer holds more",
			 s->dropped, s->produced);
	if (s->refused > 0)
		add_line(options, COLOUR_WARN, out,
			 "%" PRIu32 " entry points have no probe: \"gpusonde probes FILE\" says why",
			 s->refused);
	if (s->given_up > 0 || s->groups_given_up)
		add_line(options, COLOUR_WARN, out,
			 "INCOMPLETE: probes were taken away, since they cost more than --max-overhead: "
			 "counts are too low");
	if (s->uncounted_hits > 0 || s->lost_processes > 0)
		add_line(options, COLOUR_BAD, out,
			 "INCOMPLETE: tables were full: %" PRIu64 " hits are not counted, %" PRIu64
			 " processes not shown",
			 s->uncounted_hits, s->lost_processes);
	if (s->driver_only)
		add_line(options, COLOUR_DIM, out,
			 "without return probes the driver's library alone is probed, and how calls end is "
			 "not known");
}

static void write_nothing(const struct trace_summary *summary, const struct table_options *options,
			  struct strbuf *out)
{
	if (summary->files == 0)
		table_line(options, out, COLOUR_NONE,
			   "No calls of CUDA were seen: no process has mapped a CUDA library, or a program "
			   "that contains one.");
	else
		table_line(options, out, COLOUR_NONE,
			   "No calls of CUDA were seen, though libraries are probed.");
}

int table_trace(const struct trace_summary *summary, const struct table_options *options, struct strbuf *out)
{
	int r;

	if (summary->view->processes_n == 0) {
		write_nothing(summary, options, out);
		return 0;
	}
	r = write_processes(summary, options, out);
	if (r == 0)
		r = write_all_calls(summary, options, out);
	strbuf_addc(out, '\n');
	return r;
}
