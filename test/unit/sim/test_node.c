// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "sim/node/node.h"

#include <string.h>

#include "nvml/abi_clock.h"

static const char busy[] =
	"cycle: 60s\n"
	"gpus:\n"
	"  - {model: h100-sxm, count: 2}\n"
	"  - {model: h100-sxm, mig: [3g.40gb, 2g.20gb]}\n"
	"  - {model: rtx-4090}\n"
	"processes:\n"
	"  - {name: a, gpus: 0-1, memory: 20GiB, load: {gpu: {sine: [10, 90], period: 20s, jitter: 5}}, "
	"stagger: 3s}\n"
	"  - {name: b, gpus: 0-1, memory: {ramp: [1GiB, 9GiB], period: 5s}, every: 12s, for: 9s,\n"
	"     load: {gpu: {noise: [0, 60], period: 500ms}, decoder: 30}}\n"
	"  - {name: c, gpus: 2, instance: 0, memory: 30GiB, load: {gpu: 70}}\n"
	"  - {name: d, gpus: 2, instance: 1, count: 2, memory: 30GiB, load: {gpu: {saw: [0, 80], period: "
	"6s}}}\n"
	"counters:\n"
	"  - {kind: ecc_corrected, location: sram, gpus: 1, initial: 5, count: 2, at: 10s, every: 30s}\n";

static struct node *make(const char *text)
{
	struct scenario *scenario = NULL;
	struct scenario_error err = { "" };
	struct node *node = NULL;

	if (scenario_load_buffer("t", text, strlen(text), &scenario, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(node_new(scenario, &node), 0);
	return node;
}

/*
 * Sums of counters are sums over ticks, however long ago boot was and whatever happened at the seam of
 * cycles.
 */
static void test_totals_are_integrals(_unused_ void **state)
{
	_cleanup_(node_freep) struct node *node = make(busy);

	for (uint32_t i = 0; i < node->scenario->gpu_count; i++) {
		struct gpu *gpu = &node->gpus[i];
		struct totals sum = { 0 }, totals;

		for (int64_t time = 0; time < 200000; time += SCENARIO_TICK_MS) {
			gpu_seek(gpu, time);
			gpu_totals(gpu, time, &totals);
			assert_memory_equal(&sum, &totals, sizeof(sum));
			for (int64_t ms = 0; ms < SCENARIO_TICK_MS; ms++) {
				const struct tick *now = gpu_now(gpu);

				sum.energy_uj += now->power_mw;
				for (enum traffic t = 0; t < TRAFFIC_COUNT; t++)
					sum.traffic[t] += now->traffic[t];
				for (enum engine e = 0; e < ENGINE_COUNT; e++)
					sum.load[e] += now->load[e];
				sum.power_capped_ms += now->capped;
				sum.thermal_ms += now->hot;
			}
		}
		assert_true(sum.energy_uj > 0);
	}
}

/* Seeking lands where stepping does. */
static void test_seek_equals_step(_unused_ void **state)
{
	_cleanup_(node_freep) struct node *stepped = make(busy), *jumped = make(busy);
	uint64_t seed = 1;

	for (int round = 0; round < 60; round++) {
		int64_t time = mix32(seed++) % 900000;

		for (uint32_t i = 0; i < stepped->scenario->gpu_count; i++) {
			struct gpu *a = &stepped->gpus[i], *b = &jumped->gpus[i];
			struct totals ta, tb;

			a->tick = -1;
			for (int64_t at = MAX(time - 20000, INT64_C(0)); at < time; at += SCENARIO_TICK_MS)
				gpu_seek(a, at);
			gpu_seek(a, time);
			b->tick = -1;
			gpu_seek(b, time);
			gpu_totals(a, time, &ta);
			gpu_totals(b, time, &tb);
			assert_memory_equal(&ta, &tb, sizeof(ta));
			assert_memory_equal(gpu_now(a), gpu_now(b), sizeof(struct tick));
			for (int64_t back = 1; back <= MIN(a->tick, (int64_t)SAMPLES_KEPT); back++)
				assert_memory_equal(&a->ticks[(a->tick - back) % TICKS_KEPT],
						    &b->ticks[(b->tick - back) % TICKS_KEPT],
						    sizeof(struct tick));
			gpu_totals_at(b, time / 2, &tb);
			gpu_totals(b, time, &tb);
			assert_memory_equal(&ta, &tb, sizeof(ta));
		}
	}
}

/* A long time after boot, too. */
static void test_years(_unused_ void **state)
{
	_cleanup_(node_freep) struct node *node = make(busy);
	const int64_t year_ms = INT64_C(365) * 86400 * 1000;
	struct gpu *gpu = &node->gpus[0];
	struct totals before, after;

	gpu_seek(gpu, 5 * year_ms);
	gpu_totals(gpu, 5 * year_ms, &before);
	gpu_seek(gpu, 5 * year_ms + 60000);
	gpu_totals(gpu, 5 * year_ms + 60000, &after);
	assert_int_equal(after.energy_uj - before.energy_uj, gpu->cycle_totals.energy_uj);
	assert_int_equal(after.load[ENGINE_GPU] - before.load[ENGINE_GPU],
			 gpu->cycle_totals.load[ENGINE_GPU]);
}

static void test_board_is_plausible(_unused_ void **state)
{
	_cleanup_(node_freep) struct node *node = make(busy);
	bool capped = false, idle = false;

	for (uint32_t i = 0; i < node->scenario->gpu_count; i++) {
		struct gpu *gpu = &node->gpus[i];
		const struct model *model = &gpu->what->model;
		int32_t before = INT32_MIN;

		for (int64_t time = 0; time < 120000; time += SCENARIO_TICK_MS) {
			const struct tick *now;

			gpu_seek(gpu, time);
			now = gpu_now(gpu);
			assert_in_range(now->power_mw, model->idle_mw, model->limit_mw);
			assert_in_range(now->temperature_mc, model->ambient_c * 1000, model->hot_c * 1000);
			/* A heat sink does not jump. */
			if (before != INT32_MIN)
				assert_in_range(now->temperature_mc - before + 1000, 0, 2000);
			before = now->temperature_mc;
			assert_in_range(now->load[ENGINE_GPU], 0, 100);
			assert_in_range(now->sm_mhz, model->sm_idle_mhz, model->sm_mhz);
			assert_int_equal(now->capped,
					 !!(now->reasons & NVML_CLOCKS_EVENT_REASON_SW_POWER_CAP));
			if (now->capped)
				assert_int_equal(now->power_mw, model->limit_mw);
			if (now->reasons & NVML_CLOCKS_EVENT_REASON_GPU_IDLE)
				assert_int_equal(now->power_mw, model->idle_mw);
			capped |= now->capped;
			idle |= now->reasons & NVML_CLOCKS_EVENT_REASON_GPU_IDLE;
			assert_true(now->memory_mib <= model->memory_mib - model->reserved_mib);
		}
	}
	assert_true(capped);
	assert_true(idle);
}

static void test_processes_share(_unused_ void **state)
{
	_cleanup_(node_freep) struct node *node = make(busy);

	for (uint32_t i = 0; i < node->scenario->gpu_count; i++) {
		struct gpu *gpu = &node->gpus[i];

		for (int64_t time = 0; time < 60000; time += SCENARIO_TICK_MS) {
			uint32_t sum = 0, memory = 0;

			gpu_seek(gpu, time);
			for (uint32_t slot = 0; slot < gpu->slot_count; slot++) {
				sum += gpu->slots_now[slot].load[ENGINE_GPU];
				memory += gpu->slots_now[slot].memory_mib;
			}
			assert_int_equal(memory, gpu_now(gpu)->memory_mib);
			if (gpu->what->mig)
				assert_int_equal((gpu->instance_load[0][ENGINE_GPU] * 3 +
						  gpu->instance_load[1][ENGINE_GPU] * 2) /
							 7,
						 gpu_now(gpu)->load[ENGINE_GPU]);
			else
				assert_int_equal(sum, gpu_now(gpu)->load[ENGINE_GPU]);
		}
	}
}

/* Process b of GPU 0 runs for 9 of 12 seconds, under another PID each time. */
static void test_processes_come_and_go(_unused_ void **state)
{
	_cleanup_(node_freep) struct node *node = make(busy);
	struct gpu *gpu = &node->gpus[0];
	uint32_t pids[5] = { 0 };
	unsigned runs = 0;
	bool was = false;

	for (int64_t time = 0; time < 60000; time += SCENARIO_TICK_MS) {
		const struct slot_now *now = &gpu->slots_now[1];

		gpu_seek(gpu, time);
		assert_int_equal(now->running, time % 12000 < 9000);
		if (now->running && !was)
			pids[runs++] = now->pid;
		if (now->running)
			assert_int_equal(now->pid, pids[runs - 1]);
		was = now->running;
	}
	assert_int_equal(runs, 5);
	for (unsigned i = 1; i < runs; i++)
		assert_int_not_equal(pids[i], pids[i - 1]);
}

static void test_counters(_unused_ void **state)
{
	_cleanup_(node_freep) struct node *node = make(busy);
	const struct gpu *gpu = &node->gpus[1];

	assert_int_equal(gpu_count(gpu, COUNTER_ECC_CORRECTED, 9999), 5);
	assert_int_equal(gpu_count(gpu, COUNTER_ECC_CORRECTED, 10000), 7);
	assert_int_equal(gpu_count(gpu, COUNTER_ECC_CORRECTED, 70000), 11);
	assert_int_equal(gpu_count_at(gpu, COUNTER_ECC_CORRECTED, 0, 70000), 0);
	assert_int_equal(gpu_count_since(gpu, COUNTER_ECC_CORRECTED, 7, 10000, 70000), 4);
	assert_int_equal(gpu_count(&node->gpus[0], COUNTER_ECC_CORRECTED, 70000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_totals_are_integrals),
		cmocka_unit_test(test_seek_equals_step),
		cmocka_unit_test(test_years),
		cmocka_unit_test(test_board_is_plausible),
		cmocka_unit_test(test_processes_share),
		cmocka_unit_test(test_processes_come_and_go),
		cmocka_unit_test(test_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
