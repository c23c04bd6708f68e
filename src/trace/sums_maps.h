// SPDX-License-Identifier: Apache-2.0
/* The kernel side's maps, as struct sums_maps reaches them. */
#pragma once

#include "trace/attach.h"
#include "trace/sums.h"

struct sums_map {
	int fd; /* the backend's */
	uint32_t copies; /* of each value: CPUs, where kernels keep one for each */
	uint32_t entries;
};

struct sums_maps_of {
	struct sums_map stats, errors, procs;
	struct trace_control *control;
	struct trace_stat *copies; /* of a value of stats */
	uint64_t *counts; /* of errors */
};

extern const struct sums_maps sums_kernel_maps;

int sums_maps_init(struct sums_maps_of *of, struct attach_backend *backend);
void sums_maps_done(struct sums_maps_of *of);
