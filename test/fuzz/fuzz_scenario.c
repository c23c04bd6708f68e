// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "sim/node/node.h"

/* What can be read can be simulated: at the begin, somewhere, and a long time after boot. */
static void simulate(struct scenario *scenario)
{
	static const int64_t times[] = { 0, 123456, INT64_C(1) << 40 };
	_cleanup_(node_freep) struct node *node = NULL;

	/* A cycle of an hour costs much and shows no more than one of half a minute. */
	scenario->cycle_ms = MIN(scenario->cycle_ms, INT64_C(30000));
	if (node_new(scenario, &node) < 0)
		return;
	for (uint32_t i = 0; i < scenario->gpu_count; i++) {
		const struct scenario_gpu *what = &scenario->gpus[i];
		uint64_t energy = 0;

		for (size_t t = 0; t < ARRAY_SIZE(times); t++) {
			const struct tick *now;
			struct totals totals;

			gpu_seek(&node->gpus[i], times[t]);
			gpu_totals(&node->gpus[i], times[t], &totals);
			now = gpu_now(&node->gpus[i]);
			if (totals.energy_uj < energy || now->power_mw > what->model.limit_mw ||
			    now->load[ENGINE_GPU] > 100 || now->memory_mib > what->model.memory_mib)
				abort();
			energy = totals.energy_uj;
			gpu_count(&node->gpus[i], COUNTER_ECC_CORRECTED, times[t]);
		}
	}
}

int fuzz_one(const uint8_t *data, size_t size)
{
	struct scenario *scenario = NULL;
	struct scenario_error err = { "" };
	int r = scenario_load_buffer("fuzz", data, size, &scenario, &err);

	if (r == 0)
		simulate(scenario);
	else if (scenario || err.message[0] == '\0')
		abort();
	return 0;
}
