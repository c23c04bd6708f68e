// SPDX-License-Identifier: Apache-2.0
/*
 * The model: the state of the node. Sources write into it, it accumulates, and model_publish() makes the
 * snapshot that every view reads. It belongs to the main thread. Nothing in it blocks, and it stops
 * allocating once the node has stopped growing.
 *
 * Invariants
 *  1. A counter never falls while its entity is known, and never shows an impossible increase: driver
 *     counters are accumulated by differences, a driver that restarts at zero continues the sum, and a single
 *     wrong reading is ignored (model/accumulate.c).
 *  2. Each increment of a process is credited once: to its own series if it has one at that moment, else to
 *     its entity's `process_other`; and always to process_total and, if it belongs to one, to its workload.
 *  3. An entity once listed remains known, with present = false when the driver no longer lists it; it is
 *     recognised by UUID (and GI, CI).
 *  4. Everything that a workload can make grow has a limit (struct model_limits); reaching it is counted in
 *     agent metrics.
 */
#pragma once

#include "model/allocation.h"
#include "model/health.h"
#include "model/snapshot.h"

struct model;

struct model_limits {
	uint32_t processes; /* live (process, entity) pairs known; default READING_PROCESSES_MAX */
	uint32_t series; /* process series per node in /metrics; default 128 */
	uint32_t exited; /* exit records stored; default 1024 */
	/* (workload, entity) pairs; default 1024. Users' own cgroups may have a part of it: model/share.h */
	uint32_t workloads;
};

/* /proc's data about a PID; filled by a callback so that the model depends on no source. */
struct process_identity {
	struct process_id id;
	uint32_t uid;
	uint32_t ns_pid; /* in its own PID name space; 0: unknown */
	char comm[64];
	enum workload_kind kind;
	char workload_id[96];
	char pod_uid[48];
	uint32_t user; /* in whose slice its cgroup is, and who may have made it; 0: root's, or in none */
	/* its job, as its cgroup says, also of a container in a job */
	enum job_manager job_manager;
	char job_id[96], job_step[32];
};
/* 0; -ESRCH if the PID does not exist here. With @full false only @id is needed. */
typedef int process_identify_fn(uint32_t pid, bool full, struct process_identity *ret_identity,
				void *userdata);

/*
 * The minor numbers below 64 of the GPUs that are or were here, as bits. *ret_instances: whether one of them
 * has MIG instances.
 */
uint64_t model_gpu_minors(const struct model *model, bool *ret_instances);

int model_new(const struct model_limits *limits, struct model **ret_model);
void model_free(struct model *model);
void model_set_identify(struct model *model, process_identify_fn *identify, void *userdata);
void model_set_period(struct model *model, int64_t period_ns);
/* Of what length the window of clock events is; CLOCK_WINDOW_DEFAULT_NS at first. */
void model_set_clock_window(struct model *model, int64_t window_ns);
/* The limits may change on reload; credited amounts remain. */
void model_set_limits(struct model *model, const struct model_limits *limits);

/*
 * Processes the newest reading of a device source (already passed through reading_check). -ESTALE: not newer
 * than the previous one; nothing changed.
 */
int model_apply(struct model *model, enum source_id source, const struct reading *reading);

/*
 * The interval of a source's readings, if it differs from the model's period: data are stale 2.5 intervals
 * after the newest.
 */
void model_set_source_period(struct model *model, enum source_id source, int64_t period_ns);

/*
 * State of a source without readings: READING_OK, or the reason of its failure. To be repeated while it
 * lasts.
 */
void model_set_source(struct model *model, enum source_id source, enum reading_state state,
		      const char *error);

/* Whether the source is in use, and its newest data are good and recent. */
bool model_source_delivers(const struct model *model, enum source_id source);

struct xid_record {
	const char *pci_bus_id;
	uint32_t code;
	uint32_t gi, ci; /* UINT32_MAX: none */
	int64_t boot_ns;
	uint64_t sequence; /* number in the log; 0: none, always counted */
	const char *text; /* valid UTF-8 */
};

/*
 * One XID report from the kernel log. The same XID reported by the driver's events within a few seconds is
 * counted once. Records counted by an earlier run of the agent since this boot (see model_xids_load) are not
 * counted again.
 */
void model_kmsg_xid(struct model *model, const struct xid_record *record);

/* Agent metrics: set a gauge, add to a counter. */
void model_agent_set(struct model *model, enum agent_metric metric, double value);
void model_agent_add(struct model *model, enum agent_metric metric, double value);

/*
 * Why a source gives no fresh data (child hung in nvmlDeviceGetX for 12 s), shown by /readyz and doctor; and
 * the cause without times, which becomes a label and so must not change during the outage. NULL clears both.
 */
void model_set_outage(struct model *model, enum source_id source, const char *text, const char *cause);

/*
 * Replaces the owners of workloads that this source has given before. Copies the rows and makes their strings
 * valid UTF-8; of two rows for one workload the first is used, and of two sources the one with the higher
 * priority. A workload keeps the owner that it has had while no row names another. At most OWNERS_MAX rows;
 * further ones, and rows without a kind or an ID, are counted in the source's `dropped`. -ENOMEM: the
 * previous owners remain.
 */
int model_set_owners(struct model *model, enum source_id source, const struct owner *owners, uint32_t n);

/*
 * Replaces what this source has said before about who was given which device. Copies the rows and makes
 * their strings valid UTF-8. At most ALLOCATIONS_MAX rows; further ones, and rows of no device or without
 * an ID and a pod's name, are counted in the source's `dropped`. -ENOMEM: the previous rows remain.
 */
int model_set_allocations(struct model *model, enum source_id source, const struct allocation *rows,
			  uint32_t n);

/*
 * Replaces what this one has said before about devices' health. NULL: it says nothing any more. Copies the
 * rows; at most DEVICE_HEALTH_MAX. -ENOMEM: the previous ones remain.
 */
int model_set_health(struct model *model, enum health_teller teller, const struct device_health *rows,
		     uint32_t n);

/*
 * Replaces what DCGM exporters' pages said (model/scraped.h); their source's state is said apart from it.
 * Copies the rows, makes their strings valid UTF-8 and joins those of one key; values that are not finite are
 * absent. NULL: nothing is scraped. At most SCRAPED_ROWS_MAX rows; further ones are counted in the source's
 * `dropped`. -ENOMEM: the previous rows remain.
 */
int model_set_scraped(struct model *model, const struct scraped_row *rows, uint32_t n,
		      int64_t stale_after_ns);

/* Replaces what NCCL's plugin measured; takes a reference. */
void model_set_measured(struct model *model, struct nccl_measurements *measured);

/* Replaces what CUPTI's plugin measured; takes a reference. */
void model_set_gpu_times(struct model *model, struct gpu_times *times);

/* Takes a reading of the machine's own figures, once a tick. */
void model_set_host(struct model *model, const struct host *reading);

/*
 * Replaces the inference servers that were found; of those that stay sums go on. @left_out: for which there
 * was no room. At most SERVERS_MAX.
 */
void model_set_servers(struct model *model, const struct found_server *list, uint32_t n, uint64_t left_out);
/* What the page of one of them said; NULL: it could not be read, for the reason @error. */
void model_set_server_page(struct model *model, struct process_id id, const struct server_page *page,
			   const char *error);

/* Replaces the tags that were given to the node. At most NODE_TAGS_MAX. */
void model_set_tags(struct model *model, const struct node_tag *tags, uint32_t n);

/* What this node is called in its cluster; NULL or "": as the host is. Copied, cut to a name's length. */
void model_set_node_name(struct model *model, const char *name);

/* Whether a container or pod that has processes now has no owner: its names may have come since. */
bool model_wants_owners(const struct model *model);
/* How many containers and pods have come so far of which no owner was known: it grows with each new one. */
uint64_t model_unnamed(const struct model *model);

/* A process whose environment was not asked for. */
struct model_unread {
	struct process_id id;
	enum job_manager manager; /* of the job that its cgroup is of */
	char job[96]; /* its ID; "": none */
};
/*
 * The next of these from *at on, which is advanced and goes round; false: none. model_mark_read() says that
 * it is being read now, or that it is to be asked for later; model_set_job() what it says. Neither does
 * anything for other processes.
 */
bool model_next_unread(const struct model *model, uint32_t *at, struct model_unread *ret_unread);
void model_mark_read(struct model *model, struct process_id id, bool read);
void model_set_job(struct model *model, struct process_id id, const struct job_claim *claim);

/*
 * Replaces the trace view that the following snapshots contain; takes a reference. NULL: tracing has ended.
 * Its agent metrics (agent_metric_of_trace()) become the model's.
 */
void model_set_trace(struct model *model, struct trace_view *view);

/* Publishes the current state into `publisher`. */
int model_publish(struct model *model, struct publisher *publisher);

/*
 * Loads the XID counts since boot, which survive restarts of the agent (model/xid_store.c) in a small text
 * file written atomically. To be called before the first reading and the first line of the kernel log. Also 0
 * if there is no file, or one of an earlier boot: then counting starts at zero. -EBADMSG: the file is
 * invalid; it is renamed to PATH.bad, counting starts at zero.
 */
int model_xids_load(struct model *model, const char *path);
int model_xids_save(struct model *model, const char *path);
bool model_xids_dirty(const struct model *model);
