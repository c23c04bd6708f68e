// SPDX-License-Identifier: Apache-2.0
#include "view/table.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
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

static void add_process(struct table *table, const json_t *process)
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
	if (get_number(process, "utilization_ratio", NULL, &sm))
		table_cellf(table, COLOUR_NONE, "%.0f %%", sm * 100);
	else
		table_cell(table, COLOUR_NONE, "");
	table_bytes(table, process, "memory_bytes");
	table_duration(table, process, "busy_seconds_total");
	table_workload(table, process);
	table_cell(table, COLOUR_NONE, get_string(process, "comm"));
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
	json_array_foreach(processes, i, process) add_process(&table, process);
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}
