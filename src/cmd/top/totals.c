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
		add_up(&totals->used, e, GPU_MEMORY_USED);
		add_up(&totals->memory, e, GPU_MEMORY_TOTAL);
		add_up(&totals->power, e, GPU_POWER);
		add_up(&totals->limit, e, GPU_POWER_LIMIT_ENFORCED);
		add_up(&totals->heat, e, GPU_TEMPERATURE);
	}
}
