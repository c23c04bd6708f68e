// SPDX-License-Identifier: Apache-2.0
/*
 * The numbers of GET /container/metrics (contract.def), by whatever name a DCGM exporter prints them.
 */
#pragma once

#include <stddef.h>

#include "model/metric.h"

enum contract_metric {
#define CONTRACT_METRIC(member_, name_, also_) CONTRACT_##member_,
#include "model/contract.def"
	CONTRACT_METRICS,
};

struct contract_row {
	const char *member; /* of JSON */
	const char *name, *also; /* DCGM's names, in the page's unit; `also` may be NULL */
};
extern const struct contract_row contract_rows[CONTRACT_METRICS];

/*
 * Finds the number that DCGM exporters of any generation print as @name (@length bytes, which need no end).
 * What they print times *ret_factor is in the page's unit: FB_USED_BYTES times 1/1048576 is MiB. -ENOENT: the
 * page does not have it.
 *
 * DCGM_FI_DEV_GPU_UTIL_RATIO is taken for a ratio, as from release 4.7 on. 4.6 printed a percentage by that
 * name, as an integer, where later releases print decimals: who has the text can tell them apart.
 */
int contract_find(const char *name, size_t length, enum contract_metric *ret_metric, double *ret_factor);

/* The row of metrics.def that the number is read from, scaled by its `dcgm.scale`; NULL for xid_errors. */
const struct metric *contract_source(enum contract_metric metric);
