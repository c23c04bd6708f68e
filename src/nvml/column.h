// SPDX-License-Identifier: Apache-2.0
/*
 * How NVML delivers a metric of model/metrics.def, if by one of its generic calls: the third argument of
 * GPU_METRIC_NVML. The model does not use it.
 */
#pragma once

#include "model/metric.h"

struct nvml_column {
	unsigned short field; /* field id, 0 none */
	unsigned short gpm; /* GPM metric id, 0 none */
	unsigned short since; /* before this driver the field's number meant something else: not asked */
	/* scopeId of a field of one slot; a field of more is asked for each, with scopeId = its number */
	unsigned scope;
};

/* By row. All zero: a function in src/nvml reads it. */
extern const struct nvml_column nvml_columns[GPU_METRICS];
