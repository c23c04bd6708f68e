// SPDX-License-Identifier: Apache-2.0
/* Which devices CUDA shows. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "sim/cuda/visible.h"

static struct scenario *scenario;

static void assert_shows(const char *visible, const char *order, const char *expected)
{
	struct visible devices[SCENARIO_MAX_GPUS];
	uint32_t count = visible_devices(scenario, visible, order, devices);
	char text[256] = "";

	for (uint32_t i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 devices[i].instance < 0 ? "%d " : "%d.%d ", devices[i].gpu, devices[i].instance);
	assert_string_equal(text, expected);
}

static int load(const char *text)
{
	struct scenario_error err = { "" };

	free(scenario);
	scenario = NULL;
	if (scenario_load_buffer("test", text, strlen(text), &scenario, &err) < 0)
		fail_msg("%s", err.message);
	return 0;
}

static void test_lists(_unused_ void **state)
{
	char word[64];

	load("gpus: [{model: h100-sxm, count: 4}]");
	assert_shows(NULL, NULL, "0 1 2 3 ");
	assert_shows("", NULL, "");
	assert_shows("2,0", NULL, "2 0 ");
	assert_shows("1,-1,2", NULL, "1 ");
	assert_shows("1,7,2", NULL, "1 ");
	assert_shows("NoDevFiles", NULL, "");
	assert_shows("3,1,3,0", NULL, "3 1 ");
	snprintf(word, sizeof(word), "%s,0", scenario->gpus[2].uuid);
	assert_shows(word, NULL, "2 0 ");
	snprintf(word, sizeof(word), "%.12s", scenario->gpus[3].uuid);
	assert_shows(word, NULL, "3 ");
	assert_shows("GPU-", NULL, ""); /* of all of them */
	assert_shows("GPU-nothing,1", NULL, "");
}

static void test_order(_unused_ void **state)
{
	load("gpus: [{model: l4}, {model: h100-sxm}, {model: l4}]");
	assert_shows(NULL, NULL, "1 0 2 ");
	assert_shows(NULL, "FASTEST_FIRST", "1 0 2 ");
	assert_shows(NULL, "PCI_BUS_ID", "0 1 2 ");
	assert_shows("0", NULL, "1 ");
	assert_shows("0", "PCI_BUS_ID", "0 ");
}

static void test_mig(_unused_ void **state)
{
	char word[160];

	load("gpus: [{model: h100-sxm, mig: [3g.40gb, 1g.10gb]}, {model: h100-sxm}]");
	assert_shows(NULL, NULL, "1 ");
	snprintf(word, sizeof(word), "%s,0", scenario->gpus[0].instances[1].uuid);
	assert_shows(word, NULL, "0.1 ");
	snprintf(word, sizeof(word), "MIG-%s/%u/%u", scenario->gpus[0].uuid,
		 scenario->gpus[0].instances[0].gpu_instance,
		 scenario->gpus[0].instances[0].compute_instance);
	assert_shows(word, NULL, "0.0 ");
	snprintf(word, sizeof(word), "%s", scenario->gpus[0].uuid);
	assert_shows(word, NULL, ""); /* a GPU in MIG mode is no device */
	assert_shows("MIG-nothing", NULL, "");
	load("gpus: [{model: h100-sxm, mig: [1g.10gb, 1g.10gb]}]");
	assert_shows(NULL, NULL, "0.0 ");
}

static int done(_unused_ void **state)
{
	free(scenario);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_mig),
	};

	return cmocka_run_group_tests(tests, NULL, done);
}
