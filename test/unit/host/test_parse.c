// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "host/parse.h"

static struct cursor over(const char *text)
{
	return cursor_over(text, strlen(text));
}

static const struct {
	enum host_metric row;
	const char *text;
	uint8_t p;
	double value;
} cases[] = {
	{ HOST_CPU_IDLE, "cpu  10 2 30 4000 50 6 7 8 9 1\ncpu0 1 1 1 1 1\n", PRESENCE_PRESENT, 4000 },
	{ HOST_CPU_STEAL, "cpu  10 2 30 4000 50 6 7 8 9 1\n", PRESENCE_PRESENT, 8 },
	{ HOST_CPU_USER, "cpu  0 0 0 0\n", PRESENCE_PRESENT, 0 },
	/* older kernels have fewer states */
	{ HOST_CPU_STEAL, "cpu  10 2 30 4000\n", PRESENCE_UNSUPPORTED, 0 },
	{ HOST_CPU_USER, "cpu0 10 2 30 4000\n", PRESENCE_UNSUPPORTED, 0 },
	{ HOST_CPU_USER, "", PRESENCE_UNSUPPORTED, 0 },
	{ HOST_CPU_USER, "cpu", PRESENCE_UNSUPPORTED, 0 },
	{ HOST_CPU_USER, "cpu  -1 2\n", PRESENCE_FAILED, 0 },
	{ HOST_CPU_USER, "cpu  1x 2\n", PRESENCE_FAILED, 0 },
	{ HOST_CPU_USER, "cpu  99999999999999999999 2\n", PRESENCE_FAILED, 0 },
	{ HOST_LOAD, "0.52 1.07 2.00 3/1021 77\n", PRESENCE_PRESENT, 0.52 },
	{ HOST_LOAD, "1234.05", PRESENCE_PRESENT, 1234.05 },
	{ HOST_LOAD, "1.\n", PRESENCE_FAILED, 0 },
	{ HOST_LOAD, ".5\n", PRESENCE_FAILED, 0 },
	{ HOST_LOAD, "\n", PRESENCE_UNSUPPORTED, 0 },
	{ HOST_MEMORY_TOTAL, "MemTotal:       16384 kB\nMemFree: 1 kB\n", PRESENCE_PRESENT, 16384 },
	/* before Linux 3.14 */
	{ HOST_MEMORY_AVAILABLE, "MemTotal:       16384 kB\nMemFree: 1 kB\n", PRESENCE_UNSUPPORTED, 0 },
	{ HOST_MEMORY_TOTAL, "MemTotalX: 1 kB\n", PRESENCE_UNSUPPORTED, 0 },
	{ HOST_SWAP_USED, "SwapTotal: 100 kB\nSwapFree: 30 kB\n", PRESENCE_PRESENT, 70 },
	{ HOST_SWAP_USED, "SwapTotal: 0 kB\nSwapFree: 0 kB\n", PRESENCE_PRESENT, 0 },
	{ HOST_SWAP_USED, "SwapTotal: 100 kB\n", PRESENCE_UNSUPPORTED, 0 },
	{ HOST_SWAP_USED, "SwapTotal: 10 kB\nSwapFree: 30 kB\n", PRESENCE_FAILED, 0 },
	{ HOST_PRESSURE_IO_FULL,
	  "some avg10=0.00 avg60=0.01 avg300=1.00 total=999\n"
	  "full avg10=0.00 avg60=0.00 avg300=0.00 total=345\n",
	  PRESENCE_PRESENT, 345 },
	{ HOST_PRESSURE_IO_FULL, "some avg10=0.00 avg60=0.01 avg300=1.00 total=999\n", PRESENCE_UNSUPPORTED,
	  0 },
	{ HOST_PRESSURE_CPU_SOME, "some avg10=0.00 avg60=0.01 avg300=1.00 total=\n", PRESENCE_FAILED, 0 },
};

static void numbers_and_why_there_is_none(_unused_ void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		double value = -1;
		uint8_t p = host_parse(over(cases[i].text), &host_columns[cases[i].row], &value);

		if (p != cases[i].p || (presence_is(p) && value != cases[i].value))
			fail_msg("\"%s\": %s %g", cases[i].text, presence_name(p), value);
	}
}

/* Partitions have a digit at the end here. */
static bool made_disk(const char *name, _unused_ void *userdata)
{
	return strncmp(name, "sda", 3) != 0 || name[3] == '\0';
}

static void disks_without_partitions(_unused_ void **state)
{
	static const char text[] =
		"   7       0 loop0 1 1 1 1 1 1 1 1 1 1 1\n"
		"   1       0 ram0 1 1 1 1 1 1 1 1 1 1 1\n"
		" 252       0 zram0 1 1 1 1 1 1 1 1 1 1 1\n"
		"   8       0 sda 5 6 700 8 9 10 1100 12 13 1400 15 16 17 18 19\n"
		"   8       1 sda1 5 6 700 8 9 10 1100 12 13 1400 15\n"
		" 253       0 loops 1 2 3 4 5 6 7 8 9 10 11\n"
		"   8      16 sdb 5 6 7\n"
		"   8      32 sdc 5 6 x 8 9 10 1100 12 13 1400\n"
		"bad\n"
		"   8      48 a-name-that-is-longer-than-any-that-we-keep 1 1 1 1 1 1 1 1 1 1 1";
	struct host_devices disks;

	assert_int_equal(host_parse_disks(over(text), made_disk, NULL, &disks), 0);
	assert_int_equal(disks.n, 4);
	assert_string_equal(disks.list[0].name, "sda");
	assert_float_equal(disks.list[0].v[DISK_READ_BYTES], 700, 0);
	assert_float_equal(disks.list[0].v[DISK_WRITTEN_BYTES], 1100, 0);
	assert_float_equal(disks.list[0].v[DISK_BUSY], 1400, 0);
	assert_string_equal(disks.list[1].name, "loops");
	assert_string_equal(disks.list[2].name, "sdb");
	assert_int_equal(disks.list[2].p[DISK_READ_BYTES], PRESENCE_PRESENT);
	assert_int_equal(disks.list[2].p[DISK_BUSY], PRESENCE_UNSUPPORTED);
	assert_int_equal(disks.list[3].p[DISK_READ_BYTES], PRESENCE_FAILED);
	assert_int_equal(disks.list[3].p[DISK_BUSY], PRESENCE_PRESENT);
}

static void interfaces_without_containers(_unused_ void **state)
{
	static const char text[] =
		"Inter-|   Receive                           |  Transmit\n"
		" face |bytes    packets errs drop multicast|bytes    packets errs drop\n"
		"    lo: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n"
		"  eth0:1001 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
		"veth12: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n"
		"cali34: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n"
		"  \xff\x01: 1 2 3 4 5 6 7 8 9 10 11 12\n"
		"  \xfe\x01: 1 2 3 4 5 6 7 8 9 10 11 12\n";
	struct host_devices devices;

	/* The names of two are one when they are made readable: one of them is left out. */
	assert_int_equal(host_parse_interfaces(over(text), &devices), 1);
	assert_int_equal(devices.n, 2);
	assert_string_equal(devices.list[0].name, "eth0");
	assert_float_equal(devices.list[0].v[INTERFACE_RECEIVED_BYTES], 1001, 0);
	assert_float_equal(devices.list[0].v[INTERFACE_RECEIVED_PACKETS], 2, 0);
	assert_float_equal(devices.list[0].v[INTERFACE_RECEIVE_ERRORS], 3, 0);
	assert_float_equal(devices.list[0].v[INTERFACE_SENT_BYTES], 9, 0);
	assert_float_equal(devices.list[0].v[INTERFACE_SENT_PACKETS], 10, 0);
	assert_float_equal(devices.list[0].v[INTERFACE_SEND_ERRORS], 11, 0);
	assert_int_equal(devices.list[1].name[0], '?');
}

static void beyond_the_limit_they_are_counted(_unused_ void **state)
{
	char text[4096] = "";
	struct host_devices devices;

	for (unsigned i = 0; i < HOST_DEVICES_MAX + 5; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "eth%u: 1 2 3 4 5 6 7 8 9\n", i);
	assert_int_equal(host_parse_interfaces(over(text), &devices), 5);
	assert_int_equal(devices.n, HOST_DEVICES_MAX);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_why_there_is_none),
		cmocka_unit_test(disks_without_partitions),
		cmocka_unit_test(interfaces_without_containers),
		cmocka_unit_test(beyond_the_limit_they_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
