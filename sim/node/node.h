// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/macro.h"
#include "sim/scenario/scenario.h"

/*
 * The simulated node: the state of a scenario at a point in time.
 *
 * Time runs in ticks of 100 ms from the machine's boot. In each tick every quantity has one value, so that
 * sums over ticks are exact: a utilisation sample is the value of a tick, a counter is the sum of all ticks
 * before plus the part of the current one. The load of a scenario repeats with its cycle; sums over a
 * cycle are computed once, and sums at some ticks within it (checkpoints) are stored. So the state at any
 * time is computed by adding up a few dozen ticks, or by stepping over the ticks since an earlier time.
 *
 * This code does not depend on NVML, takes no lock and reads no clock: callers pass the time, in milliseconds
 * since boot. A
 * struct gpu is moved to a time by gpu_seek() before gpu_now() and `slots_now` are read.
 */
enum {
	TICKS_KEPT = 128, /* complete ticks before the current one, rounded up to a power of two */
	SAMPLES_KEPT = 120, /* as deep as sample buffers of real drivers */
	CHECKPOINTS = 128,
	PERIOD_TICKS = 10, /* ticks that a sample of a process averages */
	PERIODS_KEPT = 12,
};

/* Rates are constant during a tick. */
struct tick {
	uint8_t load[ENGINE_COUNT]; /* percent */
	uint8_t pstate;
	uint16_t sm_mhz, memory_mhz, video_mhz;
	uint32_t power_mw;
	int32_t temperature_mc; /* thousandths of a degree */
	uint32_t memory_mib; /* of all processes */
	uint32_t reasons; /* enum nvml_clocks_event_reason */
	bool capped, hot; /* throttled by power, by temperature */
	uint32_t traffic[TRAFFIC_COUNT]; /* bytes per millisecond */
};

/* Sums over time. */
struct totals {
	uint64_t energy_uj;
	uint64_t traffic[TRAFFIC_COUNT]; /* bytes */
	uint64_t load[ENGINE_COUNT]; /* percent times milliseconds */
	uint64_t power_capped_ms, thermal_ms;
};

/* The same for a MIG instance. */
struct instance_totals {
	uint64_t load[ENGINE_COUNT];
};

/* A process of the scenario on one GPU. */
struct slot {
	const struct scenario_process *process;
	uint32_t number; /* among those of its entry on all GPUs; delays it by so many staggers */
	uint32_t pid_index; /* among the PIDs of its entry */
	uint32_t pid_base;
};

struct slot_now {
	bool running;
	uint8_t load[ENGINE_COUNT];
	uint32_t memory_mib;
	uint32_t pid; /* 0: there is no such process on this machine */
	int64_t started_ms;
};

/* What a process did in the ten ticks that ended at `period`; pid 0: nothing. */
struct slot_period {
	uint32_t pid;
	uint8_t load[ENGINE_COUNT];
};

struct slot_sum {
	uint32_t pid;
	uint16_t load[ENGINE_COUNT];
};

struct gpu {
	const struct scenario *scenario;
	const struct scenario_gpu *what;
	uint32_t index;
	struct slot *slots;
	uint32_t slot_count;

	/* One cycle */
	int64_t cycle_ticks, block_ticks; /* block: from one checkpoint to the next */
	struct totals cycle_totals;
	struct totals *checkpoints;
	int32_t *checkpoint_mc; /* temperature before that tick */
	struct instance_totals cycle_instances[SCENARIO_MAX_INSTANCES];
	struct instance_totals *checkpoint_instances; /* instance_count for each checkpoint */

	/* The current state */
	int64_t tick; /* current one; negative before the first seek */
	struct tick ticks[TICKS_KEPT]; /* tick i at i % TICKS_KEPT */
	struct totals totals; /* of all complete ticks */
	struct instance_totals instances[SCENARIO_MAX_INSTANCES];
	uint8_t instance_load[SCENARIO_MAX_INSTANCES][ENGINE_COUNT];
	uint32_t instance_memory_mib[SCENARIO_MAX_INSTANCES];
	struct slot_now *slots_now;
	struct slot_sum *slot_sums; /* of the current period */
	struct slot_period *periods; /* slot_count for each of PERIODS_KEPT, period p at p % PERIODS_KEPT */

	/* Subtracted from counters, because the driver was loaded after the machine booted. */
	int64_t driver_ms;
	struct totals driver_totals;
};

struct node {
	struct scenario *scenario;
	struct gpu gpus[SCENARIO_MAX_GPUS];
	struct slot *slots; /* of all GPUs */
	uint32_t slot_count;
};

/* Takes ownership of the scenario. 0 or -ENOMEM. Costs about 20 ms for eight GPUs and ten minutes. */
int node_new(struct scenario *scenario, struct node **ret_node);
void node_free(struct node *node);
DEFINE_CLEANUP(struct node *, node_free, node_freep)

/* To any time from 0 on. */
void gpu_seek(struct gpu *gpu, int64_t time_ms);

/* The current tick. */
static inline const struct tick *gpu_now(const struct gpu *gpu)
{
	return &gpu->ticks[gpu->tick % TICKS_KEPT];
}

/* The newest complete tick; before the first, the current one. */
static inline const struct tick *gpu_last(const struct gpu *gpu)
{
	return &gpu->ticks[(gpu->tick > 0 ? gpu->tick - 1 : 0) % TICKS_KEPT];
}

/* Since boot, to the millisecond; time_ms is in the current tick. */
void gpu_totals(const struct gpu *gpu, int64_t time_ms, struct totals *ret_totals);
void gpu_instance_totals(const struct gpu *gpu, uint32_t instance, int64_t time_ms,
			 struct instance_totals *ret_totals);

/* The same for a time long past, without moving the GPU there. */
void gpu_totals_at(struct gpu *gpu, int64_t time_ms, struct totals *ret_totals);

/* Errors of one kind, counted at a time: of all places, or of one (the location or link). */
uint64_t gpu_count(const struct gpu *gpu, enum counter_kind kind, int64_t time_ms);
uint64_t gpu_count_at(const struct gpu *gpu, enum counter_kind kind, uint32_t where, int64_t time_ms);
/* Of these, what happened after `from_ms`. */
uint64_t gpu_count_since(const struct gpu *gpu, enum counter_kind kind, uint32_t where, int64_t from_ms,
			 int64_t time_ms);

/* Computes one tick from the temperature before it; physics.c. load[] and memory_mib are inputs. */
void physics_tick(const struct gpu *gpu, int64_t time_ms, int32_t before_mc, struct tick *tick);
