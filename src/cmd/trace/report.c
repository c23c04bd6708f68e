// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int trace_report_init(struct trace_report *report)
{
	*report = (struct trace_report){
		.calls = calloc(TRACE_CALLS_MAX, sizeof(*report->calls)),
		.calls_before = calloc(TRACE_CALLS_MAX, sizeof(*report->calls_before)),
	};
	if (report->calls && report->calls_before)
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
	*report = (struct trace_report){ 0 };
}

static bool make_room(struct trace_report *report)
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

static int keep(const struct trace_process_sum *process, void *userdata)
{
	struct trace_report *report = userdata;
	struct trace_sum *sums;

	if (!process->over || process->sums_n == 0)
		return 0;
	sums = make_room(report) ? calloc(process->sums_n, sizeof(*sums)) : NULL;
	if (!sums) {
		report->ended_lost++;
		return 0;
	}
	memcpy(sums, process->sums, process->sums_n * sizeof(*sums));
	report->ended[report->ended_n] = *process;
	report->ended[report->ended_n++].sums = sums;
	return 0;
}

void trace_report_keep(struct trace_report *report, struct trace_engine *engine)
{
	trace_engine_each(engine, keep, report);
}

struct each {
	int (*fn)(const struct trace_process_sum *process, void *userdata);
	void *userdata;
};

static int each_living(const struct trace_process_sum *process, void *userdata)
{
	const struct each *each = userdata;

	return process->over || process->sums_n == 0 ? 0 : each->fn(process, each->userdata);
}

int trace_report_each(struct trace_report *report, struct trace_engine *engine,
		      int (*fn)(const struct trace_process_sum *process, void *userdata), void *userdata)
{
	struct each each = { fn, userdata };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < report->ended_n; i++)
		r = fn(&report->ended[i], userdata);
	return r != 0 ? r : trace_engine_each(engine, each_living, &each);
}

static void add_code(struct trace_sum *sum, int32_t code, uint64_t count)
{
	unsigned last = TRACE_ERROR_CODES_MAX - 1, i = 0;

	while (i < last && sum->codes[i].count > 0 && sum->codes[i].code != code)
		i++;
	sum->codes[i].code = i == last ? INT32_MIN : code;
	sum->codes[i].count += count;
}

static int add_process(const struct trace_process_sum *process, void *userdata)
{
	struct trace_report *report = userdata;

	for (uint32_t i = 0; i < process->sums_n; i++) {
		const struct trace_sum *from = &process->sums[i];
		struct trace_sum *to = &report->calls[from->call % TRACE_CALLS_MAX];

		to->call = from->call;
		to->count += from->count;
		to->errors += from->errors;
		to->bytes += from->bytes;
		to->total_ns += from->total_ns;
		to->nested += from->nested;
		for (unsigned b = 0; b < TRACE_BUCKETS; b++)
			to->buckets[b] += from->buckets[b];
		for (unsigned c = 0; c < TRACE_ERROR_CODES_MAX && from->codes[c].count > 0; c++)
			add_code(to, from->codes[c].code, from->codes[c].count);
	}
	return 0;
}

void trace_report_calls(struct trace_report *report, struct trace_engine *engine)
{
	memset(report->calls, 0, TRACE_CALLS_MAX * sizeof(*report->calls));
	trace_report_each(report, engine, add_process, report);
}
