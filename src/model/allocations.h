// SPDX-License-Identifier: Apache-2.0
/*
 * What was given, for this folder only: the sources' rows, and the allocations of devices that are made of
 * them and published as struct allocated.
 */
#pragma once

#include "model/allocation.h"
#include "model/snapshot.h"

/* A source's rows, as it said them. */
struct allocation_table {
	struct allocation *rows;
	uint32_t n;
};

/* More are not looked at: rows of all sources, one for each device that they mean. */
enum { ALLOCATIONS_TRACKED_MAX = 16384 };

struct tracked_allocation {
	struct allocated a; /* as published, but for its indexes */
	uint16_t device;
	bool fresh; /* it was not there before */
	bool taken; /* scratch of allocation_resolve.c */
	uint8_t idle_estimated; /* PRESENCE_ESTIMATED: of some time it is not known whether it was idle */
	uint32_t live; /* its processes on the device, and on instances of it */
	int64_t counted_ns, watched_ns; /* up to when `seconds` and `idle_seconds` count */
	double seconds, idle_seconds; /* those in `a` stand still while it is stale */
	uint64_t worked, work_unknown; /* newest readings in which it worked, or may have */
};

struct allocations {
	struct allocation_table tables[SOURCES];
	bool changed; /* tables, owners or devices have */
	struct tracked_allocation *list; /* by device, and then by whose they are */
	uint32_t n;
	uint32_t dropped; /* how many of the newest tables' did not fit */
};

struct model;
struct device;
struct tracked_workload;

/* allocation.c */

void allocations_done(struct model *model);

/* allocation_resolve.c */

/* Whether the reference means this device. */
bool device_is_meant(const struct model *model, const struct device *device, const struct device_ref *ref);
/* Makes the list anew if something has changed since. */
void allocations_resolve(struct model *model, int64_t now_ns);
/* Finds the allocations that a new workload's use belongs to, and lets them learn from it whose they are. */
void allocations_join(struct model *model, struct tracked_workload *t);
/* To be called before a device is forgotten. */
void allocations_forget_device(struct model *model, uint16_t device);

/* allocated.c */

/*
 * What a process did in the newest reading. @workload: NO_INDEX, none; @identified: /proc knows the process.
 */
void allocations_note_process(struct model *model, uint16_t device, uint16_t workload, bool identified,
			      const struct reading_process *reading);
/* Counts the time until the end of a good reading, whose processes have been processed. */
void allocations_count(struct model *model, int64_t end_ns);
void allocations_publish(const struct model *model, struct snapshot *snapshot);
