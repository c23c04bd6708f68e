// SPDX-License-Identifier: Apache-2.0
/*
 * Devices as the model keeps them, for the files of this folder only: one struct device, and for each source
 * that has listed it a struct device_report with that source's values. A device that one source knows has no
 * second copy of them: the report's are the device's.
 */
#pragma once

#include "model/snapshot.h"

enum { NO_INDEX = 0xffff };

/* What is known of a slot's driver counter or increment (struct device_report, state[]). */
enum slot_state {
	SLOT_BEGUN = 1, /* a reading was taken in: raw[] is valid */
	SLOT_WAS_ESTIMATED = 2, /* the newest reading was an estimate */
	SLOT_HAS_ESTIMATES = 4, /* some part of the sum is */
	SLOT_IN_DOUBT = 8, /* the newest reading of the counter could not be right and was left out */
};

/* A source's own values of a device that others know, too. */
struct report_values {
	double v[GPU_SLOTS];
	uint8_t p[GPU_SLOTS];
	double offset[GPU_SLOTS]; /* of counters: what is shown is offset + v; NAN: see merge.c */
};

/* What one source says of a device. */
struct device_report {
	bool listed; /* in the source's newest good reading */
	bool there; /* and with its values: not lost, and the source has not failed since */
	bool lost; /* in that reading */
	uint8_t process_list, process_util; /* enum presence, as in struct reading_entity */
	int64_t sampled_ns, sampled_real_ns; /* end of the newest reading with its values; 0 none */
	int64_t said_ns; /* end of the newest reading that said whether it is there */
	unsigned doubts; /* counters that are in doubt */
	int64_t doubt_ns; /* the good reading before the first of its counters that is in doubt */
	/* accumulated from this source alone: in `own`, or the device's while it is the only one */
	double *v;
	uint8_t *p;
	struct report_values *own;
	/* COUNTER: the newest reading counted. INCREMENT: when one was last accepted, boot time in ns. */
	double raw[GPU_SLOTS];
	uint8_t state[GPU_SLOTS]; /* enum slot_state bits */
};

/* A GPU or MIG instance, for as long as the model knows it. */
struct device {
	struct entity e; /* as published, but e.id.parent: see `parent` */
	struct device_report *reports[SOURCES]; /* NULL: that source has never listed it */
	/* by slot: the source of the value in `e`, SOURCES: none; NULL while there is one report */
	uint8_t *from;
	uint16_t parent; /* index of the GPU's device, NO_INDEX on a GPU */
	uint16_t rank; /* place in the snapshot */
	/* where increments go that have no workload's place; NO_INDEX until needed */
	uint16_t other_workload;
	double memory_total; /* bytes, 0 unknown */
	/* its processes are those of one source at a time */
	enum source_id process_source;
	bool process_switched; /* since the reading before: this one's increments may have been counted */
	uint64_t process_reading; /* number of the newest good reading of theirs */
	int64_t process_begin_ns, process_ns; /* when that began and ended; 0 none */
	int64_t before_ns; /* when the one before began; 0 none */
};

struct model;

/* device.c */

/*
 * Match the reading's entities to devices; ret_devices[i] is the device of entities[i], or NO_INDEX when it
 * is no good.
 */
void devices_match(struct model *model, enum source_id source, const struct reading *reading, uint32_t n,
		   int64_t end_ns, uint16_t *ret_devices);
/*
 * The source no longer lists it, has lost it, or has failed: its gauges go, sums stay. To be followed by
 * device_merge().
 */
void device_gone(struct device *device, enum source_id source, int64_t end_ns);
void device_free(struct device *device);

/* accumulate.c */

/* Take in the values of one entity of a good reading that ended at end_ns. */
void device_apply(struct model *model, struct device *device, enum source_id source,
		  const struct reading_entity *entity, int64_t end_ns);
/*
 * The largest plausible time increment, in seconds, of a reading that ended at @now_ns. @accepted_ns: when
 * the reading began whose increment was accepted last; 0: none.
 */
double increment_bound(int64_t accepted_ns, int64_t now_ns);

/* merge.c */

/* A report for the source, made if need be; NULL: out of memory. */
struct device_report *device_report_get(struct device *device, enum source_id source);
/* The source, of those that know the device, that comes first by priority. */
enum source_id device_first_source(const struct device *device);
/* The same of those whose values are current at now_ns; SOURCES: none is. */
enum source_id device_current_source(const struct model *model, const struct device *device, int64_t now_ns);
/* The device's values, presence and times from those of its reports. */
void device_merge(const struct model *model, struct device *device, int64_t now_ns);
bool device_stale(const struct model *model, const struct device *device, int64_t now_ns);
/* Whose list of its processes counts; SOURCES: nobody's. */
enum source_id device_process_source(const struct model *model, const struct device *device, int64_t now_ns);
