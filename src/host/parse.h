// SPDX-License-Identifier: Apache-2.0
/* The texts of the files that src/host reads. They are taken for hostile: /proc may be another program's. */
#pragma once

#include "base/cursor.h"
#include "host/column.h"
#include "model/host.h"

/*
 * The number of a column in the text of its file. Returns its presence: UNSUPPORTED where the text has no
 * such line or field, FAILED where that is no number.
 */
uint8_t host_parse(struct cursor text, const struct host_column *column, double *ret_value);

/* Whether a name is a disk's, not a partition's. */
typedef bool host_is_disk_fn(const char *name, void *userdata);

/*
 * /proc/diskstats: disks, but for loop devices, memory, floppies and compact discs. Returns how many were
 * left out.
 */
uint32_t host_parse_disks(struct cursor text, host_is_disk_fn *is_disk, void *userdata,
			  struct host_devices *ret_devices);

/* /proc/PID/net/dev: interfaces, but for the loopback and the machine's ends of containers' pairs. */
uint32_t host_parse_interfaces(struct cursor text, struct host_devices *ret_devices);
