// SPDX-License-Identifier: Apache-2.0
/*
 * "gpusonde trace": an engine of its own (trace/engine.h), and what it prints. The report outlives the
 * processes: what a process has had is copied when it ends, for the summary.
 */
#pragma once

#include "base/strbuf.h"
#include "trace/engine.h"
#include "view/trace_summary.h"

enum { TRACE_ENDED_MAX = 4096 };

struct trace_report {
	struct trace_process_sum *ended; /* their sums are copies, owned here */
	uint32_t ended_n, ended_cap;
	uint64_t ended_lost; /* beyond TRACE_ENDED_MAX, or no memory */
	struct trace_sum *calls; /* by call number, over all processes; made by sum_calls() */
	uint64_t *calls_before; /* counts when the table was drawn last */
	struct trace_view *view; /* of the newest summary */
	double *rates; /* of its calls */
};

int trace_report_init(struct trace_report *report);
void trace_report_done(struct trace_report *report);
/* After each collection: keeps the figures of those that are over. */
void trace_report_keep(struct trace_report *report, struct trace_engine *engine);
/* Those that have ended, then those that live; stops with what @fn gives when that is not 0. */
int trace_report_each(struct trace_report *report, struct trace_engine *engine,
		      int (*fn)(const struct trace_process_sum *process, void *userdata), void *userdata);
/*
 * What has been counted so far, for the views; valid until the next call, or trace_report_done(). @seconds:
 * since the table was drawn last, for rates; 0: none. -ENOMEM.
 */
int trace_report_summary(struct trace_report *report, struct trace_engine *engine, double seconds,
			 struct trace_summary *ret_summary);
/* How tracing itself went, alone: without calls and processes. */
void trace_report_status(const struct trace_report *report, struct trace_engine *engine,
			 struct trace_summary *ret_summary);
