// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "host/host.h"

/* A made-up root file system. */
static char root[] = "/tmp/test-host.XXXXXX";

static void make(const char *path, const char *text)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	assert_int_equal(write_file_atomic(whole, text, strlen(text), 0644), 0);
}

static void make_folder(const char *path)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	assert_int_equal(mkdir(whole, 0755), 0);
}

static int make_root(_unused_ void **state)
{
	static const char *const folders[] = { "/proc",          "/proc/1",
					       "/proc/1/net",    "/proc/pressure",
					       "/sys",           "/sys/block",
					       "/sys/block/sda", "/sys/block/cciss!c0d0" };

	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		make_folder(folders[i]);
	make("/proc/stat", "cpu  100 0 50 1000 7 0 0 0\n");
	make("/proc/loadavg", "1.25 0 0\n");
	make("/proc/meminfo", "MemTotal: 2048 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
	make("/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
	make("/proc/diskstats", "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n8 1 sda1 1 2 3 4 5 6 7 8 9 10 11\n"
				"104 0 cciss/c0d0 1 2 3 4 5 6 7 8 9 10 11\n");
	make("/proc/1/net/dev", "eth0: 1 2 3 4 5 6 7 8 9 10 11 12\n");
	return 0;
}

static int remove_root(_unused_ void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void read_root(const char *path, bool sees_all, struct host *ret_reading)
{
	_cleanup_(host_source_freep) struct host_source *source = NULL;

	assert_int_equal(host_source_new(&(struct host_config){ path, sees_all }, &source), 0);
	host_source_read(source, ret_reading);
}

static void figures_of_another_root(_unused_ void **state)
{
	struct host host;

	read_root(root, false, &host);
	assert_true(host.read);
	assert_float_equal(host.v[HOST_CPU_USER], 100, 0);
	assert_float_equal(host.v[HOST_LOAD], 1.25, 0);
	assert_float_equal(host.v[HOST_MEMORY_TOTAL], 2048, 0);
	assert_float_equal(host.v[HOST_PRESSURE_CPU_SOME], 5, 0);
	assert_int_equal(host.devices[HOST_DISKS].n, 2);
	assert_string_equal(host.devices[HOST_DISKS].list[1].name, "cciss/c0d0");
	assert_int_equal(host.devices[HOST_INTERFACES].n, 1);
}

static void absent_unsupported_and_zero_differ(_unused_ void **state)
{
	struct host host;

	read_root(root, false, &host);
	assert_int_equal(host.p[HOST_CPU_NICE], PRESENCE_PRESENT); /* zero */
	assert_int_equal(host.p[HOST_SWAP_USED], PRESENCE_PRESENT);
	assert_int_equal(host.p[HOST_MEMORY_AVAILABLE], PRESENCE_UNSUPPORTED); /* no line */
	assert_int_equal(host.p[HOST_PRESSURE_IO_SOME], PRESENCE_UNSUPPORTED); /* no file */
	make_folder("/proc/pressure/io");
	read_root(root, false, &host);
	assert_int_equal(host.p[HOST_PRESSURE_IO_SOME], PRESENCE_FAILED); /* no text */
}

/* A container's own network is not the machine's. */
static void the_network_needs_the_machines_processes(_unused_ void **state)
{
	struct host host;

	read_root("/", false, &host);
	assert_int_equal(host.p[HOST_INTERFACES_LEFT_OUT], PRESENCE_UNSUPPORTED);
	assert_int_equal(host.devices[HOST_INTERFACES].n, 0);
	read_root("/", true, &host);
	assert_int_equal(host.p[HOST_INTERFACES_LEFT_OUT], PRESENCE_PRESENT);
}

/* A root without /proc, as in a container that has some of the machine's folders. */
static void without_another_proc_it_is_this_one(_unused_ void **state)
{
	struct host host;

	read_root("/tmp", true, &host);
	assert_int_equal(host.p[HOST_CPU_USER], PRESENCE_PRESENT);
	assert_true(host.v[HOST_MEMORY_TOTAL] > 2048);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_of_another_root),
		cmocka_unit_test(absent_unsupported_and_zero_differ),
		cmocka_unit_test(the_network_needs_the_machines_processes),
		cmocka_unit_test(without_another_proc_it_is_this_one),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
