// SPDX-License-Identifier: Apache-2.0
/* What all GPUs of one or several machines do together. */
#pragma once

#include "model/snapshot.h"
#include "view/table/parts.h"

/* A figure over the GPUs that have it. */
struct total {
	double sum, most;
	unsigned n;
};

struct gpu_totals {
	struct total load, power, heat;
	struct total used, memory; /* of GPUs that have both */
	struct total limited, limit; /* power and its limit, likewise */
	unsigned gpus, processes;
	enum gpu_severity worst;
	char word[24]; /* of the worst state; "ok" */
};

void totals_init(struct gpu_totals *totals);
void totals_add(struct gpu_totals *totals, const struct snapshot *s);
