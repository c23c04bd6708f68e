// SPDX-License-Identifier: Apache-2.0
#include "view/table.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "view/table_json.h"

enum { PASSWD_BUFFER = 4096 };

/* Columns of `gpusonde ps`. */
static const struct table_column columns[] = {
	{ .title = "GPU", .right = true },         { .title = "MIG" },
	{ .title = "PID", .right = true },         { .title = "USER", .dispensable = 2 },
	{ .title = "TYPE", .dispensable = 3 },     { .title = "SM", .right = true },
	{ .title = "MEMORY", .right = true },      { .title = "BUSY", .right = true, .dispensable = 1 },
	{ .title = "WORKLOAD", .flexible = true }, { .title = "COMMAND", .flexible = true },
};

/* A name is for this reader's machine; the number is what the document says. */
static void add_user(struct table *table, const json_t *process)
{
	char buffer[PASSWD_BUFFER];
	struct passwd entry, *found = NULL;
	double uid;

	if (!get_number(process, "uid", NULL, &uid) || uid < 0 || uid > UINT32_MAX)
		table_cell(table, COLOUR_NONE, "");
	else if (getpwuid_r((uid_t)uid, &entry, buffer, sizeof(buffer), &found) == 0 && found)
		table_cell(table, COLOUR_NONE, found->pw_name);
	else
		table_cellf(table, COLOUR_NONE, "%.0f", uid);
}

/* "C", "G", "M" for each type the driver lists it under. */
static void add_types(struct table *table, const json_t *process)
{
	char letters[8] = "";
	size_t i, n = 0;
	json_t *type;

	json_array_foreach(json_object_get(process, "types"), i, type)
	{
		const char *name = json_string_value(type);

		if (name && *name && n < sizeof(letters) - 1)
			letters[n++] = (char)(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);
	}
	letters[n] = '\0';
	table_cell(table, COLOUR_NONE, letters);
}

/* The GPU of a process, as the same document has it; NULL where it does not. */
static const json_t *gpu_of(const json_t *document, const json_t *process)
{
	const char *uuid = get_string(process, "uuid");
	json_t *gpu;
	size_t i;

	json_array_foreach(json_object_get(document, "gpus"), i, gpu)
		if (*uuid && STRV_EQ(get_string(gpu, "uuid"), uuid))
			return gpu;
	return NULL;
}

/* What was measured last is no load of now. */
static bool is_old(const json_t *gpu)
{
	return gpu && (json_is_false(json_object_get(gpu, "present")) || json_is_true(json_object_get(gpu, "stale")));
}

static void add_process(struct table *table, const json_t *document, const json_t *process)
{
	double gi, ci, sm;

	table_cellf(table, COLOUR_NONE, "%" JSON_INTEGER_FORMAT,
		    json_integer_value(json_object_get(process, "gpu")));
	if (get_number(process, "gi", NULL, &gi) && get_number(process, "ci", NULL, &ci))
		table_cellf(table, COLOUR_NONE, "%.0f/%.0f", gi, ci);
	else
		table_cell(table, COLOUR_NONE, "");
	table_cellf(table, COLOUR_NONE, "%" JSON_INTEGER_FORMAT,
		    json_integer_value(json_object_get(process, "pid")));
	add_user(table, process);
	add_types(table, process);
	if (!is_old(gpu_of(document, process)) && get_number(process, "utilization_ratio", NULL, &sm))
		table_cellf(table, COLOUR_NONE, "%.0f %%", sm * 100);
	else
		table_cell(table, COLOUR_NONE, "");
	table_bytes(table, process, "memory_bytes");
	table_duration(table, process, "busy_seconds_total");
	table_workload(table, process);
	table_cell(table, COLOUR_NONE, get_string(process, "comm"));
}

/* A line for each GPU that has processes here and figures of another time. */
static void add_notes(const json_t *document, const struct table_options *options, struct strbuf *out)
{
	const json_t *processes = json_object_get(document, "processes"), *gpu, *process;
	char text[160];
	size_t i, k;

	json_array_foreach(json_object_get(document, "gpus"), i, gpu)
	{
		bool used = false;
		double age = 0;

		json_array_foreach(processes, k, process) used = used || gpu_of(document, process) == gpu;
		if (!used || !is_old(gpu))
			continue;
		get_number(gpu, "age_seconds", NULL, &age);
		snprintf(text, sizeof(text), "GPU %" JSON_INTEGER_FORMAT " %s: its processes are as of %.0f s ago",
			 json_integer_value(json_object_get(gpu, "gpu")),
			 json_is_false(json_object_get(gpu, "present")) ? "is lost" : "has no new data", age);
		table_line(options, out, COLOUR_WARN, text);
	}
}

int table_processes(const json_t *document, const struct table_options *options, struct strbuf *out)
{
	json_t *processes = json_object_get(document, "processes"), *process;
	struct table table;
	size_t i;
	int r;

	if (!json_is_array(processes))
		return -EINVAL;
	table_simulated(document, options, out);
	if (json_array_size(processes) == 0) {
		table_line(options, out, COLOUR_NONE, "No GPU processes.");
		return 0;
	}
	table_init(&table, columns, ARRAY_SIZE(columns));
	json_array_foreach(processes, i, process) add_process(&table, document, process);
	r = table_write(&table, options, out);
	table_done(&table);
	add_notes(document, options, out);
	return r;
}
