// SPDX-License-Identifier: Apache-2.0
#include "nvml/column.h"

#include <limits.h>

/* The text between the brackets of a row. */
#define MEMBERS(...) __VA_ARGS__

const struct nvml_column nvml_columns[GPU_METRICS] = {
#define GPU_METRIC_NVML(id_, count_, nvml_, ...) [GPU_##id_] = { MEMBERS nvml_ },
#include "model/metrics.def"
};
