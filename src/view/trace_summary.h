// SPDX-License-Identifier: Apache-2.0
/*
 * What "gpusonde trace" shows of calls that it has counted: the same figures as tables and as JSON. It is
 * filled by the command, which owns all of it; calls and processes have the model's shape (model/trace.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "model/trace.h"
#include "view/view.h"

struct trace_summary {
	/* processes in any order, their calls, all calls by name; calls that were made, no others */
	const struct trace_view *view;
	/*
	 * Calls a second since the table was drawn last, one for each of all_calls: the table is drawn again
	 * and again. NULL: it is the last one.
	 */
	const double *rates;
	/* how tracing itself went */
	const char *backend; /* how probes are attached */
	uint32_t files, attached, refused, given_up; /* probed; probes on them, and entry points without */
	bool groups_given_up;
	bool driver_only; /* the runtime is not probed */
	uint64_t produced, received, dropped; /* events */
	uint64_t abandoned_calls, uncounted_hits, lost_processes;
	double cost_seconds; /* estimate: what all probe hits have cost the traced programs */
};

/* Processes, calls and failed calls; a sentence where there are none. 0, or -ENOMEM/-E2BIG. */
int table_trace(const struct trace_summary *summary, const struct table_options *options, struct strbuf *out);
/* How tracing itself went: probes, cost, what is incomplete and why. */
void table_trace_status(const struct trace_summary *summary, const struct table_options *options,
			struct strbuf *out);
/* The members of a JSON object, without its braces. 0, or -ENOMEM/-E2BIG. */
int json_trace_summary(const struct trace_summary *summary, struct strbuf *out);
