// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/call.h"

#include <string.h>

#include "base/clock.h"

/*
 * Events of the scenario: XIDs and ECC errors. Each has a time; a set has a position up to which it
 * has returned its events, so that no event is lost between waits and each set gets all of its events.
 */
enum {
	MAX_SETS = 64,
	/* a wait looks up this often, because the clock may be moved and faults may begin */
	WAIT_STEP_MS = 200,
};

struct nvml_event_set {
	bool used;
	uint64_t types[SCENARIO_MAX_GPUS];
	int64_t time_ms; /* of the last event given out */
	uint32_t source; /* its source; at the same time, those with higher numbers are still to come */
};

static struct nvml_event_set sets[MAX_SETS];

static const uint64_t supported_types = NVML_EVENT_XID_CRITICAL_ERROR | NVML_EVENT_SINGLE_BIT_ECC_ERROR |
					NVML_EVENT_DOUBLE_BIT_ECC_ERROR | NVML_EVENT_PSTATE |
					NVML_EVENT_CLOCK | NVML_EVENT_MIG_CONFIG_CHANGE;

/* Something that happens on one GPU. */
struct source {
	const struct window *window;
	uint32_t gpu;
	uint64_t type, data;
	const struct scenario_instance *instance; /* NULL: none */
};

static struct source xid_source(const struct scenario *scenario, uint32_t index)
{
	const struct scenario_xid *xid = &scenario->xids[index];

	return (struct source){
		.window = &xid->window,
		.gpu = xid->gpu,
		.type = NVML_EVENT_XID_CRITICAL_ERROR,
		.data = xid->xid,
		.instance = xid->instance >= 0 ? &scenario->gpus[xid->gpu].instances[xid->instance] : NULL,
	};
}

/* Sources are numbered: XIDs, then each counter on each GPU. false: nothing that makes events. */
static bool get_source(const struct scenario *scenario, uint32_t number, struct source *ret_source)
{
	const struct scenario_counter *counter;
	uint32_t gpu;

	if (number < scenario->xid_count) {
		*ret_source = xid_source(scenario, number);
		return true;
	}
	number -= scenario->xid_count;
	counter = &scenario->counters[number / SCENARIO_MAX_GPUS];
	gpu = number % SCENARIO_MAX_GPUS;
	if (counter->kind > COUNTER_ECC_UNCORRECTED || counter->count == 0 || gpu >= scenario->gpu_count ||
	    !(counter->gpus >> gpu & 1))
		return false;
	*ret_source = (struct source){
		.window = &counter->window,
		.gpu = gpu,
		.type = counter->kind == COUNTER_ECC_CORRECTED ? NVML_EVENT_SINGLE_BIT_ECC_ERROR :
								 NVML_EVENT_DOUBLE_BIT_ECC_ERROR,
	};
	return true;
}

/* The next event of a source after the set's place. */
static int64_t next_of(const struct nvml_event_set *set, const struct source *source, uint32_t number)
{
	bool now = number > set->source && window_openings(source->window, set->time_ms) > 0 &&
		   window_last_opening(source->window, set->time_ms) == set->time_ms;

	return now ? set->time_ms : window_next_opening(source->window, set->time_ms);
}

/* When the set's next event is; INT64_MAX: never. */
static int64_t next_event(const struct nvml_event_set *set, struct source *ret_source, uint32_t *ret_number)
{
	const struct scenario *scenario = call_node()->scenario;
	uint32_t count = scenario->xid_count + scenario->counter_count * SCENARIO_MAX_GPUS;
	int64_t first = INT64_MAX;

	for (uint32_t number = 0; number < count; number++) {
		struct source source;
		int64_t at;

		if (!get_source(scenario, number, &source) || !(set->types[source.gpu] & source.type))
			continue;
		at = next_of(set, &source, number);
		if (at < first) {
			first = at;
			*ret_source = source;
			*ret_number = number;
		}
	}
	return first;
}

static bool is_set(const struct nvml_event_set *set)
{
	uintptr_t offset = (uintptr_t)set - (uintptr_t)sets;

	return offset < sizeof(sets) && offset % sizeof(*sets) == 0 && set->used;
}

enum nvml_return nvmlEventSetCreate(struct nvml_event_set **set)
{
	CALL_NODE(nvmlEventSetCreate);

	NEED(set);
	for (uint32_t i = 0; i < MAX_SETS; i++) {
		if (!sets[i].used) {
			sets[i] = (struct nvml_event_set){ .used = true,
							   .time_ms = call->now_ms,
							   .source = UINT32_MAX };
			*set = &sets[i];
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_INSUFFICIENT_RESOURCES;
}

enum nvml_return nvmlEventSetFree(struct nvml_event_set *set)
{
	CALL_NODE(nvmlEventSetFree);

	NEED(is_set(set));
	set->used = false;
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, uint64_t *types)
{
	CALL(nvmlDeviceGetSupportedEventTypes, device);

	NEED(types);
	put_u64(call, types, supported_types);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceRegisterEvents(struct nvml_device *device, uint64_t types,
					  struct nvml_event_set *set)
{
	CALL(nvmlDeviceRegisterEvents, device);

	NEED(is_set(set));
	NEED_SUPPORT((types & ~supported_types) == 0);
	set->types[call->gpu->index] |= types;
	return NVML_SUCCESS;
}

/* Older versions of the call do not say which instance it was. */
static enum nvml_return wait_event(struct call *call, struct nvml_event_set *set,
				   struct nvml_event_data *data, size_t size, uint32_t timeout_ms)
{
	int64_t end_ms = call->now_ms + timeout_ms, wait_ms;
	struct source source = { 0 };
	uint32_t number = 0;

	NEED(data && is_set(set));
	for (;;) {
		struct nvml_event_data event = { .gpu_instance = NVML_NONE_U32,
						 .compute_instance = NVML_NONE_U32 };
		int64_t at = next_event(set, &source, &number);

		if (at <= call->now_ms) {
			set->time_ms = at;
			set->source = number;
			event.device = device_handle(source.gpu, -1);
			event.type = source.type;
			put_u64(call, &event.data, source.data);
			if (source.instance) {
				event.gpu_instance = source.instance->gpu_instance;
				event.compute_instance = source.instance->compute_instance;
			}
			memcpy(data, &event, size);
			return NVML_SUCCESS;
		}
		if (call->now_ms >= end_ms)
			return NVML_ERROR_TIMEOUT;
		wait_ms = MIN(end_ms, at) - call->now_ms;
		if (!call_sleep(call, MIN(wait_ms, (int64_t)WAIT_STEP_MS)))
			return NVML_ERROR_UNINITIALIZED;
		if (!is_set(set))
			return NVML_ERROR_INVALID_ARGUMENT;
	}
}

enum nvml_return nvmlEventSetWait(struct nvml_event_set *set, struct nvml_event_data *data,
				  uint32_t timeout_ms)
{
	CALL_NODE(nvmlEventSetWait);

	return wait_event(call, set, data, offsetof(struct nvml_event_data, gpu_instance), timeout_ms);
}

enum nvml_return nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data,
				     uint32_t timeout_ms)
{
	CALL_NODE(nvmlEventSetWait_v2);

	return wait_event(call, set, data, sizeof(*data), timeout_ms);
}
