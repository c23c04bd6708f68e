// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "model/metric.h"
#include "view/metrics/metric_name.h"

static size_t named(const char *name, uint32_t *list, size_t room)
{
	return metrics_named(name, strlen(name), list, room);
}

/* Each name is of one metric, and that one is found by it, on both kinds of pages. */
static void test_each_is_found(_unused_ void **state)
{
	for (uint32_t i = 0; i < GPU_METRICS; i++) {
		char name[METRIC_NAME], page[METRIC_NAME + 32];
		uint32_t list[GPU_METRICS];

		metric_name(&gpu_metrics[i], name);
		assert_true(strlen(name) < METRIC_NAME - 1);
		assert_int_equal(named(name, list, GPU_METRICS), 1);
		assert_int_equal(list[0], i);
		snprintf(page, sizeof(page), "gpusonde_gpu_%s", name);
		assert_int_equal(named(page, list, GPU_METRICS), 1);
		assert_int_equal(list[0], i);
	}
}

/* Those of the machine begin with "host_", which no metric of a GPU does. */
static void test_the_machine(_unused_ void **state)
{
	uint32_t list[GPU_METRICS];

	for (unsigned of = METRICS_OF_HOST; of < METRIC_LISTS; of++)
		for (uint32_t i = 0; i < metrics_in_list(of); i++) {
			char name[METRIC_NAME], page[METRIC_NAME + 32];

			metric_name(metric_of_code(metric_code(of, i)), name);
			assert_memory_equal(name, "host_", 5);
			assert_int_equal(named(name, list, GPU_METRICS), 1);
			assert_int_equal(list[0], metric_code(of, i));
			snprintf(page, sizeof(page), "gpusonde_%s", name);
			assert_int_equal(named(page, list, GPU_METRICS), 1);
		}
	assert_int_equal(named("host_memory_bytes", list, GPU_METRICS), 2);
	assert_int_equal(named("gpusonde_gpu_host_memory_bytes", list, GPU_METRICS), 0);
	assert_null(metric_of_code(metric_code(METRICS_OF_DISK, DISK_METRICS)));
	assert_null(metric_of_code(metric_code(METRIC_LISTS, 0)));
	assert_null(metric_of_code(UINT32_MAX));
}

/* A family without a label's value is all of its metrics; what has no room is counted alone. */
static void test_families(_unused_ void **state)
{
	uint32_t list[GPU_METRICS + 1];
	size_t all = named("utilization_ratio", list, GPU_METRICS);

	assert_true(all > 1);
	for (size_t i = 0; i < all; i++)
		assert_string_equal(gpu_metrics[list[i]].family, "gpu_utilization_ratio");
	memset(list, 0xff, sizeof(list));
	assert_int_equal(named("utilization_ratio", list, 1), all);
	assert_int_equal(list[1], UINT32_MAX);
	assert_int_equal(named("power_watts", list, 0), 1);
}

static void test_others(_unused_ void **state)
{
	static const char *const names[] = {
		"",
		"gpusonde_gpu_",
		"power",
		"power_watts.",
		"power_watts.x",
		"power_watts,",
		"POWER_WATTS",
		"utilization_rati",
		"utilization_ratio.",
		"%s%n",
		"gpusonde_gpu_gpusonde_gpu_power_watts",
	};
	char longest[4 * METRIC_NAME];
	uint32_t list[1];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(named(names[i], list, 1), 0);
	memset(longest, 'a', sizeof(longest));
	assert_int_equal(metrics_named(longest, sizeof(longest), list, 1), 0);
	/* No more is read than it has. */
	assert_int_equal(metrics_named("power_watts.x", 11, list, 1), 1);
	assert_int_equal(metrics_named("power_watts", 5, list, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_is_found),
		cmocka_unit_test(test_the_machine),
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
