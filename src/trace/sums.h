// SPDX-License-Identifier: Apache-2.0
/*
 * The sums of every process and call, read from the kernel side's maps: of those that were active only,
 * differences added up in 64 bits.
 *
 *   first hit (PROCESS or STAT event) ──> live ──> over (EXIT, EXEC, or found gone): read a last time,
 *                                                   │    deleted from the maps
 *                                                   └──> shown in one more collection, then forgotten
 *
 * Invariants
 *  1. What has been read of a process is part of the totals at once, so the totals do not depend on who is
 *     still known.
 *  2. A process is an incarnation; an older one of the same PID is over when a newer one is seen.
 *  3. Latency buckets are kept for the range that occurs only: a thousand processes of twenty calls each
 *     are a few MiB.
 *
 * The maps are reached through struct sums_maps, so that tests need no kernel.
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
	/* All keys; all codes with their counts. Entries that come or go meanwhile may be left out. */
	int (*each_stat)(void *maps, void (*fn)(const struct trace_stat_key *key, void *userdata),
			 void *userdata);
	int (*each_error)(void *maps,
			  void (*fn)(const struct trace_error_key *key, uint64_t count, void *userdata),
			  void *userdata);
	void (*forget_stat)(void *maps, const struct trace_stat_key *key);
	void (*forget_error)(void *maps, const struct trace_error_key *key);
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
	struct sums_code *codes; /* room for TRACE_ERROR_CODES_MAX; NULL: no errors yet */
	uint64_t other_codes; /* of those that had no room; known when it is over */
};

struct sums_process {
	uint32_t tgid;
	uint32_t index; /* in struct sums */
	uint64_t incarnation;
	uint64_t start_boot_ns;
	char comm[TRACE_COMM];
	unsigned incomplete; /* enum trace_incomplete; bits that once set stay */
	uint32_t flags; /* enum trace_proc_flag, as written */
	bool unheard; /* made by a STAT event or a walk: name and start are from /proc, if at all */
	bool over, shown;
	bool gone; /* the kernel side knows it no more; while losses are made good */
	bool errors_grew;
	bool codes_due; /* over, its codes are still to be read and deleted */
	uint16_t calls_n, calls_cap;
	struct sums_call *calls; /* in the order of their first hit */
	struct budget_process budget;
};

struct sums_ops {
	/* Hits since the last reading: calls counted and hits nested in others. For the budget. */
	void (*hits)(struct sums_process *process, uint16_t call, uint64_t counted, uint64_t nested,
		     void *userdata);
	void (*over)(struct sums_process *process, void *userdata);
};

struct sums {
	const struct sums_maps *maps;
	void *maps_of;
	const struct sums_ops *ops;
	void *userdata;
	uint32_t max; /* TRACE_PROCESSES_MAX */
	struct hashmap live; /* tgid: index in processes */
	struct sums_process **processes; /* live and over, no order */
	uint32_t processes_n, processes_cap, over_n;
	struct trace_sum **totals; /* by call, probes_n of them; NULL: no call of it yet */
	uint64_t refused; /* processes and calls that had no room */
	bool errors_grew;
	bool codes_due; /* of some process */
	struct hashmap ended; /* incarnation: index in processes; those that are over */
};

int sums_init(struct sums *sums, uint32_t max, const struct sums_maps *maps, void *maps_of,
	      const struct sums_ops *ops, void *userdata);
void sums_done(struct sums *sums);

/* The live process of this PID, or NULL. */
struct sums_process *sums_find(const struct sums *sums, uint32_t tgid);
/* The process of this key, live or over and not yet forgotten; or NULL. */
struct sums_process *sums_find_exact(const struct sums *sums, uint32_t tgid, uint64_t incarnation);
/*
 * PROCESS, EXEC and EXIT events; STAT events. *ret_made: the process is new. -ENOSPC: beyond the limit,
 * counted. -ESTALE: a later one has its PID; what the kernel side still has of it is for sums_reconcile().
 */
int sums_heard(struct sums *sums, uint32_t tgid, uint64_t incarnation, struct sums_process **ret_process,
	       bool *ret_made);
/* A call of one that is over, whose event was late or lost, is read at once. */
int sums_call_heard(struct sums *sums, struct sums_process *process, uint16_t call);
/* For sums.c: reads a call of a process that ends or has ended, and deletes it from the map. */
void sums_read_last(struct sums *sums, struct sums_process *process, struct sums_call *call);
/*
 * Reads what there is for the last time and deletes it from the maps; codes of errors at the next collection,
 * for all in one walk.
 */
void sums_over(struct sums *sums, struct sums_process *process);
/* Over, if the kernel side knows this incarnation no more. */
void sums_check_gone(struct sums *sums, struct sums_process *process);

/*
 * Reads the live processes whose byte is set in @active, or all when that is NULL; forgets those that are
 * over and were shown. Codes of errors are looked up where errors grew, in one walk.
 */
void sums_collect(struct sums *sums, const uint8_t active[TRACE_ACTIVE]);
/* Events were lost: finds the keys that were never told, and who has gone. */
void sums_reconcile(struct sums *sums);
/* Those that were over already when last shown. */
void sums_forget_shown(struct sums *sums);
int sums_set_flags(struct sums *sums, struct sums_process *process, uint32_t flags);

void sums_expand(const struct sums_call *call, struct trace_sum *ret_sum);

/* ---- buckets ---- */

/* Durations in bucket @i: from the first up to, and without, the second. */
uint64_t sums_bucket_low(unsigned i);
uint64_t sums_bucket_end(unsigned i);
