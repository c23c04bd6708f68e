// SPDX-License-Identifier: Apache-2.0
#include "sim/node/node.h"

#include "nvml/abi_clock.h"

/*
 * A plausible board: power follows the load up to the limit, clocks then drop, and the temperature follows
 * the power with the delay of a heat sink. All numbers are integers, so that every machine computes the same.
 */
enum {
	HEAT_MS = 12000, /* time constant: after it, two thirds of a change in temperature have happened */
	CLOCK_STEP_MHZ = 15,
	SM_WEIGHT = 80,
	MEMORY_WEIGHT = 15,
	VIDEO_WEIGHT = 5, /* percent that each adds to the power drawn */
	PCIE_PERCENT = 6, /* of the link's bandwidth at full load, if the scenario sets none */
	NVLINK_PERCENT = 35,
};

static bool idle(const struct tick *tick)
{
	for (enum engine engine = 0; engine < ENGINE_COUNT; engine++) {
		if (tick->load[engine] > 0)
			return false;
	}
	return true;
}

static uint32_t video_load(const struct tick *tick)
{
	uint32_t load = MAX(tick->load[ENGINE_ENCODER], tick->load[ENGINE_DECODER]);

	load = MAX(load, (uint32_t)tick->load[ENGINE_JPEG]);
	return MAX(load, (uint32_t)tick->load[ENGINE_OFA]);
}

static uint32_t demand_mw(const struct model *model, const struct tick *tick)
{
	uint32_t weighted = SM_WEIGHT * tick->load[ENGINE_GPU] + MEMORY_WEIGHT * tick->load[ENGINE_MEMORY] +
			    VIDEO_WEIGHT * video_load(tick);

	return model->idle_mw + (uint32_t)((uint64_t)(model->demand_mw - model->idle_mw) * weighted / 10000);
}

/* What the scenario says of this moment. */
static uint32_t reasons_given(const struct gpu *gpu, int64_t time_ms)
{
	const struct scenario *scenario = gpu->scenario;
	uint64_t reasons = 0;

	for (uint32_t i = 0; i < scenario->reason_count; i++) {
		const struct scenario_reason *reason = &scenario->reasons[i];

		if (reason->gpus >> gpu->index & 1 && window_open(&reason->window, time_ms))
			reasons |= reason->bit;
	}
	return (uint32_t)reasons;
}

static uint16_t stepped(uint32_t mhz)
{
	return (uint16_t)(mhz - mhz % CLOCK_STEP_MHZ);
}

static void set_clocks(const struct gpu *gpu, struct tick *tick, uint32_t demand)
{
	const uint32_t slow = NVML_CLOCKS_EVENT_REASON_HW_SLOWDOWN |
			      NVML_CLOCKS_EVENT_REASON_HW_THERMAL_SLOWDOWN |
			      NVML_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN |
			      NVML_CLOCKS_EVENT_REASON_SW_THERMAL_SLOWDOWN;
	const struct model *model = &gpu->what->model;
	uint32_t sm = model->sm_mhz;

	if (tick->reasons & NVML_CLOCKS_EVENT_REASON_GPU_IDLE) {
		tick->sm_mhz = (uint16_t)model->sm_idle_mhz;
		tick->memory_mhz = (uint16_t)model->memory_idle_mhz;
		tick->video_mhz = (uint16_t)MIN(model->video_mhz, MAX(model->sm_idle_mhz, 540u));
		tick->pstate = (uint8_t)model->idle_pstate;
		return;
	}
	if (gpu->what->application_sm_mhz > 0)
		sm = MIN(sm, gpu->what->application_sm_mhz);
	if (tick->reasons & NVML_CLOCKS_EVENT_REASON_SW_POWER_CAP)
		sm = sm / 2 + (uint32_t)((uint64_t)sm / 2 * model->limit_mw / MAX(demand, model->limit_mw));
	if (tick->reasons & slow)
		sm /= 2;
	tick->sm_mhz = stepped(MAX(sm, model->sm_idle_mhz));
	tick->memory_mhz = (uint16_t)model->memory_mhz;
	tick->video_mhz = stepped((uint32_t)((uint64_t)model->video_mhz * tick->sm_mhz / model->sm_mhz));
}

/*
 * One way, in bytes per millisecond: a lane of generation 1 carries 250 MB/s, each further generation twice
 * as much.
 */
static uint32_t pcie_capacity(const struct model *model)
{
	return 250000u * model->pcie_width << (model->pcie_generation - 1);
}

static void set_traffic(const struct gpu *gpu, int64_t phase_ms, struct tick *tick)
{
	const struct scenario_gpu *what = gpu->what;
	uint64_t pcie = pcie_capacity(&what->model), links = what->model.nvlinks - what->inactive_links;
	uint64_t nvlink = links * what->model.nvlink_mbps * 1000;
	const uint64_t usual[TRAFFIC_COUNT] = {
		[TRAFFIC_PCIE_TX] = pcie * PCIE_PERCENT / 2,
		[TRAFFIC_PCIE_RX] = pcie * PCIE_PERCENT,
		[TRAFFIC_NVLINK_TX] = nvlink * NVLINK_PERCENT,
		[TRAFFIC_NVLINK_RX] = nvlink * NVLINK_PERCENT,
	};

	for (enum traffic i = 0; i < TRAFFIC_COUNT; i++) {
		uint64_t rate = usual[i] * tick->load[ENGINE_GPU] / 10000;

		if (what->traffic_set[i])
			rate = (uint64_t)(1000 *
					  MAX(curve_at(&what->traffic[i], phase_ms, gpu->index), 0.0f));
		/* Every link carries the same whole number of bytes. */
		if (i == TRAFFIC_NVLINK_TX || i == TRAFFIC_NVLINK_RX)
			rate = links > 0 ? rate / links * links : 0;
		tick->traffic[i] = (uint32_t)MIN(rate, (uint64_t)UINT32_MAX);
	}
}

void physics_tick(const struct gpu *gpu, int64_t time_ms, int32_t before_mc, struct tick *tick)
{
	const struct model *model = &gpu->what->model;
	uint32_t demand = demand_mw(model, tick);
	int64_t target_mc;

	tick->power_mw = MIN(demand, model->limit_mw);
	target_mc = model->ambient_c * 1000 +
		    (int64_t)(model->hot_c - model->ambient_c) * 1000 * tick->power_mw / model->limit_mw;
	tick->temperature_mc = before_mc + (int32_t)((target_mc - before_mc) * SCENARIO_TICK_MS / HEAT_MS);

	tick->capped = demand > model->limit_mw;
	tick->hot = tick->temperature_mc >= (int32_t)model->slowdown_c * 1000;

	/* Windows of slowdowns count from boot, not within the cycle, like those of errors. */
	tick->reasons = reasons_given(gpu, time_ms);
	if (idle(tick))
		tick->reasons |= NVML_CLOCKS_EVENT_REASON_GPU_IDLE;
	else if (tick->capped)
		tick->reasons |= NVML_CLOCKS_EVENT_REASON_SW_POWER_CAP;
	else if (gpu->what->application_sm_mhz > 0 && gpu->what->application_sm_mhz < model->sm_mhz)
		tick->reasons |= NVML_CLOCKS_EVENT_REASON_APPLICATIONS_CLOCKS_SETTING;
	if (tick->hot)
		tick->reasons |= NVML_CLOCKS_EVENT_REASON_SW_THERMAL_SLOWDOWN;
	tick->pstate = 0;
	set_clocks(gpu, tick, demand);
	set_traffic(gpu, time_ms % gpu->scenario->cycle_ms, tick);
}
