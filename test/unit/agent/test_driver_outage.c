// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "agent/driver/outage.h"

enum { S = 1000 }; /* seconds of the boot clock that these tests begin at */

static int64_t at(double s)
{
	return (int64_t)((S + s) * NSEC_PER_SEC);
}

static struct nvml_status in_call(const char *call, double seconds)
{
	struct nvml_status status = { .running = true, .busy = call != NULL, .call_seconds = seconds };

	strcpy(status.call, call ? call : "");
	return status;
}

static struct nvml_status status_at(const struct driver_outage *s, double when)
{
	struct nvml_status status = s->last;

	driver_outage_status(s, at(when), &status);
	return status;
}

static void readings_in_time_are_no_silence(_unused_ void **state)
{
	struct nvml_status busy = in_call("nvmlInit_v2", 0.001);
	struct driver_outage s = { .quiet = true };

	for (int i = 0; i < 5; i++) {
		driver_outage_tick(&s, &busy, at(i));
		assert_string_equal(status_at(&s, i).error, "");
		driver_outage_reading(&s, READING_OK, at(i + 0.1));
	}
}

/* A child that is killed and replaced begins its call again; the verdict does not. */
static void one_verdict_while_children_are_replaced(_unused_ void **state)
{
	struct nvml_status asked = in_call("nvmlDeviceGetPowerUsage", 0), hung;
	struct driver_outage s = { .quiet = true };

	driver_outage_reading(&s, READING_OK, at(0));
	driver_outage_tick(&s, &asked, at(1));
	for (int i = 2; i < 40; i++) {
		hung = in_call(i % 10 ? "nvmlDeviceGetPowerUsage" : NULL, i % 10 * 0.9);
		if (i % 10 == 0)
			strcpy(hung.error, "something about the child");
		driver_outage_tick(&s, &hung, at(i));
		hung = status_at(&s, i);
		assert_string_equal(hung.call, "nvmlDeviceGetPowerUsage");
		assert_true(hung.call_seconds > i - 0.01 && hung.call_seconds < i + 0.01);
		assert_non_null(strstr(hung.error, "nvmlDeviceGetPowerUsage does not return"));
		assert_null(strstr(hung.error, "stuck"));
		assert_string_equal(
			hung.cause,
			"nvmlDeviceGetPowerUsage does not return; see the kernel log, reset the GPU or "
			"reboot");
	}
	driver_outage_reading(&s, READING_OK, at(40));
	assert_string_equal(status_at(&s, 40).error, s.last.error);
}

static void those_left_behind_are_counted(_unused_ void **state)
{
	struct nvml_status hung = in_call("nvmlInit_v2", 5);
	struct driver_outage s = { .quiet = true };

	hung.stuck = 2;
	driver_outage_reading(&s, READING_OK, at(0));
	driver_outage_tick(&s, &hung, at(1));
	driver_outage_tick(&s, &hung, at(5));
	assert_non_null(strstr(status_at(&s, 5).error, "2 processes are stuck"));
	assert_null(strstr(status_at(&s, 5).cause, "stuck"));
}

/* Who asked for the release knows; and that the driver is let go of is no answer of its own. */
static void a_release_is_no_silence(_unused_ void **state)
{
	struct nvml_status hung = in_call("nvmlInit_v2", 5), released = { .released = true };
	struct driver_outage s = { .quiet = true };

	driver_outage_reading(&s, READING_OK, at(0));
	driver_outage_tick(&s, &hung, at(1));
	driver_outage_tick(&s, &hung, at(4));
	assert_true(s.logged);
	driver_outage_tick(&s, &released, at(5));
	assert_string_equal(status_at(&s, 5).error, "");
	driver_outage_reading(&s, READING_RELEASED, at(6));
	assert_true(s.logged);
	driver_outage_reading(&s, READING_OK, at(7));
	assert_false(s.logged);
}

static void a_cause_that_is_no_call(_unused_ void **state)
{
	struct nvml_status crashed = { .crashes = 1, .error = "the library crashed", .cause = "crashed" };
	struct driver_outage s = { .quiet = true };

	driver_outage_tick(&s, &crashed, at(0));
	driver_outage_tick(&s, &crashed, at(3));
	assert_string_equal(status_at(&s, 3).error, "no reading for 3 s: the library crashed");
	assert_string_equal(status_at(&s, 3).cause, "crashed");
	assert_string_equal(status_at(&s, 3).call, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readings_in_time_are_no_silence),
		cmocka_unit_test(one_verdict_while_children_are_replaced),
		cmocka_unit_test(those_left_behind_are_counted),
		cmocka_unit_test(a_release_is_no_silence),
		cmocka_unit_test(a_cause_that_is_no_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
