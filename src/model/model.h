// SPDX-License-Identifier: Apache-2.0
/*
 * The model: what gpusonde knows. Sources write into it, it accumulates, and model_publish() makes the
 * snapshot that every view reads. It belongs to the main thread; nothing here blocks, and after the node has
 * stopped growing nothing allocates.
 *
 * Invariants
 *  1. A counter never falls while its entity is known, and never shows what did not happen: driver
 *     counters are added up by differences, a driver that starts again at zero continues the sum, a single
 *     wrong reading is left out (model/accumulate.c).
 *  2. Each increment of a process is credited once: to its own series if it has one at that moment, else
 *     to its entity's `process_other`; and always to process_total and, if it belongs to one, to its
 *     workload.
 *  3. An entity once seen stays, with present = false when the driver no longer lists it; it is found
 *     again by UUID (and GI, CI).
 *  4. Everything that a workload can make grow has a limit (struct model_limits); reaching it is counted
 *     in agent metrics.
 */
#pragma once

#include "model/snapshot.h"

struct model;

struct model_limits {
	uint32_t processes; /* live (process, entity) pairs known; default READING_PROCESSES_MAX */
	uint32_t series; /* process series per node in /metrics; default 128 */
	uint32_t exited; /* exit records kept; default 1024 */
	uint32_t workloads; /* (workload, entity) pairs; default 1024 */
};

/* What /proc says about a PID; filled by a callback so that the model knows no source. */
struct process_identity {
	struct process_id id;
	uint32_t uid;
	char comm[64];
	enum workload_kind kind;
	char workload_id[96];
	char pod_uid[48];
};
/* 0; -ESRCH when there is no such process here. With @full false only @id is needed. */
typedef int process_identify_fn(uint32_t pid, bool full, struct process_identity *ret_identity,
				void *userdata);

int model_new(const struct model_limits *limits, struct model **ret_model);
void model_free(struct model *model);
void model_set_identify(struct model *model, process_identify_fn *identify, void *userdata);
void model_set_period(struct model *model, int64_t period_ns);
/* Series bound may change on reload; credited amounts stay. */
void model_set_limits(struct model *model, const struct model_limits *limits);

/*
 * The newest reading of a source of devices (already passed through reading_check). -ESTALE: it is not newer
 * than the one before; nothing changed.
 */
int model_apply(struct model *model, enum source_id source, const struct reading *reading);

/*
 * How often a source delivers, when that is not the model's period: its data are stale two and a half of
 * these after its newest.
 */
void model_set_source_period(struct model *model, enum source_id source, int64_t period_ns);

/* A source that gives no readings works (READING_OK), or why it does not. To be repeated while it is so. */
void model_set_source(struct model *model, enum source_id source, enum reading_state state,
		      const char *error);

/*
 * One XID report from the kernel log. The same XID reported by the driver's events within a few seconds is
 * counted once. `sequence` is the record's number in the log: what an earlier run of the agent has counted
 * since this boot (see model_xids_load) is not counted again. 0: no number, always counted.
 */
void model_kmsg_xid(struct model *model, const char *pci_bus_id, uint32_t code, int64_t boot_ns,
		    uint64_t sequence);

/* The agent's own figures: set a gauge, add to a counter. */
void model_agent_set(struct model *model, enum agent_metric metric, double value);
void model_agent_add(struct model *model, enum agent_metric metric, double value);

/*
 * Why a source gives no fresh data, in words (child hung in nvmlDeviceGetX for 12 s), shown by /readyz and
 * doctor; and the cause alone, which is to be the same text for as long as it lasts, since it becomes a
 * label. NULL clears.
 */
void model_set_outage(struct model *model, enum source_id source, const char *text, const char *cause);

/*
 * Who owns the workloads, as one source knows it: takes the place of all that this source has said before.
 * Copies the rows and makes their strings valid UTF-8; of two rows for one workload the first is kept, and of
 * two sources the one with the higher priority. At most OWNERS_MAX rows; those beyond, and rows without a
 * kind or an ID, are counted in the source's `dropped`. -ENOMEM: what was known before stays.
 */
int model_set_owners(struct model *model, enum source_id source, const struct owner *owners, uint32_t n);

/*
 * What tracing knows now, for the snapshots that follow, in place of what it knew before; takes a reference
 * of its own. NULL: tracing has ended. The agent's figures in it (agent_metric_of_trace()) become the
 * model's.
 */
void model_set_trace(struct model *model, struct trace_view *view);

/* Publish the present state into `publisher` as of now. */
int model_publish(struct model *model, struct publisher *publisher);

/*
 * XID counts since boot, kept across restarts of the agent (model/xid_store.c): a small text file written
 * atomically. To be loaded before the first reading and the first line of the kernel log. 0 too when there is
 * no file yet, or one of an earlier boot: then counting begins at zero. -EBADMSG: the file cannot be
 * understood; it is kept as PATH.bad, counting begins at zero.
 */
int model_xids_load(struct model *model, const char *path);
int model_xids_save(struct model *model, const char *path);
bool model_xids_dirty(const struct model *model);
