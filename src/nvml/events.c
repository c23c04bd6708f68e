// SPDX-License-Identifier: Apache-2.0
#include "nvml/reader.h"

#include <string.h>

#include "base/clock.h"

#define REGISTER_RETRY_NS (60 * NSEC_PER_SEC)
/* Events read in one pass; the rest remain in the driver's queue for the next. */
#define EVENTS_PER_PASS READING_EVENTS_MAX
#define WANTED_EVENTS ((uint64_t)NVML_EVENT_XID_CRITICAL_ERROR | NVML_EVENT_MIG_CONFIG_CHANGE)

static bool wants_events(const struct reader *reader, uint32_t i)
{
	return reader->devices[i].parent == READING_NONE && !reader->events_registered[i];
}

static void register_device(struct reader *reader, uint32_t i)
{
	struct nvml_device *handle = reader->devices[i].handle;
	uint64_t types = 0;

	if (NVML_CALL(reader, nvmlDeviceGetSupportedEventTypes, handle, &types) != NVML_SUCCESS)
		types = NVML_EVENT_XID_CRITICAL_ERROR;
	types &= WANTED_EVENTS;
	/* A device without events counts as registered: there is nothing to try again. */
	if (!types ||
	    NVML_CALL(reader, nvmlDeviceRegisterEvents, handle, types, reader->events) == NVML_SUCCESS)
		reader->events_registered[i] = true;
}

/* Permissions may come later than the agent at the start of a node: devices that failed are tried again. */
static void register_all(struct reader *reader)
{
	bool missing = false;

	if (reader->now_ns < reader->events_retry_ns || reader->shared->left_out >> READING_GROUP_XID & 1)
		return;
	reader->events_retry_ns = reader->now_ns + REGISTER_RETRY_NS;
	for (uint32_t i = 0; i < reader->reading->entities_n; i++)
		missing |= wants_events(reader, i);
	if (!missing)
		return;
	if (!reader->events && NVML_CALL(reader, nvmlEventSetCreate, &reader->events) != NVML_SUCCESS) {
		reader->events = NULL;
		return;
	}
	for (uint32_t i = 0; i < reader->reading->entities_n && !reader->gone; i++)
		if (wants_events(reader, i))
			register_device(reader, i);
}

void events_begin(struct reader *reader)
{
	memset(reader->events_registered, 0, sizeof(reader->events_registered));
	reader->events_retry_ns = 0;
	register_all(reader);
}

void events_done(struct reader *reader)
{
	if (reader->events)
		NVML_CALL(reader, nvmlEventSetFree, reader->events);
	reader->events = NULL;
}

static uint16_t find_entity(struct reader *reader, struct nvml_device *handle)
{
	for (uint32_t i = 0; i < reader->reading->entities_n; i++)
		if (reader->devices[i].handle == handle)
			return (uint16_t)i;
	return READING_NONE;
}

static void take_event(struct reader *reader, const struct nvml_event_data *data)
{
	struct reading *reading = reader->reading;
	uint16_t entity = find_entity(reader, data->device);

	if (data->type & NVML_EVENT_MIG_CONFIG_CHANGE)
		reader->changed = true;
	if (!(data->type & NVML_EVENT_XID_CRITICAL_ERROR))
		return;
	if (entity == READING_NONE || data->data > UINT32_MAX || reading->events_n == READING_EVENTS_MAX) {
		reading->events_dropped++;
		return;
	}
	reading->events[reading->events_n++] = (struct reading_event){
		.entity = entity,
		.gi = data->gpu_instance,
		.ci = data->compute_instance,
		.xid = (uint32_t)data->data,
	};
}

void events_read(struct reader *reader)
{
	register_all(reader);
	for (unsigned i = 0; reader->events && i < EVENTS_PER_PASS; i++) {
		/* The older call leaves the instances as they are. */
		struct nvml_event_data data = { .gpu_instance = NVML_NONE_U32,
						.compute_instance = NVML_NONE_U32 };

		if (NVML_CALL(reader, nvmlEventSetWait_v2, reader->events, &data, 0) != NVML_SUCCESS)
			return;
		take_event(reader, &data);
	}
}
