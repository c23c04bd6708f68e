// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_time.h"

#include <math.h>

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
