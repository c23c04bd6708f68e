// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/macro.h"
#include "model/host.h"

static void set_number(struct host *host, enum host_metric row, double value)
{
	host->read = true;
	host->v[row] = value;
	host->p[row] = PRESENCE_PRESENT;
}

static void set_device(struct host *host, enum host_kind kind, const char *name, unsigned row, double value)
{
	struct host_devices *devices = &host->devices[kind];
	struct host_device *device = &devices->list[devices->n++];

	host->p[host_lists[kind].left_out] = PRESENCE_PRESENT;
	strcpy(device->name, name);
	device->v[row] = value;
	device->p[row] = PRESENCE_PRESENT;
}

/* Takes these readings, one after the other; NAN: it could not be read. Returns the sum that is shown. */
static double sum_of(enum host_metric row, const double *readings, size_t n)
{
	struct host_sums sums = { 0 };
	struct host shown;

	for (size_t i = 0; i < n; i++) {
		struct host reading = { .read = true };

		reading.p[row] = PRESENCE_FAILED;
		if (readings[i] >= 0)
			set_number(&reading, row, readings[i]);
		host_sums_take(&sums, &reading);
	}
	host_sums_show(&sums, &shown);
	assert_true(shown.read);
	return shown.v[row];
}
#define SUM(row_, ...)                                  \
	sum_of((row_), (const double[]){ __VA_ARGS__ }, \
	       sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double))

static void counters_never_fall(_unused_ void **state)
{
	/* in hundredths of a second; exactly as many digits */
	assert_float_equal(SUM(HOST_CPU_IDLE, 7), 0.07, 0);
	assert_float_equal(SUM(HOST_CPU_IDLE, 1000, 1200), 12, 0);
	/* a step back, which the kernel takes at times */
	assert_float_equal(SUM(HOST_CPU_IDLE, 1000, 990), 10, 0);
	assert_float_equal(SUM(HOST_CPU_IDLE, 1000, 990, 1000, 1010), 10.1, 0);
	/* begun anew */
	assert_float_equal(SUM(HOST_CPU_IDLE, 1000, 100, 150), 11.5, 0);
	/* not read once */
	assert_float_equal(SUM(HOST_CPU_IDLE, 1000, -1, 1100), 11, 0);
}

static void gauges_are_as_they_were_read(_unused_ void **state)
{
	assert_float_equal(SUM(HOST_LOAD, 4, 0.5), 0.5, 0);
	assert_float_equal(SUM(HOST_MEMORY_AVAILABLE, 4, 2), 2048, 0);
}

static double busy_of(double before, double after)
{
	struct host_sums sums = { 0 };
	struct host shown, reading = { 0 };

	set_device(&reading, HOST_DISKS, "sda", DISK_BUSY, before);
	host_sums_take(&sums, &reading);
	reading.devices[HOST_DISKS].n = 0;
	set_device(&reading, HOST_DISKS, "sda", DISK_BUSY, after);
	host_sums_take(&sums, &reading);
	host_sums_show(&sums, &shown);
	return shown.devices[HOST_DISKS].list[0].v[DISK_BUSY];
}

/* Milliseconds in 32 bits: 50 days. */
static void busy_time_wraps(_unused_ void **state)
{
	assert_float_equal(busy_of(4294967000.0, 704), 4294968.0, 0);
	assert_float_equal(busy_of(1000, 100), 1.1, 0);
	assert_float_equal(busy_of(1000, 3000), 3, 0);
}

/* Whatever the order; who is gone and comes again is another one. */
static void devices_are_known_by_name(_unused_ void **state)
{
	struct host first = { 0 }, second = { 0 }, third = { 0 }, shown;
	struct host_sums sums = { 0 };

	set_device(&first, HOST_INTERFACES, "eth0", INTERFACE_RECEIVED_BYTES, 100);
	set_device(&first, HOST_INTERFACES, "eth1", INTERFACE_RECEIVED_BYTES, 1000);
	set_device(&second, HOST_INTERFACES, "eth1", INTERFACE_RECEIVED_BYTES, 1001);
	set_device(&third, HOST_INTERFACES, "eth1", INTERFACE_RECEIVED_BYTES, 3);
	set_device(&third, HOST_INTERFACES, "eth0", INTERFACE_RECEIVED_BYTES, 5);
	host_sums_take(&sums, &first);
	host_sums_take(&sums, &second);
	host_sums_show(&sums, &shown);
	assert_int_equal(shown.devices[HOST_INTERFACES].n, 1);
	assert_float_equal(shown.devices[HOST_INTERFACES].list[0].v[INTERFACE_RECEIVED_BYTES], 1001, 0);
	host_sums_take(&sums, &third);
	host_sums_show(&sums, &shown);
	assert_int_equal(shown.devices[HOST_INTERFACES].n, 2);
	assert_string_equal(shown.devices[HOST_INTERFACES].list[0].name, "eth1");
	assert_float_equal(shown.devices[HOST_INTERFACES].list[0].v[INTERFACE_RECEIVED_BYTES], 1004, 0);
	assert_float_equal(shown.devices[HOST_INTERFACES].list[1].v[INTERFACE_RECEIVED_BYTES], 5, 0);
	assert_int_equal(shown.devices[HOST_INTERFACES].list[1].p[INTERFACE_SENT_BYTES], PRESENCE_ABSENT);
}

/* Sums go on behind a reading in which the list is missing; until then there is no device. */
static void a_list_that_was_not_read_once(_unused_ void **state)
{
	struct host reading = { 0 }, none = { 0 }, shown;
	struct host_sums sums = { 0 };

	set_device(&reading, HOST_INTERFACES, "eth0", INTERFACE_RECEIVED_BYTES, 1000);
	host_sums_take(&sums, &reading);
	reading.devices[HOST_INTERFACES].list[0].v[INTERFACE_RECEIVED_BYTES] = 10; /* begun anew */
	host_sums_take(&sums, &reading);
	none.p[HOST_INTERFACES_LEFT_OUT] = PRESENCE_FAILED;
	host_sums_take(&sums, &none);
	host_sums_show(&sums, &shown);
	assert_int_equal(shown.devices[HOST_INTERFACES].n, 0);
	reading.devices[HOST_INTERFACES].list[0].v[INTERFACE_RECEIVED_BYTES] = 15;
	host_sums_take(&sums, &reading);
	host_sums_show(&sums, &shown);
	assert_int_equal(shown.devices[HOST_INTERFACES].n, 1);
	assert_float_equal(shown.devices[HOST_INTERFACES].list[0].v[INTERFACE_RECEIVED_BYTES], 1015, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_never_fall),
		cmocka_unit_test(gauges_are_as_they_were_read),
		cmocka_unit_test(busy_time_wraps),
		cmocka_unit_test(devices_are_known_by_name),
		cmocka_unit_test(a_list_that_was_not_read_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
