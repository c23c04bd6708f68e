// SPDX-License-Identifier: Apache-2.0
#include "sim/node/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/node/match.h"

enum {
	FAKE_PID_BASE = 1 << 22, /* where the PIDs of real systems end */
	FAKE_PIDS_PER_SLOT = 64, /* different PIDs of the processes that follow one another in a slot */
	SETTLE_MS = 120 * 1000, /* after this time the earlier temperature has no effect */
	JUMP_TICKS = 256, /* beyond this it is cheaper to start from a checkpoint than to step */
};

/* The time in a slot's own terms: how long its process has been running, or will not run yet. */
static bool slot_running(const struct gpu *gpu, const struct slot *slot, int64_t time_ms, int64_t *ret_age_ms)
{
	const struct scenario_process *process = slot->process;
	int64_t cycle = gpu->scenario->cycle_ms, every = process->window.every_ms, shift;

	shift = process->stagger_ms * slot->number;
	if (every == 0) {
		*ret_age_ms = (time_ms + shift) % cycle;
		return true;
	}
	shift = (shift - process->window.at_ms) % every + every;
	*ret_age_ms = (time_ms + shift) % every;
	return *ret_age_ms < process->window.length_ms;
}

/* Which of the processes that come one after the other it is. */
static uint32_t slot_pid(const struct slot *slot, int64_t time_ms)
{
	const struct scenario_process *process = slot->process;
	int64_t every = process->window.every_ms, turn = 0;

	if (every > 0)
		turn = (time_ms + (process->stagger_ms * slot->number - process->window.at_ms) % every +
			every) /
		       every;
	switch (process->pid_source) {
	case PID_MATCH:
		return match_pid(process->match, slot->pid_index);
	case PID_SELF:
		return match_self();
	case PID_FIXED:
		return slot->pid_base + slot->pid_index +
		       process->count * SCENARIO_MAX_GPUS * (uint32_t)(turn % 16);
	case PID_FAKE:
		break;
	}
	return slot->pid_base + (uint32_t)(turn % FAKE_PIDS_PER_SLOT);
}

static uint8_t percent(float value)
{
	return (uint8_t)(CLAMP(value, 0.0f, 100.0f) + 0.5f);
}

/* What a slot wants, before there is a limit to what the GPU has. */
static void slot_demand(const struct gpu *gpu, const struct slot *slot, int64_t time_ms, struct slot_now *now)
{
	const struct scenario_process *process = slot->process;
	uint32_t salt = slot->number * 977 + gpu->index;
	int64_t age_ms;

	*now = (struct slot_now){ .running = slot_running(gpu, slot, time_ms, &age_ms) };
	if (!now->running)
		return;
	now->started_ms = time_ms - age_ms;
	for (enum engine engine = 0; engine < ENGINE_COUNT; engine++) {
		const struct curve *curve = &process->load[engine];

		if (curve->high == LOAD_FOLLOWS)
			now->load[engine] = (uint8_t)(now->load[ENGINE_GPU] * 45u / 100);
		else if (curve->high > 0)
			now->load[engine] = percent(curve_at(curve, age_ms, salt));
	}
	now->memory_mib = (uint32_t)MAX(curve_at(&process->memory, age_ms, salt), 0.0f);
}

/* Divides an engine among the processes; returns how much is used. */
static uint8_t share_out(struct slot_now *slots, const struct slot *what, uint32_t count, int32_t instance,
			 enum engine engine)
{
	uint32_t sum = 0, used = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (what[i].process->instance == instance)
			sum += slots[i].load[engine];
	}
	if (sum <= 100)
		return (uint8_t)sum;
	for (uint32_t i = 0; i < count; i++) {
		if (what[i].process->instance == instance)
			used += slots[i].load[engine] = (uint8_t)(slots[i].load[engine] * 100u / sum);
	}
	return (uint8_t)used;
}

static void share_memory(const struct gpu *gpu, struct slot_now *slots, int32_t instance, uint32_t capacity,
			 uint32_t *ret_used)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < gpu->slot_count; i++) {
		if (gpu->slots[i].process->instance != instance)
			continue;
		slots[i].memory_mib = MIN(slots[i].memory_mib, capacity - used);
		used += slots[i].memory_mib;
	}
	*ret_used = used;
}

/* Loads of all instances make that of the GPU, by their share of it. */
static void tick_of_instances(struct gpu *gpu, struct slot_now *slots, struct tick *tick)
{
	uint32_t sum[ENGINE_COUNT] = { 0 }, slices = MAX(gpu->what->model.mig_slices, 1u);

	tick->memory_mib = 0;
	for (uint32_t i = 0; i < gpu->what->instance_count; i++) {
		const struct scenario_instance *instance = &gpu->what->instances[i];

		for (enum engine engine = 0; engine < ENGINE_COUNT; engine++) {
			gpu->instance_load[i][engine] =
				share_out(slots, gpu->slots, gpu->slot_count, (int32_t)i, engine);
			sum[engine] += gpu->instance_load[i][engine] * instance->slices;
		}
		share_memory(gpu, slots, (int32_t)i, instance->memory_mib - instance->memory_mib / 100,
			     &gpu->instance_memory_mib[i]);
		tick->memory_mib += gpu->instance_memory_mib[i];
	}
	for (enum engine engine = 0; engine < ENGINE_COUNT; engine++)
		tick->load[engine] = (uint8_t)(sum[engine] / slices);
}

/* All of a tick: what processes do, and what the board makes of it. */
static void compute_tick(struct gpu *gpu, int64_t index, int32_t before_mc, struct slot_now *slots,
			 struct tick *tick)
{
	const struct model *model = &gpu->what->model;
	int64_t time_ms = index * SCENARIO_TICK_MS;

	for (uint32_t i = 0; i < gpu->slot_count; i++)
		slot_demand(gpu, &gpu->slots[i], time_ms, &slots[i]);
	if (gpu->what->mig) {
		tick_of_instances(gpu, slots, tick);
	} else {
		for (enum engine engine = 0; engine < ENGINE_COUNT; engine++)
			tick->load[engine] = share_out(slots, gpu->slots, gpu->slot_count, -1, engine);
		share_memory(gpu, slots, -1, model->memory_mib - model->reserved_mib, &tick->memory_mib);
	}
	physics_tick(gpu, time_ms, before_mc, tick);
}

static void add_tick(struct totals *totals, const struct tick *tick, int64_t ms)
{
	totals->energy_uj += (uint64_t)tick->power_mw * (uint64_t)ms;
	for (enum traffic i = 0; i < TRAFFIC_COUNT; i++)
		totals->traffic[i] += (uint64_t)tick->traffic[i] * (uint64_t)ms;
	for (enum engine engine = 0; engine < ENGINE_COUNT; engine++)
		totals->load[engine] += (uint64_t)tick->load[engine] * (uint64_t)ms;
	totals->power_capped_ms += tick->capped ? (uint64_t)ms : 0;
	totals->thermal_ms += tick->hot ? (uint64_t)ms : 0;
}

static void add_instances(struct instance_totals *totals, const struct gpu *gpu, int64_t ms)
{
	for (uint32_t i = 0; i < gpu->what->instance_count; i++) {
		for (enum engine engine = 0; engine < ENGINE_COUNT; engine++)
			totals[i].load[engine] += gpu->instance_load[i][engine] * (uint64_t)ms;
	}
}

/* total += factor * part; both structs are arrays of uint64_t. */
static void add_times(void *total, const void *part, size_t size, uint64_t factor)
{
	uint64_t *to = total;
	const uint64_t *from = part;

	for (size_t i = 0; i < size / sizeof(uint64_t); i++)
		to[i] += factor * from[i];
}
_Static_assert(sizeof(struct totals) == (1 + TRAFFIC_COUNT + ENGINE_COUNT + 2) * sizeof(uint64_t),
	       "no padding");
_Static_assert(sizeof(struct instance_totals) == ENGINE_COUNT * sizeof(uint64_t), "no padding");

/*
 * Temperature at the begin of a cycle: that at the end of the one before, which may be shorter than it
 * takes to settle.
 */
static int32_t settle(struct gpu *gpu, struct slot_now *slots)
{
	const int64_t ticks = SETTLE_MS / SCENARIO_TICK_MS, cycles = ticks / gpu->cycle_ticks + 1;
	int32_t mc = gpu->what->model.ambient_c * 1000;
	struct tick tick;

	for (int64_t i = cycles * gpu->cycle_ticks - ticks; i < cycles * gpu->cycle_ticks; i++) {
		compute_tick(gpu, i % gpu->cycle_ticks, mc, slots, &tick);
		mc = tick.temperature_mc;
	}
	return mc;
}

static void compute_cycle(struct gpu *gpu)
{
	struct slot_now *slots = gpu->slots_now;
	int32_t mc = settle(gpu, slots);
	struct tick tick;

	for (int64_t i = 0; i < gpu->cycle_ticks; i++) {
		if (i % gpu->block_ticks == 0) {
			int64_t block = i / gpu->block_ticks;

			gpu->checkpoints[block] = gpu->cycle_totals;
			gpu->checkpoint_mc[block] = mc;
			memcpy(&gpu->checkpoint_instances[block * gpu->what->instance_count],
			       gpu->cycle_instances,
			       gpu->what->instance_count * sizeof(gpu->cycle_instances[0]));
		}
		compute_tick(gpu, i, mc, slots, &tick);
		mc = tick.temperature_mc;
		add_tick(&gpu->cycle_totals, &tick, SCENARIO_TICK_MS);
		add_instances(gpu->cycle_instances, gpu, SCENARIO_TICK_MS);
	}
}

static void sum_period(struct gpu *gpu)
{
	for (uint32_t i = 0; i < gpu->slot_count; i++) {
		const struct slot_now *now = &gpu->slots_now[i];
		struct slot_sum *sum = &gpu->slot_sums[i];

		if (!now->running || now->pid == 0)
			continue;
		/* Its successor starts from zero. */
		if (sum->pid != now->pid)
			*sum = (struct slot_sum){ .pid = now->pid };
		for (enum engine engine = 0; engine < ENGINE_COUNT; engine++)
			sum->load[engine] = (uint16_t)(sum->load[engine] + now->load[engine]);
	}
}

/* A period ends with tick `index`. */
static void end_period(struct gpu *gpu, int64_t index)
{
	struct slot_period *periods = &gpu->periods[index / PERIOD_TICKS % PERIODS_KEPT * gpu->slot_count];

	for (uint32_t i = 0; i < gpu->slot_count; i++) {
		periods[i].pid = gpu->slot_sums[i].pid;
		for (enum engine engine = 0; engine < ENGINE_COUNT; engine++)
			periods[i].load[engine] =
				(uint8_t)((gpu->slot_sums[i].load[engine] + PERIOD_TICKS / 2) / PERIOD_TICKS);
		gpu->slot_sums[i] = (struct slot_sum){ 0 };
	}
}

static void enter_tick(struct gpu *gpu, int64_t index, int32_t before_mc)
{
	gpu->tick = index;
	compute_tick(gpu, index, before_mc, gpu->slots_now, &gpu->ticks[index % TICKS_KEPT]);
	for (uint32_t i = 0; i < gpu->slot_count; i++) {
		if (gpu->slots_now[i].running)
			gpu->slots_now[i].pid = slot_pid(&gpu->slots[i], index * SCENARIO_TICK_MS);
	}
}

/*
 * Ends the current tick and begins the next. Each cycle begins with the same temperature: the effect of the
 * one before is tiny, but stepping and jumping must give equal results.
 */
static void step(struct gpu *gpu)
{
	bool seam = (gpu->tick + 1) % gpu->cycle_ticks == 0;
	int32_t mc = seam ? gpu->checkpoint_mc[0] : gpu_now(gpu)->temperature_mc;

	add_tick(&gpu->totals, gpu_now(gpu), SCENARIO_TICK_MS);
	add_instances(gpu->instances, gpu, SCENARIO_TICK_MS);
	sum_period(gpu);
	if (gpu->tick % PERIOD_TICKS == PERIOD_TICKS - 1)
		end_period(gpu, gpu->tick);
	enter_tick(gpu, gpu->tick + 1, mc);
}

/* To the begin of the block that tick `index` lies in. */
static void start_block(struct gpu *gpu, int64_t index)
{
	int64_t cycles = index / gpu->cycle_ticks, block = index % gpu->cycle_ticks / gpu->block_ticks;
	uint32_t instances = gpu->what->instance_count;

	gpu->totals = gpu->checkpoints[block];
	add_times(&gpu->totals, &gpu->cycle_totals, sizeof(gpu->totals), (uint64_t)cycles);
	if (instances > 0) {
		size_t size = instances * sizeof(gpu->instances[0]);

		memcpy(gpu->instances, &gpu->checkpoint_instances[block * instances], size);
		add_times(gpu->instances, gpu->cycle_instances, size, (uint64_t)cycles);
	}
	if (gpu->slot_count > 0) {
		memset(gpu->slot_sums, 0, gpu->slot_count * sizeof(gpu->slot_sums[0]));
		memset(gpu->periods, 0, PERIODS_KEPT * gpu->slot_count * sizeof(gpu->periods[0]));
	}
	enter_tick(gpu, cycles * gpu->cycle_ticks + block * gpu->block_ticks, gpu->checkpoint_mc[block]);
}

void gpu_seek(struct gpu *gpu, int64_t time_ms)
{
	int64_t target = time_ms / SCENARIO_TICK_MS;

	if (gpu->tick < 0 || target < gpu->tick || target > gpu->tick + JUMP_TICKS)
		start_block(gpu, MAX(target - TICKS_KEPT, INT64_C(0)));
	while (gpu->tick < target)
		step(gpu);
}

void gpu_totals(const struct gpu *gpu, int64_t time_ms, struct totals *ret_totals)
{
	*ret_totals = gpu->totals;
	add_tick(ret_totals, gpu_now(gpu), time_ms - gpu->tick * SCENARIO_TICK_MS);
}

void gpu_instance_totals(const struct gpu *gpu, uint32_t instance, int64_t time_ms,
			 struct instance_totals *ret_totals)
{
	uint64_t ms = (uint64_t)(time_ms - gpu->tick * SCENARIO_TICK_MS);

	*ret_totals = gpu->instances[instance];
	for (enum engine engine = 0; engine < ENGINE_COUNT; engine++)
		ret_totals->load[engine] += gpu->instance_load[instance][engine] * ms;
}

void gpu_totals_at(struct gpu *gpu, int64_t time_ms, struct totals *ret_totals)
{
	int64_t back_ms = gpu->tick * SCENARIO_TICK_MS;

	gpu_seek(gpu, time_ms);
	gpu_totals(gpu, time_ms, ret_totals);
	if (back_ms >= 0)
		gpu_seek(gpu, back_ms);
}

uint64_t gpu_count_at(const struct gpu *gpu, enum counter_kind kind, uint32_t where, int64_t time_ms)
{
	const struct scenario *scenario = gpu->scenario;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < scenario->counter_count; i++) {
		const struct scenario_counter *counter = &scenario->counters[i];

		if (counter->kind == kind && counter->where == where && counter->gpus >> gpu->index & 1)
			sum += counter->initial +
			       counter->count * (uint64_t)window_openings(&counter->window, time_ms);
	}
	return sum;
}

uint64_t gpu_count_since(const struct gpu *gpu, enum counter_kind kind, uint32_t where, int64_t from_ms,
			 int64_t time_ms)
{
	return gpu_count_at(gpu, kind, where, time_ms) - gpu_count_at(gpu, kind, where, from_ms);
}

uint64_t gpu_count(const struct gpu *gpu, enum counter_kind kind, int64_t time_ms)
{
	const struct scenario *scenario = gpu->scenario;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < scenario->counter_count; i++) {
		const struct scenario_counter *counter = &scenario->counters[i];

		if (counter->kind == kind && counter->gpus >> gpu->index & 1)
			sum += counter->initial +
			       counter->count * (uint64_t)window_openings(&counter->window, time_ms);
	}
	return sum;
}

static void add_slot(struct node *node, struct gpu *gpu, uint32_t entry, uint32_t number, uint32_t pid_index)
{
	const struct scenario_process *process = &node->scenario->processes[entry];
	struct slot *slot = &gpu->slots[gpu->slot_count++];

	*slot = (struct slot){ .process = process, .number = number, .pid_index = pid_index };
	slot->pid_base =
		process->pid_source == PID_FIXED ?
			process->pid :
			FAKE_PID_BASE + (entry * SCENARIO_MAX_SLOTS + pid_index) * FAKE_PIDS_PER_SLOT;
}

/* The slots of a GPU, in the order of the entries. */
static void add_slots(struct node *node, struct gpu *gpu)
{
	const struct scenario *scenario = node->scenario;

	gpu->slots = &node->slots[node->slot_count];
	for (uint32_t entry = 0; entry < scenario->process_count; entry++) {
		const struct scenario_process *process = &scenario->processes[entry];
		uint32_t before =
			(uint32_t)__builtin_popcount(process->gpus & ((UINT32_C(1) << gpu->index) - 1));

		if (!(process->gpus >> gpu->index & 1))
			continue;
		for (uint32_t i = 0; i < process->count; i++) {
			uint32_t number = before * process->count + i;

			add_slot(node, gpu, entry, number, process->shared_pid ? i : number);
		}
	}
	node->slot_count += gpu->slot_count;
}

static int gpu_init(struct node *node, struct gpu *gpu, uint32_t index)
{
	uint32_t instances;

	gpu->scenario = node->scenario;
	gpu->what = &node->scenario->gpus[index];
	gpu->index = index;
	gpu->tick = -1;
	instances = gpu->what->instance_count;
	add_slots(node, gpu);
	gpu->cycle_ticks = node->scenario->cycle_ms / SCENARIO_TICK_MS;
	gpu->block_ticks = (gpu->cycle_ticks + CHECKPOINTS - 1) / CHECKPOINTS;
	gpu->checkpoints = calloc(CHECKPOINTS, sizeof(gpu->checkpoints[0]));
	gpu->checkpoint_mc = calloc(CHECKPOINTS, sizeof(gpu->checkpoint_mc[0]));
	gpu->checkpoint_instances =
		calloc(CHECKPOINTS * (instances + 1), sizeof(gpu->checkpoint_instances[0]));
	gpu->slots_now = calloc(gpu->slot_count + 1, sizeof(gpu->slots_now[0]));
	gpu->slot_sums = calloc(gpu->slot_count + 1, sizeof(gpu->slot_sums[0]));
	gpu->periods = calloc(PERIODS_KEPT * (gpu->slot_count + 1), sizeof(gpu->periods[0]));
	if (!gpu->checkpoints || !gpu->checkpoint_mc || !gpu->checkpoint_instances || !gpu->slots_now ||
	    !gpu->slot_sums || !gpu->periods)
		return -ENOMEM;
	compute_cycle(gpu);
	return 0;
}

void node_free(struct node *node)
{
	if (!node)
		return;
	for (uint32_t i = 0; i < SCENARIO_MAX_GPUS; i++) {
		free(node->gpus[i].checkpoints);
		free(node->gpus[i].checkpoint_mc);
		free(node->gpus[i].checkpoint_instances);
		free(node->gpus[i].slots_now);
		free(node->gpus[i].slot_sums);
		free(node->gpus[i].periods);
	}
	free(node->slots);
	free(node->scenario);
	free(node);
}

int node_new(struct scenario *scenario, struct node **ret_node)
{
	struct node *node = calloc(1, sizeof(*node));
	int r = 0;

	if (!node) {
		free(scenario);
		return -ENOMEM;
	}
	node->scenario = scenario;
	node->slots = calloc(SCENARIO_MAX_SLOTS, sizeof(node->slots[0]));
	if (!node->slots)
		r = -ENOMEM;
	for (uint32_t i = 0; i < scenario->gpu_count && r == 0; i++)
		r = gpu_init(node, &node->gpus[i], i);
	if (r < 0) {
		node_free(node);
		return r;
	}
	*ret_node = node;
	return 0;
}
