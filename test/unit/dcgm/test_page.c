// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "dcgm/page.h"

static struct page *page;
static struct scraped_row row;

static void read_as(bool here, const char *node, const char *const *nodes, const char *text)
{
	page_free(page);
	assert_int_equal(page_new(false, here, node, nodes, &page), 0);
	assert_int_equal(page_feed(page, text, strlen(text)), 0);
	assert_int_equal(page_end(page), 0);
}

static void read_page(const char *text)
{
	static const char *const none[] = { NULL };

	read_as(true, "", none, text);
}

static const struct scraped_row *row_at(uint32_t i)
{
	assert_true(i < page_rows(page));
	page_row(page, i, &row);
	return &row;
}

static double number_of(uint32_t device, enum gpu_metric metric)
{
	const struct dcgm_device *d = page_device(page, device);

	assert_int_equal(d->p[metric] & PRESENCE_MASK, PRESENCE_PRESENT);
	return d->v[metric];
}

#define GPU0 "gpu=\"0\",UUID=\"GPU-0\",pci_bus_id=\"00000000:1B:00.0\",device=\"nvidia0\",modelName=\"H200\""

static void a_page_of_today(void **state)
{
	(void)state;
	read_page("# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
		  "DCGM_FI_DEV_GPU_UTIL{" GPU0 ",Hostname=\"n1\",DCGM_FI_DRIVER_VERSION=\"570.86.15\","
		  "container=\"trainer\",namespace=\"ml\",pod=\"train-0\"} 97\n"
		  "DCGM_FI_DEV_FB_USED{" GPU0 ",Hostname=\"n1\",DCGM_FI_DRIVER_VERSION=\"570.86.15\","
		  "container=\"trainer\",namespace=\"ml\",pod=\"train-0\"} 2048\n"
		  "DCGM_FI_DEV_XID_ERRORS{" GPU0 ",Hostname=\"n1\",container=\"trainer\",namespace=\"ml\","
		  "pod=\"train-0\",err_code=\"79\",err_msg=\"GPU has fallen off the bus\"} 79\n");
	assert_int_equal(page_rows(page), 1);
	row_at(0);
	assert_string_equal(row.uuid, "GPU-0");
	assert_string_equal(row.gpu, "0");
	assert_string_equal(row.device, "nvidia0");
	assert_string_equal(row.node, "n1");
	assert_string_equal(row.model, "H200");
	assert_string_equal(row.namespace, "ml");
	assert_string_equal(row.pod, "train-0");
	assert_string_equal(row.container, "trainer");
	assert_string_equal(row.gi, "");
	assert_true(row.v[CONTRACT_gpu_utilization] == 97 && row.v[CONTRACT_framebuffer_used] == 2048 &&
		    row.v[CONTRACT_xid_errors] == 79);
	assert_int_equal(row.present, 1u << CONTRACT_gpu_utilization | 1u << CONTRACT_framebuffer_used |
					      1u << CONTRACT_xid_errors);
	assert_int_equal(page_devices(page), 1);
	assert_true(number_of(0, GPU_UTILIZATION_GPU) == 0.97);
	assert_true(number_of(0, GPU_MEMORY_USED) == 2147483648.0);
	assert_int_equal(page_device(page, 0)->xid, 79);
	assert_int_equal(page_device(page, 0)->index, 0);
	assert_string_equal(page_device(page, 0)->pci_bus_id, "00000000:1B:00.0");
	assert_string_equal(page_device(page, 0)->driver_version, "570.86.15");
}

static void dialects_of_labels(void **state)
{
	static const struct {
		const char *labels, *uuid, *namespace, *pod, *container, *node, *model;
	} rows[] = {
		{ "gpu=\"0\",uuid=\"GPU-1\",pod_name=\"p\",pod_namespace=\"n\",container_name=\"c\"", "GPU-1",
		  "n", "p", "c", "", "" },
		{ "UUID=\"GPU-1\",uuid=\"GPU-2\",Hostname=\"a\",hostname=\"b\"", "GPU-1", "", "", "", "a",
		  "" },
		{ "hostname=\"b\",gpu_uuid=\"GPU-3\",model_name=\"M\"", "GPU-3", "", "", "", "b", "M" },
		{ "pod=\"exporter\",namespace=\"monitoring\",container=\"e\",exported_pod=\"p\","
		  "exported_namespace=\"n\",exported_container=\"c\"",
		  "", "n", "p", "c", "", "" },
		{ "exported_pod=\"p\",pod=\"exporter\"", "", "", "p", "", "", "" },
		{ "exported_pod=\"\",pod=\"p\",pod_name=\"\"", "", "", "p", "", "", "" },
		{ "POD=\"x\",Uuid=\"y\",modelname=\"z\"", "", "", "", "", "", "" },
		{ "pod=\"a\\\"b\",modelName=\"\\\\\"", "", "", "a\"b", "", "", "\\" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[512];

		snprintf(text, sizeof(text), "DCGM_FI_DEV_GPU_TEMP{%s} 40\n", rows[i].labels);
		read_page(text);
		row_at(0);
		assert_string_equal(row.uuid, rows[i].uuid);
		assert_string_equal(row.namespace, rows[i].namespace);
		assert_string_equal(row.pod, rows[i].pod);
		assert_string_equal(row.container, rows[i].container);
		assert_string_equal(row.node, rows[i].node);
		assert_string_equal(row.model, rows[i].model);
	}
}

static void the_key_has_eight_labels(void **state)
{
	(void)state;
	/* Node and model are the first sample's; the newest value counts. */
	read_page("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",Hostname=\"n1\",modelName=\"A\"} 1\n"
		  "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",Hostname=\"n2\",modelName=\"B\"} 2\n"
		  "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",GPU_I_ID=\"1\"} 3\n"
		  "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",GPU_I_ID=\"1\",GPU_I_PROFILE=\"1g.5gb\"} 4\n"
		  "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",device=\"nvidia0\"} 5\n"
		  "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",namespace=\"x\"} 6\n");
	assert_int_equal(page_rows(page), 5);
	row_at(0);
	assert_string_equal(row.node, "n1");
	assert_string_equal(row.model, "A");
	assert_true(row.v[CONTRACT_temperature] == 2);
	/* Where one text ends and the next begins is part of the key. */
	read_page("DCGM_FI_DEV_GPU_TEMP{pod=\"ab\",container=\"c\"} 1\n"
		  "DCGM_FI_DEV_GPU_TEMP{pod=\"a\",container=\"bc\"} 1\n");
	assert_int_equal(page_rows(page), 2);
}

static void blanks_are_no_numbers(void **state)
{
	static const char *const blanks[] = { "9223372036854775792",
					      "9223372036854775794",
					      "9223372036854775795",
					      "2147483632",
					      "2147483635",
					      "140737488355328",
					      "140737488355331.000000",
					      "NaN",
					      "+Inf",
					      "-Inf" };
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(blanks); i++) {
		snprintf(text, sizeof(text), "DCGM_FI_DEV_GPU_TEMP{" GPU0 "} %s\n", blanks[i]);
		read_page(text);
		assert_int_equal(page_rows(page), 0);
		assert_int_equal(page_exposition(page)->dropped[SCRAPE_LINE_BLANK], 1);
	}
	read_page("DCGM_FI_DEV_POWER_VIOLATION{" GPU0 "} 2147483636\n");
	assert_int_equal(page_rows(page), 1);
}

/* What is too long for a name is not cut: two rows would be one. */
static void labels_that_are_too_long(void **state)
{
	char text[1024], pod[300];

	(void)state;
	memset(pod, 'p', sizeof(pod));
	snprintf(text, sizeof(text), "DCGM_FI_DEV_GPU_TEMP{pod=\"%.253s\"} 1\n", pod);
	read_page(text);
	assert_int_equal(page_rows(page), 1);
	snprintf(text, sizeof(text), "DCGM_FI_DEV_GPU_TEMP{pod=\"%.254s\"} 1\n", pod);
	read_page(text);
	assert_int_equal(page_rows(page), 0);
	assert_int_equal(page_exposition(page)->dropped[SCRAPE_LINE_KEY], 1);
}

static void mig_rows_name_the_gpu(void **state)
{
#define GPU1 "gpu=\"3\",UUID=\"GPU-b\",device=\"nvidia3\",modelName=\"NVIDIA A100\""
	const struct dcgm_device *gpu, *instance;

	(void)state;
	read_page("DCGM_FI_PROF_GR_ENGINE_ACTIVE{" GPU1
		  ",GPU_I_PROFILE=\"1g.5gb\",GPU_I_ID=\"8\",pod=\"p\"} 0.5\n"
		  "DCGM_FI_DEV_POWER_USAGE{" GPU1 ",GPU_I_PROFILE=\"1g.5gb\",GPU_I_ID=\"8\",pod=\"p\"} 70.5\n"
		  "DCGM_FI_DEV_FB_USED{" GPU1 ",GPU_I_PROFILE=\"1g.5gb\",GPU_I_ID=\"8\",pod=\"p\"} 4096\n"
		  "DCGM_FI_DEV_FB_USED{" GPU1 ",GPU_I_PROFILE=\"1g.5gb\",GPU_I_ID=\"x\",pod=\"p\"} 1\n");
	assert_int_equal(page_rows(page), 2);
	assert_string_equal(row_at(0)->gi, "8");
	assert_string_equal(row.mig_profile, "1g.5gb");
	assert_true(row.v[CONTRACT_power_usage] == 70.5);
	assert_int_equal(page_devices(page), 2);
	gpu = page_device(page, 0);
	instance = page_device(page, 1);
	assert_int_equal(gpu->gi, UINT32_MAX);
	assert_int_equal(gpu->minor, 3);
	assert_int_equal(instance->gi, 8);
	assert_string_equal(instance->mig_profile, "1g.5gb");
	/* What only the whole GPU has is the GPU's, though the exporter repeats it. */
	assert_true(number_of(0, GPU_POWER) == 70.5);
	assert_false(presence_is(instance->p[GPU_POWER]));
	assert_true(number_of(1, GPU_MEMORY_USED) == 4294967296.0);
	assert_false(presence_is(gpu->p[GPU_MEMORY_USED]));
}

static void links_belong_to_their_gpu(void **state)
{
	(void)state;
	read_page("DCGM_FI_PROF_NVLINK_TX_BYTES{gpu_uuid=\"GPU-0\",model_name=\"H\",nvlink=\"0\"} 100\n"
		  "DCGM_FI_PROF_NVLINK_TX_BYTES{gpu_uuid=\"GPU-0\",model_name=\"H\",nvlink=\"1\"} 50\n"
		  "DCGM_FI_DEV_GPU_TEMP{gpu_uuid=\"GPU-0\",nvlink=\"1\"} 1\n"
		  "DCGM_FI_DEV_GPU_TEMP{" GPU0 "} 40\n");
	assert_int_equal(page_rows(page), 1);
	row_at(0);
	assert_string_equal(row.gpu, "0");
	assert_true(row.v[CONTRACT_nvlink_tx_bytes] == 150);
	assert_true(row.v[CONTRACT_temperature] == 40);
	/* They are the device's, each once, though its own row has an owner. */
	read_page("DCGM_FI_DEV_GPU_TEMP{" GPU0 ",pod=\"p\"} 40\n"
		  "DCGM_FI_PROF_NVLINK_TX_BYTES{gpu_uuid=\"GPU-0\",nvlink=\"0\"} 100\n"
		  "DCGM_FI_PROF_NVLINK_TX_BYTES{gpu_uuid=\"GPU-0\",nvlink=\"1\"} 50\n"
		  "DCGM_FI_PROF_NVLINK_TX_BYTES{gpu_uuid=\"GPU-0\",nvlink=\"1\",pod=\"q\"} 50\n");
	assert_true(number_of(0, GPU_NVLINK_TX_RATE) == 150);
	/* The GPU's own number counts, wherever it stands. */
	read_page("DCGM_FI_PROF_NVLINK_TX_BYTES{" GPU0 ",nvlink=\"0\"} 100\n"
		  "DCGM_FI_PROF_NVLINK_TX_BYTES{" GPU0 "} 400\n"
		  "DCGM_FI_PROF_NVLINK_TX_BYTES{" GPU0 ",nvlink=\"1\"} 50\n");
	assert_true(number_of(0, GPU_NVLINK_TX_RATE) == 400);
	assert_true(row_at(0)->v[CONTRACT_nvlink_tx_bytes] == 400);
	/* Without a row of the GPU they are one themselves. */
	read_page("DCGM_FI_PROF_NVLINK_TX_BYTES{gpu_uuid=\"GPU-0\",model_name=\"H\",nvlink=\"0\"} 100\n");
	assert_int_equal(page_rows(page), 1);
	assert_string_equal(row_at(0)->uuid, "GPU-0");
}

/* One number of the device from several users' samples. */
static void shared_devices(void **state)
{
	static const struct {
		const char *labels[3];
		double values[3];
		double wanted; /* negative: not known */
	} rows[] = {
		{ { "pod=\"a\"" }, { 100 }, 100 },
		{ { "" }, { 100 }, 100 },
		/* gpusonde's: each user's own, and the rest. */
		{ { "pod=\"a\"", "pod=\"b\"", "" }, { 100, 50, 7 }, 157 },
		{ { "hpc_job=\"1\"", "hpc_job=\"2\"", "" }, { 100, 50, 0 }, 150 },
		/* dcgm-exporter's: the device's again for each. */
		{ { "pod=\"a\"", "pod=\"b\"", "pod=\"c\"" }, { 90, 90, 90 }, 90 },
		{ { "hpc_job=\"1\"", "hpc_job=\"2\"", "hpc_job=\"3\"" }, { 90, 90, 90 }, 90 },
		{ { "pod=\"a\"", "pod=\"b\"", "pod=\"b\"" }, { 90, 80, 70 }, -1 },
		/* A virtual GPU has its own. */
		{ { "pod=\"a\",vgpu=\"0\"", "pod=\"b\",vgpu=\"1\"" }, { 60, 20 }, -1 },
	};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t n = 0;

		for (size_t k = 0; k < 3 && rows[i].labels[k]; k++)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
					      "DCGM_FI_DEV_FB_USED{" GPU0 ",%s} %g\n", rows[i].labels[k],
					      rows[i].values[k]);
		read_page(text);
		if (rows[i].wanted < 0)
			assert_int_equal(page_device(page, 0)->p[GPU_MEMORY_USED], PRESENCE_ABSENT);
		else
			assert_true(number_of(0, GPU_MEMORY_USED) == rows[i].wanted * 1048576);
	}
	/* Of other numbers each sample is the device's. */
	read_page("DCGM_FI_DEV_GPU_TEMP{" GPU0 ",pod=\"a\",vgpu=\"1\"} 40\n"
		  "DCGM_FI_DEV_GPU_TEMP{" GPU0 ",pod=\"b\",vgpu=\"2\"} 40\n");
	assert_true(number_of(0, GPU_TEMPERATURE) == 40);
}

static void only_this_nodes_devices(void **state)
{
	static const char *const nodes[] = { "n1", "n1.example", NULL };
	static const char text[] = "DCGM_FI_DEV_GPU_TEMP{" GPU0 ",Hostname=\"n1\"} 40\n"
				   "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"GPU-1\",Hostname=\"n2\"} 41\n"
				   "DCGM_FI_DEV_GPU_TEMP{gpu=\"2\",UUID=\"GPU-2\"} 42\n";

	(void)state;
	read_as(false, "", nodes, text);
	assert_int_equal(page_rows(page), 3);
	assert_int_equal(page_devices(page), 1);
	/* The discovery that found the exporter knows better. */
	read_as(false, "n1.example", nodes, text);
	assert_int_equal(page_devices(page), 3);
	assert_string_equal(row_at(1)->node, "n1.example");
	read_as(false, "n2", nodes, text);
	assert_int_equal(page_devices(page), 0);
	read_as(true, "", nodes, text);
	assert_int_equal(page_devices(page), 3);
}

static void what_gpusonde_says_beside(void **state)
{
	(void)state;
	read_page("DCGM_FI_PROF_GR_ENGINE_ACTIVE{" GPU0 "} 0.5\n"
		  "DCGM_FI_DEV_GPU_TEMP{" GPU0 "} 40\n"
		  "gpusonde_node_info{simulated=\"true\"} 1\n"
		  "gpusonde_gpu_estimated{" GPU0 ",metric=\"DCGM_FI_PROF_GR_ENGINE_ACTIVE\"} 1\n");
	assert_true(page_simulated(page));
	assert_int_equal(page_rows(page), 1);
	for (unsigned i = 0; i < GPU_METRICS; i++)
		if (presence_is(page_device(page, 0)->p[i]))
			assert_int_equal(page_device(page, 0)->p[i] & PRESENCE_ESTIMATED,
					 i == GPU_TEMPERATURE ? 0 : PRESENCE_ESTIMATED);
}

static void rows_have_a_limit(void **state)
{
	static const char *const none[] = { NULL };
	char text[128];

	(void)state;
	page_free(page);
	assert_int_equal(page_new(false, true, "", none, &page), 0);
	for (unsigned i = 0; i < PAGE_ROWS_MAX + 5; i++)
		assert_int_equal(page_feed(page, text,
					   (size_t)snprintf(text, sizeof(text),
							    "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-%u\"} 1\n", i)),
				 0);
	assert_int_equal(page_end(page), 0);
	assert_int_equal(page_rows(page), PAGE_ROWS_MAX);
	assert_int_equal(page_devices(page), READING_ENTITIES_MAX);
	assert_int_equal(page_exposition(page)->dropped[SCRAPE_LINE_ROWS], 5);
}

static int setup(void **state)
{
	(void)state;
	return families_init();
}

static int teardown(void **state)
{
	(void)state;
	page_free(page);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_of_today),           cmocka_unit_test(dialects_of_labels),
		cmocka_unit_test(the_key_has_eight_labels),  cmocka_unit_test(blanks_are_no_numbers),
		cmocka_unit_test(labels_that_are_too_long),  cmocka_unit_test(mig_rows_name_the_gpu),
		cmocka_unit_test(links_belong_to_their_gpu), cmocka_unit_test(shared_devices),
		cmocka_unit_test(only_this_nodes_devices),   cmocka_unit_test(what_gpusonde_says_beside),
		cmocka_unit_test(rows_have_a_limit),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
