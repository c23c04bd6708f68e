// SPDX-License-Identifier: Apache-2.0
#include "view/gpu_time.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/macro.h"
#include "view/kernels.h"
#include "view/table/table.h"

static const struct table_column kernel_columns[] = {
	{ .title = "PID", .right = true, .dispensable = 3 },
	{ .title = "GPU", .dispensable = 2 },
	{ .title = "MEASURED", .right = true },
	{ .title = "TIME", .right = true },
	{ .title = "MEAN", .right = true },
	{ .title = "LEAST", .right = true, .dispensable = 4 },
	{ .title = "MOST", .right = true, .dispensable = 4 },
	{ .title = "KERNEL", .flexible = true, .least = 20 },
};

static void kernel_row(struct table *table, const struct gpu_time_view *view, const struct timed_kernel *k)
{
	table_cellf(table, COLOUR_NONE, "%" PRIu32, k->pid);
	if (view->node)
		kernels_gpu_cell(table, view->node, k->uuid);
	else
		table_cellf(table, COLOUR_NONE, "%.12s", k->uuid);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, k->count);
	table_cellf(table, COLOUR_NONE, "%.3f s", k->seconds);
	table_cellf(table, COLOUR_NONE, "%.1f us", k->seconds * 1e6 / (double)k->count);
	table_cellf(table, COLOUR_NONE, "%.1f us", (double)k->least_ns / 1e3);
	table_cellf(table, COLOUR_NONE, "%.1f us", (double)k->most_ns / 1e3);
	table_cell(table, COLOUR_NONE, k->name);
}

void gpu_time_reason(const struct gpu_time *row, char *text, size_t size)
{
	text[0] = '\0';
	if (!row->told)
		snprintf(text, size, "the plugin has connected, and has not said anything yet");
	else if (row->state == CUPTI_OTHER)
		snprintf(text, size, "another tool has subscribed to CUPTI: the plugin stands down");
	else if (row->state == CUPTI_NO_LIBRARY)
		snprintf(text, size,
			 "CUPTI was not found: GPUSONDE_CUPTI_LIBRARY=/path/to/libcupti.so names it");
	else if (row->state == CUPTI_REFUSED)
		snprintf(text, size,
			 "CUPTI (version %" PRIu32 " of its interface) refuses, with error %" PRIu32,
			 row->api, row->error);
	else if (row->state == CUPTI_ON && row->gone)
		snprintf(text, size, "it ended before it told all: what is missing of its end is not known");
	else if (row->state == CUPTI_SPENT)
		snprintf(text, size, "the slice ended early: its budget of launches was used up");
}

static void line(const struct table_options *options, struct strbuf *out, uint32_t pid, const char *text)
{
	char all[300];

	snprintf(all, sizeof(all), "process %" PRIu32 ": %s", pid, text);
	table_line(options, out, COLOUR_WARN, all);
}

static void missing(const struct gpu_time *row, const struct table_options *options, struct strbuf *out)
{
	char text[200];

	gpu_time_reason(row, text, sizeof(text));
	if (text[0])
		line(options, out, row->pid, text);
	if (row->lost + row->dropped + row->bad == 0)
		return;
	snprintf(text, sizeof(text),
		 "%" PRIu64 " records of CUPTI are missing, and %" PRIu64 " have no times or make no sense",
		 row->lost + row->dropped, row->bad);
	line(options, out, row->pid, text);
}

static void row_lines(const struct gpu_time *row, const struct table_options *options, struct strbuf *out)
{
	char text[200];

	missing(row, options, out);
	if (row->observed_seconds <= 0 || row->device == GPU_TIME_NO_DEVICE)
		return;
	snprintf(text, sizeof(text),
		 "process %" PRIu32 ", device %" PRIu32 ": busy %.3f s of %.3f s by CUPTI%s; %" PRIu64
		 " kernels, %" PRIu64 " graphs, %" PRIu64 " copies, %" PRIu64 " sets",
		 row->pid, row->device, row->busy_seconds, row->observed_seconds,
		 row->clock == CUPTI_CLOCK_OFFSET ? " (its own clock, offset measured)" : "", row->kernels,
		 row->graphs, row->copies, row->sets);
	table_line(options, out, COLOUR_NONE, text);
	if (isnan(gpu_time_estimate_error(row)))
		return;
	snprintf(text, sizeof(text),
		 "process %" PRIu32 ", device %" PRIu32
		 ": estimated from outside ~%.3f s, %.0f %% from what was measured",
		 row->pid, row->device, row->estimated_seconds, gpu_time_estimate_error(row) * 100);
	table_line(options, out, COLOUR_NONE, text);
}

int table_gpu_time(const struct gpu_time_view *view, const struct table_options *options, struct strbuf *out)
{
	struct table table;
	char text[100];
	int r = 0;

	table_init(&table, kernel_columns, ARRAY_SIZE(kernel_columns));
	for (uint32_t i = 0; i < view->kernels_n; i++)
		kernel_row(&table, view, &view->kernels[i]);
	strbuf_addc(out, '\n');
	if (view->kernels_n > 0)
		r = table_write(&table, options, out);
	table_done(&table);
	if (view->rows_n == 0)
		table_line(options, out, COLOUR_WARN,
			   "No program has loaded the plugin: no time of a GPU was measured.");
	for (uint32_t i = 0; i < view->rows_n; i++)
		row_lines(&view->rows[i], options, out);
	if (view->left_out > 0) {
		snprintf(text, sizeof(text), "%" PRIu64 " kernels are not in the table: too many names",
			 view->left_out);
		table_line(options, out, COLOUR_WARN, text);
	}
	return r;
}
