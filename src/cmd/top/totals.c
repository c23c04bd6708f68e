// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/totals.h"

#include <stdio.h>

#include "view/shown.h"

void totals_init(struct gpu_totals *totals)
{
	*totals = (struct gpu_totals){ .worst = GPU_WORKS, .word = "ok" };
}

static void add_up(struct total *total, const struct entity *e, enum gpu_metric row)
{
	double v;

	if (!entity_number(e, row, &v))
		return;
	total->most = total->n > 0 ? MAX(total->most, v) : v;
	total->sum += v;
	total->n++;
}

/* Of two that are shown as one: of the same GPUs, those that have both. */
static void add_both(struct total *part, struct total *whole, const struct entity *e, enum gpu_metric row,
		     enum gpu_metric of)
{
	double v;

	if (!entity_number(e, row, &v) || !entity_number(e, of, &v))
		return;
	add_up(part, e, row);
	add_up(whole, e, of);
}

static void add_state(struct gpu_totals *totals, const struct snapshot *s, const struct entity *e)
{
	struct gpu_state state;

	gpu_state(s, e, &state);
	if (state.severity <= totals->worst)
		return;
	totals->worst = state.severity;
	snprintf(totals->word, sizeof(totals->word), "%s", state.word);
}

void totals_add(struct gpu_totals *totals, const struct snapshot *s)
{
	totals->processes += s->processes_n;
	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *e = &s->entities[i];

		if (entity_is_mig(e))
			continue;
		totals->gpus++;
		add_state(totals, s, e);
		if (!e->present || e->stale)
			continue;
		add_up(&totals->load, e, GPU_UTILIZATION_GPU);
		add_both(&totals->used, &totals->memory, e, GPU_MEMORY_USED, GPU_MEMORY_TOTAL);
		add_up(&totals->power, e, GPU_POWER);
		add_both(&totals->limited, &totals->limit, e, GPU_POWER, GPU_POWER_LIMIT_ENFORCED);
		add_up(&totals->heat, e, GPU_TEMPERATURE);
	}
}
