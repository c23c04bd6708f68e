// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "model/trace.h"
#include "view/number.h"
#include "view/table/table.h"
#include "view/view.h"

static const struct table_column columns[] = {
	{ .title = "LEAKED BY", .right = true },   { .title = "COMMAND", .flexible = true },
	{ .title = "ALLOCATIONS", .right = true }, { .title = "BYTES", .right = true },
	{ .title = "SIZES", .flexible = true },
};

/* "2 x 4.0 MiB, 1 x 512 B, ..." */
static void sizes_text(const struct traced_process *process, struct strbuf *out)
{
	uint64_t left = process->leaked_allocations;
	char bytes[BYTES_TEXT];

	for (uint32_t i = 0; i < process->leaked_n; i++) {
		bytes_text((double)process->leaked[i].bytes, bytes);
		strbuf_addf(out, "%s%" PRIu64 " x %s", i > 0 ? ", " : "", process->leaked[i].allocations,
			    bytes);
		left -= process->leaked[i].allocations;
	}
	if (left > 0)
		strbuf_addf(out, ", %" PRIu64 " of other sizes", left);
}

static void row(struct table *table, const struct traced_process *process)
{
	const char *mark = process->leaked_p & PRESENCE_ESTIMATED ? "~" : "";
	char bytes[BYTES_TEXT];
	struct strbuf sizes;

	strbuf_init(&sizes, 0);
	sizes_text(process, &sizes);
	bytes_text((double)process->leaked_bytes, bytes);
	table_cellf(table, COLOUR_NONE, "%" PRIu32, process->id.pid);
	table_cell(table, process->exited ? COLOUR_DIM : COLOUR_NONE, process->comm);
	table_cellf(table, COLOUR_WARN, "%s%" PRIu64, mark, process->leaked_allocations);
	table_cellf(table, COLOUR_NONE, "%s%s", mark, bytes);
	table_cell(table, COLOUR_NONE, sizes.data);
	strbuf_done(&sizes);
}

int table_leaked(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	struct table table;
	int r = 0;

	table_init(&table, columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; s->trace && i < s->trace->processes_n; i++) {
		const struct traced_process *process = &s->trace->processes[i];

		if (presence_is(process->leaked_p) && process->leaked_allocations > 0)
			row(&table, process);
	}
	if (table.cells_n > 0) {
		strbuf_addc(out, '\n');
		r = table_write(&table, options, out);
	}
	table_done(&table);
	return r;
}
