// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_time.h"

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
