// SPDX-License-Identifier: Apache-2.0
/* What "gpusonde trace" shows: tables, one JSON document, events. */
#include "cmd/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "model/trace.h"
#include "view/table.h"

enum { CODES_TEXT = 96 };

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

/* "2x35 1x700" */
static void format_codes(const struct trace_sum *sum, char buf[static CODES_TEXT])
{
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < TRACE_ERROR_CODES_MAX && sum->codes[i].count > 0 && at < CODES_TEXT; i++) {
		if (sum->codes[i].code == INT32_MIN)
			at += (size_t)snprintf(buf + at, CODES_TEXT - at, "%s%" PRIu64 "xother",
					       i > 0 ? " " : "", sum->codes[i].count);
		else
			at += (size_t)snprintf(buf + at, CODES_TEXT - at, "%s%" PRIu64 "x%d",
					       i > 0 ? " " : "", sum->codes[i].count, (int)sum->codes[i].code);
	}
}

static const struct table_column call_columns[] = {
	{ .title = "CALL", .flexible = true },
	{ .title = "COUNT", .right = true },
	{ .title = "/S", .right = true, .dispensable = 2 },
	{ .title = "ERRORS", .right = true },
	{ .title = "P50", .right = true },
	{ .title = "P95", .right = true, .dispensable = 4 },
	{ .title = "P99", .right = true },
	{ .title = "TOTAL", .right = true, .dispensable = 3 },
	{ .title = "BYTES", .right = true, .dispensable = 1 },
	{ .title = "CODES", .dispensable = 5 },
};

static int by_time(const void *a, const void *b)
{
	const struct trace_sum *x = *(const struct trace_sum *const *)a,
			       *y = *(const struct trace_sum *const *)b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return x->count < y->count ? 1 : x->count > y->count ? -1 : (int)x->call - (int)y->call;
}

static void call_time_cell(struct table *table, double ns, bool known)
{
	char text[16];

	format_ns(ns, text);
	table_cell(table, COLOUR_NONE, known ? text : "");
}

static void call_row(struct table *table, const struct trace_sum *sum, uint64_t before, double seconds)
{
	char bytes[16], codes[CODES_TEXT];
	/* Without a return probe there is no latency, which is not one of zero. */
	bool timed = sum->total_ns > 0;

	table_cell(table, COLOUR_NONE, probes[sum->call].symbol);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, sum->count);
	if (seconds > 0)
		table_cellf(table, COLOUR_NONE, "%.0f",
			    (double)(sum->count - MIN(before, sum->count)) / seconds);
	else
		table_cell(table, COLOUR_NONE, "");
	table_cellf(table, sum->errors > 0 ? COLOUR_BAD : COLOUR_NONE, "%" PRIu64, sum->errors);
	call_time_cell(table, trace_sum_quantile(sum, 0.5), timed);
	call_time_cell(table, trace_sum_quantile(sum, 0.95), timed);
	call_time_cell(table, trace_sum_quantile(sum, 0.99), timed);
	call_time_cell(table, (double)sum->total_ns, timed);
	format_bytes(sum->bytes, bytes);
	table_cell(table, COLOUR_NONE, sum->bytes > 0 ? bytes : "");
	format_codes(sum, codes);
	table_cell(table, COLOUR_NONE, codes);
}

static int print_calls(struct trace_report *report, const struct table_options *options, double seconds,
		       struct strbuf *out)
{
	const struct trace_sum *sorted[TRACE_CALLS_MAX];
	struct table table;
	size_t n = 0;
	int r;

	for (unsigned call = 0; call < probes_n && call < TRACE_CALLS_MAX; call++)
		if (report->calls[call].count > 0)
			sorted[n++] = &report->calls[call];
	if (n == 0)
		return 0;
	qsort(sorted, n, sizeof(*sorted), by_time);
	table_init(&table, call_columns, ARRAY_SIZE(call_columns));
	for (size_t i = 0; i < n; i++)
		call_row(&table, sorted[i], report->calls_before[sorted[i]->call], seconds);
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}

static const struct table_column process_columns[] = {
	{ .title = "PID", .right = true },
	{ .title = "COMMAND", .flexible = true },
	{ .title = "CALLS", .right = true },
	{ .title = "ERRORS", .right = true },
	{ .title = "IN CALLS", .right = true, .dispensable = 1 },
	{ .title = "COST", .right = true, .dispensable = 2 },
	{ .title = "INCOMPLETE" },
};

static void incomplete_text(unsigned incomplete, struct strbuf *out)
{
	for (unsigned bit = 0; traced_incomplete_name(bit); bit++)
		if (incomplete & 1u << bit)
			strbuf_addf(out, "%s%s", out->len > 0 ? "," : "", traced_incomplete_name(bit));
}

static int process_row(const struct trace_process_sum *process, void *userdata)
{
	struct table *table = userdata;
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
	table_cellf(table, errors > 0 ? COLOUR_BAD : COLOUR_NONE, "%" PRIu64, errors);
	call_time_cell(table, (double)ns, ns > 0);
	if (process->over)
		table_cell(table, COLOUR_NONE, "");
	else
		table_cellf(table, COLOUR_NONE, "~%.2f %%", process->overhead * 100);
	table_cell(table, COLOUR_WARN, why.data);
	strbuf_done(&why);
	return 0;
}

static void print_status(struct trace_report *report, struct trace_engine *engine,
			 const struct table_options *options, struct strbuf *out)
{
	struct trace_engine_status s;
	char line[320];

	trace_engine_status(engine, &s);
	snprintf(line, sizeof(line),
		 "events: %" PRIu64 " made, %" PRIu64 " received, %" PRIu64 " lost; %" PRIu32
		 " probes on %" PRIu32 " files by %s; cost to the traced about %.3f s",
		 s.produced, s.received, s.dropped, s.sites_attached, s.files, s.backend, s.probe_seconds);
	table_line(options, out, s.dropped > 0 ? COLOUR_WARN : COLOUR_DIM, line);
	if (s.sites_refused > 0) {
		snprintf(line, sizeof(line),
			 "%" PRIu32
			 " entry points were left out, since a probe there would be dear: see \"gpusonde probes FILE\"",
			 s.sites_refused);
		table_line(options, out, COLOUR_WARN, line);
	}
	if (s.lost_threads + s.lost_procs + s.lost_stats > 0 || report->ended_lost > 0) {
		snprintf(line, sizeof(line),
			 "INCOMPLETE: tables were full: %" PRIu64 " hits are not counted, %" PRIu64
			 " processes not shown",
			 s.lost_threads + s.lost_procs + s.lost_stats, report->ended_lost + s.lost_processes);
		table_line(options, out, COLOUR_BAD, line);
	}
}

int trace_print_tables(struct trace_report *report, struct trace_engine *engine,
		       const struct table_options *options, double seconds, struct strbuf *out)
{
	struct table table;
	int r;

	trace_report_calls(report, engine);
	table_init(&table, process_columns, ARRAY_SIZE(process_columns));
	trace_report_each(report, engine, process_row, &table);
	if (table.cells_n == 0) {
		table_line(options, out, COLOUR_NONE, "No calls of CUDA were seen.");
		r = 0;
	} else {
		r = table_write(&table, options, out);
		strbuf_addc(out, '\n');
	}
	table_done(&table);
	if (r == 0)
		r = print_calls(report, options, seconds, out);
	for (unsigned call = 0; call < TRACE_CALLS_MAX; call++)
		report->calls_before[call] = report->calls[call].count;
	print_status(report, engine, options, out);
	return r;
}

static json_t *call_json(const struct trace_sum *sum)
{
	json_t *errors = json_object();
	bool timed = sum->total_ns > 0;

	for (unsigned i = 0; i < TRACE_ERROR_CODES_MAX && sum->codes[i].count > 0; i++) {
		char code[16];

		snprintf(code, sizeof(code), "%d", (int)sum->codes[i].code);
		json_object_set_new(errors, sum->codes[i].code == INT32_MIN ? "other" : code,
				    json_integer((json_int_t)sum->codes[i].count));
	}
	return json_pack("{s:s, s:I, s:o, s:I, s:I, s:o, s:o, s:o}", "api", probes[sum->call].symbol, "count",
			 (json_int_t)sum->count, "errors", errors, "bytes", (json_int_t)sum->bytes, "nested",
			 (json_int_t)sum->nested, "p50_ns",
			 timed ? json_real(trace_sum_quantile(sum, 0.5)) : json_null(), "p95_ns",
			 timed ? json_real(trace_sum_quantile(sum, 0.95)) : json_null(), "p99_ns",
			 timed ? json_real(trace_sum_quantile(sum, 0.99)) : json_null());
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

int trace_print_json(struct trace_report *report, struct trace_engine *engine, struct strbuf *out)
{
	json_t *processes = json_array(), *document;
	struct trace_engine_status s;
	char *text;

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
	text = document ? json_dumps(document, JSON_COMPACT) : NULL;
	json_decref(document);
	if (!text)
		return -ENOMEM;
	strbuf_adds(out, text);
	strbuf_addc(out, '\n');
	free(text);
	return 0;
}

/* ---- events ---- */

static const char *const type_names[TRACE_EVENTS] = {
	[TRACE_EVENT_NONE] = "?",          [TRACE_EVENT_LAUNCH] = "launch", [TRACE_EVENT_CALL] = "call",
	[TRACE_EVENT_PROCESS] = "process", [TRACE_EVENT_EXEC] = "exec",     [TRACE_EVENT_EXIT] = "exit",
	[TRACE_EVENT_TEXT] = "setenv",
};

static void event_json(const struct trace_header *e, json_t *o)
{
	if (e->type == TRACE_EVENT_LAUNCH) {
		const struct trace_launch *l = (const void *)e;

		json_object_update_new(o, json_pack("{s:I, s:I, s:[III], s:[III], s:I, s:I}", "function",
						    (json_int_t)l->function, "stream", (json_int_t)l->stream,
						    "grid", (json_int_t)l->grid[0], (json_int_t)l->grid[1],
						    (json_int_t)l->grid[2], "block", (json_int_t)l->block[0],
						    (json_int_t)l->block[1], (json_int_t)l->block[2],
						    "shared_bytes", (json_int_t)l->shared_bytes,
						    "duration_ns", (json_int_t)l->duration_ns));
		json_object_set_new(o, "result",
				    e->flags & TRACE_FLAG_NO_RESULT ? json_null() : json_integer(l->result));
	} else if (e->type == TRACE_EVENT_CALL) {
		const struct trace_call *c = (const void *)e;

		json_object_update_new(o, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "addr",
						    (json_int_t)c->addr, "size", (json_int_t)c->size,
						    "stream", (json_int_t)c->stream, "handle",
						    (json_int_t)c->handle, "kind", (json_int_t)c->kind,
						    "duration_ns", (json_int_t)c->duration_ns));
		json_object_set_new(o, "result",
				    e->flags & TRACE_FLAG_NO_RESULT ? json_null() : json_integer(c->result));
	}
}

static void event_text(const struct trace_header *e, struct strbuf *out)
{
	if (e->type == TRACE_EVENT_LAUNCH) {
		const struct trace_launch *l = (const void *)e;

		strbuf_addf(out, " function 0x%llx grid %ux%ux%u block %ux%ux%u shared %u stream 0x%llx",
			    (unsigned long long)l->function, l->grid[0], l->grid[1], l->grid[2], l->block[0],
			    l->block[1], l->block[2], l->shared_bytes, (unsigned long long)l->stream);
		if (!(e->flags & TRACE_FLAG_NO_RESULT))
			strbuf_addf(out, " = %d in %llu ns", l->result, (unsigned long long)l->duration_ns);
	} else if (e->type == TRACE_EVENT_CALL) {
		const struct trace_call *c = (const void *)e;

		strbuf_addf(out, " addr 0x%llx size %llu stream 0x%llx handle 0x%llx kind %u",
			    (unsigned long long)c->addr, (unsigned long long)c->size,
			    (unsigned long long)c->stream, (unsigned long long)c->handle, c->kind);
		if (!(e->flags & TRACE_FLAG_NO_RESULT))
			strbuf_addf(out, " = %d in %llu ns", c->result, (unsigned long long)c->duration_ns);
	}
}

void trace_print_event(const struct trace_header *e, uint32_t size, bool json, struct strbuf *out)
{
	size_t needed = e->type == TRACE_EVENT_LAUNCH ? sizeof(struct trace_launch) :
			e->type == TRACE_EVENT_CALL   ? sizeof(struct trace_call) :
							sizeof(*e);
	const char *api = e->call < probes_n ? probes[e->call].symbol : "?";

	if (e->type >= TRACE_EVENTS || !type_names[e->type] || size < needed)
		return;
	if (e->type != TRACE_EVENT_LAUNCH && e->type != TRACE_EVENT_CALL)
		api = type_names[e->type];
	if (!json) {
		strbuf_addf(out, "%llu.%09llu %u/%u %s", (unsigned long long)e->time_ns / NSEC_PER_SEC,
			    (unsigned long long)e->time_ns % NSEC_PER_SEC, e->tgid, e->tid, api);
		event_text(e, out);
		strbuf_addc(out, '\n');
		return;
	}
	json_t *o = json_pack("{s:I, s:I, s:I, s:s, s:s}", "time_ns", (json_int_t)e->time_ns, "pid",
			      (json_int_t)e->tgid, "tid", (json_int_t)e->tid, "type", type_names[e->type],
			      "api", api);
	char *text;

	event_json(e, o);
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	strbuf_adds(out, text ? text : "");
	strbuf_addc(out, '\n');
	free(text);
}
