// SPDX-License-Identifier: Apache-2.0
#include "view/torch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "view/number.h"
#include "view/table/table.h"

enum { NAMES_MAX = 20 /* of a process and kind; JSON has all */ };

static const struct table_column memory_columns[] = {
	{ .title = "PID", .right = true },
	{ .title = "ALLOCATOR", .flexible = true },
	{ .title = "ALLOCATED", .right = true },
	{ .title = "PEAK", .right = true },
	{ .title = "RESERVED", .right = true },
	{ .title = "PEAK", .right = true },
	{ .title = "UNUSED", .right = true },
	{ .title = "ALLOCATIONS", .right = true, .dispensable = 1 },
	{ .title = "FREES", .right = true, .dispensable = 2 },
	{ .title = "OOM", .right = true },
};

static const struct table_column name_columns[] = {
	{ .title = "PID", .right = true },
	{ .title = "NODE OR RANGE", .flexible = true },
	{ .title = "COUNT", .right = true },
	{ .title = "PERIOD", .right = true },
};

static void pid_cell(struct table *table, const struct torch_process *process)
{
	table_cellf(table, process->exited ? COLOUR_DIM : COLOUR_NONE, "%" PRIu32, process->pid);
}

static void bytes_cell(struct table *table, uint64_t bytes, bool known)
{
	char text[BYTES_TEXT];

	if (known)
		bytes_text((double)bytes, text);
	table_cell(table, COLOUR_NONE, known ? text : "");
}

/* CPU's allocator reserves nothing. */
static void memory_row(struct table *table, const struct torch_process *process,
		       const struct torch_memory *memory)
{
	bool reserves = memory->reserved_peak > 0;
	char device[TORCH_DEVICE_TEXT];

	torch_device_text(memory->device, device);
	pid_cell(table, process);
	table_cell(table, COLOUR_NONE, device);
	bytes_cell(table, memory->allocated, true);
	bytes_cell(table, memory->allocated_peak, true);
	bytes_cell(table, memory->reserved, reserves);
	bytes_cell(table, memory->reserved_peak, reserves);
	bytes_cell(table, memory->reserved - MIN(memory->reserved, memory->allocated), reserves);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, memory->allocations);
	table_cellf(table, COLOUR_NONE, "%" PRIu64, memory->frees);
	table_cellf(table, memory->ooms ? COLOUR_BAD : COLOUR_NONE, "%" PRIu64, memory->ooms);
}

static void oom_line(const struct torch_process *process, const struct torch_memory *memory,
		     const struct table_options *options, struct strbuf *out)
{
	char device[TORCH_DEVICE_TEXT], asked[BYTES_TEXT], allocated[BYTES_TEXT], reserved[BYTES_TEXT];
	char text[400];

	torch_device_text(memory->device, device);
	bytes_text((double)memory->oom_asked, asked);
	bytes_text((double)memory->oom_allocated, allocated);
	bytes_text((double)memory->oom_reserved, reserved);
	snprintf(text, sizeof(text),
		 "PID %" PRIu32 ", %s: out of memory, %" PRIu64
		 " times; the last time %s asked for %s, with %s allocated and %s reserved",
		 process->pid, device, memory->ooms,
		 *memory->oom_operator ? memory->oom_operator : "what is no operator", asked, allocated,
		 reserved);
	table_line(options, out, COLOUR_BAD, text);
}

static int table_memories(const struct torch_view *view, const struct table_options *options,
			  struct strbuf *out)
{
	struct table table;
	int r;

	table_init(&table, memory_columns, ARRAY_SIZE(memory_columns));
	for (uint32_t i = 0; i < view->processes_n; i++)
		for (uint32_t k = 0; k < view->processes[i].memories_n; k++)
			memory_row(&table, &view->processes[i],
				   &view->memories[view->processes[i].memories_first + k]);
	strbuf_addc(out, '\n');
	r = table_write(&table, options, out);
	table_done(&table);
	for (uint32_t i = 0; r == 0 && i < view->processes_n; i++)
		for (uint32_t k = 0; k < view->processes[i].memories_n; k++) {
			const struct torch_memory *memory =
				&view->memories[view->processes[i].memories_first + k];

			if (memory->ooms > 0)
				oom_line(&view->processes[i], memory, options, out);
		}
	return r;
}

static void name_rows(struct table *table, const struct torch_process *process,
		      const struct torch_count *counts, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < NAMES_MAX; i++) {
		pid_cell(table, process);
		table_cell(table, COLOUR_NONE, counts[i].name);
		table_cellf(table, COLOUR_NONE, "%" PRIu64, counts[i].count);
		if (counts[i].count > 1)
			table_cellf(table, COLOUR_NONE, "%.6f s",
				    counts[i].seconds / (double)(counts[i].count - 1));
		else
			table_cell(table, COLOUR_NONE, "");
	}
}

static int table_names(const struct torch_view *view, const struct table_options *options, struct strbuf *out)
{
	struct table table;
	int r;

	table_init(&table, name_columns, ARRAY_SIZE(name_columns));
	for (uint32_t i = 0; i < view->processes_n; i++) {
		const struct torch_process *process = &view->processes[i];

		name_rows(&table, process, &view->counts[process->nodes_first], process->nodes_n);
		name_rows(&table, process, &view->counts[process->ranges_first], process->ranges_n);
	}
	strbuf_addc(out, '\n');
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}

static void beside_line(const struct torch_view *view, const struct torch_process *process,
			const struct table_options *options, struct strbuf *out)
{
	char nvml[BYTES_TEXT], reserved_text[BYTES_TEXT], beside_text[BYTES_TEXT], text[200];
	uint64_t reserved, beside;

	if (!torch_beside(view, process, &reserved, &beside))
		return;
	bytes_text((double)process->nvml_bytes, nvml);
	bytes_text((double)reserved, reserved_text);
	bytes_text((double)beside, beside_text);
	snprintf(text, sizeof(text),
		 "PID %" PRIu32 ": %s on GPUs by NVML, of which PyTorch has reserved %s, and others about %s",
		 process->pid, nvml, reserved_text, beside_text);
	table_line(options, out, COLOUR_NONE, text);
}

static void process_lines(const struct torch_view *view, const struct torch_process *process,
			  const struct table_options *options, struct strbuf *out)
{
	char text[200];

	beside_line(view, process, options, out);
	if (process->steps > 0) {
		snprintf(text, sizeof(text), "PID %" PRIu32 ": %" PRIu64 " steps of optimizers", process->pid,
			 process->steps);
		if (process->step_seconds > 0)
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
				 ", one every %.6f s in the mean", process->step_seconds);
		table_line(options, out, COLOUR_NONE, text);
	}
	if (process->lost) {
		snprintf(text, sizeof(text),
			 "PID %" PRIu32 ": events were lost: counts and peaks are less than what happened",
			 process->pid);
		table_line(options, out, COLOUR_BAD, text);
	}
}

static void beyond_line(const struct torch_view *view, const struct table_options *options,
			struct strbuf *out)
{
	char text[120];

	snprintf(text, sizeof(text), "%" PRIu64 " events are of further processes, and in no row",
		 view->beyond);
	table_line(options, out, COLOUR_BAD, text);
}

int table_torch(const struct torch_view *view, const struct table_options *options, struct strbuf *out)
{
	int r = view->memories_n > 0 ? table_memories(view, options, out) : 0;

	if (r == 0 && view->counts_n > 0)
		r = table_names(view, options, out);
	for (uint32_t i = 0; r == 0 && i < view->processes_n; i++)
		process_lines(view, &view->processes[i], options, out);
	if (r == 0 && view->beyond > 0)
		beyond_line(view, options, out);
	return r;
}
