// SPDX-License-Identifier: Apache-2.0
/*
 * "gpusonde trace": runs a tracing engine (trace/engine.h) and prints its figures. The report copies the sums
 * of each process that ends, for the summary.
 */
#pragma once

#include "base/strbuf.h"
#include "trace/engine.h"
#include "view/trace_summary.h"

enum { TRACE_ENDED_MAX = 4096 };

/* On standard error, cleaned: file names may hold control characters. */
void trace_message(const char *text);

struct trace_report {
	struct trace_process_sum *ended; /* with copies of their sums, owned by the report */
	uint32_t ended_n, ended_cap;
	uint64_t ended_lost; /* not copied: beyond TRACE_ENDED_MAX, or out of memory */
	struct trace_sum *calls; /* by call number, of all processes; set by sum_calls() */
	uint64_t *calls_before; /* counts at the last drawing of the table */
	struct trace_view *view; /* of the newest summary */
	double *rates; /* of its calls */
};

int trace_report_init(struct trace_report *report);
void trace_report_done(struct trace_report *report);
/* To be called after each collection: copies the figures of ended processes. */
void trace_report_store(struct trace_report *report, struct trace_engine *engine);
/* Calls @fn for ended processes, then live ones, until it returns non-zero; returns that value. */
int trace_report_each(struct trace_report *report, struct trace_engine *engine,
		      int (*fn)(const struct trace_process_sum *process, void *userdata), void *userdata);
/*
 * The figures so far, for the views; valid until the next call, or trace_report_done(). @seconds: time since
 * the last drawing of the table, for rates; 0: no rates. -ENOMEM.
 */
int trace_report_summary(struct trace_report *report, struct trace_engine *engine, double seconds,
			 struct trace_summary *ret_summary);
/* Only the figures of tracing itself, without calls and processes. */
void trace_report_status(const struct trace_report *report, struct trace_engine *engine,
			 struct trace_summary *ret_summary);
/* Prints which of the user's probes match no function; often misspelt ones. */
void trace_report_unmatched(void);
