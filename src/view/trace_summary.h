// SPDX-License-Identifier: Apache-2.0
/*
 * The figures of "gpusonde trace", for tables and JSON. Filled and owned by the command; calls and processes
 * use the model's types (model/trace.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "model/trace.h"
#include "view/view.h"

struct trace_summary {
	/* processes in any order, their calls, and sums by call name; only calls that occurred */
	const struct trace_view *view;
	/* Calls per second since the last redraw, one for each of all_calls. NULL: the final table. */
	const double *rates;
	/*
	 * Readable names of functions that the user named, at most @size bytes with the NUL; NULL: as they
	 * are.
	 */
	void (*name)(const char *symbol, char *buf, size_t size);
	/* state of tracing itself */
	const char *backend; /* how probes are attached */
	/* files: probed; attached: probes; refused, given_up: entry points without a probe */
	uint32_t files, attached, refused, given_up;
	bool groups_given_up;
	bool driver_only; /* the runtime library is not probed */
	uint64_t produced, received, dropped; /* events */
	uint64_t abandoned_calls, uncounted_hits, lost_processes;
	double cost_seconds; /* estimate: total cost of all probe hits to the traced programs */
};

/* Tables of processes, calls and failed calls; a sentence if there are none. 0, or -ENOMEM/-E2BIG. */
int table_trace(const struct trace_summary *summary, const struct table_options *options, struct strbuf *out);
/* State of tracing itself: probes, cost, and what is incomplete and why. */
void table_trace_status(const struct trace_summary *summary, const struct table_options *options,
			struct strbuf *out);
/* The members of a JSON object, without its braces. 0, or -ENOMEM/-E2BIG. */
int json_trace_summary(const struct trace_summary *summary, struct strbuf *out);
