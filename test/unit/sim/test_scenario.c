// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "sim/scenario/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "nvml/abi_base.h"
#include "nvml/abi_clock.h"
#include "nvml/abi_mig.h"

static struct scenario *load(const char *text)
{
	struct scenario *scenario = NULL;
	struct scenario_error err = { "" };

	if (scenario_load_buffer("t.yaml", text, strlen(text), &scenario, &err) < 0)
		fail_msg("%s", err.message);
	return scenario;
}

static void test_defaults(_unused_ void **state)
{
	_cleanup_free_ struct scenario *scenario = load("");

	assert_string_equal(scenario->name, "t");
	assert_int_equal(scenario->gpu_count, 0);
	assert_int_equal(scenario->cycle_ms, 600000);
	assert_int_equal(scenario->cuda_version, 13050);
}

static void test_gpus(_unused_ void **state)
{
	_cleanup_free_ struct scenario *scenario = load(
		"gpus:\n"
		"  - {model: h100-sxm, count: 2, power_limit: 500W, ambient: 30}\n"
		"  - {model: a100-sxm, mig: [3g.20gb, 1g.5gb, 1g.10gb], unsupported: [nvmlDeviceGetFan*]}\n"
		"  - {model: rtx-4090, memory: 12GiB, name: Test}\n");
	const struct scenario_gpu *mig = &scenario->gpus[2];

	assert_int_equal(scenario->gpu_count, 4);
	assert_int_equal(scenario->gpus[1].model.limit_mw, 500000);
	assert_string_not_equal(scenario->gpus[0].uuid, scenario->gpus[1].uuid);
	assert_int_equal(scenario->gpus[3].model.memory_mib, 12288);
	assert_string_equal(scenario->gpus[3].model.name, "Test");

	assert_int_equal(mig->instance_count, 3);
	assert_int_equal(mig->instances[0].gpu_instance, 1);
	assert_int_equal(mig->instances[1].gpu_instance, 7);
	assert_int_equal(mig->instances[2].gpu_instance, 8);
	assert_int_equal(mig->instances[2].profile, NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2);
	assert_int_equal(mig->instances[2].start, 5);
	assert_true(name_globs_match(&mig->unsupported, "nvmlDeviceGetFanSpeed"));
	assert_false(name_globs_match(&mig->unsupported, "nvmlDeviceGetName"));
}

static void test_processes(_unused_ void **state)
{
	_cleanup_free_ struct scenario *scenario = load(
		"gpus: [{model: l4, count: 4}]\n"
		"processes:\n"
		"  - {name: a, gpus: [0, 2-3], count: 2, memory: {ramp: [1GiB, 2GiB], period: 10s}, load: "
		"{gpu: 40}}\n"
		"  - {name: b, gpus: all, pid: 77, shared: true, every: 1m, for: 20s, type: graphics}\n"
		"  - {name: c, match: sleep*}\n");
	const struct scenario_process *process = scenario->processes;

	assert_int_equal(scenario->process_count, 3);
	assert_int_equal(process[0].gpus, 0xd);
	assert_true(process[0].load[ENGINE_MEMORY].high == LOAD_FOLLOWS);
	assert_true(process[0].memory.high == 2048);
	assert_int_equal(process[1].gpus, 0xf);
	assert_int_equal(process[1].pid_source, PID_FIXED);
	assert_int_equal(process[1].window.length_ms, 20000);
	assert_int_equal(process[2].pid_source, PID_MATCH);
	assert_string_equal(process[2].match, "sleep*");
}

static void test_faults(_unused_ void **state)
{
	_cleanup_free_ struct scenario *scenario = load(
		"gpus: [{model: l4, count: 2}]\n"
		"faults:\n"
		"  - {error: NO_PERMISSION, gpus: 1, functions: nvmlDeviceGetPower*, at: 1s, for: 2s, every: "
		"10s}\n"
		"  - {hang: forever}\n"
		"  - {sentinel: 42, fields: [138, 139]}\n");
	const struct fault *fault = scenario->faults;

	assert_int_equal(scenario->fault_count, 3);
	assert_int_equal(fault[0].error, NVML_ERROR_NO_PERMISSION);
	assert_true(fault_matches(&fault[0], "nvmlDeviceGetPowerUsage", 1));
	assert_false(fault_matches(&fault[0], "nvmlDeviceGetPowerUsage", 0));
	assert_false(fault_matches(&fault[0], "nvmlDeviceGetName", 1));
	assert_false(fault_active(&fault[0], 999, 0));
	assert_true(fault_active(&fault[0], 1000, 0));
	assert_false(fault_active(&fault[0], 3000, 0));
	assert_true(fault_active(&fault[0], 12999, 0));
	assert_int_equal(fault[1].hang_ms, FAULT_HANG_FOREVER);
	assert_true(fault_has_field(&fault[2], 139));
	assert_false(fault_has_field(&fault[2], 140));
}

static void test_shipped(_unused_ void **state)
{
	static const struct {
		const char *name;
		uint32_t gpus, slots;
	} shipped[] = { { "node-8xh100", 8, 64 },
			{ "node-mig", 3, 10 },
			{ "desktop-1gpu", 1, 5 },
			{ "sick", 6, 12 },
			{ "empty", 0, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(shipped); i++) {
		_cleanup_free_ struct scenario *scenario = NULL;
		struct scenario_error err = { "" };
		uint32_t slots = 0;
		char path[512];

		snprintf(path, sizeof(path), "%s/sim/scenarios/%s.yaml", test_source_root(), shipped[i].name);
		if (scenario_load_file(path, &scenario, &err) < 0)
			fail_msg("%s", err.message);
		for (uint32_t p = 0; p < scenario->process_count; p++)
			slots += scenario->processes[p].count *
				 (uint32_t)__builtin_popcount(scenario->processes[p].gpus);
		assert_string_equal(scenario->name, shipped[i].name);
		assert_int_equal(scenario->gpu_count, shipped[i].gpus);
		assert_int_equal(slots, shipped[i].slots);
	}
}

/* Its hang is one that each program meets, on a GPU that is there, and it ends before a node is given up. */
static void test_sick_hangs_for_everybody(_unused_ void **state)
{
	_cleanup_free_ struct scenario *scenario = NULL;
	struct scenario_error err = { "" };
	const struct fault *hang = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/sim/scenarios/sick.yaml", test_source_root());
	assert_int_equal(scenario_load_file(path, &scenario, &err), 0);
	for (uint32_t i = 0; i < scenario->fault_count; i++)
		if (scenario->faults[i].kind == FAULT_HANG)
			hang = &scenario->faults[i];
	assert_non_null(hang);
	assert_true(fault_matches(hang, "nvmlDeviceGetPowerUsage", 0));
	assert_int_equal(hang->hang_ms, FAULT_HANG_WHILE);
	assert_in_range(hang->window.length_ms, 5000, 10000);
	assert_int_equal(hang->window.every_ms, 300000);
}

/* Every error names file and line, and says something about the cause. */
static void test_errors(_unused_ void **state)
{
	static const struct {
		const char *text, *expected;
	} wrong[] = {
		{ "gpu: []", "t.yaml:1: unknown key \"gpu\"" },
		{ "cycle: 5s", "t.yaml:1: the cycle is between" },
		{ "cycle: 61050ms", "multiples of 100 ms" },
		{ "cuda_version: new", "no CUDA version" },
		{ "gpus:\n  - {count: 2}", "t.yaml:2: a GPU needs a model" },
		{ "gpus:\n  - {model: h1000}", "t.yaml:2: this model is not known; choose one of: b200" },
		{ "gpus: [{model: l4, count: 17}]", "at most 16 GPUs" },
		{ "gpus: [{model: l4, count: 0}]", "at least 1" },
		{ "gpus: [{model: l4, mig: [1g.10gb]}]", "not capable of MIG" },
		{ "gpus: [{model: h100-sxm, mig: [4g.40gb, 4g.40gb]}]", "does not fit" },
		{ "gpus: [{model: h100-sxm, mig: [5g.50gb]}]", "no MIG profile" },
		{ "gpus: [{model: l4, memory: much}]", "not an amount of memory" },
		{ "gpus: [{model: l4, power_limit: 70}]", "not a power" },
		{ "gpus: [{model: l4, power_limit: 1W}]", "must exceed power_idle" },
		{ "gpus: [{model: l4, nvlinks: 99}]", "at most 18 NVLinks" },
		{ "gpus: [{model: l4, vgpu_license: yes}]", "none, missing, valid" },
		{ "gpus: [{model: l4, persistence: maybe}]", "neither true nor false" },
		{ "gpus: {model: l4}", "\"gpus\" is a list" },
		{ "processes: [{name: a}]", "processes need GPUs" },
		{ "gpus: [{model: l4}]\nprocesses: [{gpus: 0}]", "t.yaml:2: a process needs a name" },
		{ "gpus: [{model: l4}]\nprocesses: [{name: a, gpus: 1}]", "there is no GPU 1" },
		{ "gpus: [{model: l4}]\nprocesses: [{name: a, every: 7s}]", "must divide" },
		{ "gpus: [{model: l4}]\nprocesses: [{name: a, for: 7s}]", "needs \"every\"" },
		{ "gpus: [{model: l4}]\nprocesses: [{name: a, every: 1m, for: 2m}]", "at most \"every\"" },
		{ "gpus: [{model: l4}]\nprocesses: [{name: a, count: 2000}]", "more than 1024 processes" },
		{ "gpus: [{model: l4}]\nprocesses: [{name: a, instance: 0}]", "no MIG instance 0" },
		{ "gpus: [{model: h100-sxm, mig: [7g.80gb]}]\nprocesses: [{name: a}]",
		  "say which \"instance\"" },
		{ "gpus: [{model: l4}]\nprocesses: [{name: a, pid: 0}]", "a number up to" },
		{ "gpus: [{model: l4}]\nprocesses: [{name: a, load: {gpu: {sine: [1, 2]}}}]",
		  "a sine needs a period" },
		{ "gpus: [{model: l4}]\nprocesses: [{name: a, load: {gpu: {sine: [9, 2], period: 1s}}}]",
		  "lower value comes first" },
		{ "gpus: [{model: l4}]\nprocesses: [{name: a, load: {gpu: {sine: 3, period: 1s}}}]",
		  "write sine: [low, high]" },
		{ "gpus: [{model: l4}]\nprocesses: [{name: a, load: {gpu: -3}}]", "not a number from 0 on" },
		{ "gpus: [{model: l4}]\nprocesses: [{name: a, load: {tensor: 3}}]",
		  "known here: gpu, memory, encoder" },
		{ "gpus: [{model: l4}]\nxids: [{gpu: 0}]", "needs the number" },
		{ "gpus: [{model: l4}]\nxids: [{xid: 79, gpu: 3}]", "there is no GPU 3" },
		{ "gpus: [{model: l4}]\ncounters: [{count: 1}]", "a counter needs a kind" },
		{ "gpus: [{model: l4}]\ncounters: [{kind: ecc}]", "choose one of: ecc_corrected" },
		{ "gpus: [{model: l4}]\nslowdowns: [{reason: tired}]", "choose one of: gpu_idle" },
		{ "faults: [{error: BAD}]", "no error of NVML" },
		{ "faults: [{at: 1s}]", "exactly one of" },
		{ "faults: [{lost: true, crash: true}]", "exactly one of" },
		{ "faults: [{hang: long}]", "not a time" },
		{ "faults: [{wrap: 64}]", "1 to 63" },
		{ "faults: [{stride: 28}]", "24 or 32 bytes" },
		{ "faults: [{lost: true, fields: 3}]", "fields is a list" },
		{ "gpus: [{model: l4}]\nfaults: [{lost: true, gpus: 4}]", "there is no GPU 4" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct scenario *scenario = NULL;
		struct scenario_error err = { "" };
		int r = scenario_load_buffer("t.yaml", wrong[i].text, strlen(wrong[i].text), &scenario, &err);

		if (r >= 0 || !strstr(err.message, wrong[i].expected) ||
		    strncmp(err.message, "t.yaml:", 7) != 0)
			fail_msg("%s\ngives %d, \"%s\"", wrong[i].text, r, err.message);
		assert_null(scenario);
	}
}

static void test_missing_file(_unused_ void **state)
{
	struct scenario *scenario = NULL;
	struct scenario_error err = { "" };

	assert_int_equal(scenario_load_file("/nonexistent/x.yaml", &scenario, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/nonexistent/x.yaml"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),     cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_processes),    cmocka_unit_test(test_faults),
		cmocka_unit_test(test_shipped),      cmocka_unit_test(test_errors),
		cmocka_unit_test(test_missing_file), cmocka_unit_test(test_sick_hangs_for_everybody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
