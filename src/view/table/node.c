// SPDX-License-Identifier: Apache-2.0
#include "view/table/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "config.h"
#include "view/names.h"
#include "view/shown.h"
#include "view/table/parts.h"

static const struct table_column workload_columns[] = {
	{ .title = "WORKLOAD", .flexible = true },
	{ .title = "GPU", .right = true },
	{ .title = "MIG" },
	{ .title = "LIVE", .right = true },
	{ .title = "ENDED", .right = true },
	{ .title = "BUSY", .right = true },
	{ .title = "MEMORY NOW", .right = true },
};

/* "Driver  580.95.05" */
static void add_fact(const struct table_options *options, struct strbuf *out, const char *what,
		     const char *text)
{
	struct strbuf line;

	strbuf_init(&line, 0);
	strbuf_addf(&line, "%-10s %s", what, *text ? text : "-");
	table_line(options, out, COLOUR_NONE, line.data);
	strbuf_done(&line);
}

static void add_state(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	const struct source *driver = snapshot_driver(s);
	bool works = driver->state == READING_OK && s->fresh;
	struct strbuf line;

	strbuf_init(&line, 0);
	strbuf_addf(&line, "%-10s %s", "State", state_name(driver->state));
	/* Without a driver there are no data that could be fresh. */
	if (driver->state == READING_OK || !s->fresh)
		strbuf_addf(&line, ", data %s", s->fresh ? "fresh" : "not fresh");
	if (!s->fresh && *s->not_fresh_reason)
		strbuf_addf(&line, ": %s", s->not_fresh_reason);
	table_line(options, out, works ? COLOUR_GOOD : COLOUR_BAD, line.data);
	strbuf_done(&line);
	if (*driver->error && (s->fresh || !strstr(s->not_fresh_reason, driver->error)))
		add_fact(options, out, "", driver->error);
}

static void add_counts(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	struct gpu_counts counts;
	char text[160];

	count_gpus(s, &counts);
	snprintf(text, sizeof(text), "%u present, %u absent, %u not identified, %u MIG instances",
		 counts.present, counts.absent, counts.unidentified, counts.instances);
	add_fact(options, out, "GPUs", text);
	if (presence_is(s->agent_p[AGENT_CPU_SECONDS]) && presence_is(s->agent_p[AGENT_RESIDENT_BYTES])) {
		snprintf(text, sizeof(text), "gpusonde %s, %.1f s CPU, %.1f MiB resident",
			 *s->agent_version ? s->agent_version : GPUSONDE_VERSION, s->agent[AGENT_CPU_SECONDS],
			 s->agent[AGENT_RESIDENT_BYTES] / (1024 * 1024));
		add_fact(options, out, "Agent", text);
	}
}

/* Lists the fields with implausible values from the driver. */
static void add_rejected(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	struct rejected_field field;
	char text[256];

	for (unsigned i = 0; rejected_next(s, &i, &field);) {
		snprintf(text, sizeof(text), "%s: %" PRIu64 " values that cannot be true left out",
			 field.name, field.count);
		add_fact(options, out, "Rejected", text);
	}
}

/* Square matrix of the connections between GPUs. */
static int add_topology(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	struct table_column columns[READING_TOPOLOGY_MAX + 1] = { { .title = "" } };
	char titles[READING_TOPOLOGY_MAX][16], link[8];
	unsigned gpus[READING_TOPOLOGY_MAX], n = 0;
	struct table table;
	int r;

	for (unsigned index = 0; index < s->topology_n; index++)
		if (snapshot_has_gpu(s, index)) {
			snprintf(titles[n], sizeof(titles[n]), "GPU%u", index);
			columns[n + 1] = (struct table_column){ .title = titles[n], .right = true };
			gpus[n++] = index;
		}
	if (n < 2)
		return 0;
	table_init(&table, columns, n + 1);
	for (unsigned i = 0; i < n; i++) {
		table_cell(&table, COLOUR_HEAD, titles[i]);
		for (unsigned k = 0; k < n; k++) {
			link_text(s->topology[gpus[i]][gpus[k]], s->topology_nvlinks[gpus[i]][gpus[k]], link);
			table_cell(&table, COLOUR_NONE, i == k ? "X" : link);
		}
	}
	strbuf_addc(out, '\n');
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}

static int add_workloads(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	struct table table;
	int r;

	if (s->workloads_n == 0)
		return 0;
	table_init(&table, workload_columns, ARRAY_SIZE(workload_columns));
	for (uint32_t i = 0; i < s->workloads_n; i++) {
		const struct workload *workload = &s->workloads[i];
		const struct entity *e = &s->entities[workload->entity];

		table_workload(&table, workload);
		table_gpu_index(&table, s, e);
		table_instance(&table, e);
		table_cellf(&table, COLOUR_NONE, "%" PRIu32, workload->live);
		table_cellf(&table, COLOUR_NONE, "%" PRIu32, workload->exited);
		table_process_duration(&table, workload->v, workload->p, PROCESS_BUSY);
		table_process_bytes(&table, workload->v, workload->p, PROCESS_MEMORY);
	}
	strbuf_addc(out, '\n');
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}

int table_node(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	const struct source *driver = snapshot_driver(s);
	char cuda[16];
	int r;

	cuda_version_text(driver->cuda_version, cuda);
	table_simulated(s, options, out);
	add_fact(options, out, "Host", s->hostname);
	add_fact(options, out, "Driver", driver->driver_version);
	add_fact(options, out, "CUDA", cuda);
	add_fact(options, out, "NVML", driver->library_version);
	add_fact(options, out, "Library", driver->library);
	if (*driver->unrecognised)
		add_fact(options, out, "Not read", driver->unrecognised);
	add_state(s, options, out);
	add_counts(s, options, out);
	add_rejected(s, options, out);
	r = add_topology(s, options, out);
	if (r >= 0)
		r = add_workloads(s, options, out);
	if (r >= 0 && out->failed)
		r = out->limit > 0 ? -E2BIG : -ENOMEM;
	return r;
}
