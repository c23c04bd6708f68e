// SPDX-License-Identifier: Apache-2.0
#include "view/table.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "view/table_json.h"

enum { PASSWD_BUFFER = 4096 };

/*
 * Columns of `gpusonde ps`; some only while calls are traced: of these, the one that makes the others
 * doubtful goes last.
 */
static const struct table_column columns[] = {
	{ .title = "GPU", .right = true },
	{ .title = "MIG" },
	{ .title = "PID", .right = true },
	{ .title = "USER", .dispensable = 6 },
	{ .title = "TYPE", .dispensable = 7 },
	{ .title = "SM", .right = true },
	{ .title = "MEMORY", .right = true },
	{ .title = "BUSY", .right = true, .dispensable = 3 },
	{ .title = "LAUNCHES", .right = true, .dispensable = 2 },
	{ .title = "ERRORS", .right = true, .dispensable = 4 },
	{ .title = "CUDA BUSY", .right = true, .dispensable = 5 },
	{ .title = "CUDA MEM", .right = true, .dispensable = 8 },
	{ .title = "INCOMPLETE", .flexible = true, .dispensable = 1 },
	{ .title = "WORKLOAD", .flexible = true },
	{ .title = "COMMAND", .flexible = true },
};
enum { COLUMNS = ARRAY_SIZE(columns), TRACED_FIRST = 8, TRACED_LAST = 12 };

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

	json_array_foreach(json_object_get(process, "types"), i, type) {
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
	return gpu && (json_is_false(json_object_get(gpu, "present")) ||
		       json_is_true(json_object_get(gpu, "stale")));
}

static void add_count(struct table *table, const json_t *object, const char *name, enum table_colour if_any)
{
	double v;

	if (get_number(object, name, NULL, &v))
		table_cellf(table, v > 0 ? if_any : COLOUR_NONE, "%.0f", v);
	else
		table_cell(table, COLOUR_NONE, "");
}

static bool is_estimated(const json_t *object, const char *name)
{
	json_t *estimated;
	size_t i;

	json_array_foreach(json_object_get(object, "estimated"), i, estimated)
		if (json_is_string(estimated) && STRV_EQ(json_string_value(estimated), name))
			return true;
	return false;
}

/*
 * Kinds that lie on the device, as the calls say. Where one is not known the sum of the others is too low,
 * and nothing says nothing.
 */
static void add_ledger(struct table *table, const json_t *cuda)
{
	static const char *const kinds[] = { "device", "async", "managed", "physical", "array" };
	bool any = false, all = true, doubtful = false;
	double sum = 0, v;
	char text[32];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		bool known = get_number(cuda, "memory_bytes", kinds[i], &v);

		snprintf(text, sizeof(text), "memory_bytes.%s", kinds[i]);
		doubtful |= !known || is_estimated(cuda, text);
		any |= known && v > 0;
		all &= known;
		sum += known ? v : 0;
	}
	table_bytes_value(table, doubtful ? "~" : "", any || all ? &sum : NULL);
}

static void add_traced(struct table *table, const json_t *cuda)
{
	struct strbuf reasons;
	json_t *reason;
	double busy;
	size_t i;

	add_count(table, cuda, "launches_total", COLOUR_NONE);
	add_count(table, cuda, "errors_total", COLOUR_BAD);
	if (get_number(cuda, "busy_seconds_total", NULL, &busy))
		table_cellf(table, COLOUR_NONE, "%s%.1f s",
			    is_estimated(cuda, "busy_seconds_total") ? "~" : "", busy);
	else
		table_cell(table, COLOUR_NONE, "");
	add_ledger(table, cuda);
	strbuf_init(&reasons, 0);
	json_array_foreach(json_object_get(cuda, "incomplete"), i, reason)
		strbuf_addf(&reasons, "%s%s", i > 0 ? "," : "",
			    json_is_string(reason) ? json_string_value(reason) : "?");
	table_cell(table, COLOUR_WARN, reasons.data);
	strbuf_done(&reasons);
}

static void add_process(struct table *table, const json_t *document, const json_t *process, bool traced)
{
	double gpu, gi, ci, sm;

	if (get_number(process, "gpu", NULL, &gpu))
		table_cellf(table, COLOUR_NONE, "%.0f", gpu);
	else
		table_cell(table, COLOUR_NONE, "");
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
	if (traced)
		add_traced(table, json_object_get(process, "cuda"));
	table_workload(table, process);
	table_cell(table, COLOUR_NONE, get_string(process, "comm"));
}

/*
 * What is not in the list, and the tracing source's own word for it: 0 while it should deliver and does not.
 */
static void add_trace_note(const json_t *document, const struct table_options *options, struct strbuf *out)
{
	const json_t *agent = json_object_get(json_object_get(document, "node"), "agent");
	double up, left_out;
	char text[96];

	if (get_number(document, "traced_left_out", NULL, &left_out) && left_out > 0) {
		snprintf(text, sizeof(text), "%.0f more traced processes are not shown", left_out);
		table_line(options, out, COLOUR_WARN, text);
	}
	if (get_number(agent, "source_up", "trace", &up) && up == 0)
		table_line(options, out, COLOUR_WARN,
			   "tracing delivers nothing new: its counts are old (gpusonde doctor says more)");
}

/* A line for each GPU that has processes here and figures of another time. */
static void add_notes(const json_t *document, const struct table_options *options, struct strbuf *out)
{
	const json_t *processes = json_object_get(document, "processes"), *gpu, *process;
	char text[160];
	size_t i, k;

	json_array_foreach(json_object_get(document, "gpus"), i, gpu) {
		bool used = false;
		double age = 0;

		json_array_foreach(processes, k, process)
			used = used || gpu_of(document, process) == gpu;
		if (!used || !is_old(gpu))
			continue;
		get_number(gpu, "age_seconds", NULL, &age);
		snprintf(text, sizeof(text),
			 "GPU %" JSON_INTEGER_FORMAT " %s: its processes are as of %.0f s ago",
			 json_integer_value(json_object_get(gpu, "gpu")),
			 json_is_false(json_object_get(gpu, "present")) ? "is lost" : "has no new data", age);
		table_line(options, out, COLOUR_WARN, text);
	}
}

/* null; an agent of another version may have no such member, which says nothing. */
static bool is_unlisted(const json_t *device)
{
	return json_is_null(json_object_get(device, "processes_live"));
}

/* GPUs whose processes are not, or not all, in the list: that is not none. */
static void add_unlisted(const json_t *document, const struct table_options *options, struct strbuf *out)
{
	json_t *gpu, *instance;
	struct strbuf line;
	size_t i, k, before;

	strbuf_init(&line, 0);
	strbuf_adds(&line,
		    "Processes are missing: the driver's lists of them cannot be read, or not whole, on GPU");
	before = line.len;
	json_array_foreach(json_object_get(document, "gpus"), i, gpu) {
		bool unlisted = is_unlisted(gpu);

		json_array_foreach(json_object_get(gpu, "mig"), k, instance)
			unlisted |= is_unlisted(instance);
		if (unlisted && json_is_true(json_object_get(gpu, "present")))
			strbuf_addf(&line, "%s %" JSON_INTEGER_FORMAT, line.len > before ? "," : "",
				    json_integer_value(json_object_get(gpu, "gpu")));
	}
	if (line.len > before)
		table_line(options, out, COLOUR_WARN, line.data);
	strbuf_done(&line);
}

int table_processes(const json_t *document, const struct table_options *options, struct strbuf *out)
{
	json_t *processes = json_object_get(document, "processes"), *process;
	json_t *elsewhere = json_object_get(document, "traced");
	bool traced = json_is_array(elsewhere);
	struct table_column shown[COLUMNS];
	unsigned shown_n = 0;
	struct table table;
	size_t i;
	int r;

	if (!json_is_array(processes))
		return -EINVAL;
	table_simulated(document, options, out);
	if (json_array_size(processes) + json_array_size(elsewhere) == 0) {
		table_nothing(document, "GPU processes", options, out);
		add_unlisted(document, options, out);
		table_unrecognised(document, options, out);
		return 0;
	}
	table_trouble(document, options, out);
	for (unsigned k = 0; k < COLUMNS; k++)
		if (traced || k < TRACED_FIRST || k > TRACED_LAST)
			shown[shown_n++] = columns[k];
	table_init(&table, shown, shown_n);
	json_array_foreach(processes, i, process)
		add_process(&table, document, process, traced);
	json_array_foreach(elsewhere, i, process)
		add_process(&table, document, process, traced);
	r = table_write(&table, options, out);
	table_done(&table);
	add_notes(document, options, out);
	add_unlisted(document, options, out);
	table_unrecognised(document, options, out);
	if (traced)
		add_trace_note(document, options, out);
	return r;
}
