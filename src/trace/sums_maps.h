// SPDX-License-Identifier: Apache-2.0
/* struct sums_maps for the maps of the kernel side. */
#pragma once

#include "trace/attach.h"
#include "trace/sums.h"

struct sums_map {
	int fd; /* owned by the backend */
	uint32_t entries;
};

struct sums_maps_of {
	struct sums_map stats, errors, procs;
	struct trace_control *control;
	const struct attach_backend *backend;
};

extern const struct sums_maps sums_kernel_maps;

int sums_maps_init(struct sums_maps_of *of, struct attach_backend *backend);
