// SPDX-License-Identifier: Apache-2.0
/*
 * json_schema SKELETON: prints docs/json.schema.json, which is the hand-written skeleton with a property for
 * every family of the metric tables, and with every property required that it defines: the documents have all
 * their members always.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/macro.h"
#include "model/trace.h"

/* Out of memory ends a build step; nothing else fails here. */
static void put(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) < 0)
		exit(EXIT_FAILURE);
}

static json_t *reference(const char *name)
{
	return json_pack("{s:s+}", "$ref", "#/$defs/", name);
}

static json_t *row_schema(const struct metric *m)
{
	if (m->index)
		return json_pack("{s:s, s:o}", "type", "array", "items", reference("number"));
	return reference("number");
}

/* The schema of an object for @key in the properties of @schema, made if it is not there yet. Borrowed. */
static json_t *member(json_t *schema, const char *key)
{
	json_t *properties = json_object_get(schema, "properties"), *found = json_object_get(properties, key);

	if (!found) {
		found = json_pack("{s:s, s:{}}", "type", "object", "properties");
		put(properties, key, found);
	}
	return found;
}

static void describe(json_t *schema, const char *key, const struct metric *m)
{
	json_t *found = json_object_get(json_object_get(schema, "properties"), key);
	char text[512];

	snprintf(text, sizeof(text), "%s%s%s%s", m->help, m->unit != UNIT_NONE ? " In " : "",
		 unit_name(m->unit), m->unit != UNIT_NONE ? "." : "");
	put(found, "description", json_string(text));
}

static const char *strip(const char *name, const char *const prefixes[2])
{
	for (int i = 0; i < 2; i++)
		if (prefixes[i] && strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return name + strlen(prefixes[i]);
	return name;
}

static void add_rows(json_t *schema, const struct metric *rows, unsigned n, unsigned level,
		     const char *const prefixes[2])
{
	for (unsigned i = 0; i < n; i++) {
		const struct metric *m = &rows[i];
		const char *family = strip(m->family, prefixes), *key = family;
		json_t *into = schema;

		if (level && !(m->levels & level))
			continue;
		if (m->label) {
			into = member(into, key);
			key = m->value;
		}
		if (m->label2) {
			into = member(into, key);
			key = m->value2;
		}
		put(json_object_get(into, "properties"), key, row_schema(m));
		describe(schema, family, m);
	}
}

static void add_reasons(json_t *schema)
{
	const char *name;

	for (unsigned bit = 0; (name = traced_incomplete_name(bit)); bit++)
		if (json_array_append_new(json_object_get(schema, "enum"), json_string(name)) < 0)
			exit(EXIT_FAILURE);
}

static void add_choice(json_t *schema, const char *name)
{
	if (json_array_append_new(json_object_get(schema, "enum"), json_string(name)) < 0)
		exit(EXIT_FAILURE);
}

/* A kernel's figures by model/kernel.def, and the words of its enumerations. */
static void add_kernel(json_t *schema)
{
	json_t *properties = json_object_get(schema, "properties");

	for (unsigned i = 0; i < KERNEL_FIGURES; i++)
		put(properties, kernel_figures[i].json,
		    json_pack("{s:s, s:s}", "$ref", "#/$defs/count_or_null", "description",
			      kernel_figures[i].help));
	for (unsigned i = 0; i < KERNEL_SOURCES; i++)
		add_choice(json_object_get(properties, "source"), kernel_source_name(i));
	for (unsigned i = 0; i < OCCUPANCY_LIMITERS; i++)
		add_choice(json_object_get(properties, "occupancy_limiter"), occupancy_limiter_name(i));
}

/*
 * Properties of what the skeleton defines, and of what was added, are required, but those of the document
 * itself.
 */
static void require_all(json_t *schema)
{
	json_t *properties = json_object_get(schema, "properties"), *value;
	json_t *required = json_array();
	const char *key;

	json_object_foreach(properties, key, value) {
		if (json_array_append_new(required, json_string(key)) < 0)
			exit(EXIT_FAILURE);
		if (json_object_get(value, "properties"))
			require_all(value);
		if (json_object_get(json_object_get(value, "items"), "properties"))
			require_all(json_object_get(value, "items"));
	}
	if (json_array_size(required) > 0)
		put(schema, "required", required);
	else
		json_decref(required);
}

int main(int argc, char **argv)
{
	static const char *const gpu[2] = { "gpu_" }, *const process[2] = { "process_gpu_", "process_" },
				 *const traced[2] = { "process_cuda_" }, *const kernel[2] = { "kernel_" },
				 *const op[2] = { "operator_" }, *const none[2], *const host[2] = { "host_" },
				 *const disk[2] = { "host_disk_" }, *const network[2] = { "host_network_" },
				 *const server[2] = { "inference_" };
	json_t *schema = argc == 2 ? json_load_file(argv[1], 0, NULL) : NULL;
	json_t *defs = json_object_get(schema, "$defs"), *def;
	const char *name;

	if (!defs) {
		fprintf(stderr, "usage: json_schema SKELETON\n");
		return EXIT_FAILURE;
	}
	add_rows(json_object_get(defs, "gpu"), gpu_metrics, GPU_METRICS, LEVEL_GPU, gpu);
	add_rows(json_object_get(defs, "instance"), gpu_metrics, GPU_METRICS, LEVEL_MIG, gpu);
	add_rows(json_object_get(defs, "process"), process_metrics, PROCESS_METRICS, 0, process);
	add_rows(json_object_get(defs, "workload"), process_metrics, PROCESS_METRICS, 0, process);
	add_reasons(json_object_get(json_object_get(defs, "incomplete"), "items"));
	for (unsigned i = TRACED_PLACED + 1; i < TRACED_UNPLACEDS; i++)
		add_choice(json_object_get(defs, "device_unknown"), traced_unplaced_name(i));
	add_rows(json_object_get(defs, "cuda"), traced_metrics, TRACED_METRICS, 0, traced);
	add_rows(json_object_get(defs, "trace_total"), traced_metrics, TRACED_METRICS, 0, traced);
	add_rows(json_object_get(defs, "trace_workload"), traced_metrics, TRACED_METRICS, 0, traced);
	add_rows(json_object_get(defs, "trace_device"), traced_metrics, TRACED_METRICS, 0, traced);
	/* Of many kernels together there are counters alone. */
	add_rows(json_object_get(defs, "kernel"), kernel_metrics, KERNEL_METRICS, 0, kernel);
	add_rows(json_object_get(defs, "kernel_device"), kernel_metrics, KERNEL_METRIC_OCCUPANCY, 0, kernel);
	add_rows(json_object_get(defs, "kernel_launches"), kernel_metrics, KERNEL_METRIC_OCCUPANCY, 0,
		 kernel);
	add_rows(json_object_get(defs, "operator"), operator_metrics, OPERATOR_METRICS, 0, op);
	add_kernel(json_object_get(defs, "kernel"));
	add_rows(json_object_get(defs, "host"), host_metrics, HOST_METRICS, 0, host);
	add_rows(json_object_get(defs, "host_disk"), disk_metrics, DISK_METRICS, 0, disk);
	add_rows(json_object_get(defs, "host_interface"), interface_metrics, INTERFACE_METRICS, 0, network);
	add_rows(json_object_get(defs, "server"), server_metrics, SERVER_METRICS, 0, server);
	add_rows(json_object_get(defs, "agent"), agent_metrics, AGENT_METRICS, 0, none);
	json_object_foreach(defs, name, def)
		require_all(def);
	json_dumpf(schema, stdout, JSON_INDENT(2));
	puts("");
	json_decref(schema);
	return EXIT_SUCCESS;
}
