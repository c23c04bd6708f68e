// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/schema.h"

#include <errno.h>
#include <string.h>

#include "nvml/abi_clock.h"
#include "nvml/abi_memory.h"

static int parse_kind(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	static const char *const names[COUNTER_KIND_COUNT] = {
		[COUNTER_ECC_CORRECTED] = "ecc_corrected",
		[COUNTER_ECC_UNCORRECTED] = "ecc_uncorrected",
		[COUNTER_NVLINK_REPLAY] = "nvlink_replay",
		[COUNTER_NVLINK_RECOVERY] = "nvlink_recovery",
		[COUNTER_NVLINK_CRC_FLIT] = "nvlink_crc_flit",
		[COUNTER_NVLINK_CRC_DATA] = "nvlink_crc_data",
		[COUNTER_NVLINK_ECC_DATA] = "nvlink_ecc_data",
		[COUNTER_PCIE_REPLAY] = "pcie_replay",
		[COUNTER_REMAPPED_CORRECTABLE] = "remapped_correctable",
		[COUNTER_REMAPPED_UNCORRECTABLE] = "remapped_uncorrectable",
		[COUNTER_RETIRED_SINGLE_BIT] = "retired_single_bit",
		[COUNTER_RETIRED_DOUBLE_BIT] = "retired_double_bit",
	};
	int choice = schema_choice(schema, node, names, ARRAY_SIZE(names));
	enum counter_kind kind = (enum counter_kind)choice;

	if (choice < 0)
		return choice;
	memcpy(dst, &kind, size);
	return 0;
}

static int parse_location(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	static const char *const names[NVML_MEMORY_LOCATION_COUNT] = {
		[NVML_MEMORY_LOCATION_L1_CACHE] = "l1",
		[NVML_MEMORY_LOCATION_L2_CACHE] = "l2",
		[NVML_MEMORY_LOCATION_DRAM] = "dram",
		[NVML_MEMORY_LOCATION_REGISTER_FILE] = "register_file",
		[NVML_MEMORY_LOCATION_TEXTURE_MEMORY] = "texture",
		[NVML_MEMORY_LOCATION_TEXTURE_SHM] = "shared",
		[NVML_MEMORY_LOCATION_CBU] = "cbu",
		[NVML_MEMORY_LOCATION_SRAM] = "sram",
	};
	int choice = schema_choice(schema, node, names, ARRAY_SIZE(names));
	uint32_t location = (uint32_t)choice;

	if (choice < 0)
		return choice;
	memcpy(dst, &location, size);
	return 0;
}

static const struct schema_key counter_keys[] = {
	SCHEMA_KEY(struct scenario_counter, kind, "kind", parse_kind),
	SCHEMA_KEY(struct scenario_counter, gpus, "gpus", schema_gpus),
	SCHEMA_KEY(struct scenario_counter, where, "location", parse_location),
	SCHEMA_KEY(struct scenario_counter, where, "link", schema_u32),
	SCHEMA_KEY(struct scenario_counter, initial, "initial", schema_u64),
	SCHEMA_KEY(struct scenario_counter, count, "count", schema_u64),
	SCHEMA_KEY(struct scenario_counter, window.at_ms, "at", schema_duration_ms),
	SCHEMA_KEY(struct scenario_counter, window.every_ms, "every", schema_duration_ms),
};

int scenario_parse_counter(struct schema *schema, const struct yaml_node *node)
{
	struct scenario *scenario = schema->scenario;
	struct scenario_counter counter = { .gpus = UINT32_MAX, .where = NVML_MEMORY_LOCATION_DRAM };
	int r;

	if (scenario->counter_count == SCENARIO_MAX_COUNTERS)
		return schema_fail(schema, node, "more than %d counters", SCENARIO_MAX_COUNTERS);
	if (!yaml_get(node, "kind"))
		return schema_fail(schema, node, "a counter needs a kind, such as kind: ecc_corrected");
	r = schema_map(schema, node, counter_keys, ARRAY_SIZE(counter_keys), &counter);
	if (r < 0)
		return r;
	scenario->counters[scenario->counter_count++] = counter;
	return 0;
}

static const struct schema_key xid_keys[] = {
	SCHEMA_KEY(struct scenario_xid, xid, "xid", schema_u32),
	SCHEMA_KEY(struct scenario_xid, gpu, "gpu", schema_u32),
	SCHEMA_KEY(struct scenario_xid, instance, "instance", schema_i32),
	SCHEMA_KEY(struct scenario_xid, window.at_ms, "at", schema_duration_ms),
	SCHEMA_KEY(struct scenario_xid, window.every_ms, "every", schema_duration_ms),
};

int scenario_parse_xid(struct schema *schema, const struct yaml_node *node)
{
	struct scenario *scenario = schema->scenario;
	struct scenario_xid xid = { .instance = -1 };
	int r;

	if (scenario->xid_count == SCENARIO_MAX_XIDS)
		return schema_fail(schema, node, "more than %d XIDs", SCENARIO_MAX_XIDS);
	if (!yaml_get(node, "xid"))
		return schema_fail(schema, node, "an entry of xids needs the number, such as xid: 79");
	r = schema_map(schema, node, xid_keys, ARRAY_SIZE(xid_keys), &xid);
	if (r < 0)
		return r;
	if (xid.gpu >= scenario->gpu_count)
		return schema_fail(schema, node, "there is no GPU %u; \"gpus\" stands before \"xids\"",
				   xid.gpu);
	if (xid.instance >= 0 && (uint32_t)xid.instance >= scenario->gpus[xid.gpu].instance_count)
		return schema_fail(schema, node, "GPU %u has no MIG instance %d", xid.gpu, xid.instance);
	scenario->xids[scenario->xid_count++] = xid;
	return 0;
}

static int parse_reason(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	/*
	 * Bit by bit as in enum nvml_clocks_event_reason; idle, power cap and thermal slowdown come by
	 * themselves, too.
	 */
	static const char *const names[] = {
		"gpu_idle",
		"applications_clocks_setting",
		"sw_power_cap",
		"hw_slowdown",
		"sync_boost",
		"sw_thermal_slowdown",
		"hw_thermal_slowdown",
		"hw_power_brake_slowdown",
		"display_clock_setting",
		"board_limit",
		"reliability",
	};
	int choice = schema_choice(schema, node, names, ARRAY_SIZE(names));
	uint64_t bit;

	if (choice < 0)
		return choice;
	bit = UINT64_C(1) << choice;
	memcpy(dst, &bit, size);
	return 0;
}

static const struct schema_key reason_keys[] = {
	SCHEMA_KEY(struct scenario_reason, bit, "reason", parse_reason),
	SCHEMA_KEY(struct scenario_reason, gpus, "gpus", schema_gpus),
	SCHEMA_KEY(struct scenario_reason, window.at_ms, "at", schema_duration_ms),
	SCHEMA_KEY(struct scenario_reason, window.length_ms, "for", schema_duration_ms),
	SCHEMA_KEY(struct scenario_reason, window.every_ms, "every", schema_duration_ms),
};

int scenario_parse_reason(struct schema *schema, const struct yaml_node *node)
{
	struct scenario *scenario = schema->scenario;
	struct scenario_reason reason = { .gpus = UINT32_MAX, .window = { .length_ms = -1 } };
	int r;

	if (scenario->reason_count == SCENARIO_MAX_REASONS)
		return schema_fail(schema, node, "more than %d slowdowns", SCENARIO_MAX_REASONS);
	if (!yaml_get(node, "reason"))
		return schema_fail(schema, node, "a slowdown needs a reason, such as reason: hw_slowdown");
	r = schema_map(schema, node, reason_keys, ARRAY_SIZE(reason_keys), &reason);
	if (r < 0)
		return r;
	scenario->reasons[scenario->reason_count++] = reason;
	return 0;
}
