// SPDX-License-Identifier: Apache-2.0
#include "view/nccl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/macro.h"
#include "view/number.h"
#include "view/table/table.h"

static const struct table_column columns[] = {
	{ .title = "PID", .right = true },         { .title = "MEASURED", .flexible = true, .least = 12 },
	{ .title = "RANKS", .right = true },       { .title = "ALGORITHM", .dispensable = 1 },
	{ .title = "PROTOCOL", .dispensable = 1 }, { .title = "CHANNELS", .right = true, .dispensable = 3 },
	{ .title = "CALLS", .right = true },       { .title = "MEAN", .right = true },
	{ .title = "ALGBW", .right = true },       { .title = "BUSBW", .right = true },
};

/* As nccl-tests prints them: GB are 10^9 bytes. */
static void bandwidth_cell(struct table *table, double bandwidth)
{
	if (isnan(bandwidth))
		table_cell(table, COLOUR_NONE, "");
	else
		table_cellf(table, COLOUR_NONE, "%.2f GB/s", bandwidth / 1e9);
}

static void measured_row(struct table *table, const struct nccl_measured *row)
{
	char ranks[NCCL_SIZE_TEXT];

	nccl_size_text(row->ranks, ranks);
	table_cellf(table, row->gone ? COLOUR_DIM : COLOUR_NONE, "%" PRIu32, row->pid);
	table_cell(table, COLOUR_NONE, nccl_measured_operation(row));
	table_cell(table, COLOUR_NONE, row->ranks == NCCL_RANKS_UNKNOWN ? "" : ranks);
	table_cell(table, COLOUR_NONE, row->algorithm);
	table_cell(table, COLOUR_NONE, row->protocol);
	table_cellf(table, COLOUR_NONE, "%u", row->channels);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, row->calls);
	if (row->timed > 0)
		table_cellf(table, COLOUR_NONE, "%s%.1f us", row->host_timed ? "<" : "",
			    row->seconds * 1e6 / (double)row->timed);
	else
		table_cell(table, COLOUR_NONE, "");
	bandwidth_cell(table, nccl_algorithm_bandwidth(row));
	bandwidth_cell(table, nccl_bus_bandwidth(row));
}

int table_measured(const struct nccl_measurements *measured, const struct table_options *options,
		   struct strbuf *out)
{
	struct table table;
	char text[64];
	int r = 0;

	table_init(&table, columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; i < measured->n; i++)
		measured_row(&table, &measured->rows[i]);
	if (table.cells_n > 0) {
		strbuf_addc(out, '\n');
		r = table_write(&table, options, out);
	}
	table_done(&table);
	if (r == 0 && measured->left_out > 0) {
		snprintf(text, sizeof(text), "%" PRIu64 " further rows found no room", measured->left_out);
		table_line(options, out, COLOUR_NONE, text);
	}
	return r;
}
