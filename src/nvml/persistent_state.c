// SPDX-License-Identifier: Apache-2.0
#include "nvml/reader.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "nvml/window.h"

static bool state_is_of(const struct persistent_state *state, const struct reading_entity *entity)
{
	return state->gi == entity->gi && state->ci == entity->ci &&
	       strncmp(state->uuid, entity->uuid, sizeof(state->uuid)) == 0;
}

static void state_begin(struct persistent_state *state, const struct reading_entity *entity)
{
	memset(state, 0, sizeof(*state));
	memcpy(state->uuid, entity->uuid, sizeof(state->uuid));
	state->gi = entity->gi;
	state->ci = entity->ci;
	for (int d = 0; d < DIRECTIONS; d++)
		for (int i = 0; i < NVLINKS_MAX; i++)
			state->nvlink_raw[d][i] = -1;
}

static bool counter_believable(const struct persistent_counter *counter)
{
	return counter->known <= 1 && counter->wide <= 1 && isfinite(counter->raw) &&
	       isfinite(counter->total) && counter->raw >= 0 && counter->total >= 0;
}

static bool time_believable(int64_t ns, int64_t now_ns)
{
	return ns >= 0 && ns <= now_ns;
}

/* A crash may have overwritten it: implausible sums are discarded. */
static bool believable(const struct persistent_state *state, int64_t now_ns)
{
	bool sums = isfinite(state->energy_joules) && isfinite(state->energy_watts) &&
		    state->energy_joules >= 0 && state->energy_joules < 1e15;

	for (int d = 0; d < DIRECTIONS; d++)
		sums = sums && counter_believable(&state->pcie[d]) && counter_believable(&state->nvlink[d]) &&
		       state->nvlink_total[d] >= 0 && isfinite(state->nvlink_total[d]);
	for (int d = 0; d < DIRECTIONS; d++)
		for (int i = 0; i < NVLINKS_MAX; i++)
			sums = sums && isfinite(state->nvlink_raw[d][i]);
	return sums && state->window_carry_us >= -WINDOW_PERIOD_MAX_US &&
	       state->window_carry_us <= WINDOW_LAG_US + WINDOW_PERIOD_MAX_US &&
	       time_believable(state->window_boot_ns, now_ns) &&
	       time_believable(state->processes_boot_ns, now_ns) &&
	       time_believable(state->energy_boot_ns, now_ns);
}

static bool in_use(struct reader *reader, const struct persistent_state *state)
{
	for (uint32_t i = 0; i < reader->reading->entities_n; i++)
		if (reader->devices[i].slot == state)
			return true;
	return false;
}

/*
 * The device's own entry; else an unused one; else, when entries of former MIG layouts fill the table, one
 * that is no longer used.
 */
void persistent_state_find(struct reader *reader, struct device *device)
{
	struct persistent_state *states = reader->shared->states, *free = NULL;

	device->slot = NULL;
	for (uint32_t i = 0; i < READING_ENTITIES_MAX; i++) {
		if (state_is_of(&states[i], device->entity) && !in_use(reader, &states[i])) {
			device->slot = &states[i];
			device->work = states[i];
			if (!believable(&device->work, reader->now_ns))
				state_begin(&device->work, device->entity);
			return;
		}
		if (!states[i].uuid[0]) {
			free = &states[i];
			break; /* slots are filled from the front */
		}
	}
	for (uint32_t i = 0; i < READING_ENTITIES_MAX && !free; i++)
		if (!in_use(reader, &states[i]))
			free = &states[i];
	state_begin(&device->work, device->entity);
	device->slot = free;
	if (free)
		*free = device->work;
}

void persistent_state_commit(struct reader *reader)
{
	for (uint32_t i = 0; i < reader->reading->entities_n; i++)
		if (reader->devices[i].slot)
			*reader->devices[i].slot = reader->devices[i].work;
}
