// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cdi/cdi.h"

struct cdi_device {
	char *name; /* "vendor/class=name" */
	uint32_t first, n; /* of refs */
};

struct cdi {
	struct cdi_device *devices; /* in the order in which they were added */
	uint32_t n, room;
	struct device_ref *refs;
	uint32_t refs_n, refs_room;
	uint32_t dropped;
	struct mig_caps caps; /* as of when the files were read */
	uint64_t seen; /* of the names and times of the files that were read */
	char error[128];
};

/* Forgets and frees all. */
void cdi_done(struct cdi *cdi);
