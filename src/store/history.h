// SPDX-License-Identifier: Apache-2.0
/* Metrics of GPUs, and of the machine, over a time, from a store: what a chart needs. */
#pragma once

#include "store/walk.h"

enum {
	HISTORY_POINTS_MAX = 3600, /* of a series */
	HISTORY_CELLS_MAX = 50000, /* points of all series */
	HISTORY_METRICS_OF_QUERY = 6,
	HISTORY_GPU_ALL = -1,
};

struct history_query {
	uint32_t metrics[HISTORY_METRICS_OF_QUERY]; /* metric_code() */
	uint32_t metrics_n;
	int32_t gpu; /* its index, or HISTORY_GPU_ALL */
	int64_t since_ns, until_ns, step_ns; /* of the wall clock */
};

/* Of all snapshots between a point's time and the next one's. */
struct history_point {
	double last, min, max;
	bool known; /* else none has it */
};

struct history_series {
	uint32_t metric; /* metric_code() */
	char uuid[96]; /* of a GPU */
	uint32_t index, gi, ci; /* UINT32_MAX: the whole GPU */
	char device[HOST_DEVICE_NAME]; /* a disk or network interface of the machine */
	uint16_t slot; /* of the metric, from 0 */
	bool estimated;
	struct history_point *points;
};

struct history {
	uint32_t tier;
	int64_t first_ns, step_ns;
	uint32_t points;
	int64_t recorded_first_ns, recorded_last_ns; /* of the whole store */
	struct history_series *series;
	uint32_t series_n;
};

/* -ENOENT: nothing is recorded; -EINVAL: @query; -E2BIG: beyond the limits; -errno of the store. */
int history_read(struct store_reader *reader, const struct history_query *query, struct history *ret_history);
void history_done(struct history *history);
