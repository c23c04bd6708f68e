// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/macro.h"
#include "base/strbuf.h"
#include "fixture.h"
#include "view/statsd.h"

static struct strbuf told; /* lines "name|tags=value", of counters "+=" */
static unsigned numbers;

static void take_value(const struct statsd_value *value, _unused_ void *userdata)
{
	numbers++;
	strbuf_addf(&told, "%s|%s%s%.9g\n", value->name, value->tags, value->is_counter ? "+=" : "=",
		    value->value);
}

static void tell(const struct snapshot *s, const char *families)
{
	strbuf_reset(&told);
	numbers = 0;
	assert_int_equal(view_statsd(s, families, take_value, NULL), 0);
}

static bool says(const char *text)
{
	return strstr(told.data, text);
}

static int begin(void **state)
{
	strbuf_init(&told, 0);
	*state = fixture_small();
	return 0;
}

static int end(void **state)
{
	strbuf_done(&told);
	fixture_free(*state);
	return 0;
}

#define GPU_0 "gpu_index:0,gpu_uuid:GPU-abc00000-0000-4000-8000-000000000000"
#define DEVICE_0 ",gpu_vendor:nvidia,gpu_device:nvidia_h100_80gb_hbm3,gpu_driver_version:580.95.05"

/* In its units: percent, and sums as gauges. What tells rows apart is no tag. */
static void names_of_the_check(void **state)
{
	tell(*state, NULL);
	assert_true(says("gpu.memory.limit|" GPU_0 DEVICE_0 "=8"));
	assert_true(says("gpu.gr_engine_active|" GPU_0 DEVICE_0 "="));
	assert_true(says("gpu.total_energy_consumption|" GPU_0 DEVICE_0 "="));
	assert_false(says("engine:"));
	assert_false(says("+="));
	assert_false(says("gpusonde."));
	assert_true(says(",pid:"));
}

static void chosen_families(void **state)
{
	tell(*state, "gpusonde_gpu_busy_seconds_total,gpusonde_gpu_info,gpusonde_mig_info");
	assert_true(says("gpusonde.gpu_busy_seconds|gpu:0,uuid:GPU-abc00000-0000-4000-8000-000000000000,"
			 "engine:gpu+="));
	/* A name is no number. */
	assert_false(says("gpusonde.gpu_info"));
	assert_false(says("gpusonde.mig_info"));
}

/* Names of processes and devices come from others: nothing of them is another tag, or another line. */
static void hostile_names(void **state)
{
	tell(*state, "*");
	for (const char *line = told.data; *line; line = strchr(line, '\n') + 1) {
		const char *bar = strchr(line, '|'), *end = strchr(line, '\n');

		assert_non_null(bar);
		for (const char *c = bar + 1; c < end; c++)
			assert_true(*c != '|' && *c != '#' && (unsigned char)*c >= ' ');
		assert_true(bar[1] != ',');
	}
	assert_true(numbers > 100);
}

static void histograms_are_sum_and_count(_unused_ void **state)
{
	struct snapshot *traced = fixture_traced();

	tell(traced, "gpusonde_gpu_cuda_launch_gap_seconds");
	assert_true(says("gpusonde.gpu_cuda_launch_gap_seconds.count|"));
	assert_true(says("gpusonde.gpu_cuda_launch_gap_seconds.sum|"));
	assert_false(says("_bucket"));
	fixture_free(traced);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_of_the_check),
		TEST(chosen_families),
		TEST(hostile_names),
		TEST(histograms_are_sum_and_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
