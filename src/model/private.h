// SPDX-License-Identifier: Apache-2.0
/*
 * Internals of the model, for this folder only. model/model.h has the interface.
 *
 *   source.c     states of the sources, freshness of the node; model.c: processes one reading
 *   device.c     GPUs and MIG instances, identified by UUID
 *   accumulate.c values from readings, by kind of metric
 *   attribution.c what processes account for of a device's figures
 *   merge.c      which source's value is shown, where several know a device
 *   process.c    processes: identity (PID reuse), credited increments, exits
 *   exit.c       exited processes; series.c: which have series of their own in /metrics, and crediting
 *   workload.c   containers, pods, jobs and units, per device
 *   share.c      which part of a table of workloads users may have
 *   job.c        which job a process belongs to, as its cgroup and its environment say
 *   owner.c      owners of workloads; scraped.c: rows of DCGM exporters' pages
 *   allocation.c who was given which device, as each source says it
 *   allocation_resolve.c  from what they say to allocations of devices
 *   health.c     whether kubelet and pods call devices healthy
 *   allocated.c  for how long, and idle; server.c: inference servers, and what of the GPUs is theirs
 *   xid.c        XID counts from several sources; xid_store.c saves them across restarts
 *   traced.c     workloads of traced processes
 *   publish.c    the state as a snapshot; join.c joins traced processes with the driver's
 *
 * Devices, workloads and XIDs never change their index; processes are stored densely and move when another
 * one ends.
 */
#pragma once

#include "base/hashmap.h"
#include "model/allocations.h"
#include "model/look_back.h"
#include "model/device.h"
#include "model/healths.h"
#include "model/model.h"
#include "model/series.h"
#include "model/server_table.h"
#include "model/share.h"
#include "model/traced.h"
#include "model/workloads.h"

enum {
	DEVICES_MAX = READING_ENTITIES_MAX,
	XIDS_MAX = 1024, /* (GPU, code) pairs */
	XID_CODES_MAX = 64, /* of these, on one GPU */
	XID_REPORTS_MAX = 256, /* the newest, which another source may still repeat */
};

enum environment_state {
	ENVIRONMENT_UNKNOWN, /* it has not been identified */
	ENVIRONMENT_WANTED,
	ENVIRONMENT_ASKED /* being read, or read, or unreadable */
};

/* A live process on a device. Its p.job is an index in model.jobs, with a reference. */
struct tracked {
	struct process p; /* as published, except for its indexes: */
	uint16_t device;
	uint16_t workload; /* NO_INDEX: none */
	/* key and user of the workload that there was no place for, so that it is in "other"; 0: none */
	uint64_t wanted;
	uint32_t wanted_user;
	enum environment_state environment;
	uint64_t seen; /* number of the newest reading that contained it */
	int64_t seen_ns; /* end of that reading */
	int64_t checked_ns; /* when its identity was last checked */
	int64_t increment_ns; /* beginning of the newest reading whose increments were accepted; 0 none */
	bool was_listed; /* has been in a process list, not only in the utilisation samples */
	struct series_claim claim; /* score: recent use, 0..2 */
	struct look_back *look_back; /* NULL: not kept yet */
	double counted_busy; /* of its busy time, what servers_count() has seen */
};

struct tracked_workload {
	struct workload w; /* kind WORKLOAD_KINDS: free */
	uint16_t device;
	int64_t idle_ns; /* since when it has no live process */
	uint64_t worked, work_unknown; /* newest readings in which a process of it worked, or may have */
	uint16_t allocations[2]; /* of its device, and of the GPU of its instance; NO_INDEX */
};

struct exit_record {
	struct process p;
	uint16_t device; /* NO_INDEX: the device has been forgotten */
	uint16_t workload;
	int64_t exit_ns;
};

struct tracked_job;
struct job_table {
	struct tracked_job *jobs;
	uint32_t n, room;
};

/* A source's published state (without `id` and `fresh`), and data about its readings. */
struct source_state {
	struct source s;
	char outage[REASON_MAX], outage_cause[REASON_MAX]; /* see model_set_outage() */
	int64_t period_ns; /* between its readings; 0: the model's */
	uint32_t attach; /* of its newest good reading */
	bool here; /* of devices: it has given a good reading, which is always of this node */
	bool simulated_numbers; /* the newest numbers come from the simulated driver */
};

struct model {
	struct model_limits limits;
	process_identify_fn *identify;
	void *identify_data;
	int64_t period_ns;
	int64_t clock_window_ns;
	char hostname[65];
	char node_name[NODE_NAME_MAX]; /* "": as the host is called */
	uint32_t tags_n;
	struct node_tag tags[NODE_TAGS_MAX];

	struct source_state sources[SOURCES];
	uint64_t readings; /* processed, from all sources */
	int64_t reading_ns; /* end of the newest, of any source and state; 0: none yet */
	int64_t begin_ns; /* and its beginning */
	uint32_t gpus_unidentified;
	uint32_t topology_n;
	uint8_t topology[READING_TOPOLOGY_MAX][READING_TOPOLOGY_MAX];
	uint8_t topology_nvlinks[READING_TOPOLOGY_MAX][READING_TOPOLOGY_MAX];
	uint64_t rejected[GPU_METRICS];
	uint64_t rejected_process[PROCESS_METRICS];
	double agent[AGENT_METRICS];
	uint8_t agent_p[AGENT_METRICS];
	struct trace_view *trace; /* NULL: tracing is off */
	struct traced_table traced;
	struct owners *owners; /* NULL: no source has given any */
	struct scraped *scraped; /* NULL: nothing is scraped */
	struct nccl_measurements *measured; /* NULL: nothing was */
	struct gpu_times *gpu_times; /* the same */
	struct host_sums host;
	struct server_table servers;
	struct allocations allocations;
	struct health_table health[HEALTH_TELLERS];

	struct device *devices[DEVICES_MAX]; /* NULL: free */
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
	uint32_t workloads_n; /* indexes ever used */
	uint32_t workloads_room;
	uint32_t workloads_named; /* used, without the devices' "other": limited by limits.workloads */
	uint64_t unnamed; /* workloads, also traced ones, that had no owner when they came */
	struct hashmap workload_map;

	struct job_table jobs;
	uint32_t environments_wanted; /* processes in ENVIRONMENT_WANTED */

	struct xid xids[XIDS_MAX];
	uint32_t xids_n;
	struct xid_report xid_reports[XID_REPORTS_MAX]; /* ring, by number */
	uint64_t xid_reports_n; /* so far */
	uint64_t kmsg_sequence; /* of the newest record counted or loaded */
	uint64_t kmsg_loaded; /* newest record counted by an earlier run */
	int64_t kmsg_from_ns; /* older records are not counted */
	bool xids_dirty;
};

/* source.c */

/* Updates the source's state and the agent's metrics about it for a reading that ended at end_ns. */
void source_apply(struct model *model, enum source_id source, const struct reading *reading, int64_t now_ns,
		  int64_t end_ns);
/* Age at which a source's data are stale: 2.5 periods, and a minimum that allows for a busy machine. */
int64_t source_stale_after(const struct model *model, enum source_id source);
bool source_recent(const struct model *model, enum source_id source, int64_t when_ns, int64_t now_ns);
/* Publishes the states of all sources, the node's freshness and the metric source_up. */
void sources_publish(struct model *model, struct snapshot *snapshot);

/* Whether no source of devices in use has a higher priority. */
bool source_is_first(const struct model *model, enum source_id source);

/* owner.c */

/* The workload's owner: by its own ID, else by its pod's. NULL: unknown. */
const struct owner *owner_find(const struct model *model, enum workload_kind kind, const char *id,
			       const char *pod_uid);
/* The one of this kind that has these names; NULL: none, or several. */
const struct owner *owner_of_names(const struct model *model, enum workload_kind kind, const char *namespace,
				   const char *pod, const char *container);
/* Whether it may have a name that is not known yet. */
bool owner_is_wanted(enum workload_kind kind, uint32_t user, const struct owner *owner);

/* Copies a text, zeroing the rest of @to, so that equal texts have equal bytes, and makes it valid UTF-8. */
void copy_text(char *to, size_t size, const char *from);

/* process.c */

/* @devices is from devices_match(). */
void processes_apply(struct model *model, const struct reading *reading, const uint16_t *devices,
		     uint32_t devices_n, int64_t end_ns);
/* Ends processes that are in no reading any more and have no /proc entry. */
void processes_sweep(struct model *model, int64_t now_ns);
/* Calls the identify callback. -ESRCH also if there is none; fields that it does not set are unknown. */
int process_identify(const struct model *model, uint32_t pid, bool full,
		     struct process_identity *ret_identity);
/* NULL: it is not known there. */
struct tracked *tracked_find(const struct model *model, uint16_t device, uint32_t pid);
/* The workload of the live process on the first device that lists it; NULL: no workload, or not listed. */
const struct workload *process_workload(const struct model *model, struct process_id id);
/* To be called before a device is forgotten. */
void processes_forget_device(struct model *model, uint16_t device, int64_t now_ns);
/* Reassigns series after the limit or the recent use has changed. */
void processes_balance(struct model *model);

/* exit.c */

/* How long a record is stored: much longer than atop's usual interval of 10 minutes. */
#define EXIT_KEPT_NS (INT64_C(3600) * 1000000000)
struct exit_record *exit_at(const struct model *model, uint32_t n);
void exit_add(struct model *model, const struct tracked *t, int64_t now_ns);
/* The newest record of this PID on this device that is not older than since_ns; NULL: none. */
struct exit_record *exit_find(const struct model *model, uint16_t device, uint32_t pid, int64_t since_ns);
void exits_expire(struct model *model, int64_t now_ns);

/* job.c */

/* The job that the process's cgroup is of, with a reference; JOB_NONE. */
uint32_t job_of_cgroup(struct model *model, const struct process_identity *identity);
uint32_t job_ref(struct model *model, uint32_t job);
void job_unref(struct model *model, uint32_t job);
/* The first name of a job that a workload's processes tell stays. */
void job_name_workload(struct model *model, const struct tracked *t);
/* The same process on another device. */
void job_copy(struct model *model, struct tracked *to, const struct tracked *from);
void jobs_publish(const struct model *model, struct snapshot *snapshot);
void jobs_done(struct model *model);

/* xid.c */

/* Counts the reading's XID events, which happened between since_ns and end_ns. */
void xids_apply(struct model *model, enum source_id source, const struct reading *reading,
		const uint16_t *devices, uint32_t devices_n, int64_t since_ns, int64_t end_ns);
void xids_publish(const struct model *model, struct snapshot *snapshot);
