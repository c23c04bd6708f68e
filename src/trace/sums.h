// SPDX-License-Identifier: Apache-2.0
/*
 * The sums by process and call, read from the kernel side's maps. Only active processes are read, and
 * differences are added up in 64 bits.
 *
 *   first hit (PROCESS or STAT event) ──> live ──> ended (EXIT, EXEC, or missing in the map): read a last
 *                                                   │    time, deleted from the maps
 *                                                   └──> shown in one more collection, then dropped
 *
 * Invariants
 *  1. Values that are read for a process are added to the totals at once, so the totals do not depend on
 *     which processes are still stored.
 *  2. A process is an incarnation; it has ended when a newer one with the same PID is seen.
 *  3. Latency buckets are stored only for the range that occurs: a thousand processes of twenty calls each
 *     take a few MiB.
 *
 * The maps are accessed through struct sums_maps, so that tests need no kernel.
 */
#pragma once

#include "base/hashmap.h"
#include "trace/budget.h"
#include "trace/engine.h"

struct sums_maps {
	/* -ENOENT: no such entry. */
	int (*stat)(void *maps, const struct trace_stat_key *key, struct trace_stat *ret_stat);
	int (*proc)(void *maps, uint32_t tgid, struct trace_proc *ret_proc);
	/* Flags of a process of this incarnation. */
	int (*set_flags)(void *maps, uint32_t tgid, uint64_t incarnation, uint32_t flags);
	/* All keys; all error codes with their counts. Entries that change meanwhile may be left out. */
	int (*each_stat)(void *maps, void (*fn)(const struct trace_stat_key *key, void *userdata),
			 void *userdata);
	int (*each_error)(void *maps,
			  void (*fn)(const struct trace_error_key *key, uint64_t count, void *userdata),
			  void *userdata);
	void (*delete_stat)(void *maps, const struct trace_stat_key *key);
	void (*delete_error)(void *maps, const struct trace_error_key *key);
};

struct sums_code {
	int32_t code;
	uint64_t count;
};

struct sums_call {
	uint16_t call;
	uint16_t first, n; /* buckets: those below @first and from first + n on are empty */
	uint16_t codes_n;
	uint64_t count, errors, bytes, total_ns, nested;
	int64_t last_ns;
	uint64_t *buckets;
	struct sums_code *codes; /* TRACE_CODES_MAX of them; NULL: no errors yet */
	uint64_t other_codes; /* errors that are counted without their code */
};

struct sums_process {
	uint32_t tgid;
	uint32_t index; /* in struct sums */
	uint64_t incarnation;
	uint64_t start_boot_ns;
	char comm[TRACE_COMM];
	unsigned incomplete; /* enum trace_incomplete; bits are never cleared */
	unsigned told_incomplete; /* of these, as sinks know it */
	uint32_t flags; /* enum trace_proc_flag, as written */
	bool no_event; /* no PROCESS event came: name and start are from /proc, if at all */
	bool ended, shown;
	bool gone; /* the kernel side has no entry for it; used by sums_reconcile() */
	bool errors_grew;
	bool codes_pending; /* it has ended, and its error codes are still to be read and deleted */
	uint16_t calls_n, calls_cap;
	struct sums_call *calls; /* in the order of their first hit */
	struct budget_process budget;
	uint32_t stacks; /* that were taken since the last collection */
};

struct sums_ops {
	/* Hits since the last reading: calls counted and hits nested in others. For the budget. */
	void (*hits)(struct sums_process *process, uint16_t call, uint64_t counted, uint64_t nested,
		     void *userdata);
	void (*ended)(struct sums_process *process, void *userdata);
};

struct sums {
	const struct sums_maps *maps;
	void *maps_of;
	const struct sums_ops *ops;
	void *userdata;
	uint32_t max; /* TRACE_PROCESSES_MAX */
	struct hashmap live; /* tgid: index in processes */
	struct sums_process **processes; /* live and ended, in no order */
	uint32_t processes_n, processes_cap, ended_n;
	struct trace_sum **totals; /* by call, probe_calls_max() of them; NULL: not called yet */
	uint64_t refused; /* processes beyond the limit */
	bool errors_grew;
	bool codes_pending; /* for any process */
	struct hashmap ended_by_incarnation; /* incarnation: index in processes */
};

int sums_init(struct sums *sums, uint32_t max, const struct sums_maps *maps, void *maps_of,
	      const struct sums_ops *ops, void *userdata);
void sums_done(struct sums *sums);

/* The live process of this PID, or NULL. */
struct sums_process *sums_find(const struct sums *sums, uint32_t tgid);
/* The process of this key, live or ended and not yet dropped; or NULL. */
struct sums_process *sums_find_exact(const struct sums *sums, uint32_t tgid, uint64_t incarnation);
/*
 * Finds or adds the process of an event. *ret_made: it is new. -ENOSPC: beyond the limit, counted. -ESTALE: a
 * later process has its PID; sums_reconcile() handles its remaining entries.
 */
int sums_process_seen(struct sums *sums, uint32_t tgid, uint64_t incarnation,
		      struct sums_process **ret_process, bool *ret_made);
/* Adds a call of the process, after a STAT event. If the process has ended, reads the call at once. */
int sums_call_seen(struct sums *sums, struct sums_process *process, uint16_t call);
/* For sums.c: reads a call for the last time, and deletes it from the map. */
void sums_read_last(struct sums *sums, struct sums_process *process, struct sums_call *call);
/*
 * Marks the process as ended: reads its sums for the last time and deletes them from the maps. Error codes
 * follow at the next collection, for all processes in one walk.
 */
void sums_process_ended(struct sums *sums, struct sums_process *process);
/* Marks the process as ended if the kernel side has no entry for this incarnation. */
void sums_check_gone(struct sums *sums, struct sums_process *process);

/*
 * Reads the live processes whose byte is set in @active, or all if that is NULL. Drops processes that have
 * ended and were shown. If errors grew, reads the error codes in one walk.
 */
void sums_collect(struct sums *sums, const uint8_t active[TRACE_ACTIVE]);
/* After lost events: finds keys without an event, and processes that have ended. */
void sums_reconcile(struct sums *sums);
/* Drops processes that had ended when they were last shown. */
void sums_drop_shown(struct sums *sums);
int sums_set_flags(struct sums *sums, struct sums_process *process, uint32_t flags);

void sums_expand(const struct sums_call *call, struct trace_sum *ret_sum);

/* ---- buckets ---- */

/* Bucket @i has durations from the first up to, but excluding, the second. */
uint64_t sums_bucket_low(unsigned i);
uint64_t sums_bucket_end(unsigned i);
