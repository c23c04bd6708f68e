// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "fixture.h"
#include "view/view.h"

#define GPU0                                                                                            \
	"{gpu=\"0\",UUID=\"GPU-abc00000-0000-4000-8000-000000000000\",pci_bus_id=\"00000000:1B:00.0\"," \
	"device=\"nvidia0\",modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"node-1\","                   \
	"DCGM_FI_DRIVER_VERSION=\"580.95.05\"} "

/* The small node, where nobody is known to have or use a GPU. */
static struct snapshot *fixture_unowned(void)
{
	struct snapshot *s = fixture_small();

	s->allocated_n = 0;
	for (uint32_t i = 0; i < s->workloads_n; i++)
		s->workloads[i].live = 0;
	return s;
}

static char *page(const struct snapshot *s, enum dcgm_names names, enum exposition format)
{
	struct strbuf out;
	char *text;

	strbuf_init(&out, 0);
	const struct dcgm_style style = { .names = names, .xid_window_ns = 300 * NSEC_PER_SEC };

	assert_int_equal(view_dcgm(s, &style, format, &out), 0);
	text = strbuf_take(&out);
	assert_non_null(text);
	return text;
}

static bool has(const char *text, const char *what)
{
	return strstr(text, what) != NULL;
}

/* Whole lines, byte by byte, as the exporter's text has them. */
static void lines_are_the_exporters(void **state)
{
	static const char *const lines[] = {
		"# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL" GPU0 "57\n",
		"\nDCGM_FI_DEV_MEM_COPY_UTIL" GPU0 "29\n",
		"\nDCGM_FI_DEV_FB_USED" GPU0 "43520\n",
		"\nDCGM_FI_DEV_FB_RESERVED" GPU0 "512\n",
		"\nDCGM_FI_DEV_SM_CLOCK" GPU0 "1980\n",
		"\nDCGM_FI_DEV_POWER_USAGE" GPU0 "412.533000\n",
		"# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n"
		"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" GPU0 "35640000125\n",
		"\nDCGM_FI_DEV_GPU_TEMP" GPU0 "57\n",
		"\nDCGM_FI_DEV_POWER_VIOLATION" GPU0 "12000000345\n",
		"\nDCGM_FI_DEV_CLOCKS_EVENT_REASONS" GPU0 "4\n",
		"\nDCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL" GPU0 "150\n",
	};
	struct snapshot *s = fixture_unowned();
	_cleanup_free_ char *text = page(s, DCGM_NAMES_OLD, EXPOSITION_PROMETHEUS);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (!has(text, lines[i]))
			fail_msg("missing: %s", lines[i]);
	fixture_free(s);
}

static void units_change_with_4_9(void **state)
{
	struct snapshot *s = fixture_unowned();
	_cleanup_free_ char *text = page(s, DCGM_NAMES_49, EXPOSITION_PROMETHEUS);

	(void)state;
	assert_true(has(text, "hostname=\"node-1\",DCGM_FI_SYSTEM_DRIVER_VERSION=\"580.95.05\"} "));
	assert_false(has(text, "Hostname="));
	assert_true(has(text, "\nDCGM_FI_DEV_GPU_UTIL_RATIO{gpu=\"0\""));
	assert_true(has(text, "\"580.95.05\"} 0.570000\n"));
	assert_true(has(text, "\"580.95.05\"} 1980000000\n"));
	assert_true(has(text, "\"580.95.05\"} 45634027520\n"));
	assert_true(has(text, "\"580.95.05\"} 35640000\n")); /* whole joules */
	assert_true(has(text, "\"580.95.05\"} 12.000000\n"));
	assert_false(has(text, "DCGM_FI_DEV_GPU_UTIL{"));
	fixture_free(s);
}

/*
 * A percentage that came through a ratio must not lose one to cutting: 0.57 * 100 is a little less than 57.
 */
static void whole_percents_survive(void **state)
{
	static const char sample[] = "\nDCGM_FI_DEV_GPU_UTIL" GPU0;
	struct snapshot *s = fixture_unowned();

	(void)state;
	for (unsigned percent = 0; percent <= 100; percent++) {
		_cleanup_free_ char *text = NULL;
		const char *value;

		s->entities[0].id.v[SLOT_UTILIZATION_GPU] = percent / 100.0;
		text = page(s, DCGM_NAMES_OLD, EXPOSITION_PROMETHEUS);
		value = strstr(text, sample);
		assert_non_null(value);
		assert_int_equal(strtoul(value + strlen(sample), NULL, 10), percent);
	}
	fixture_free(s);
}

static void old_values_are_not_shown(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = page(s, DCGM_NAMES_OLD, EXPOSITION_PROMETHEUS);

	(void)state;
	assert_false(has(text, "{gpu=\"1\"")); /* stale */
	assert_false(has(text, "DCGM_FI_DEV_GPU_TEMP{gpu=\"3\"")); /* lost */
	assert_true(has(text, "DCGM_FI_DEV_XID_ERRORS{gpu=\"3\"")); /* and why */
	fixture_free(s);
}

static void last_xid_stays(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = page(s, DCGM_NAMES_OLD, EXPOSITION_PROMETHEUS);

	(void)state;
	assert_true(has(text, ",err_code=\"31\",err_msg=\"")); /* of 31 and 63 the newer */
	assert_true(has(text, "\"} 31\n"));
	assert_true(has(text, ",err_code=\"0\",err_msg=\"No Error\"} 0\n"));
	fixture_free(s);
}

/* Where an instance has the number, the whole GPU has no line of its own: sums must not count twice. */
static void mig_instances(void **state)
{
	struct snapshot *s = fixture_unowned();
	_cleanup_free_ char *text = page(s, DCGM_NAMES_OLD, EXPOSITION_PROMETHEUS);

	(void)state;
	assert_true(
		has(text,
		    "\nDCGM_FI_DEV_FB_TOTAL{gpu=\"2\",UUID=\"GPU-abc00002-0000-4000-8000-000000000002\","
		    "pci_bus_id=\"00000000:3B:00.0\",device=\"nvidia2\",modelName=\"NVIDIA H100 80GB HBM3\","
		    "GPU_I_PROFILE=\"1g.10gb\",GPU_I_ID=\"1\",Hostname=\"node-1\","
		    "DCGM_FI_DRIVER_VERSION=\"580.95.05\"} 10240\n"));
	/* Two compute instances in one GPU instance are one entity to DCGM. */
	assert_true(has(text, "GPU_I_PROFILE=\"2g.20gb\",GPU_I_ID=\"2\""));
	assert_null(strstr(strstr(strstr(text, "\nDCGM_FI_DEV_FB_TOTAL{"), "GPU_I_ID=\"2\"") + 1,
			   "GPU_I_ID=\"2\""));
	assert_false(has(text,
			 "\nDCGM_FI_DEV_FB_TOTAL{gpu=\"2\",UUID=\"GPU-abc00002-0000-4000-8000-000000000002\","
			 "pci_bus_id=\"00000000:3B:00.0\",device=\"nvidia2\",modelName=\"NVIDIA H100 80GB "
			 "HBM3\",Hostname"));
	/* Power is the board's. */
	assert_true(has(
		text, "\nDCGM_FI_DEV_POWER_USAGE{gpu=\"2\",UUID=\"GPU-abc00002-0000-4000-8000-000000000002\","
		      "pci_bus_id=\"00000000:3B:00.0\",device=\"nvidia2\",modelName=\"NVIDIA H100 80GB "
		      "HBM3\",Hostname"));
	assert_false(has(text, "GPU_I_ID=\"9\""));
	fixture_free(s);
}

static void openmetrics_keeps_the_names(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = page(s, DCGM_NAMES_OLD, EXPOSITION_OPENMETRICS);

	(void)state;
	assert_true(has(text, "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION unknown\n"));
	assert_true(has(text, "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"));
	assert_true(has(text, "\n# EOF\n"));
	fixture_free(s);
}

/* A name appears once: two rows of one name would be one family with two meanings. */
static void names_are_unique(void **state)
{
	(void)state;
	for (unsigned i = 0; i < GPU_METRICS; i++)
		for (unsigned k = 0; k < i; k++) {
			const struct metric *a = &gpu_metrics[i], *b = &gpu_metrics[k];

			assert_false(a->dcgm.name && b->dcgm.name && STRV_EQ(a->dcgm.name, b->dcgm.name));
			assert_false(a->dcgm49.name && b->dcgm49.name &&
				     STRV_EQ(a->dcgm49.name, b->dcgm49.name));
		}
}

#define NOTEBOOK ",container=\"jupyter\",namespace=\"ml\",pod=\"notebook-\\\"7\\\"\"} "
#define TRAIN                                                   \
	",container=\"main\",namespace=\"ml\",pod=\"train-0\"," \
	"pod_uid=\"2f6f1ad2-0f5c-4a8e-9a39-0f1e2d3c4b5a\"} "
#define JOB ",hpc_job=\"4711\"} "

/* GPU 0 with the owner's labels, in place of the brace and space that end GPU0. */
static void expect(const char *text, const char *name, const char *owner, const char *value)
{
	char line[1024];

	snprintf(line, sizeof(line), "\n%s%.*s%s%s\n", name, (int)strlen(GPU0) - 2, GPU0, owner, value);
	if (!has(text, line))
		fail_msg("missing: %s", line);
}

/* Two containers and a job: each has its own, what is nobody's is nobody's, and the board's is told once. */
static void sharers_have_their_own(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = page(s, DCGM_NAMES_OLD, EXPOSITION_PROMETHEUS);

	(void)state;
	expect(text, "DCGM_FI_DEV_FB_USED", TRAIN, "8192");
	expect(text, "DCGM_FI_DEV_FB_USED", JOB, "1536");
	expect(text, "DCGM_FI_DEV_FB_USED", NOTEBOOK, "0");
	expect(text, "DCGM_FI_DEV_FB_USED", "} ", "33792"); /* together 43520 */
	expect(text, "DCGM_FI_DEV_GPU_UTIL", NOTEBOOK, "0");
	expect(text, "DCGM_FI_DEV_GPU_UTIL", TRAIN, "25");
	expect(text, "DCGM_FI_DEV_POWER_USAGE", "} ", "412.533000");
	assert_false(has(text, "exported_"));
	fixture_free(s);
}

/* What a sharer's process does not tell is told of the GPU alone. */
static void what_is_not_known_of_a_sharer_is_the_gpus(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = NULL;

	(void)state;
	s->processes[0].p[PROCESS_UTILIZATION] = PRESENCE_NO_PERMISSION;
	text = page(s, DCGM_NAMES_OLD, EXPOSITION_PROMETHEUS);
	expect(text, "DCGM_FI_DEV_GPU_UTIL", "} ", "57");
	expect(text, "DCGM_FI_DEV_FB_USED", TRAIN, "8192");
	fixture_free(s);
}

static void the_only_one_has_the_whole_gpu(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = NULL;

	(void)state;
	s->allocated_n = 1;
	s->workloads[1].live = 0;
	text = page(s, DCGM_NAMES_OLD, EXPOSITION_PROMETHEUS);
	expect(text, "DCGM_FI_DEV_FB_USED", TRAIN, "43520");
	expect(text, "DCGM_FI_DEV_GPU_UTIL", TRAIN, "57");
	expect(text, "DCGM_FI_DEV_POWER_USAGE", TRAIN, "412.533000");
	fixture_free(s);
}

/* An instance's owner has the GPU only if nothing of it is anybody else's, or nobody's. */
static void an_instance_is_not_its_gpu(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = page(s, DCGM_NAMES_OLD, EXPOSITION_PROMETHEUS), *whole = NULL;

	(void)state;
	assert_true(has(text, "GPU_I_ID=\"1\",Hostname=\"node-1\",DCGM_FI_DRIVER_VERSION=\"580.95.05\","
			      "container=\"fedcba9876543210\"} 2304\n"));
	assert_true(has(text, "DCGM_FI_DEV_POWER_USAGE{gpu=\"2\","));
	assert_false(has(text, "\"580.95.05\",container=\"fedcba9876543210\"} 412.533000\n"));
	s->allocated[3].entity = 2;
	whole = page(s, DCGM_NAMES_OLD, EXPOSITION_PROMETHEUS);
	assert_true(has(whole, "\"580.95.05\",container=\"fedcba9876543210\"} 412.533000\n"));
	fixture_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_the_exporters),
		cmocka_unit_test(units_change_with_4_9),
		cmocka_unit_test(whole_percents_survive),
		cmocka_unit_test(old_values_are_not_shown),
		cmocka_unit_test(last_xid_stays),
		cmocka_unit_test(sharers_have_their_own),
		cmocka_unit_test(what_is_not_known_of_a_sharer_is_the_gpus),
		cmocka_unit_test(the_only_one_has_the_whole_gpu),
		cmocka_unit_test(an_instance_is_not_its_gpu),
		cmocka_unit_test(mig_instances),
		cmocka_unit_test(openmetrics_keeps_the_names),
		cmocka_unit_test(names_are_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
