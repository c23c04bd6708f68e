// SPDX-License-Identifier: Apache-2.0
/* What is said of devices' health, for this folder only. */
#pragma once

#include "model/health.h"

/* What one teller says. */
struct health_table {
	struct device_health *rows; /* NULL: nothing */
	uint32_t n;
};

struct model;
/* Finds what is known of each device now. */
void health_resolve(struct model *model);
void health_done(struct model *model);
