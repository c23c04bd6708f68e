// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "agent/readiness.h"

enum { NOW_S = 1000 };
static const int64_t now = NOW_S * NSEC_PER_SEC;

static void add_device(const char *root, const char *name, const char *vendor, const char *class)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s/vendor", root, name);
	assert_int_equal(write_file_atomic(path, vendor, strlen(vendor), 0600), 0);
	snprintf(path, sizeof(path), "%s/%s/class", root, name);
	assert_int_equal(write_file_atomic(path, class, strlen(class), 0600), 0);
}

static void remove_device(const char *root, const char *name)
{
	static const char *const parts[] = { "/vendor", "/class", "" };
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		snprintf(path, sizeof(path), "%s/%s%s", root, name, parts[i]);
		remove(path);
	}
}

static void gpus_are_told_from_other_devices(_unused_ void **state)
{
	static const char *const devices[][3] = {
		{ "0000:01:00.0", "0x10de\n", "0x030200\n" }, /* data centre GPU: 3D controller */
		{ "0000:02:00.0", "0x10de\n", "0x030000\n" }, /* desktop GPU: VGA */
		{ "0000:02:00.1", "0x10de\n", "0x040300\n" }, /* its audio */
		{ "0000:03:00.0", "0x10de\n", "0x068000\n" }, /* NVSwitch */
		{ "0000:04:00.0", "0x8086\n", "0x030000\n" }, /* somebody else's */
	};
	char root[] = "/tmp/gpusonde-test-pci-XXXXXX";

	assert_non_null(mkdtemp(root));
	assert_int_equal(pci_gpus(root), 0);
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		add_device(root, devices[i][0], devices[i][1], devices[i][2]);
	assert_int_equal(pci_gpus(root), 2);
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		remove_device(root, devices[i][0]);
	assert_int_equal(rmdir(root), 0);
	assert_int_equal(pci_gpus(root), -ENOENT);
}

static struct snapshot snapshot(bool fresh, enum reading_state state)
{
	return (struct snapshot){
		.fresh = fresh,
		.sources[SOURCE_NVML].state = state,
		.boot_ns = now,
		.period_ns = NSEC_PER_SEC,
		.not_fresh_reason = "because",
	};
}

static void ready_when_fresh(_unused_ void **state)
{
	struct entity entities[3] = {
		{ .id.parent = READING_NONE, .present = true },
		{ .id.parent = 0, .present = true },
		{ .id.parent = READING_NONE, .present = false },
	};
	struct snapshot s = snapshot(true, READING_OK);
	char why[320];

	s.entities = entities;
	s.entities_n = ARRAY_SIZE(entities);
	assert_true(readiness(&s, now, why, sizeof(why)));
	assert_string_equal(why, "1 GPU, 0 processes on them");
	s.simulated = true;
	assert_true(readiness(&s, now, why, sizeof(why)));
	assert_string_equal(why, "1 GPU, 0 processes on them, all simulated");
	s.gpus_unidentified = 7;
	assert_true(readiness(&s, now, why, sizeof(why)));
	assert_string_equal(
		why, "1 GPU and 7 that the driver does not identify, 0 processes on them, all simulated");
}

static void ready_without_gpu(_unused_ void **state)
{
	struct snapshot s = snapshot(true, READING_NO_LIBRARY);
	char why[320];

	assert_true(readiness(&s, now, why, sizeof(why)));
	assert_string_equal(why, "no GPU on this node");
}

static void not_ready_says_why(_unused_ void **state)
{
	struct snapshot s = snapshot(false, READING_NO_DRIVER);
	char why[320];

	assert_false(readiness(&s, now, why, sizeof(why)));
	assert_string_equal(why, "because");
}

static void not_ready_when_tracing_hangs(_unused_ void **state)
{
	struct trace_view view = { .enabled = true, .boot_ns = now - 90 * (int64_t)NSEC_PER_SEC };
	struct snapshot s = snapshot(true, READING_NO_LIBRARY);
	char why[320];

	s.trace = &view;
	assert_true(readiness(&s, now, why, sizeof(why)));
	s.trace_stale = true;
	assert_false(readiness(&s, now, why, sizeof(why)));
	assert_non_null(strstr(why, "tracing has given nothing for 90 s"));
}

static void a_loop_that_has_stopped_is_found(_unused_ void **state)
{
	struct snapshot s = snapshot(true, READING_OK);
	char why[320];

	assert_true(liveness(&s, now + 20 * NSEC_PER_SEC));
	assert_false(liveness(&s, now + 60 * NSEC_PER_SEC));
	assert_false(readiness(&s, now + 60 * NSEC_PER_SEC, why, sizeof(why)));
	assert_non_null(strstr(why, "main loop"));
	s.period_ns = 60 * NSEC_PER_SEC; /* publishes once a minute */
	assert_true(liveness(&s, now + 100 * NSEC_PER_SEC));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpus_are_told_from_other_devices),
		cmocka_unit_test(ready_when_fresh),
		cmocka_unit_test(ready_without_gpu),
		cmocka_unit_test(not_ready_says_why),
		cmocka_unit_test(not_ready_when_tracing_hangs),
		cmocka_unit_test(a_loop_that_has_stopped_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
