// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/private.h"

struct gpu_times *gpu_times_new(const struct gpu_time *rows, uint32_t n)
{
	struct gpu_times *times = calloc(1, sizeof(*times) + n * sizeof(rows[0]));

	if (!times)
		return NULL;
	atomic_init(&times->refs, 1);
	times->n = n;
	if (n > 0)
		memcpy(times->rows, rows, n * sizeof(rows[0]));
	return times;
}

struct gpu_times *gpu_times_ref(struct gpu_times *times)
{
	if (times)
		atomic_fetch_add_explicit(&times->refs, 1, memory_order_relaxed);
	return times;
}

void gpu_times_unref(struct gpu_times *times)
{
	if (times && atomic_fetch_sub_explicit(&times->refs, 1, memory_order_acq_rel) == 1)
		free(times);
}

void model_set_gpu_times(struct model *model, struct gpu_times *times)
{
	gpu_times_unref(model->gpu_times);
	model->gpu_times = gpu_times_ref(times);
}

const char *gpu_time_state(const struct gpu_time *row)
{
	static const char *const names[CUPTI_STATES] = {
		[CUPTI_ON] = "on",
		[CUPTI_OVER] = "over",
		[CUPTI_SPENT] = "spent",
		[CUPTI_OTHER] = "other",
		[CUPTI_NO_LIBRARY] = "no_library",
		[CUPTI_REFUSED] = "refused",
	};

	return row->told && row->state < CUPTI_STATES ? names[row->state] : "";
}

double gpu_time_estimate_error(const struct gpu_time *row)
{
	if (row->estimated_seconds <= 0 || row->observed_seconds <= 0)
		return NAN;
	return fabs(row->estimated_seconds - row->busy_seconds) /
	       fmax(row->estimated_seconds, row->busy_seconds);
}
