// SPDX-License-Identifier: Apache-2.0
/*
 * The model's devices, for this folder only: one struct device each, and for each source that has listed it a
 * struct device_report with that source's values. If only one source knows a device, the report uses the
 * device's values and has no copy.
 */
#pragma once

#include "model/clock_events.h"
#include "model/snapshot.h"

enum { NO_INDEX = 0xffff };

/* State of a driver's counter or increment in a slot (struct device_report, state[]). */
enum slot_state {
	SLOT_BEGUN = 1, /* raw[] is valid */
	SLOT_WAS_ESTIMATED = 2, /* the newest reading was an estimate */
	SLOT_HAS_ESTIMATES = 4, /* part of the sum is an estimate */
	SLOT_IN_DOUBT = 8, /* the newest reading of the counter is implausible and was not counted */
};

/* A source's own values of a device that other sources know, too. */
struct report_values {
	double v[GPU_SLOTS];
	uint8_t p[GPU_SLOTS];
	double offset[GPU_SLOTS]; /* of counters: what is shown is offset + v; NAN: see merge.c */
};

/* One source's data about a device. */
struct device_report {
	bool listed; /* is in the source's newest good reading */
	bool there; /* listed and not lost, and the source has not failed since */
	bool lost; /* lost, according to that reading */
	uint8_t process_list, process_util; /* enum presence, as in struct reading_entity */
	/* end of the newest reading with values of the device; 0: none */
	int64_t sampled_ns, sampled_real_ns;
	int64_t said_ns; /* end of the newest reading that shows whether the device exists */
	/* the highest that was ever said to be the board's highest power limit; 0: none was */
	double watts_max;
	unsigned doubts; /* number of counters in doubt */
	int64_t doubt_ns; /* the last good reading before the first counter in doubt */
	/*
	 * accumulated from this source alone: points to `own`, or to the device's values while there is one
	 * source
	 */
	double *v;
	uint8_t *p;
	struct report_values *own;
	/* COUNTER: the newest counted reading. INCREMENT: when one was last accepted, boot time in ns. */
	double raw[GPU_SLOTS];
	int64_t raw_ns[GPU_SLOTS]; /* COUNTER: end of the reading in which raw was new */
	uint8_t state[GPU_SLOTS]; /* enum slot_state bits */
	/* the driver's energy when it was last read before it was estimated, and the sum then; ns 0: never */
	struct {
		double raw, v;
		int64_t ns;
	} measured;
};

/* What of the device's figures its processes account for (attribution.c). */
struct attribution {
	double busy, processes_busy; /* the device's and its processes', as counted so far */
	double unattributed_busy, overattributed_busy, residual;
	bool energy_begun;
	double energy; /* the device's, as counted so far */
	double processes_energy, unattributed_energy;
	int64_t energy_ns; /* end of the reading that it was counted in; 0: none */
	/* of the reading being processed: what is to be shared out, and for which work */
	double pending_energy, joules_per_busy_second;
	double granted_energy; /* of that, to the processes so far */
};

/* A device's sums when servers' shares of what they grow by were counted last (server.c). */
struct device_growth {
	double seconds, joules;
	bool has_seconds, has_joules;
};

/* A GPU or MIG instance that the model knows. */
struct device {
	struct entity e; /* as published, but e.id.parent: see `parent` */
	struct device_report *reports[SOURCES]; /* NULL: that source has never listed the device */
	/* by slot: the source of the value in `e`, SOURCES: none; NULL while there is one report */
	uint8_t *from;
	uint16_t parent; /* index of the GPU's device, NO_INDEX on a GPU */
	uint16_t rank; /* position in the snapshot */
	/* workload index for increments that fit no other workload; NO_INDEX until needed */
	uint16_t other_workload;
	double memory_total; /* bytes, 0 unknown */
	struct clock_window *clock_window; /* NULL: nothing counted */
	struct attribution attribution;
	struct device_growth server_growth;
	/* the one source whose processes are shown */
	enum source_id process_source;
	/* changed since the previous reading: this reading's increments may already be counted */
	bool process_switched;
	/*
	 * the newest reading in which a process did work here of which it is not known whose it is, or may
	 * have
	 */
	uint64_t work_unknown;
	bool offered; /* kubelet has listed it as one that it can give */
	bool was_present; /* as of when allocations were resolved last */
	uint64_t process_reading; /* number of that source's newest good reading */
	int64_t process_begin_ns, process_ns; /* when that began and ended; 0 none */
	int64_t before_ns; /* when the one before began; 0 none */
};

struct model;

/* device.c */

/*
 * Matches the reading's entities to devices; ret_devices[i] is the device of entities[i], or NO_INDEX if it
 * cannot be used.
 */
void devices_match(struct model *model, enum source_id source, const struct reading *reading, uint32_t n,
		   int64_t end_ns, uint16_t *ret_devices);
/*
 * The source no longer lists the device, has lost it, or has failed: gauges become absent, sums remain. To be
 * followed by device_merge().
 */
void device_gone(struct device *device, enum source_id source, int64_t end_ns);
void device_free(struct device *device);

/* accumulate.c */

/* Accumulates the values of one entity of a good reading that ended at end_ns. */
void device_apply(struct model *model, struct device *device, enum source_id source,
		  const struct reading_entity *entity, int64_t end_ns);
/*
 * The largest plausible time increment, in seconds, of a reading that ended at @now_ns. @accepted_ns: when
 * the reading began whose increment was accepted last; 0: none.
 */
double increment_bound(int64_t accepted_ns, int64_t now_ns);

/* attribution.c */

/* Before the reading's processes are processed: @devices are those whose processes it has. */
void attribution_begin(struct model *model, const struct reading *reading, const uint16_t *devices,
		       uint32_t devices_n, int64_t end_ns);
/* Energy for work that a process did in the reading being processed, an estimate. */
double attribution_energy(struct device *device, double busy_seconds, uint8_t *ret_presence);
/* After that. */
void attribution_count(struct model *model);
void attribution_publish(const struct model *model, struct snapshot *s);

/* merge.c */

/* The source's report, created if needed; NULL: out of memory. */
struct device_report *device_report_get(struct device *device, enum source_id source);
/* The source with the highest priority of those that know the device. */
enum source_id device_first_source(const struct device *device);
/* The same among sources whose values are current at now_ns; SOURCES: none. */
enum source_id device_current_source(const struct model *model, const struct device *device, int64_t now_ns);
/* Computes the device's values, presence and times from its reports. */
void device_merge(const struct model *model, struct device *device, int64_t now_ns);
bool device_stale(const struct model *model, const struct device *device, int64_t now_ns);
/* The source whose process list is used; SOURCES: none. */
enum source_id device_process_source(const struct model *model, const struct device *device, int64_t now_ns);
