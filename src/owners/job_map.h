// SPDX-License-Identifier: Apache-2.0
/*
 * The folder in which a batch system's prolog notes which job has which GPU, in the form that dcgm-exporter
 * reads (DCGM_HPC_JOB_MAPPING_DIR): a file for each GPU, named N, or for each GPU instance, named N.G, with a
 * job's ID on each line. Texts are hostile: they come from any user who may write there.
 */
#pragma once

#include "model/allocation.h"

enum { JOB_MAP_FILE_MAX = 64 << 10, JOB_MAP_FILES_MAX = 1024 };

/* "3" or "3.7"; false: it is no such file. */
bool job_map_device(const char *name, struct device_ref *ret_device);

struct job_map {
	struct allocation *rows;
	uint32_t n, max;
	uint32_t dropped; /* beyond max, or too long for an ID */
};
/* Adds the jobs of one file. */
void job_map_add(struct job_map *map, struct device_ref device, const char *text, size_t n);
/* Adds those of all files of the folder @fd, which is taken. 0 or why not all could be read. */
int job_map_read(struct job_map *map, int fd);
