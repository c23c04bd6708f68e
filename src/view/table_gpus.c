// SPDX-License-Identifier: Apache-2.0
#include "view/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "view/table_json.h"

/* Columns of `gpusonde gpus`. */
static const struct table_column columns[] = {
	{ .title = "GPU", .right = true },
	{ .title = "NAME", .flexible = true },
	{ .title = "STATE" },
	{ .title = "UTIL", .right = true },
	{ .title = "MEMORY", .right = true },
	{ .title = "POWER", .right = true },
	{ .title = "TEMP", .right = true },
	{ .title = "SM CLOCK", .right = true, .dispensable = 2 },
	{ .title = "PROC", .right = true, .dispensable = 1 },
	{ .title = "THROTTLED BY", .flexible = true },
};

/* A hot GPU is no alarm by itself; these are where people look twice. */
enum { WARM_CELSIUS = 85 };

static void add_state(struct table *table, const json_t *gpu)
{
	double age;

	if (!json_is_true(json_object_get(gpu, "present")))
		table_cell(table, COLOUR_BAD, "LOST");
	else if (!json_is_true(json_object_get(gpu, "stale")))
		table_cell(table, COLOUR_GOOD, "ok");
	else if (get_number(gpu, "age_seconds", NULL, &age))
		table_cellf(table, COLOUR_WARN, "stale %.0f s", age);
	else
		table_cell(table, COLOUR_WARN, "stale");
}

static void add_ratio(struct table *table, const json_t *gpu)
{
	double v;

	if (get_number(gpu, "utilization_ratio", "gpu", &v))
		table_cellf(table, COLOUR_NONE, "%.0f %%", v * 100);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void add_memory(struct table *table, const json_t *gpu)
{
	static const double gib = 1024.0 * 1024.0 * 1024.0;
	double used, total;
	bool has_used = get_number(gpu, "memory_used_bytes", NULL, &used);
	bool has_total = get_number(gpu, "memory_total_bytes", NULL, &total);

	if (has_used && has_total)
		table_cellf(table, COLOUR_NONE, "%.1f/%.1f GiB", used / gib, total / gib);
	else if (has_total)
		table_cellf(table, COLOUR_NONE, "-/%.1f GiB", total / gib);
	else if (has_used)
		table_cellf(table, COLOUR_NONE, "%.1f GiB", used / gib);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void add_power(struct table *table, const json_t *gpu)
{
	double power, limit;
	bool has_power = get_number(gpu, "power_watts", NULL, &power);

	if (!has_power)
		table_cell(table, COLOUR_NONE, "");
	else if (get_number(gpu, "power_limit_watts", "enforced", &limit))
		table_cellf(table, COLOUR_NONE, "%.0f/%.0f W", power, limit);
	else
		table_cellf(table, COLOUR_NONE, "%.0f W", power);
}

static void add_scaled(struct table *table, const json_t *gpu, const char *name, const char *label,
		       double scale, const char *unit, double warn_from)
{
	double v;

	if (get_number(gpu, name, label, &v))
		table_cellf(table, warn_from > 0 && v >= warn_from ? COLOUR_WARN : COLOUR_NONE, "%.0f %s",
			    v * scale, unit);
	else
		table_cell(table, COLOUR_NONE, "");
}

/* Words for the reasons that are 1; "none" is an answer, too, and differs from not knowing. */
static void add_reasons(struct table *table, const json_t *gpu)
{
	json_t *reasons = json_object_get(gpu, "clocks_event_reason"), *value;
	struct strbuf text;
	bool known = false, idle_only = true;
	const char *reason;

	strbuf_init(&text, 0);
	json_object_foreach(reasons, reason, value) {
		if (!json_is_number(value))
			continue;
		known = true;
		if (json_number_value(value) == 0)
			continue;
		idle_only = idle_only && STRV_EQ(reason, "gpu_idle");
		strbuf_adds(&text, text.len > 0 ? ", " : "");
		strbuf_adds(&text, reason);
	}
	if (known && text.len == 0)
		table_cell(table, COLOUR_DIM, "none");
	else
		table_cell(table, idle_only ? COLOUR_DIM : COLOUR_WARN, text.data);
	strbuf_done(&text);
}

/*
 * Those of a GPU's instances are its own: the driver lists each process with the instance it runs in. One
 * that is not known makes the sum so.
 */
static void add_processes(struct table *table, const json_t *gpu)
{
	double sum = 0, n = 0;
	bool known = get_number(gpu, "processes_live", NULL, &sum);
	json_t *instance;
	size_t i;

	json_array_foreach(json_object_get(gpu, "mig"), i, instance) {
		known = get_number(instance, "processes_live", NULL, &n) && known;
		sum += n;
	}
	if (known)
		table_cellf(table, COLOUR_NONE, "%.0f", sum);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void add_numbers(struct table *table, const json_t *gpu)
{
	add_ratio(table, gpu);
	add_memory(table, gpu);
	add_power(table, gpu);
	add_scaled(table, gpu, "temperature_celsius", NULL, 1, "\u00b0C", WARM_CELSIUS);
	add_scaled(table, gpu, "clock_hertz", "sm", 1e-6, "MHz", 0);
	add_processes(table, gpu);
	add_reasons(table, gpu);
}

static void add_gpu(struct table *table, const json_t *gpu)
{
	const char *name = get_string(gpu, "name");
	json_t *instance;
	size_t i;

	table_cellf(table, COLOUR_NONE, "%" JSON_INTEGER_FORMAT,
		    json_integer_value(json_object_get(gpu, "gpu")));
	/* They all are. */
	table_cell(table, COLOUR_NONE, name + (strncmp(name, "NVIDIA ", 7) == 0 ? 7 : 0));
	add_state(table, gpu);
	add_numbers(table, gpu);
	json_array_foreach(json_object_get(gpu, "mig"), i, instance) {
		table_cell(table, COLOUR_NONE, " ");
		table_cellf(table, COLOUR_NONE,
			    "  MIG %s gi %" JSON_INTEGER_FORMAT " ci %" JSON_INTEGER_FORMAT,
			    get_string(instance, "profile"),
			    json_integer_value(json_object_get(instance, "gi")),
			    json_integer_value(json_object_get(instance, "ci")));
		add_state(table, instance);
		add_numbers(table, instance);
	}
}

static void add_warnings(const json_t *gpu, const struct table_options *options, struct strbuf *out)
{
	struct strbuf line;
	char text[GPU_WARNING_MAX];

	strbuf_init(&line, 0);
	for (unsigned i = 0; i < GPU_WARNINGS; i++) {
		if (!gpu_warning(gpu, i, text, sizeof(text)))
			continue;
		strbuf_reset(&line);
		strbuf_addf(&line, "GPU %" JSON_INTEGER_FORMAT ": %s",
			    json_integer_value(json_object_get(gpu, "gpu")), text);
		table_line(options, out, COLOUR_WARN, line.data);
	}
	strbuf_done(&line);
}

static enum table_colour severity_colour(const char *severity)
{
	if (STRV_EQ(severity, "critical"))
		return COLOUR_BAD;
	return STRV_EQ(severity, "info") ? COLOUR_DIM : COLOUR_WARN;
}

static void add_xids(const json_t *gpu, const struct table_options *options, struct strbuf *out)
{
	struct strbuf line;
	json_t *xid;
	size_t i;

	strbuf_init(&line, 0);
	json_array_foreach(json_object_get(gpu, "xids"), i, xid) {
		strbuf_reset(&line);
		strbuf_addf(&line,
			    "GPU %" JSON_INTEGER_FORMAT ": XID %" JSON_INTEGER_FORMAT
			    " (%s), %" JSON_INTEGER_FORMAT "x, last %s",
			    json_integer_value(json_object_get(gpu, "gpu")),
			    json_integer_value(json_object_get(xid, "xid")), get_string(xid, "name"),
			    json_integer_value(json_object_get(xid, "count")), get_string(xid, "last_seen"));
		table_line(options, out, severity_colour(get_string(xid, "severity")), line.data);
		strbuf_reset(&line);
		strbuf_addf(&line, "    %s %s", get_string(xid, "meaning"), get_string(xid, "action"));
		table_line(options, out, COLOUR_NONE, line.data);
	}
	strbuf_done(&line);
}

int table_gpus(const json_t *document, const struct table_options *options, struct strbuf *out)
{
	json_t *gpus = json_object_get(document, "gpus"), *gpu;
	struct table table;
	size_t i;
	int r;

	if (!json_is_array(gpus))
		return -EINVAL;
	table_simulated(document, options, out);
	if (json_array_size(gpus) == 0) {
		table_nothing(document, "GPUs", options, out);
		table_unrecognised(document, options, out);
		return 0;
	}
	table_trouble(document, options, out);
	table_init(&table, columns, ARRAY_SIZE(columns));
	json_array_foreach(gpus, i, gpu)
		add_gpu(&table, gpu);
	r = table_write(&table, options, out);
	table_done(&table);
	json_array_foreach(gpus, i, gpu) {
		add_warnings(gpu, options, out);
		add_xids(gpu, options, out);
	}
	table_unrecognised(document, options, out);
	return r;
}
