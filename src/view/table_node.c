// SPDX-License-Identifier: Apache-2.0
#include "view/table.h"

#include <errno.h>
#include <stdio.h>

#include "model/reading.h"
#include "view/table_json.h"

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

static void add_state(const json_t *node, const struct table_options *options, struct strbuf *out)
{
	bool fresh = json_is_true(json_object_get(node, "fresh"));
	struct strbuf line;

	strbuf_init(&line, 0);
	strbuf_addf(&line, "%-10s %s, data %s", "State", get_string(node, "state"),
		    fresh ? "fresh" : "not fresh");
	if (!fresh && *get_string(node, "reason"))
		strbuf_addf(&line, ": %s", get_string(node, "reason"));
	table_line(options, out, fresh ? COLOUR_GOOD : COLOUR_BAD, line.data);
	strbuf_done(&line);
	if (*get_string(node, "error"))
		add_fact(options, out, "", get_string(node, "error"));
}

static void add_counts(const json_t *node, const struct table_options *options, struct strbuf *out)
{
	const json_t *gpus = json_object_get(node, "gpus"), *agent = json_object_get(node, "agent");
	double present = 0, absent = 0, instances = 0, cpu, resident;
	char text[160];

	get_number(gpus, "present", NULL, &present);
	get_number(gpus, "absent", NULL, &absent);
	get_number(gpus, "mig_instances", NULL, &instances);
	snprintf(text, sizeof(text), "%.0f present, %.0f absent, %.0f MIG instances", present, absent,
		 instances);
	add_fact(options, out, "GPUs", text);
	if (get_number(agent, "agent_cpu_seconds_total", NULL, &cpu) &&
	    get_number(agent, "agent_resident_bytes", NULL, &resident)) {
		snprintf(text, sizeof(text), "gpusonde %s, %.1f s CPU, %.1f MiB resident",
			 get_string(agent, "version"), cpu, resident / (1024 * 1024));
		add_fact(options, out, "Agent", text);
	}
}

/* Each field the driver gave impossible values for. */
static void add_rejected(const json_t *node, const struct table_options *options, struct strbuf *out)
{
	json_t *rejected = json_object_get(node, "rejected"), *count;
	char text[256];
	const char *field;

	json_object_foreach(rejected, field, count) {
		snprintf(text, sizeof(text),
			 "%s: %" JSON_INTEGER_FORMAT " values that cannot be true left out", field,
			 json_integer_value(count));
		add_fact(options, out, "Rejected", text);
	}
}

/* How each pair of GPUs is connected, as a square. */
static int add_topology(const json_t *node, const struct table_options *options, struct strbuf *out)
{
	const char *links[READING_TOPOLOGY_MAX][READING_TOPOLOGY_MAX] = { 0 };
	struct table_column columns[READING_TOPOLOGY_MAX + 1] = { { .title = "" } };
	char titles[READING_TOPOLOGY_MAX][16];
	struct table table;
	unsigned n = 0;
	json_t *pair;
	size_t i;
	int r;

	json_array_foreach(json_object_get(node, "topology"), i, pair) {
		json_int_t a = json_integer_value(json_object_get(pair, "a")),
			   b = json_integer_value(json_object_get(pair, "b"));

		if (a < 0 || b <= a || b >= READING_TOPOLOGY_MAX)
			continue;
		links[a][b] = links[b][a] = get_string(pair, "link");
		n = MAX(n, (unsigned)b + 1);
	}
	if (n == 0)
		return 0;
	for (unsigned k = 0; k < n; k++) {
		snprintf(titles[k], sizeof(titles[k]), "GPU%u", k);
		columns[k + 1] = (struct table_column){ .title = titles[k], .right = true };
	}
	table_init(&table, columns, n + 1);
	for (unsigned a = 0; a < n; a++) {
		table_cell(&table, COLOUR_HEAD, titles[a]);
		for (unsigned b = 0; b < n; b++)
			table_cell(&table, COLOUR_NONE, a == b ? "X" : links[a][b]);
	}
	strbuf_addc(out, '\n');
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}

static int add_workloads(const json_t *node, const struct table_options *options, struct strbuf *out)
{
	json_t *workloads = json_object_get(node, "workloads"), *workload;
	struct table table;
	double v[2];
	size_t i;
	int r;

	if (json_array_size(workloads) == 0)
		return 0;
	table_init(&table, workload_columns, ARRAY_SIZE(workload_columns));
	json_array_foreach(workloads, i, workload) {
		table_workload(&table, workload);
		table_cellf(&table, COLOUR_NONE, "%" JSON_INTEGER_FORMAT,
			    json_integer_value(json_object_get(workload, "gpu")));
		if (get_number(workload, "gi", NULL, &v[0]) && get_number(workload, "ci", NULL, &v[1]))
			table_cellf(&table, COLOUR_NONE, "%.0f/%.0f", v[0], v[1]);
		else
			table_cell(&table, COLOUR_NONE, "");
		table_cellf(&table, COLOUR_NONE, "%" JSON_INTEGER_FORMAT,
			    json_integer_value(json_object_get(workload, "processes_live")));
		table_cellf(&table, COLOUR_NONE, "%" JSON_INTEGER_FORMAT,
			    json_integer_value(json_object_get(workload, "processes_exited")));
		table_duration(&table, workload, "busy_seconds_total");
		table_bytes(&table, workload, "memory_bytes");
	}
	strbuf_addc(out, '\n');
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}

int table_node(const json_t *document, const struct table_options *options, struct strbuf *out)
{
	const json_t *node = json_object_get(document, "node");
	int r;

	if (!json_is_object(node))
		return -EINVAL;
	table_simulated(document, options, out);
	add_fact(options, out, "Host", get_string(node, "hostname"));
	add_fact(options, out, "Driver", get_string(node, "driver_version"));
	add_fact(options, out, "CUDA", get_string(node, "cuda_version"));
	add_fact(options, out, "NVML", get_string(node, "nvml_version"));
	add_fact(options, out, "Library", get_string(node, "library"));
	if (*get_string(node, "unrecognised"))
		add_fact(options, out, "Not read", get_string(node, "unrecognised"));
	add_state(node, options, out);
	add_counts(node, options, out);
	add_rejected(node, options, out);
	r = add_topology(node, options, out);
	if (r >= 0)
		r = add_workloads(node, options, out);
	if (r >= 0 && out->failed)
		r = out->limit > 0 ? -E2BIG : -ENOMEM;
	return r;
}
