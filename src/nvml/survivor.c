// SPDX-License-Identifier: Apache-2.0
#include "nvml/reader.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "nvml/window.h"

static bool same(const struct survivor *survivor, const struct reading_entity *entity)
{
	return survivor->gi == entity->gi && survivor->ci == entity->ci &&
	       strncmp(survivor->uuid, entity->uuid, sizeof(survivor->uuid)) == 0;
}

static void begin(struct survivor *survivor, const struct reading_entity *entity)
{
	memset(survivor, 0, sizeof(*survivor));
	memcpy(survivor->uuid, entity->uuid, sizeof(survivor->uuid));
	survivor->gi = entity->gi;
	survivor->ci = entity->ci;
	for (int d = 0; d < DIRECTIONS; d++)
		for (int i = 0; i < NVLINKS_MAX; i++)
			survivor->nvlink_raw[d][i] = -1;
}

static bool counter_believable(const struct survivor_counter *counter)
{
	return counter->known <= 1 && counter->wide <= 1 && isfinite(counter->raw) &&
	       isfinite(counter->total) && counter->raw >= 0 && counter->total >= 0;
}

static bool time_believable(int64_t ns, int64_t now_ns)
{
	return ns >= 0 && ns <= now_ns;
}

/* A crash may have written anywhere: sums that cannot be are worse than none. */
static bool believable(const struct survivor *survivor, int64_t now_ns)
{
	bool sums = isfinite(survivor->energy_joules) && isfinite(survivor->energy_watts) &&
		    survivor->energy_joules >= 0 && survivor->energy_joules < 1e15;

	for (int d = 0; d < DIRECTIONS; d++)
		sums = sums && counter_believable(&survivor->pcie[d]) &&
		       counter_believable(&survivor->nvlink[d]) && survivor->nvlink_total[d] >= 0 &&
		       isfinite(survivor->nvlink_total[d]);
	for (int d = 0; d < DIRECTIONS; d++)
		for (int i = 0; i < NVLINKS_MAX; i++)
			sums = sums && isfinite(survivor->nvlink_raw[d][i]);
	return sums && survivor->window_carry_us >= -WINDOW_PERIOD_MAX_US &&
	       survivor->window_carry_us <= WINDOW_LAG_US + WINDOW_PERIOD_MAX_US &&
	       time_believable(survivor->window_boot_ns, now_ns) &&
	       time_believable(survivor->processes_boot_ns, now_ns) &&
	       time_believable(survivor->energy_boot_ns, now_ns);
}

static bool in_use(struct reader *reader, const struct survivor *survivor)
{
	for (uint32_t i = 0; i < reader->reading->entities_n; i++)
		if (reader->devices[i].slot == survivor)
			return true;
	return false;
}

/*
 * Its own slot; else an unused one; else, when MIG layouts of the past fill them all, one that nobody uses
 * now.
 */
void survivor_find(struct reader *reader, struct device *device)
{
	struct survivor *survivors = reader->shared->survivors, *free = NULL;

	device->slot = NULL;
	for (uint32_t i = 0; i < READING_ENTITIES_MAX; i++) {
		if (same(&survivors[i], device->entity) && !in_use(reader, &survivors[i])) {
			device->slot = &survivors[i];
			device->work = survivors[i];
			if (!believable(&device->work, reader->now_ns))
				begin(&device->work, device->entity);
			return;
		}
		if (!survivors[i].uuid[0]) {
			free = &survivors[i];
			break; /* slots are filled from the front */
		}
	}
	for (uint32_t i = 0; i < READING_ENTITIES_MAX && !free; i++)
		if (!in_use(reader, &survivors[i]))
			free = &survivors[i];
	begin(&device->work, device->entity);
	device->slot = free;
	if (free)
		*free = device->work;
}

void survivors_commit(struct reader *reader)
{
	for (uint32_t i = 0; i < reader->reading->entities_n; i++)
		if (reader->devices[i].slot)
			*reader->devices[i].slot = reader->devices[i].work;
}
