// SPDX-License-Identifier: Apache-2.0
/*
 * All owners that the files of a node name, and what containers were given. A scan reads again only what
 * has changed: the times of folders and files tell. Not for several threads.
 */
#pragma once

#include <stdint.h>

#include "model/allocation.h"

struct scan;

int scan_new(struct scan **ret_scan);
void scan_free(struct scan *scan);

struct scan_table {
	const struct owner *list; /* one row for a container or pod; valid until the next scan */
	uint32_t n;
	uint32_t dropped; /* rows beyond OWNERS_MAX */
	const struct allocation *given; /* of running containers, and of jobs; valid until the next scan */
	uint32_t given_n;
	/* beyond a limit, or with names that mean no device; of specifications of CDI, too */
	uint64_t given_dropped;
	uint64_t digest; /* differs when the rows of either table differ; never 0 */
	char error[128]; /* the first place that exists and cannot be read, and why; "": none */
};

/*
 * @root: where the host's root file system is mounted; @job_dir: the folder of jobs below it
 * (owners/job_map.h), "": none. -ENOMEM, or why @root cannot be opened.
 */
int scan_run(struct scan *scan, const char *root, const char *job_dir, struct scan_table *ret_table);
