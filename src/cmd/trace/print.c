// SPDX-License-Identifier: Apache-2.0
/* What "gpusonde trace" shows of its sums: tables, or one JSON document. */
#include "cmd/trace/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cmd/trace/kernels.h"
#include "model/trace.h"
#include "pipeline/pipeline.h"
#include "view/table.h"

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

static void format_bytes(uint64_t bytes, char buf[static 16])
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < ARRAY_SIZE(names)) {
		value /= 1024;
		unit++;
	}
	snprintf(buf, 16, "%.*f %s", unit > 0 ? 1 : 0, value, names[unit]);
}

/* Without a return probe there are no errors, bytes or latencies, which is not the same as none of them. */
static bool ends_seen(const struct trace_sum *sum)
{
	return trace_sum_below(sum, UINT64_MAX) > 0;
}

/*
 * A column of a table; one that only means something in a table that is drawn again and again is left out of
 * a summary.
 */
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
	{ { .title = "CALL" }, false },
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
	const struct trace_sum *x = *(const struct trace_sum *const *)a,
			       *y = *(const struct trace_sum *const *)b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return x->count < y->count ? 1 : x->count > y->count ? -1 : (int)x->call - (int)y->call;
}

static void time_cell(struct table *table, double ns, bool known)
{
	char text[16];

	format_ns(ns, text);
	table_cell(table, COLOUR_NONE, known ? text : "");
}

static void call_row(struct table *table, const struct trace_sum *sum, uint64_t before, double seconds)
{
	bool known = ends_seen(sum);
	char bytes[16], errors[24];

	table_cell(table, COLOUR_NONE, probes[sum->call].symbol);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, sum->count);
	if (seconds > 0)
		table_cellf(table, COLOUR_NONE, "%.0f",
			    (double)(sum->count - MIN(before, sum->count)) / seconds);
	snprintf(errors, sizeof(errors), "%" PRIu64, sum->errors);
	table_cell(table, sum->errors > 0 ? COLOUR_BAD : COLOUR_NONE, known ? errors : "");
	time_cell(table, trace_sum_quantile(sum, 0.5), known);
	time_cell(table, trace_sum_quantile(sum, 0.95), known);
	time_cell(table, trace_sum_quantile(sum, 0.99), known);
	time_cell(table, (double)sum->total_ns, known);
	format_bytes(sum->bytes, bytes);
	table_cell(table, COLOUR_NONE, sum->bytes > 0 ? bytes : "");
}

static int print_calls(const struct trace_sum *const *sums, size_t n, struct trace_report *report,
		       const struct table_options *options, double seconds, struct strbuf *out)
{
	struct table_column columns[ARRAY_SIZE(call_columns)];
	unsigned columns_n = choose_columns(call_columns, ARRAY_SIZE(call_columns), seconds > 0, columns);
	struct table table;
	int r;

	table_init(&table, columns, columns_n);
	for (size_t i = 0; i < n; i++)
		call_row(&table, sums[i], report->calls_before[sums[i]->call], seconds);
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}

static const struct table_column error_columns[] = {
	{ .title = "FAILED CALL" },
	{ .title = "COUNT", .right = true },
	{ .title = "CODE", .right = true },
	{ .title = "MEANING", .flexible = true },
};

static void error_rows(struct table *table, const struct trace_sum *sum)
{
	for (unsigned i = 0; i < TRACE_ERROR_CODES_MAX && sum->codes[i].count > 0; i++) {
		const char *words = pipeline_error_words(sum->call, sum->codes[i].code);

		table_cell(table, COLOUR_NONE, probes[sum->call].symbol);
		table_cellf(table, COLOUR_BAD, "%" PRIu64, sum->codes[i].count);
		if (sum->codes[i].code == INT32_MIN)
			table_cell(table, COLOUR_NONE, "others");
		else
			table_cellf(table, COLOUR_NONE, "%d", (int)sum->codes[i].code);
		table_cell(table, COLOUR_NONE, words ? words : "");
	}
}

static int print_errors(const struct trace_sum *const *sums, size_t n, const struct table_options *options,
			struct strbuf *out)
{
	struct table table;
	int r = 0;

	table_init(&table, error_columns, ARRAY_SIZE(error_columns));
	for (size_t i = 0; i < n; i++)
		error_rows(&table, sums[i]);
	if (table.cells_n > 0) {
		strbuf_addc(out, '\n');
		r = table_write(&table, options, out);
	}
	table_done(&table);
	return r;
}

static int print_sums(struct trace_report *report, const struct table_options *options, double seconds,
		      struct strbuf *out)
{
	const struct trace_sum *sorted[TRACE_CALLS_MAX];
	size_t n = 0;
	int r;

	for (unsigned call = 0; call < probes_n; call++)
		if (report->calls[call].count > 0)
			sorted[n++] = &report->calls[call];
	if (n == 0)
		return 0;
	qsort(sorted, n, sizeof(*sorted), by_time);
	r = print_calls(sorted, n, report, options, seconds, out);
	return r < 0 ? r : print_errors(sorted, n, options, out);
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

struct process_table {
	struct table table;
	bool live;
};

static void incomplete_text(unsigned incomplete, struct strbuf *out)
{
	for (unsigned bit = 0; traced_incomplete_name(bit); bit++)
		if (incomplete & 1u << bit)
			strbuf_addf(out, "%s%s", out->len > 0 ? "," : "", traced_incomplete_name(bit));
}

static int process_row(const struct trace_process_sum *process, void *userdata)
{
	struct process_table *to = userdata;
	struct table *table = &to->table;
	uint64_t calls = 0, errors = 0, ns = 0;
	struct strbuf why;
	char comm[TRACE_COMM + 1] = { 0 };

	for (uint32_t i = 0; i < process->sums_n; i++) {
		calls += process->sums[i].count;
		errors += process->sums[i].errors;
		ns += process->sums[i].total_ns;
	}
	memcpy(comm, process->comm, TRACE_COMM);
	strbuf_init(&why, 0);
	incomplete_text(process->incomplete, &why);
	table_cellf(table, COLOUR_NONE, "%" PRIu32, process->tgid);
	table_cell(table, process->over ? COLOUR_DIM : COLOUR_NONE, comm);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, calls);
	if (ns > 0)
		table_cellf(table, errors > 0 ? COLOUR_BAD : COLOUR_NONE, "%" PRIu64, errors);
	else
		table_cell(table, COLOUR_NONE, "");
	time_cell(table, (double)ns, ns > 0);
	if (to->live && process->over)
		table_cell(table, COLOUR_NONE, "");
	else if (to->live)
		table_cellf(table, COLOUR_NONE, "~%.2f %%", process->overhead * 100);
	table_cell(table, COLOUR_WARN, why.data);
	strbuf_done(&why);
	return 0;
}

/* 1: there were some, 0: none. */
static int print_processes(struct trace_report *report, struct trace_engine *engine,
			   const struct table_options *options, bool live, struct strbuf *out)
{
	struct table_column columns[ARRAY_SIZE(process_columns)];
	struct process_table to = { .live = live };
	bool any;
	int r = 0;

	table_init(&to.table, columns,
		   choose_columns(process_columns, ARRAY_SIZE(process_columns), live, columns));
	trace_report_each(report, engine, process_row, &to);
	any = to.table.cells_n > 0;
	if (any) {
		r = table_write(&to.table, options, out);
		strbuf_addc(out, '\n');
	}
	table_done(&to.table);
	return r < 0 ? r : any;
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

void trace_print_status(struct trace_report *report, struct trace_engine *engine,
			const struct table_options *options, struct strbuf *out)
{
	struct trace_engine_status s;
	char cost[16];
	uint64_t uncounted;

	trace_engine_status(engine, &s);
	uncounted = s.lost_threads + s.lost_procs + s.lost_stats;
	format_ns(s.probe_seconds * 1e9, cost);
	if (s.sites_attached > 0) {
		add_line(options, COLOUR_DIM, out, "%" PRIu32 " %s on %" PRIu32 " %s, attached by %s",
			 s.sites_attached, s.sites_attached == 1 ? "probe" : "probes", s.files,
			 s.files == 1 ? "file" : "files", s.backend);
		add_line(options, COLOUR_DIM, out, "they cost the traced programs about %s", cost);
	}
	if (s.dropped > 0)
		add_line(options, COLOUR_WARN, out,
			 "%" PRIu64 " of %" PRIu64 " events were lost; a larger --trace-buffer holds more",
			 s.dropped, s.produced);
	if (s.sites_refused > 0)
		add_line(options, COLOUR_WARN, out,
			 "%" PRIu32 " entry points have no probe: \"gpusonde probes FILE\" says why",
			 s.sites_refused);
	if (s.sites_given_up > 0 || s.groups_given_up > 0)
		add_line(options, COLOUR_WARN, out,
			 "INCOMPLETE: probes were taken away, since they cost more than --max-overhead: "
			 "counts are too low");
	if (uncounted > 0 || report->ended_lost + s.lost_processes > 0)
		add_line(options, COLOUR_BAD, out,
			 "INCOMPLETE: tables were full: %" PRIu64 " hits are not counted, %" PRIu64
			 " processes not shown",
			 uncounted, report->ended_lost + s.lost_processes);
	if (s.driver_only)
		add_line(options, COLOUR_DIM, out,
			 "without return probes the driver's library alone is probed, and how calls end is "
			 "not known");
}

static void print_nothing(struct trace_engine *engine, const struct table_options *options,
			  struct strbuf *out)
{
	struct trace_engine_status s;

	trace_engine_status(engine, &s);
	if (s.files == 0)
		table_line(options, out, COLOUR_NONE,
			   "No calls of CUDA were seen: nobody has mapped a library of CUDA's, or a program "
			   "that carries one.");
	else
		table_line(options, out, COLOUR_NONE,
			   "No calls of CUDA were seen, though libraries are probed.");
}

int trace_print_tables(struct trace_report *report, struct trace_engine *engine,
		       const struct table_options *options, double seconds, struct strbuf *out)
{
	int r;

	trace_report_calls(report, engine);
	r = print_processes(report, engine, options, seconds > 0, out);
	if (r == 0)
		print_nothing(engine, options, out);
	if (r > 0) {
		r = print_sums(report, options, seconds, out);
		strbuf_addc(out, '\n');
	}
	for (unsigned call = 0; call < TRACE_CALLS_MAX; call++)
		report->calls_before[call] = report->calls[call].count;
	return r < 0 ? r : 0;
}

static json_t *errors_json(const struct trace_sum *sum)
{
	json_t *errors = json_object();

	for (unsigned i = 0; i < TRACE_ERROR_CODES_MAX && sum->codes[i].count > 0; i++) {
		char code[16];

		snprintf(code, sizeof(code), "%d", (int)sum->codes[i].code);
		json_object_set_new(errors, sum->codes[i].code == INT32_MIN ? "other" : code,
				    json_integer((json_int_t)sum->codes[i].count));
	}
	return errors;
}

static json_t *quantile_json(const struct trace_sum *sum, double q)
{
	return json_integer((json_int_t)(trace_sum_quantile(sum, q) + 0.5));
}

static json_t *call_json(const struct trace_sum *sum)
{
	json_t *call =
		json_pack("{s:s, s:I, s:I, s:n, s:n, s:n, s:n, s:n, s:n}", "api", probes[sum->call].symbol,
			  "count", (json_int_t)sum->count, "nested", (json_int_t)sum->nested, "errors",
			  "bytes", "seconds", "p50_ns", "p95_ns", "p99_ns");

	if (!ends_seen(sum))
		return call;
	json_object_set_new(call, "errors", errors_json(sum));
	json_object_set_new(call, "bytes", json_integer((json_int_t)sum->bytes));
	json_object_set_new(call, "seconds", json_real((double)sum->total_ns / 1e9));
	json_object_set_new(call, "p50_ns", quantile_json(sum, 0.5));
	json_object_set_new(call, "p95_ns", quantile_json(sum, 0.95));
	json_object_set_new(call, "p99_ns", quantile_json(sum, 0.99));
	return call;
}

static int process_json(const struct trace_process_sum *process, void *userdata)
{
	json_t *processes = userdata, *calls = json_array(), *incomplete = json_array();
	char comm[TRACE_COMM + 1] = { 0 };

	memcpy(comm, process->comm, TRACE_COMM);
	utf8_sanitize(comm);
	for (uint32_t i = 0; i < process->sums_n; i++)
		if (process->sums[i].count > 0)
			json_array_append_new(calls, call_json(&process->sums[i]));
	for (unsigned bit = 0; traced_incomplete_name(bit); bit++)
		if (process->incomplete & 1u << bit)
			json_array_append_new(incomplete, json_string(traced_incomplete_name(bit)));
	json_array_append_new(processes, json_pack("{s:I, s:s, s:o, s:o, s:b}", "pid",
						   (json_int_t)process->tgid, "comm", comm, "calls", calls,
						   "incomplete", incomplete, "ended", process->over));
	return 0;
}

/* @document without its end, and what its owner writes himself. */
static int add_document(json_t *document, struct trace_kernels *kernels, struct strbuf *out)
{
	char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
	int r = 0;

	if (!text)
		return -ENOMEM;
	strbuf_add(out, text, kernels ? strlen(text) - 1 : strlen(text));
	free(text);
	if (kernels) {
		strbuf_adds(out, ",\"kernels\":");
		r = trace_kernels_json(kernels, out);
		strbuf_addc(out, '}');
	}
	strbuf_addc(out, '\n');
	return r;
}

int trace_print_json(struct trace_report *report, struct trace_engine *engine, struct trace_kernels *kernels,
		     struct strbuf *out)
{
	json_t *processes = json_array(), *document;
	struct trace_engine_status s;
	int r;

	trace_engine_status(engine, &s);
	trace_report_each(report, engine, process_json, processes);
	document = json_pack("{s:o, s:{s:I, s:I, s:I}, s:{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f}}",
			     "processes", processes, "events", "produced", (json_int_t)s.produced, "received",
			     (json_int_t)s.received, "dropped", (json_int_t)s.dropped, "probes", "by",
			     s.backend, "files", (json_int_t)s.files, "attached",
			     (json_int_t)s.sites_attached, "refused", (json_int_t)s.sites_refused, "given_up",
			     (json_int_t)s.sites_given_up, "abandoned_calls", (json_int_t)s.abandoned,
			     "uncounted_hits", (json_int_t)(s.lost_threads + s.lost_procs + s.lost_stats),
			     "cost_seconds", s.probe_seconds);
	r = add_document(document, kernels, out);
	json_decref(document);
	return r;
}
