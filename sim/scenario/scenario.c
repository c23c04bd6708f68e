// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/scenario/schema.h"

enum { CYCLE_MIN_MS = 10 * 1000, CYCLE_MAX_MS = 3600 * 1000 };

static int parse_cuda(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	const char *text = schema_scalar(schema, node);
	unsigned major, minor;
	uint32_t version;
	char rest;

	if (!text)
		return -EINVAL;
	if (sscanf(text, "%3u.%2u%c", &major, &minor, &rest) != 2)
		return schema_fail(schema, node,
				   "\"%.40s\" is no CUDA version: write it like 12.4, in quotes if need be",
				   text);
	version = major * 1000 + minor * 10;
	memcpy(dst, &version, size);
	return 0;
}

void scenario_set_generation(struct scenario *scenario, enum generation_id id)
{
	const struct generation *generation = &generations[id];

	scenario->generation = id;
	snprintf(scenario->driver_version, sizeof(scenario->driver_version), "%s", generation->driver);
	snprintf(scenario->driver_branch, sizeof(scenario->driver_branch), "%s", generation->branch);
	snprintf(scenario->nvml_version, sizeof(scenario->nvml_version), "%s", generation->nvml);
	scenario->cuda_version = generation->cuda;
}

static int parse_generation(struct schema *schema, const struct yaml_node *node, _unused_ void *dst,
			    _unused_ size_t size)
{
	const char *names[GENERATION_COUNT];
	int id;

	for (id = 0; id < GENERATION_COUNT; id++)
		names[id] = generations[id].name;
	id = schema_choice(schema, node, names, GENERATION_COUNT);
	if (id < 0)
		return id;
	scenario_set_generation(schema->scenario, (enum generation_id)id);
	return 0;
}

static int parse_cycle(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	int64_t ms;
	int r = schema_duration_ms(schema, node, &ms, sizeof(ms));

	if (r < 0)
		return r;
	if (ms < CYCLE_MIN_MS || ms > CYCLE_MAX_MS)
		return schema_fail(schema, node, "the cycle is between 10s and 1h");
	memcpy(dst, &ms, size);
	return 0;
}

static int parse_gpus(struct schema *schema, const struct yaml_node *node, _unused_ void *dst,
		      _unused_ size_t size)
{
	return schema_list(schema, node, scenario_parse_gpu);
}

static int parse_processes(struct schema *schema, const struct yaml_node *node, _unused_ void *dst,
			   _unused_ size_t size)
{
	return schema_list(schema, node, scenario_parse_process);
}

static int parse_counters(struct schema *schema, const struct yaml_node *node, _unused_ void *dst,
			  _unused_ size_t size)
{
	return schema_list(schema, node, scenario_parse_counter);
}

static int parse_xids(struct schema *schema, const struct yaml_node *node, _unused_ void *dst,
		      _unused_ size_t size)
{
	return schema_list(schema, node, scenario_parse_xid);
}

static int parse_slowdowns(struct schema *schema, const struct yaml_node *node, _unused_ void *dst,
			   _unused_ size_t size)
{
	return schema_list(schema, node, scenario_parse_reason);
}

static int add_fault(struct schema *schema, const struct yaml_node *node)
{
	struct scenario *scenario = schema->scenario;

	if (scenario->fault_count == FAULT_MAX)
		return schema_fail(schema, node,
				   "more than %d faults; use patterns for functions and lists for GPUs",
				   FAULT_MAX);
	return scenario_parse_fault(schema, node, &scenario->faults[scenario->fault_count++]);
}

static int parse_faults(struct schema *schema, const struct yaml_node *node, _unused_ void *dst,
			_unused_ size_t size)
{
	return schema_list(schema, node, add_fault);
}

/* Lists have no member of their own: their entries find their place in the scenario. */
#define LIST_KEY(name, parse)     \
	{                         \
		name, parse, 0, 0 \
	}

static const struct schema_key scenario_keys[] = {
	LIST_KEY("generation", parse_generation),
	SCHEMA_KEY(struct scenario, driver_version, "driver_version", schema_text),
	SCHEMA_KEY(struct scenario, driver_branch, "driver_branch", schema_text),
	SCHEMA_KEY(struct scenario, nvml_version, "nvml_version", schema_text),
	SCHEMA_KEY(struct scenario, cuda_version, "cuda_version", parse_cuda),
	SCHEMA_KEY(struct scenario, cycle_ms, "cycle", parse_cycle),
	SCHEMA_KEY(struct scenario, seed, "seed", schema_u32),
	LIST_KEY("gpus", parse_gpus),
	LIST_KEY("processes", parse_processes),
	LIST_KEY("counters", parse_counters),
	LIST_KEY("xids", parse_xids),
	LIST_KEY("slowdowns", parse_slowdowns),
	LIST_KEY("faults", parse_faults),
};

static int parse_scenario(const struct yaml_doc *doc, struct scenario *scenario, struct scenario_error *err)
{
	struct schema schema = { .file = doc->name, .err = err, .scenario = scenario };

	scenario_set_generation(scenario, GENERATION_NEWEST);
	scenario->cycle_ms = 600 * 1000;
	return schema_map(&schema, doc->root, scenario_keys, ARRAY_SIZE(scenario_keys), scenario);
}

/* "dir/node-mig.yaml" is called node-mig. */
static void name_scenario(struct scenario *scenario, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dot;

	snprintf(scenario->name, sizeof(scenario->name), "%s", slash ? slash + 1 : path);
	dot = strrchr(scenario->name, '.');
	if (dot && dot != scenario->name)
		*dot = '\0';
}

static int finish(struct yaml_doc *doc, int r, const struct yaml_error *yaml_err, const char *name,
		  struct scenario **ret_scenario, struct scenario_error *err)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *owned = doc;
	_cleanup_free_ struct scenario *scenario = NULL;

	if (r < 0) {
		snprintf(err->message, sizeof(err->message), "%.200s:%d: %s", name, yaml_err->line,
			 yaml_err->message);
		return r;
	}
	/* Most of it is never touched, and calloc leaves that without memory. */
	scenario = calloc(1, sizeof(*scenario));
	if (!scenario) {
		snprintf(err->message, sizeof(err->message), "%.200s: out of memory; free some and try again",
			 name);
		return -ENOMEM;
	}
	r = parse_scenario(owned, scenario, err);
	if (r < 0)
		return r;
	name_scenario(scenario, name);
	*ret_scenario = TAKE_PTR(scenario);
	return 0;
}

int scenario_load_file(const char *path, struct scenario **ret_scenario, struct scenario_error *err)
{
	struct yaml_doc *doc = NULL;
	struct yaml_error yaml_err = { 0 };
	int r = yaml_parse_file(path, &doc, &yaml_err);

	return finish(doc, r, &yaml_err, path, ret_scenario, err);
}

int scenario_load_buffer(const char *name, const void *data, size_t length, struct scenario **ret_scenario,
			 struct scenario_error *err)
{
	struct yaml_doc *doc = NULL;
	struct yaml_error yaml_err = { 0 };
	int r = yaml_parse_buffer(name, data, length, &doc, &yaml_err);

	return finish(doc, r, &yaml_err, name, ret_scenario, err);
}

int scenario_load_faults(const char *path, struct fault *ret_faults, uint32_t *ret_count,
			 struct scenario_error *err)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	struct yaml_error yaml_err = { 0 };
	struct schema schema = { .file = path, .err = err };
	struct fault faults[FAULT_MAX];
	uint32_t count = 0;
	int r = yaml_parse_file(path, &doc, &yaml_err);

	if (r < 0) {
		snprintf(err->message, sizeof(err->message), "%.200s:%d: %s", path, yaml_err.line,
			 yaml_err.message);
		return r;
	}
	for (const struct yaml_node *key = doc->root->children; key; key = key->next) {
		if (doc->root->kind != YAML_MAP || !STRV_EQ(key->key, "faults") || key->kind != YAML_LIST)
			return schema_fail(&schema, key,
					   "a control file has one key, \"faults\", and a list behind it");
		for (const struct yaml_node *node = key->children; node; node = node->next) {
			if (count == FAULT_MAX)
				return schema_fail(&schema, node, "more than %d faults; use patterns",
						   FAULT_MAX);
			r = scenario_parse_fault(&schema, node, &faults[count++]);
			if (r < 0)
				return r;
		}
	}
	memcpy(ret_faults, faults, count * sizeof(faults[0]));
	*ret_count = count;
	return 0;
}
