// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "view/table_parts.h"

static bool recovery(const struct entity *gpu, char *text, size_t size)
{
	/* nvmlDeviceGpuRecoveryAction_t, see gpu_recovery_action in model/metrics.def. */
	static const char *const actions[] = { NULL,
					       "reset the GPU",
					       "reboot the node",
					       "drain peer-to-peer traffic",
					       "drain the GPU and reset it",
					       "reset the bus" };
	double action;

	if (!entity_number(gpu, GPU_RECOVERY_ACTION, &action) || action < 1)
		return false;
	if (action < (double)ARRAY_SIZE(actions))
		snprintf(text, size, "the driver asks for this: %s", actions[(unsigned)action]);
	else
		snprintf(text, size, "the driver asks for recovery action %.0f", action);
	return true;
}

static bool is_set(const struct entity *gpu, enum gpu_metric row)
{
	double v;

	return entity_number(gpu, row, &v) && v >= 1;
}

static bool rows_failed(const struct entity *gpu, char *text, size_t size)
{
	snprintf(text, size, "a row of its memory could not be remapped: have the board examined");
	return is_set(gpu, GPU_REMAPPED_ROWS_FAILED);
}

static bool rows_pending(const struct entity *gpu, char *text, size_t size)
{
	snprintf(text, size, "rows of its memory wait to be remapped: reset the GPU when it is idle");
	return is_set(gpu, GPU_REMAPPED_ROWS_PENDING);
}

static bool pages_pending(const struct entity *gpu, char *text, size_t size)
{
	snprintf(text, size, "pages of its memory wait to be retired: reset the GPU when it is idle");
	return is_set(gpu, GPU_RETIRED_PAGES_PENDING);
}

static bool links_down(const struct entity *gpu, char *text, size_t size)
{
	double active, total;

	if (!entity_number(gpu, GPU_NVLINK_LINKS_ACTIVE, &active) ||
	    !entity_number(gpu, GPU_NVLINK_LINKS, &total) || active >= total)
		return false;
	snprintf(text, size,
		 "%.0f of its %.0f NVLinks are active: check the fabric manager, NVLink bridges and XIDs",
		 active, total);
	return true;
}

static bool too_hot(const struct entity *gpu, char *text, size_t size)
{
	double celsius, slowdown;

	if (!entity_number(gpu, GPU_TEMPERATURE, &celsius) ||
	    !entity_number(gpu, GPU_TEMPERATURE_LIMIT_SLOWDOWN, &slowdown) || celsius < slowdown)
		return false;
	snprintf(text, size,
		 "%.0f \u00b0C, at or above the %.0f \u00b0C from which it slows down: look at its cooling",
		 celsius, slowdown);
	return true;
}

bool gpu_warning(const struct entity *gpu, unsigned i, char *ret_text, size_t size)
{
	static bool (*const checks[])(const struct entity *gpu, char *text, size_t size) = {
		recovery, rows_failed, rows_pending, pages_pending, links_down, too_hot,
	};

	_Static_assert(ARRAY_SIZE(checks) == GPU_WARNINGS, "the header says how many");
	/* A GPU that is gone is reported as such. */
	return gpu->present && checks[i](gpu, ret_text, size);
}
