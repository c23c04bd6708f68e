// SPDX-License-Identifier: Apache-2.0
/* A node added up, and the documents with the state of their sections. */
#include "test.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "container_node.h"
#include "view/container/container.h"

/* ---- the node ---- */

/* 3 whole GPUs, and 5 with 19 instances together. */
static void add_a_partly_partitioned_node(void)
{
	static const double utilization[] = { 0.90, 0.15, 0 };
	static const unsigned instances[] = { 3, 3, 5, 4, 4 };
	uint32_t gi = 8;

	for (uint32_t i = 0; i < ARRAY_SIZE(utilization); i++) {
		struct entity *e = add_gpu(i);

		set(e, SLOT_UTILIZATION_GPU, utilization[i]);
		set(e, SLOT_MEMORY_USED, 1000 * MIB);
		set(e, SLOT_MEMORY_FREE, 3000 * MIB);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(instances); i++) {
		uint16_t parent = (uint16_t)t.s.entities_n;

		set(add_gpu(3 + i), SLOT_TEMPERATURE, 40);
		for (uint32_t k = 0; k < instances[i]; k++) {
			struct entity *e = add_instance(parent, gi++, 0, "1g.5gb");

			set(e, SLOT_MEMORY_USED, 10 * MIB);
			set(e, SLOT_MEMORY_FREE, 90 * MIB);
			set(e, SLOT_UTILIZATION_GPU, 0.5);
		}
	}
}

static void assert_number(const json_t *json, const char *member, double value)
{
	const json_t *number = json_object_get(json, member);

	if (!json_is_number(number) || json_number_value(number) != value)
		fail_msg("%s is %f, not %f", member, json_number_value(number), value);
}

static void gpus_and_instances_are_counted_apart(_unused_ void **state)
{
	const json_t *instances;
	json_t *json;

	add_a_partly_partitioned_node();
	json = load_view(view_node_metrics);
	assert_number(json, "gpu_count", 8);
	assert_number(json, "gpu_instance_count", 22);
	assert_number(json, "gpu_utilization_avg", 35);
	assert_number(json, "gpu_utilization_max", 90);
	assert_number(json, "gpu_usage", 1.05);
	assert_number(json, "gpu_memory_used_total", 3190);
	assert_number(json, "gpu_memory_free_total", 10710);
	assert_number(json, "gpu_memory_total_mb", 13900);
	assert_number(json, "gpu_temperature_avg", 40);
	assert_true(json_is_null(json_object_get(json, "gpu_power_usage_total")));
	assert_int_equal(json_array_size(json_object_get(json, "gpu_uuids")), 8);
	assert_string_equal(json_string_value(json_array_get(json_object_get(json, "gpu_models"), 0)),
			    "8x NVIDIA A100");
	instances = json_object_get(json, "gpu_mig_instances");
	assert_int_equal(json_array_size(instances), 19);
	assert_number(json_array_get(instances, 0), "framebuffer_total", 100);
	json_decref(json);
}

/* The same as an exporter tells it, which has no rows of partitioned GPUs themselves. */
static void exporters_rows_are_counted_alike(_unused_ void **state)
{
	char uuid[16], gi[16];
	json_t *json;

	for (unsigned i = 0; i < 22; i++) {
		struct scraped_row *row;

		snprintf(uuid, sizeof(uuid), "GPU-%c", 'a' + (i < 3 ? i : 3 + (i - 3) * 5 / 19));
		snprintf(gi, sizeof(gi), "%u", i + 5);
		row = add_scraped(uuid, i < 3 ? "" : gi, "0");
		if (i < 3)
			set_scraped(row, CONTRACT_gpu_utilization, i == 0 ? 90 : i == 1 ? 15 : 0);
	}
	json = load_view(view_node_metrics);
	assert_number(json, "gpu_count", 8);
	assert_number(json, "gpu_instance_count", 22);
	assert_number(json, "gpu_utilization_avg", 35);
	json_decref(json);
}

static void instances_alone_are_averaged(_unused_ void **state)
{
	json_t *json;

	add_gpu(0);
	set(add_instance(0, 1, 0, "1g.5gb"), SLOT_UTILIZATION_GPU, 0.2);
	set(add_instance(0, 2, 0, "1g.5gb"), SLOT_UTILIZATION_GPU, 0.4);
	json = load_view(view_node_metrics);
	assert_number(json, "gpu_count", 1);
	assert_number(json, "gpu_instance_count", 2);
	assert_number(json, "gpu_utilization_avg", 30);
	json_decref(json);
}

static void rows_without_a_uuid_are_gpus_each(_unused_ void **state)
{
	json_t *json;

	add_scraped("", "", "0");
	add_scraped("", "", "1");
	json = load_view(view_node_metrics);
	assert_number(json, "gpu_count", 2);
	json_decref(json);
}

/* A GPU that two share is one, and its utilisation is the sum. */
static void a_shared_gpu_is_one(_unused_ void **state)
{
	json_t *json;

	set(add_gpu(0), SLOT_UTILIZATION_GPU, 0.90);
	give(0, "ml", "a", "main");
	give(0, "ml", "b", "main");
	run(0, 0.25, 300);
	run(1, 0.30, 200);
	json = load_view(view_node_metrics);
	assert_number(json, "gpu_count", 1);
	assert_number(json, "gpu_instance_count", 1);
	assert_number(json, "gpu_utilization_avg", 90);
	json_decref(json);
}

/* ---- sections ---- */

static const char *section(const json_t *json, const char *name)
{
	const json_t *sections = json_object_get(json, "sections");

	return json_string_value(json_object_get(json_object_get(sections, name), "state"));
}

static void sections_tell_their_state(_unused_ void **state)
{
	struct source *nvml = &t.s.sources[SOURCE_NVML], *kubelet = &t.s.sources[SOURCE_KUBELET];
	const json_t *row;
	json_t *json;

	set(add_gpu(0), SLOT_POWER, 100);
	nvml->in_use = nvml->fresh = kubelet->in_use = true;
	nvml->fresh_ns = NOW_BOOT;
	nvml->fresh_real_ns = NOW_REAL;
	json = load_view(view_container_snapshot);
	assert_number(json, "schema_version", 1);
	assert_string_equal(section(json, "containers"), "ready");
	assert_string_equal(section(json, "runtime"), "disabled");
	assert_string_equal(section(json, "nvml"), "ready");
	assert_string_equal(section(json, "kubelet"), "not_ready");
	assert_string_equal(section(json, "dcgm"), "disabled");
	row = json_array_get(json_object_get(json, "container_metrics"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "scope")), "device");
	assert_true(json_is_null(json_object_get(row, "sm_active")));
	json_decref(json);

	t.s.fresh = nvml->fresh = false;
	json = load_view(view_node_snapshot);
	assert_string_equal(section(json, "gpu"), "stale");
	assert_string_equal(section(json, "node"), "disabled");
	assert_string_equal(section(json, "nvml"), "stale");
	assert_number(json_object_get(json, "gpu_summary"), "gpu_count", 1);
	json_decref(json);

	nvml->fresh_ns = 0;
	json = load_view(view_container_snapshot);
	assert_string_equal(section(json, "containers"), "not_ready");
	assert_null(json_object_get(json, "container_metrics"));
	json_decref(json);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, container_node_up, container_node_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(gpus_and_instances_are_counted_apart),
		CASE(exporters_rows_are_counted_alike),
		CASE(instances_alone_are_averaged),
		CASE(rows_without_a_uuid_are_gpus_each),
		CASE(a_shared_gpu_is_one),
		CASE(sections_tell_their_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
