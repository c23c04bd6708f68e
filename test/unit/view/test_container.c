// SPDX-License-Identifier: Apache-2.0
/* Rows of /container/metrics, and how old they are. */
#include "test.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "container_node.h"
#include "view/container/container.h"

/* ---- what is seen of it ---- */

static const struct container_row *make_rows(uint32_t expected)
{
	const struct container_row *list;
	uint32_t n;

	container_rows_free(TAKE_PTR(t.rows));
	assert_int_equal(container_rows_new(&t.s, &t.rows), 0);
	list = container_rows_list(t.rows, &n);
	assert_int_equal(n, expected);
	return list;
}

static void assert_value(const struct container_row *row, enum contract_metric metric, double value)
{
	if (!container_row_has(row, metric))
		fail_msg("%s is absent", contract_rows[metric].member);
	if (row->v[metric] != value)
		fail_msg("%s is %.17g, not %.17g", contract_rows[metric].member, row->v[metric], value);
}

static void assert_whose(const struct container_row *row, const char *namespace, const char *pod,
			 const char *container)
{
	assert_string_equal(row->namespace, namespace);
	assert_string_equal(row->pod, pod);
	assert_string_equal(row->container, container);
}

static void assert_page(unsigned flags, int64_t now_ns, const char *expected)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(view_container_metrics(&t.s, flags, now_ns, &out), 0);
	if (!strstr(out.data, expected))
		fail_msg("no %s in %s", expected, out.data);
	strbuf_done(&out);
}

/* ---- rows ---- */

static void an_idle_gpu_has_a_row_without_a_pod(_unused_ void **state)
{
	struct entity *e = add_gpu(3);
	const struct container_row *row;

	set(e, SLOT_UTILIZATION_GPU, 0);
	set(e, SLOT_POWER, 61.25);
	row = make_rows(1);
	assert_whose(row, "", "", "");
	assert_string_equal(row->node, "host-1");
	assert_string_equal(row->model, "NVIDIA A100");
	assert_string_equal(row->device, "nvidia3");
	assert_string_equal(row->gpu, "3");
	assert_string_equal(row->uuid, "GPU-3");
	assert_string_equal(row->mig_instance, "");
	assert_value(row, CONTRACT_gpu_utilization, 0);
	assert_value(row, CONTRACT_power_usage, 61.25);
	assert_value(row, CONTRACT_xid_errors, 0);
	assert_false(container_row_has(row, CONTRACT_sm_active));
	assert_int_equal(row->real_ns, e->sampled_real_ns);
}

static void values_are_in_dcgms_units(_unused_ void **state)
{
	struct entity *e = add_gpu(0);
	const struct container_row *row;

	set(e, SLOT_UTILIZATION_GPU, 0.57);
	set(e, SLOT_MEMORY_USED, 1.75 * MIB);
	set(e, SLOT_SM_ACTIVE, 48.21134567 * 1e-2);
	set(e, SLOT_CLOCK_SM, 1980e6);
	set(e, SLOT_THROTTLE_POWER, 12.000000345);
	set(e, SLOT_POWER, 412.533);
	row = make_rows(1);
	assert_value(row, CONTRACT_gpu_utilization, 57);
	assert_value(row, CONTRACT_framebuffer_used, 1);
	assert_value(row, CONTRACT_sm_active, 0.482113);
	assert_value(row, CONTRACT_sm_clock, 1980);
	assert_value(row, CONTRACT_power_violation, 12000000345.0);
	assert_value(row, CONTRACT_power_usage, 412.533);
}

static void a_pod_with_several_gpus_has_a_row_for_each(_unused_ void **state)
{
	const struct container_row *rows;

	for (uint32_t i = 0; i < 3; i++)
		set(add_gpu(i), SLOT_POWER, 100 + i);
	give(0, "ml", "train-0", "main");
	give(2, "ml", "train-0", "main");
	rows = make_rows(3);
	assert_whose(&rows[0], "ml", "train-0", "main");
	assert_whose(&rows[1], "", "", "");
	assert_whose(&rows[2], "ml", "train-0", "main");
	assert_value(&rows[2], CONTRACT_power_usage, 102);
	assert_int_equal(rows[2].scope, ROW_DEVICE);
}

static void sharers_have_their_own_and_the_device_is_there_once(_unused_ void **state)
{
	struct entity *e = add_gpu(0);
	const struct container_row *rows;
	double sum = 0;

	set(e, SLOT_UTILIZATION_GPU, 0.90);
	set(e, SLOT_MEMORY_USED, 1000 * MIB);
	set(e, SLOT_POWER, 300);
	give(0, "ml", "a", "main");
	give(0, "ml", "b", "main");
	run(0, 0.25, 300);
	run(0, 0.25, 100);
	run(1, 0.30, 200);
	rows = make_rows(3);
	assert_whose(&rows[0], "", "", "");
	assert_int_equal(rows[0].scope, ROW_REST);
	assert_value(&rows[0], CONTRACT_gpu_utilization, 10);
	assert_value(&rows[0], CONTRACT_framebuffer_used, 400);
	assert_value(&rows[0], CONTRACT_power_usage, 300);
	assert_whose(&rows[1], "ml", "a", "main");
	assert_int_equal(rows[1].scope, ROW_OWN);
	assert_value(&rows[1], CONTRACT_gpu_utilization, 50);
	assert_value(&rows[1], CONTRACT_framebuffer_used, 400);
	assert_false(container_row_has(&rows[1], CONTRACT_power_usage));
	assert_false(container_row_has(&rows[1], CONTRACT_xid_errors));
	assert_value(&rows[2], CONTRACT_framebuffer_used, 200);
	for (unsigned i = 0; i < 3; i++)
		sum += rows[i].v[CONTRACT_framebuffer_used];
	assert_float_equal(sum, 1000, 0);
}

/* What is not known of one of them cannot be told of the others, either. */
static void what_is_not_known_of_all_sharers_stays_with_the_device(_unused_ void **state)
{
	struct entity *e = add_gpu(0);
	const struct container_row *rows;

	set(e, SLOT_UTILIZATION_GPU, 0.90);
	e->id.process_util = PRESENCE_NO_PERMISSION;
	give(0, "ml", "a", "main");
	give(0, "ml", "b", "main");
	run(0, 0.25, 300);
	rows = make_rows(3);
	assert_value(&rows[0], CONTRACT_gpu_utilization, 90);
	assert_false(container_row_has(&rows[1], CONTRACT_gpu_utilization));
}

/* Jobs have no pod: theirs is in the device's row. */
static void a_job_that_shares_has_no_row(_unused_ void **state)
{
	struct entity *e = add_gpu(0);
	const struct container_row *rows;

	set(e, SLOT_MEMORY_USED, 1000 * MIB);
	add_job(0, "4711");
	give(0, "ml", "b", "main");
	run(0, 0.25, 300);
	run(1, 0.30, 200);
	rows = make_rows(2);
	assert_whose(&rows[0], "", "", "");
	assert_value(&rows[0], CONTRACT_framebuffer_used, 800);
	assert_value(&rows[1], CONTRACT_framebuffer_used, 200);
}

static void instances_have_theirs_and_their_gpu_the_rest(_unused_ void **state)
{
	const struct container_row *rows;
	struct entity *e = add_gpu(0);

	set(e, SLOT_POWER, 250);
	set(e, SLOT_MEMORY_USED, 9 * MIB);
	e = add_instance(0, 10, 0, "1g.5gb");
	set(e, SLOT_MEMORY_USED, 2 * MIB);
	e = add_instance(0, 9, 0, "1c.2g.10gb");
	set(e, SLOT_MEMORY_USED, 7 * MIB);
	add_instance(0, 9, 1, "1c.2g.10gb");
	add_instance(0, 11, 0, "1g.5gb")->present = false;
	give(2, "ml", "a", "main");
	rows = make_rows(3);
	assert_true(rows[0].partitioned);
	assert_value(&rows[0], CONTRACT_power_usage, 250);
	assert_false(container_row_has(&rows[0], CONTRACT_framebuffer_used));
	assert_string_equal(rows[1].mig_instance, "9");
	assert_string_equal(rows[1].mig_profile, "2g.10gb");
	assert_string_equal(rows[1].uuid, "GPU-0");
	assert_whose(&rows[1], "ml", "a", "main");
	assert_value(&rows[1], CONTRACT_framebuffer_used, 7);
	assert_false(container_row_has(&rows[1], CONTRACT_power_usage));
	assert_string_equal(rows[2].mig_instance, "10");
	assert_whose(&rows[2], "", "", "");
}

static void a_gpu_that_is_gone_has_no_row(_unused_ void **state)
{
	add_gpu(0)->present = false;
	make_rows(0);
}

static void the_newest_xid_is_shown(_unused_ void **state)
{
	add_gpu(0);
	t.s.xids[0] = (struct xid){ .entity = 0, .code = 31, .last_real_ns = 2 };
	t.s.xids[1] = (struct xid){ .entity = 0, .code = 79, .last_real_ns = 1 };
	t.s.xids[2] = (struct xid){ .entity = READING_NONE, .code = 48, .last_real_ns = 3 };
	t.s.xids_n = 3;
	assert_value(make_rows(1), CONTRACT_xid_errors, 31);
}

static void controllers_are_those_of_the_pod(_unused_ void **state)
{
	static const struct owner rows[] = {
		{ .workload = WORKLOAD_CONTAINER,
		  .id = "a",
		  .namespace = "ml",
		  .pod = "train-0",
		  .container = "x" },
		{ .workload = WORKLOAD_CONTAINER,
		  .id = "b",
		  .namespace = "ml",
		  .pod = "train-0",
		  .container = "main",
		  .owner_kind = "StatefulSet",
		  .owner_name = "train" },
		{ .workload = WORKLOAD_POD,
		  .id = "c",
		  .namespace = "web",
		  .pod = "train-0",
		  .owner_kind = "Job",
		  .owner_name = "other" },
	};
	struct owner *list;
	const struct container_row *row;

	t.s.owners = owners_new(ARRAY_SIZE(rows), &list);
	memcpy(list, rows, sizeof(rows));
	add_gpu(0);
	add_gpu(1);
	give(0, "ml", "train-0", "main");
	give(1, "ml", "train-1", "main");
	row = make_rows(2);
	assert_string_equal(row[0].owner_kind, "StatefulSet");
	assert_string_equal(row[0].owner_name, "train");
	assert_string_equal(row[1].owner_kind, "");
	assert_page(0, NOW_BOOT,
		    "    \"workload_name\": \"train\",\n    \"workload_kind\": \"StatefulSet\",\n"
		    "    \"sm_active\": ");
}

/* A pod that is gone, and a new one of its name: the API says both for a minute. */
static void of_two_pods_of_one_name_none_is_meant(_unused_ void **state)
{
	static const struct owner rows[] = {
		{ .workload = WORKLOAD_CONTAINER,
		  .id = "a",
		  .namespace = "ml",
		  .pod = "again",
		  .owner_kind = "Pod",
		  .owner_name = "again" },
		{ .workload = WORKLOAD_POD,
		  .id = "b",
		  .namespace = "ml",
		  .pod = "again",
		  .owner_kind = "Job",
		  .owner_name = "old" },
		{ .workload = WORKLOAD_POD,
		  .id = "c",
		  .namespace = "ml",
		  .pod = "again",
		  .owner_kind = "Job",
		  .owner_name = "new" },
	};
	struct owner *list;

	t.s.owners = owners_new(ARRAY_SIZE(rows), &list);
	memcpy(list, rows, sizeof(rows));
	add_gpu(0);
	give(0, "ml", "again", "main");
	assert_string_equal(make_rows(1)->owner_kind, "");
	/* What is gone is forgotten. */
	snprintf(list[1].owner_name, sizeof(list[1].owner_name), "new");
	assert_string_equal(make_rows(1)->owner_name, "new");
}

static void rows_are_sorted_by_number_and_name(_unused_ void **state)
{
	const struct container_row *rows;

	add_gpu(10);
	add_gpu(2);
	add_gpu(2);
	give(0, "b", "x", "c");
	give(0, "a", "z", "c");
	give(0, "a", "y", "d");
	give(0, "a", "y", "c");
	strcpy(t.s.entities[2].id.uuid, "GPU-of-another-node");
	rows = make_rows(7);
	assert_string_equal(rows[0].uuid, "GPU-2");
	assert_string_equal(rows[1].uuid, "GPU-of-another-node");
	assert_string_equal(rows[2].gpu, "10");
	assert_whose(&rows[2], "", "", "");
	assert_whose(&rows[3], "a", "y", "c");
	assert_whose(&rows[4], "a", "y", "d");
	assert_whose(&rows[5], "a", "z", "c");
	assert_whose(&rows[6], "b", "x", "c");
}

/* ---- DCGM exporters ---- */

static void devices_of_exporters_are_as_their_pages_say(_unused_ void **state)
{
	const struct container_row *rows;
	struct scraped_row *row;

	add_gpu(0);
	row = add_scraped("GPU-9", "", "0");
	strcpy(row->pod, "p");
	strcpy(row->container, "c");
	strcpy(row->namespace, "n");
	strcpy(row->node, "node-9");
	strcpy(row->model, "NVIDIA H200");
	strcpy(row->device, "nvidia0");
	set_scraped(row, CONTRACT_power_usage, 75.5);
	row = add_scraped("GPU-9", "3", "0");
	strcpy(row->mig_profile, "1g.5gb");
	rows = make_rows(3);
	assert_string_equal(rows[0].uuid, "GPU-0");
	assert_string_equal(rows[1].uuid, "GPU-9");
	assert_string_equal(rows[1].node, "node-9");
	assert_string_equal(rows[1].model, "NVIDIA H200");
	assert_whose(&rows[1], "n", "p", "c");
	assert_value(&rows[1], CONTRACT_power_usage, 75.5);
	assert_false(container_row_has(&rows[1], CONTRACT_xid_errors));
	assert_true(rows[1].partitioned);
	assert_int_equal(rows[1].real_ns, NOW_REAL - 3 * NSEC_PER_SEC);
	assert_string_equal(rows[2].mig_instance, "3");
	assert_string_equal(rows[2].node, "host-1");

	/* A name that was given to the node holds for all. */
	strcpy(t.s.node_name, "node-a");
	rows = make_rows(3);
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(rows[i].node, "node-a");
}

static void exporters_name_the_owner_that_we_do_not_know(_unused_ void **state)
{
	const struct container_row *rows;
	struct scraped_row *row;

	set(add_gpu(0), SLOT_POWER, 100);
	set(add_gpu(1), SLOT_POWER, 101);
	give(1, "ml", "ours", "main");
	row = add_scraped("GPU-0", "", "0");
	strcpy(row->pod, "theirs");
	set_scraped(row, CONTRACT_power_usage, 99);
	row = add_scraped("GPU-1", "", "1");
	strcpy(row->pod, "theirs");
	rows = make_rows(2);
	assert_whose(&rows[0], "", "theirs", "");
	assert_value(&rows[0], CONTRACT_power_usage, 100);
	assert_whose(&rows[1], "ml", "ours", "main");

	/* A page that is old says nothing. */
	t.scraped->rows[0].boot_ns = NOW_BOOT - 30 * NSEC_PER_SEC;
	assert_whose(make_rows(2), "", "", "");
}

static void of_several_that_exporters_name_nobody_has_the_figures(_unused_ void **state)
{
	const struct container_row *rows;

	set(add_gpu(0), SLOT_POWER, 100);
	strcpy(add_scraped("GPU-0", "", "0")->pod, "a");
	strcpy(add_scraped("GPU-0", "", "0")->pod, "b");
	rows = make_rows(3);
	assert_whose(&rows[0], "", "", "");
	assert_value(&rows[0], CONTRACT_power_usage, 100);
	assert_whose(&rows[1], "", "a", "");
	assert_false(container_row_has(&rows[1], CONTRACT_power_usage));
	assert_whose(&rows[2], "", "b", "");
}

/* Without the driver nobody has watched for errors but the exporter. */
static void an_xid_of_an_exporters_gpu_is_the_exporters(_unused_ void **state)
{
	add_gpu(0)->source = SOURCE_DCGM;
	assert_false(container_row_has(make_rows(1), CONTRACT_xid_errors));
	set_scraped(add_scraped("GPU-0", "", "0"), CONTRACT_nvlink_tx_bytes, 1);
	assert_false(container_row_has(make_rows(1), CONTRACT_xid_errors));
	set_scraped(add_scraped("GPU-0", "", "0"), CONTRACT_xid_errors, 43);
	assert_value(make_rows(1), CONTRACT_xid_errors, 43);
}

/*
 * What the source DCGM has put into the model: as the exporter calls it, and without the GPU that it does
 * not list.
 */
static void devices_of_the_source_dcgm_are_the_exporters(_unused_ void **state)
{
	const struct container_row *row;

	add_gpu(0)->source = SOURCE_DCGM;
	set(add_instance(0, 7, 0, "1g.5gb"), SLOT_MEMORY_USED, 3 * MIB);
	t.s.entities[1].source = SOURCE_DCGM;
	strcpy(add_scraped("GPU-0", "7", "0")->node, "node-9");
	row = make_rows(1);
	assert_string_equal(row->mig_instance, "7");
	assert_string_equal(row->node, "node-9");
	assert_value(row, CONTRACT_framebuffer_used, 3);
	strcpy(t.s.node_name, "node-a");
	assert_string_equal(make_rows(1)->node, "node-a");

	/* What somebody was given is shown. */
	give(0, "ml", "a", "main");
	assert_whose(make_rows(2), "ml", "a", "main");
}

/* ---- state ---- */

static void nothing_was_read_yet(_unused_ void **state)
{
	t.s.fresh = false;
	assert_int_equal(container_status(&t.s, NOW_BOOT).state, CONTAINER_NOT_READY);
	assert_int_equal(container_status(&t.s, NOW_BOOT).real_ns, 0);
}

static void a_node_without_gpus_is_known(_unused_ void **state)
{
	struct container_status status = container_status(&t.s, NOW_BOOT + NSEC_PER_SEC / 4);

	assert_int_equal(status.state, CONTAINER_READY);
	assert_int_equal(status.real_ns, NOW_REAL);
	assert_float_equal(status.age_seconds, 0.25, 1e-9);
	assert_page(0, NOW_BOOT, "[]\n");
}

static void old_data_are_stale_and_shown_with_their_time(_unused_ void **state)
{
	struct source *nvml = &t.s.sources[SOURCE_NVML];
	struct entity *e = add_gpu(0);

	nvml->fresh_ns = e->sampled_boot_ns = NOW_BOOT - 60 * NSEC_PER_SEC;
	nvml->fresh_real_ns = e->sampled_real_ns = NOW_REAL - 60 * NSEC_PER_SEC;
	assert_int_equal(container_status(&t.s, NOW_BOOT).state, CONTAINER_READY);
	t.s.fresh = false;
	assert_int_equal(container_status(&t.s, NOW_BOOT).state, CONTAINER_STALE);
	assert_float_equal(container_status(&t.s, NOW_BOOT).age_seconds, 60, 1e-9);
	assert_page(0, NOW_BOOT, "\"timestamp\": \"2026-09-21T14:12:20Z\"");
	/* zxporter has no rows then */
	assert_page(CONTAINER_ZXPORTER, NOW_BOOT, "[]\n");
	assert_page(CONTAINER_ZXPORTER, NOW_BOOT - 41 * NSEC_PER_SEC, "\"timestamp\"");
	/* unless that is how often they are read */
	t.s.period_ns = 40 * NSEC_PER_SEC;
	assert_page(CONTAINER_ZXPORTER, NOW_BOOT, "\"timestamp\"");
	t.s.period_ns = NSEC_PER_SEC;
	t.scraped->stale_after_ns = 70 * NSEC_PER_SEC;
	t.s.scraped = t.scraped;
	assert_page(CONTAINER_ZXPORTER, NOW_BOOT, "\"timestamp\"");
}

/* Nobody publishes any more: what was fresh is no longer. */
static void a_main_loop_that_stands_still_makes_data_stale(_unused_ void **state)
{
	assert_int_equal(container_status(&t.s, NOW_BOOT + 12 * NSEC_PER_SEC).state, CONTAINER_READY);
	assert_int_equal(container_status(&t.s, NOW_BOOT + 15 * NSEC_PER_SEC).state, CONTAINER_STALE);
}

static void an_exporters_page_is_data(_unused_ void **state)
{
	t.s.fresh = false;
	add_scraped("GPU-9", "", "0");
	assert_int_equal(container_status(&t.s, NOW_BOOT).state, CONTAINER_READY);
	assert_float_equal(container_status(&t.s, NOW_BOOT).age_seconds, 3, 1e-9);
	t.scraped->rows[0].boot_ns = NOW_BOOT - 30 * NSEC_PER_SEC;
	assert_int_equal(container_status(&t.s, NOW_BOOT).state, CONTAINER_STALE);
}

static void absent_is_zero_or_null(_unused_ void **state)
{
	set(add_gpu(0), SLOT_UTILIZATION_GPU, 0);
	assert_page(0, NOW_BOOT, "    \"sm_active\": 0,\n");
	assert_page(CONTAINER_ABSENT_NULL, NOW_BOOT, "    \"sm_active\": null,\n");
	assert_page(CONTAINER_ABSENT_NULL, NOW_BOOT, "    \"gpu_utilization\": 0,\n");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, container_node_up, container_node_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_idle_gpu_has_a_row_without_a_pod),
		CASE(values_are_in_dcgms_units),
		CASE(a_pod_with_several_gpus_has_a_row_for_each),
		CASE(sharers_have_their_own_and_the_device_is_there_once),
		CASE(what_is_not_known_of_all_sharers_stays_with_the_device),
		CASE(a_job_that_shares_has_no_row),
		CASE(instances_have_theirs_and_their_gpu_the_rest),
		CASE(a_gpu_that_is_gone_has_no_row),
		CASE(the_newest_xid_is_shown),
		CASE(controllers_are_those_of_the_pod),
		CASE(of_two_pods_of_one_name_none_is_meant),
		CASE(rows_are_sorted_by_number_and_name),
		CASE(devices_of_exporters_are_as_their_pages_say),
		CASE(exporters_name_the_owner_that_we_do_not_know),
		CASE(of_several_that_exporters_name_nobody_has_the_figures),
		CASE(an_xid_of_an_exporters_gpu_is_the_exporters),
		CASE(devices_of_the_source_dcgm_are_the_exporters),
		CASE(nothing_was_read_yet),
		CASE(a_node_without_gpus_is_known),
		CASE(old_data_are_stale_and_shown_with_their_time),
		CASE(a_main_loop_that_stands_still_makes_data_stale),
		CASE(an_exporters_page_is_data),
		CASE(absent_is_zero_or_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
