// SPDX-License-Identifier: Apache-2.0
/* Where a number of the machine stands: the second argument of HOST_METRIC. The model does not use it. */
#pragma once

#include "model/metric.h"

enum host_file {
	HOST_NO_FILE, /* counted while a list is read */
	HOST_STAT,
	HOST_LOADAVG,
	HOST_MEMINFO,
	HOST_PRESSURE_CPU,
	HOST_PRESSURE_MEMORY,
	HOST_PRESSURE_IO,
	HOST_FILES
};

struct host_column {
	enum host_file file;
	const char *key; /* what the line begins with; NULL: the first line */
	const char *less; /* the same field of this line is taken off; NULL: nothing */
	unsigned field; /* 1: the first one behind the key */
};

extern const struct host_column host_columns[HOST_METRICS];
