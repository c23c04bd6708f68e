// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/schema.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

/* PIDs of real systems end at 2^22; see proc(5), /proc/sys/kernel/pid_max. */
enum { MAX_REAL_PID = 1 << 22 };

static int parse_pid(struct schema *schema, const struct yaml_node *node, void *dst, _unused_ size_t size)
{
	struct scenario_process *process = dst;
	const char *text = schema_scalar(schema, node);
	int r;

	if (!text)
		return -EINVAL;
	if (STRV_EQ(text, "fake")) {
		process->pid_source = PID_FAKE;
		return 0;
	}
	if (STRV_EQ(text, "self")) {
		process->pid_source = PID_SELF;
		return 0;
	}
	process->pid_source = PID_FIXED;
	r = schema_u32(schema, node, &process->pid, sizeof(process->pid));
	if (r < 0)
		return r;
	if (process->pid == 0 || process->pid > MAX_REAL_PID)
		return schema_fail(schema, node, "a PID is fake, self, or a number up to %d", MAX_REAL_PID);
	return 0;
}

static int parse_match(struct schema *schema, const struct yaml_node *node, void *dst, _unused_ size_t size)
{
	struct scenario_process *process = dst;

	process->pid_source = PID_MATCH;
	return schema_text(schema, node, process->match, sizeof(process->match));
}

static int parse_type(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	static const char *const names[] = { [PROCESS_COMPUTE] = "compute",
					     [PROCESS_GRAPHICS] = "graphics",
					     [PROCESS_COMPUTE | PROCESS_GRAPHICS] = "compute+graphics",
					     [PROCESS_MPS] = "mps" };
	int choice = schema_choice(schema, node, names, ARRAY_SIZE(names));
	uint32_t type = (uint32_t)choice;

	if (choice < 0)
		return choice;
	memcpy(dst, &type, size);
	return 0;
}

#define LOAD_KEY(engine, name) SCHEMA_KEY(struct scenario_process, load[engine], name, schema_curve_number)

static const struct schema_key load_keys[] = {
	LOAD_KEY(ENGINE_GPU, "gpu"),         LOAD_KEY(ENGINE_MEMORY, "memory"),
	LOAD_KEY(ENGINE_ENCODER, "encoder"), LOAD_KEY(ENGINE_DECODER, "decoder"),
	LOAD_KEY(ENGINE_JPEG, "jpeg"),       LOAD_KEY(ENGINE_OFA, "ofa"),
};

static int parse_load(struct schema *schema, const struct yaml_node *node, void *dst, _unused_ size_t size)
{
	return schema_map(schema, node, load_keys, ARRAY_SIZE(load_keys), dst);
}

#define KEY(member, name, parse) SCHEMA_KEY(struct scenario_process, member, name, parse)

static const struct schema_key process_keys[] = {
	KEY(name, "name", schema_text),
	{ "pid", parse_pid, 0, 0 },
	{ "match", parse_match, 0, 0 },
	KEY(gpus, "gpus", schema_gpus),
	KEY(count, "count", schema_u32),
	KEY(shared_pid, "shared", schema_bool),
	KEY(instance, "instance", schema_i32),
	KEY(type, "type", parse_type),
	KEY(memory, "memory", schema_curve_mib),
	{ "load", parse_load, 0, 0 },
	KEY(window.at_ms, "at", schema_duration_ms),
	KEY(window.length_ms, "for", schema_duration_ms),
	KEY(window.every_ms, "every", schema_duration_ms),
	KEY(stagger_ms, "stagger", schema_duration_ms),
	KEY(encoder_fps, "encoder_fps", schema_u32),
};

static uint32_t slots_of(const struct scenario_process *process)
{
	return process->count * (uint32_t)__builtin_popcount(process->gpus);
}

static int check(struct schema *schema, const struct yaml_node *node, const struct scenario_process *process)
{
	const struct scenario *scenario = schema->scenario;
	uint32_t slots = 0;

	if (!*process->name || !utf8_valid(process->name, strlen(process->name)))
		return schema_fail(schema, node, "a process needs a name");
	if (process->window.every_ms > 0 && scenario->cycle_ms % process->window.every_ms != 0)
		return schema_fail(schema, node,
				   "\"every\" must divide the scenario's cycle, which is %lld s",
				   (long long)scenario->cycle_ms / 1000);
	if (process->window.length_ms >= 0 && process->window.every_ms == 0)
		return schema_fail(
			schema, node,
			"\"for\" needs \"every\": the load of a node repeats, so processes come again");
	if (process->window.length_ms > process->window.every_ms && process->window.every_ms > 0)
		return schema_fail(schema, node, "\"for\" is at most \"every\"");
	for (uint32_t i = 0; i < scenario->gpu_count; i++) {
		if (process->instance >= 0 && process->gpus >> i & 1 &&
		    (uint32_t)process->instance >= scenario->gpus[i].instance_count)
			return schema_fail(
				schema, node,
				"GPU %u has no MIG instance %d; they are numbered from 0 in the order of "
				"\"mig\"",
				i, process->instance);
		if (process->instance < 0 && process->gpus >> i & 1 && scenario->gpus[i].mig)
			return schema_fail(schema, node, "GPU %u is in MIG mode: say which \"instance\"", i);
	}
	for (uint32_t i = 0; i < scenario->process_count; i++)
		slots += slots_of(&scenario->processes[i]);
	if (process->count > SCENARIO_MAX_SLOTS || slots + slots_of(process) > SCENARIO_MAX_SLOTS)
		return schema_fail(schema, node, "more than %d processes on all GPUs together",
				   SCENARIO_MAX_SLOTS);
	return 0;
}

int scenario_parse_process(struct schema *schema, const struct yaml_node *node)
{
	struct scenario *scenario = schema->scenario;
	struct scenario_process process = {
		.count = 1,
		.type = PROCESS_COMPUTE,
		.gpus = 1,
		.instance = -1,
		.window = { .length_ms = -1 },
		.load[ENGINE_MEMORY] = { .low = LOAD_FOLLOWS, .high = LOAD_FOLLOWS },
	};
	int r;

	if (scenario->process_count == SCENARIO_MAX_PROCESSES)
		return schema_fail(schema, node, "more than %d entries of processes; use count",
				   SCENARIO_MAX_PROCESSES);
	if (scenario->gpu_count == 0)
		return schema_fail(schema, node,
				   "processes need GPUs, and \"gpus\" stands before \"processes\"");
	r = schema_map(schema, node, process_keys, ARRAY_SIZE(process_keys), &process);
	if (r < 0)
		return r;
	process.gpus &= (UINT32_C(1) << scenario->gpu_count) - 1;
	r = check(schema, node, &process);
	if (r < 0)
		return r;
	if (process.window.every_ms > 0 && process.window.length_ms < 0)
		process.window.length_ms = process.window.every_ms;
	scenario->processes[scenario->process_count++] = process;
	return 0;
}
