// SPDX-License-Identifier: Apache-2.0
/*
 * The machine's own figures: CPU time, memory, pressure, disks and network interfaces. src/host reads them,
 * the model adds counters up, views show the sums.
 */
#pragma once

#include "model/metric.h"

enum host_kind { HOST_DISKS, HOST_INTERFACES, HOST_LISTS };
enum {
	HOST_DEVICES_MAX = 16,
	HOST_DEVICE_NAME = 32,
	/* the longest list's */
	HOST_DEVICE_ROWS =
		(int)DISK_METRICS > (int)INTERFACE_METRICS ? (int)DISK_METRICS : (int)INTERFACE_METRICS,
};

/* A disk or network interface; v and p by rows of its list's table. */
struct host_device {
	char name[HOST_DEVICE_NAME]; /* valid UTF-8; unique in its list */
	double v[HOST_DEVICE_ROWS];
	uint8_t p[HOST_DEVICE_ROWS];
};

struct host_devices {
	uint32_t n;
	struct host_device list[HOST_DEVICES_MAX];
};

struct host {
	bool read; /* false: nobody reads these figures (host.figures) */
	double v[HOST_METRICS];
	uint8_t p[HOST_METRICS];
	struct host_devices devices[HOST_LISTS];
};

/* What tells the lists apart. */
struct host_list_row {
	const char *member; /* in JSON */
	const char *label; /* of series: the device's name */
	const struct metric *rows;
	unsigned n;
	enum host_metric left_out;
};
extern const struct host_list_row host_lists[HOST_LISTS];

/* What the model keeps of the readings: sums in the kernel's units, and the newest reading. */
struct host_sums {
	struct host sum, raw;
};

/*
 * Takes a reading, whose numbers are as the kernel has them. A sum starts at its first reading. A counter
 * that fell has wrapped, if its row has a wrap; has begun anew, if less than half of it is left; else it has
 * stepped back, as the kernel's idle times do, and adds nothing until it is where it was.
 */
void host_sums_take(struct host_sums *sums, const struct host *reading);
/* The sums as views show them, scaled and rounded. Of a list that could not be read, no device. */
void host_sums_show(const struct host_sums *sums, struct host *ret_host);
