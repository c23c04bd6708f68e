// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "view/shown.h"
#include "view/table/parts.h"

static void _printf_(2, 3) say(struct gpu_warning *warning, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(warning->text, sizeof(warning->text), fmt, ap);
	va_end(ap);
}

static bool recovery(const struct entity *gpu, struct gpu_warning *warning)
{
	/* nvmlDeviceGpuRecoveryAction_t, see gpu_recovery_action in model/metrics.def. */
	static const struct {
		const char *text, *state;
	} actions[] = { { NULL, NULL },
			{ "reset the GPU", "RESET" },
			{ "reboot the node", "REBOOT" },
			{ "drain peer-to-peer traffic", "DRAIN" },
			{ "drain the GPU and reset it", "RESET" },
			{ "reset the bus", "RESET" } };
	double action;

	if (!entity_number(gpu, GPU_RECOVERY_ACTION, &action) || action < 1)
		return false;
	warning->severe = true;
	warning->state = action < (double)ARRAY_SIZE(actions) ? actions[(unsigned)action].state : "RECOVER";
	if (action < (double)ARRAY_SIZE(actions))
		say(warning, "the driver asks for this: %s", actions[(unsigned)action].text);
	else
		say(warning, "the driver asks for recovery action %.0f", action);
	return true;
}

static bool is_set(const struct entity *gpu, enum gpu_metric row)
{
	double v;

	return entity_number(gpu, row, &v) && v >= 1;
}

static bool rows_failed(const struct entity *gpu, struct gpu_warning *warning)
{
	warning->severe = true;
	warning->state = "DEGRADED";
	say(warning, "a row of its memory could not be remapped: have the board examined");
	return is_set(gpu, GPU_REMAPPED_ROWS_FAILED);
}

static bool rows_pending(const struct entity *gpu, struct gpu_warning *warning)
{
	warning->state = "RESET";
	say(warning, "rows of its memory wait to be remapped: reset the GPU when it is idle");
	return is_set(gpu, GPU_REMAPPED_ROWS_PENDING);
}

static bool pages_pending(const struct entity *gpu, struct gpu_warning *warning)
{
	warning->state = "RESET";
	say(warning, "pages of its memory wait to be retired: reset the GPU when it is idle");
	return is_set(gpu, GPU_RETIRED_PAGES_PENDING);
}

static bool links_down(const struct entity *gpu, struct gpu_warning *warning)
{
	double active, total;

	if (!entity_number(gpu, GPU_NVLINK_LINKS_ACTIVE, &active) ||
	    !entity_number(gpu, GPU_NVLINK_LINKS, &total) || active >= total)
		return false;
	warning->state = "DEGRADED";
	say(warning, "%.0f of its %.0f NVLinks are active: check the fabric manager, NVLink bridges and XIDs",
	    active, total);
	return true;
}

static bool too_hot(const struct entity *gpu, struct gpu_warning *warning)
{
	double celsius, slowdown;
	bool known = entity_number(gpu, GPU_TEMPERATURE, &celsius);

	warning->severe = true;
	warning->state = "HOT";
	if (known && entity_number(gpu, GPU_TEMPERATURE_LIMIT_SLOWDOWN, &slowdown) && celsius >= slowdown) {
		say(warning,
		    "%.0f \u00b0C, at or above the %.0f \u00b0C from which it slows down: look at its "
		    "cooling",
		    celsius, slowdown);
		return true;
	}
	if (!is_set(gpu, GPU_EVENT_REASON_HW_THERMAL_SLOWDOWN) &&
	    !is_set(gpu, GPU_EVENT_REASON_SW_THERMAL_SLOWDOWN))
		return false;
	if (known)
		say(warning, "slowed down by its heat, at %.0f \u00b0C: look at its cooling", celsius);
	else
		say(warning, "slowed down by its heat: look at its cooling");
	return true;
}

bool gpu_warning(const struct entity *gpu, unsigned i, struct gpu_warning *ret_warning)
{
	static bool (*const checks[GPU_WARNINGS])(const struct entity *gpu, struct gpu_warning *warning) = {
		[GPU_WARNING_RECOVERY] = recovery,
		[GPU_WARNING_ROWS_FAILED] = rows_failed,
		[GPU_WARNING_HEAT] = too_hot,
		[GPU_WARNING_ROWS_PENDING] = rows_pending,
		[GPU_WARNING_PAGES_PENDING] = pages_pending,
		[GPU_WARNING_LINKS] = links_down,
	};

	*ret_warning = (struct gpu_warning){ 0 };
	/* A GPU that is gone is reported as such. */
	return gpu->present && checks[i](gpu, ret_warning);
}

void gpu_state(const struct snapshot *s, const struct entity *e, struct gpu_state *ret_state)
{
	double age = entity_age_seconds(s, e);
	struct gpu_warning warning;

	*ret_state = (struct gpu_state){ .word = "ok", .severity = GPU_WORKS };
	if (!e->present) {
		*ret_state = (struct gpu_state){ .word = "LOST", .severity = GPU_UNUSABLE };
		return;
	}
	if (e->stale) {
		ret_state->severity = GPU_DOUBTFUL;
		if (snapshot_driver(s)->state == READING_RELEASED)
			snprintf(ret_state->word, sizeof(ret_state->word), "RELEASED");
		else if (age >= 0)
			snprintf(ret_state->word, sizeof(ret_state->word), "stale %.0f s", age);
		else
			snprintf(ret_state->word, sizeof(ret_state->word), "stale");
		return;
	}
	for (unsigned i = 0; i < GPU_WARNINGS; i++) {
		if (!gpu_warning(e, i, &warning))
			continue;
		snprintf(ret_state->word, sizeof(ret_state->word), "%s", warning.state);
		ret_state->severity = warning.severe ? GPU_UNUSABLE : GPU_DOUBTFUL;
		return;
	}
}

bool gpu_throttled_by(const struct entity *e, struct strbuf *out)
{
	bool known = false, idle_only = true, any = false;
	double v;

	for (unsigned row = GPU_EVENT_REASON_GPU_IDLE;
	     row < GPU_METRICS &&
	     STRV_EQ(gpu_metrics[row].family, gpu_metrics[GPU_EVENT_REASON_GPU_IDLE].family);
	     row++) {
		if (!entity_number(e, row, &v))
			continue;
		known = true;
		if (v == 0)
			continue;
		idle_only = idle_only && row == GPU_EVENT_REASON_GPU_IDLE;
		strbuf_adds(out, any ? ", " : "");
		strbuf_adds(out, gpu_metrics[row].value);
		any = true;
	}
	if (known && !any)
		strbuf_adds(out, "none");
	return any && !idle_only;
}
