// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cubin/name.h"
#include "pipeline/pipeline.h"

int trace_report_init(struct trace_report *report)
{
	*report = (struct trace_report){
		.calls = calloc(probe_calls_max(), sizeof(*report->calls)),
		.calls_before = calloc(probe_calls_max(), sizeof(*report->calls_before)),
		.rates = calloc(probe_calls_max(), sizeof(*report->rates)),
	};
	if (report->calls && report->calls_before && report->rates)
		return 0;
	trace_report_done(report);
	return -ENOMEM;
}

void trace_report_done(struct trace_report *report)
{
	for (uint32_t i = 0; i < report->ended_n; i++)
		free((void *)report->ended[i].sums);
	free(report->ended);
	free(report->calls);
	free(report->calls_before);
	free(report->rates);
	trace_view_unref(report->view);
	*report = (struct trace_report){ 0 };
}

static bool reserve_ended(struct trace_report *report)
{
	uint32_t cap = report->ended_cap ? report->ended_cap * 2 : 16;
	struct trace_process_sum *ended;

	if (report->ended_n < report->ended_cap)
		return true;
	if (report->ended_n >= TRACE_ENDED_MAX)
		return false;
	ended = reallocarray(report->ended, cap, sizeof(*ended));
	if (!ended)
		return false;
	report->ended = ended;
	report->ended_cap = cap;
	return true;
}

static int store_process(const struct trace_process_sum *process, void *userdata)
{
	struct trace_report *report = userdata;
	struct trace_sum *sums;

	if (!process->ended || process->sums_n == 0)
		return 0;
	sums = reserve_ended(report) ? calloc(process->sums_n, sizeof(*sums)) : NULL;
	if (!sums) {
		report->ended_lost++;
		return 0;
	}
	memcpy(sums, process->sums, process->sums_n * sizeof(*sums));
	report->ended[report->ended_n] = *process;
	report->ended[report->ended_n++].sums = sums;
	return 0;
}

void trace_report_store(struct trace_report *report, struct trace_engine *engine)
{
	trace_engine_each(engine, store_process, report);
}

struct each {
	int (*fn)(const struct trace_process_sum *process, void *userdata);
	void *userdata;
};

static int each_live(const struct trace_process_sum *process, void *userdata)
{
	const struct each *each = userdata;

	return process->ended || process->sums_n == 0 ? 0 : each->fn(process, each->userdata);
}

int trace_report_each(struct trace_report *report, struct trace_engine *engine,
		      int (*fn)(const struct trace_process_sum *process, void *userdata), void *userdata)
{
	struct each each = { fn, userdata };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < report->ended_n; i++)
		r = fn(&report->ended[i], userdata);
	return r != 0 ? r : trace_engine_each(engine, each_live, &each);
}

static int sum_process(const struct trace_process_sum *process, void *userdata)
{
	struct trace_report *report = userdata;

	for (uint32_t i = 0; i < process->sums_n; i++) {
		const struct trace_sum *from = &process->sums[i];
		struct trace_sum *to = &report->calls[from->call % probe_calls()];

		to->call = from->call;
		to->count += from->count;
		to->errors += from->errors;
		to->bytes += from->bytes;
		to->total_ns += from->total_ns;
		to->nested += from->nested;
		for (unsigned b = 0; b < TRACE_BUCKETS; b++)
			to->buckets[b] += from->buckets[b];
		for (unsigned c = 0; c < TRACE_ERROR_CODES_MAX && from->codes[c].count > 0; c++)
			trace_sum_add_code(to, from->codes[c].code, from->codes[c].count);
	}
	return 0;
}

static void sum_calls(struct trace_report *report, struct trace_engine *engine)
{
	memset(report->calls, 0, probe_calls() * sizeof(*report->calls));
	trace_report_each(report, engine, sum_process, report);
}

/* ---- the summary ---- */

struct totals {
	uint32_t processes, calls;
};

static int count_totals(const struct trace_process_sum *process, void *userdata)
{
	struct totals *totals = userdata;

	totals->processes++;
	totals->calls += process->sums_n;
	return 0;
}

static int fill_process(const struct trace_process_sum *process, void *userdata)
{
	struct trace_view *view = userdata;
	struct traced_process *to = &view->processes[view->processes_n];

	*to = (struct traced_process){
		.id.pid = process->tgid,
		.exited = process->ended,
		.incomplete = process->incomplete,
		.overhead = process->overhead,
		.calls_first = view->calls_n,
	};
	snprintf(to->comm, sizeof(to->comm), "%.*s", TRACE_COMM, process->comm);
	utf8_sanitize(to->comm);
	for (uint32_t i = 0; i < process->sums_n; i++)
		if (process->sums[i].count > 0)
			pipeline_fill_call(view, &view->calls[view->calls_n++], &process->sums[i]);
	to->calls_n = view->calls_n - to->calls_first;
	view->processes_n++;
	return 0;
}

static int fill_calls(struct trace_report *report, const struct trace_engine *engine, struct trace_view *view,
		      double seconds)
{
	int r = 0;

	for (unsigned call = 0; r == 0 && call < probe_calls(); call++) {
		const struct trace_sum *sum = &report->calls[call];
		uint64_t before = MIN(report->calls_before[call], sum->count);

		report->calls_before[call] = sum->count;
		if (sum->count == 0)
			continue;
		if (seconds > 0)
			report->rates[view->all_calls_n] = (double)(sum->count - before) / seconds;
		pipeline_fill_call(view, &view->all_calls[view->all_calls_n], sum);
		r = pipeline_fill_arguments(view, &view->all_calls[view->all_calls_n++], (uint16_t)call,
					    engine);
	}
	return r;
}

void trace_report_status(const struct trace_report *report, struct trace_engine *engine,
			 struct trace_summary *ret_summary)
{
	struct trace_engine_status s;

	trace_engine_status(engine, &s);
	*ret_summary = (struct trace_summary){
		.backend = s.backend,
		.files = s.files,
		.attached = s.sites_attached,
		.refused = s.sites_refused,
		.given_up = s.sites_given_up,
		.groups_given_up = s.groups_given_up > 0,
		.driver_only = s.driver_only,
		.produced = s.produced,
		.received = s.received,
		.dropped = s.dropped,
		.abandoned_calls = s.abandoned,
		.uncounted_hits = trace_uncounted(s.lost),
		.lost_processes = report->ended_lost + s.lost_processes,
		.cost_seconds = s.probe_seconds,
	};
}

/* Demangled, without the parameters. */
static void readable_name(const char *symbol, char *buf, size_t size)
{
	char *end;
	int depth = 0;

	if (!kernel_name_demangle(symbol, buf, size))
		return;
	end = strrchr(buf, ')');
	for (char *at = end; at && at > buf; at--) {
		depth += (*at == ')') - (*at == '(');
		if (depth == 0) {
			*at = '\0';
			return;
		}
	}
}

int trace_report_summary(struct trace_report *report, struct trace_engine *engine, double seconds,
			 struct trace_summary *ret_summary)
{
	struct totals totals = { 0 };
	struct trace_view *view;
	int r;

	trace_report_each(report, engine, count_totals, &totals);
	r = trace_view_new(totals.processes, 0, totals.calls, probe_calls(),
			   (totals.calls + probe_calls()) * TRACE_ERROR_CODES_MAX, 0, 0, &view);
	if (r < 0)
		return r;
	trace_report_each(report, engine, fill_process, view);
	sum_calls(report, engine);
	r = fill_calls(report, engine, view, seconds);
	if (r < 0) {
		trace_view_unref(view);
		return r;
	}
	trace_view_unref(report->view);
	report->view = view;
	trace_report_status(report, engine, ret_summary);
	ret_summary->view = view;
	ret_summary->name = readable_name;
	ret_summary->rates = seconds > 0 ? report->rates : NULL;
	return 0;
}

void trace_report_unmatched(void)
{
	const struct user_probes *user = library_user();
	char text[USER_LIBRARY_MAX + USER_PATTERNS_MAX + 256];

	for (unsigned i = 0; i < user->n; i++) {
		if (probe_user_is_found(i))
			continue;
		snprintf(text, sizeof(text),
			 "no function is traced for --probe %s:%s: no file that was mapped is this library "
			 "and has such a function that can be probed; nm -D FILE prints a library's "
			 "functions, gpusonde probes FILE with this --probe why one cannot be probed",
			 user->at[i].library, user->at[i].patterns);
		trace_message(text);
	}
}
