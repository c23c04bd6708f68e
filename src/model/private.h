// SPDX-License-Identifier: Apache-2.0
/*
 * The model's inside, for the files of this folder only. See model/model.h for what it promises.
 *
 *   source.c     states of the sources, freshness of the node
 *   model.c      one reading in: who is still there, whose numbers grow, which XIDs happened
 *   device.c     GPUs and MIG instances: which are there, found again by UUID
 *   accumulate.c readings made into values, by kind
 *   merge.c      which source's value is shown, where several know a device
 *   process.c    processes: who is who (PID reuse), increments credited, exits folded
 *   exit.c       records of those that exited
 *   series.c     who has a series of its own in /metrics, and crediting
 *   workload.c   containers, pods, jobs and units, per device
 *   owner.c      whose they are
 *   xid.c        XID counts from several sources; xid_store.c keeps them across restarts
 *   traced.c     workloads of traced processes
 *   publish.c    the state as a snapshot; join.c what tracing and the driver say of the same process
 *
 * Devices, workloads and XIDs keep their index for life; processes are kept dense and move when another one
 * ends.
 */
#pragma once

#include "base/hashmap.h"
#include "model/device.h"
#include "model/model.h"
#include "model/series.h"
#include "model/traced.h"

enum {
	DEVICES_MAX = READING_ENTITIES_MAX,
	XIDS_MAX = 1024, /* (GPU, code) pairs */
	XID_CODES_MAX = 64, /* of these, on one GPU */
	XID_RECENT_MAX = 256, /* reports that the other source may still repeat */
};

/* A live process on a device. */
struct tracked {
	struct process p; /* as published, but its indexes: */
	uint16_t device;
	uint16_t workload; /* NO_INDEX: none */
	uint64_t seen; /* number of the reading that last had it */
	int64_t seen_ns; /* end of that reading */
	int64_t checked_ns; /* when its identity was last looked at */
	int64_t increment_ns; /* beginning of the newest reading whose increments were accepted; 0 none */
	bool was_listed; /* has been in a process list, not only among the utilisation samples */
	struct series_claim claim; /* score: recent use, 0..2 */
};

struct tracked_workload {
	struct workload w; /* kind WORKLOAD_KINDS: a free place */
	uint16_t device;
	int64_t idle_ns; /* since when no process of it lives */
};

struct exit_record {
	struct process p;
	uint16_t device; /* NO_INDEX: the device was forgotten */
	uint16_t workload;
	int64_t exit_ns;
};

/* A report that the other source may repeat within the window. */
struct xid_recent {
	char pci_bus_id[32];
	uint32_t code;
	unsigned sources; /* that have reported it, a bit each */
	int64_t from_ns, to_ns; /* it happened between these */
};

/* A source, as published but for `id` and `fresh`, and what belongs to its readings. */
struct source_state {
	struct source s;
	char outage[REASON_MAX], outage_cause[REASON_MAX]; /* see model_set_outage() */
	int64_t period_ns; /* between its readings; 0: the model's */
	uint32_t attach; /* of its newest good reading */
	bool simulated_numbers; /* the newest numbers come from the simulated driver */
};

struct model {
	struct model_limits limits;
	process_identify_fn *identify;
	void *identify_data;
	int64_t period_ns;
	char hostname[65];

	struct source_state sources[SOURCES];
	uint64_t readings; /* taken in, of all sources */
	int64_t reading_ns; /* end of the newest, whatever its source and state; 0 none yet */
	int64_t begin_ns; /* and its beginning */
	uint32_t topology_n;
	uint8_t topology[READING_TOPOLOGY_MAX][READING_TOPOLOGY_MAX];
	uint8_t topology_nvlinks[READING_TOPOLOGY_MAX][READING_TOPOLOGY_MAX];
	uint64_t rejected[GPU_METRICS];
	uint64_t rejected_process[PROCESS_METRICS];
	double agent[AGENT_METRICS];
	uint8_t agent_p[AGENT_METRICS];
	struct trace_view *trace; /* NULL: tracing is off */
	struct traced_table traced;
	struct owners *owners; /* NULL: no source has said any */

	struct device *devices[DEVICES_MAX]; /* NULL: a free place */
	uint16_t order[DEVICES_MAX]; /* devices by rank */
	uint16_t devices_n;

	struct tracked *processes;
	uint64_t *sorted; /* (rank, pid, index) of each, in the snapshot's order */
	uint32_t processes_n, processes_room;
	bool sorted_valid;
	struct hashmap process_map; /* process_key() to index */
	struct series_set series;

	struct exit_record *exits; /* ring: the oldest at exits_first */
	uint32_t exits_n, exits_first, exits_room;
	uint64_t exit_seq;
	uint64_t exits_tag; /* changes when the published list does */

	struct tracked_workload *workloads;
	uint16_t *workload_rank; /* scratch of publish.c */
	uint32_t workloads_n; /* places used at some time */
	uint32_t workloads_room;
	uint32_t workloads_named; /* in use, without the devices' others: what the limit bounds */
	struct hashmap workload_map;

	struct xid xids[XIDS_MAX];
	uint32_t xids_n;
	struct xid_recent xid_recent[XID_RECENT_MAX];
	uint32_t xid_recent_next;
	uint64_t kmsg_sequence; /* of the newest record counted or loaded */
	uint64_t kmsg_loaded; /* what an earlier run has counted up to */
	int64_t kmsg_from_ns; /* older records are not counted */
	bool xids_dirty;
};

/* source.c */

/* A reading that ended at end_ns has come: the source's state, and the agent's metrics about it. */
void source_apply(struct model *model, enum source_id source, const struct reading *reading, int64_t now_ns,
		  int64_t end_ns);
/*
 * Older than this, a source's data are stale: two missed readings and a half, and never less than what a busy
 * machine may take.
 */
int64_t source_stale_after(const struct model *model, enum source_id source);
bool source_recent(const struct model *model, enum source_id source, int64_t when_ns, int64_t now_ns);
/* States of all sources, the node's freshness, the metric source_up. */
void sources_publish(struct model *model, struct snapshot *snapshot);

/* Whether no source of devices in use has a higher priority. */
bool source_is_first(const struct model *model, enum source_id source);

/* owner.c */

/* Whose the workload is: by its own ID, else by its pod's. NULL: not known. */
const struct owner *owner_find(const struct model *model, const struct workload *w);

/* process.c */

/* `devices` as from devices_match(). */
void processes_apply(struct model *model, const struct reading *reading, const uint16_t *devices,
		     uint32_t devices_n, int64_t end_ns);
/* Ends those that no reading has any more and that /proc does not have either. */
void processes_sweep(struct model *model, int64_t now_ns);
/* Asks the callback. -ESRCH also where there is none; what it does not tell is unknown then. */
int process_identify(const struct model *model, uint32_t pid, bool full,
		     struct process_identity *ret_identity);
/* The workload of the live process on the first device that lists it; NULL: it has none, or is not listed. */
const struct workload *process_workload(const struct model *model, struct process_id id);
/* The device is about to be forgotten. */
void processes_forget_device(struct model *model, uint16_t device, int64_t now_ns);
/* Who has a series, after the limit or recent use has changed. */
void processes_balance(struct model *model);

/* exit.c */

/* How long one is kept: far longer than atop's usual interval of 10 minutes. */
#define EXIT_KEPT_NS (INT64_C(3600) * 1000000000)
struct exit_record *exit_at(const struct model *model, uint32_t n);
void exit_add(struct model *model, const struct tracked *t, int64_t now_ns);
/* The newest record of this PID on this device, if it is not older than since_ns; NULL. */
struct exit_record *exit_find(const struct model *model, uint16_t device, uint32_t pid, int64_t since_ns);
void exits_expire(struct model *model, int64_t now_ns);

/* workload.c */

/* Place of the workload on the device, made if need be. */
uint16_t workload_find(struct model *model, enum workload_kind kind, const char *id, const char *pod_uid,
		       uint16_t device);
void workload_credit(struct model *model, uint16_t workload, enum process_metric row, double increment,
		     uint8_t presence);
void workload_enter(struct model *model, uint16_t workload);
void workload_leave(struct model *model, uint16_t workload, int64_t now_ns);
void workloads_forget_device(struct model *model, uint16_t device);

/* xid.c */

/* The reading's events happened between since_ns and end_ns. */
void xids_apply(struct model *model, enum source_id source, const struct reading *reading,
		const uint16_t *devices, uint32_t devices_n, int64_t since_ns, int64_t end_ns);
void xids_publish(const struct model *model, struct snapshot *snapshot);
