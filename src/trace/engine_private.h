// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by engine*.c: engine.c creates the engine and answers queries, engine_events.c drains the ring,
 * engine_targets.c handles files and processes, engine_budget.c keeps the budget, engine_shares.c marks
 * processes that found no room in the tables.
 */
#pragma once

#include "base/hashmap.h"
#include "trace/arguments.h"
#include "trace/engine.h"
#include "trace/files.h"
#include "trace/operators.h"
#include "trace/ring.h"
#include "trace/sums.h"
#include "trace/sums_maps.h"

enum {
	MAPPED_FILES_MAX = 16, /* probed files recorded for a process */
	REPORTED_FILES_MAX = 1024,
};

enum late {
	LATE_NOT,
	LATE_MAYBE, /* probed just after it mapped the file: not late if its first call is cuInit */
	LATE_SURELY,
};

/* A process that maps probed files, even if it has made no call yet. */
struct mapper {
	uint32_t tgid;
	uint8_t files_n;
	uint8_t late;
	unsigned unread; /* bits of enum trace_incomplete for files that were not read */
	bool more; /* maps more than MAPPED_FILES_MAX: what is incomplete about the others is unknown */
	struct file_probes *files[MAPPED_FILES_MAX];
};

struct trace_engine {
	struct trace_engine_config config;
	struct event_sinks sinks;
	struct arguments arguments; /* of the user's probes */
	struct trace_engine_ops ops;
	void *userdata;
	sd_event *event;
	sd_event_source *ring_source, *timer, *more;
	struct attach_backend *backend;
	struct trace_control *control;
	const char *no_returns; /* kernel_sites_no_returns(), where return probes are wanted */
	struct files_config probing;
	struct site_query query;
	uint32_t *hit_ns; /* by call: cost of a hit */
	uint32_t *entry_ns; /* the same without its return probe */
	bool driver_only;

	struct ring ring;
	struct ring_order order;
	struct trace_counters counters; /* as last read */
	uint64_t lost_reported; /* events */
	uint64_t uncounted_reported; /* calls that have no entry in a table of the kernel side */
	uint64_t lacking_reported; /* the same for operators and stacks */
	bool reconcile; /* events were lost since the sums were last compared with the maps */
	bool draining;

	struct sums_maps_of maps;
	struct sums sums;
	struct operators operators;
	struct trace_sum *scratch; /* of one process, for trace_engine_each() */
	uint32_t scratch_n;
	double cost_ns; /* of all hits and stacks */
	double stack_ns; /* cost of one stack */
	uint64_t stacks_timed, stacks_ns; /* as in struct trace_counters, when that was computed */

	struct targets *targets;
	struct target_file **files; /* that are probed: data is their struct file_probes */
	uint32_t files_n, files_cap;
	struct hashmap reported_files; /* by device and inode: a message said which probes are missing */
	uint64_t unreported_files; /* files that were not named because reported_files was full */
	struct hashmap by_tgid; /* index in mappers */
	struct mapper *mappers;
	uint32_t mappers_n, mappers_cap;
	uint32_t probed_n; /* those of them that map probed files */
	bool offering;
	unsigned reported_needs; /* needs (proc/capabilities.h) whose lack was reported */
	bool refusal_reported;
	unsigned reported_unread; /* bits 1 << enum target_unread that a message was about */
	int64_t expected_ns; /* when expected files were last looked for */
	uint32_t groups_given_up; /* ever */

	struct budget_own own;
	double event_seconds; /* CPU time for draining the ring */
};

/* engine_events.c */
int engine_events_start(struct trace_engine *engine);
/* Maps the ring, if it is not mapped yet. */
int engine_events_map(struct trace_engine *engine);
/* Starts the timer, which runs only while a process maps a probed file. */
int engine_events_arm(struct trace_engine *engine);
/* Reads the counters and notifies sinks of lost events. */
void engine_check_lost(struct trace_engine *engine);

/* engine_shares.c */
/* Marks processes whose calls were not counted, and deletes the shares of owners that are gone. */
void engine_shares(struct trace_engine *engine);

/* engine_targets.c */
int engine_targets_start(struct trace_engine *engine);
struct mapper *engine_mapper(const struct trace_engine *engine, uint32_t tgid);
/* When a process started, rounded down to a clock tick; 0: it has ended. */
int64_t engine_started_boot_ns(uint32_t tgid);
/* Probes libraries that will be mapped, and again once a minute. */
void engine_expect(struct trace_engine *engine);
/* Bits of enum trace_incomplete that follow from the files that the process maps. */
unsigned engine_incomplete(const struct trace_engine *engine, const struct sums_process *process);
/* Sets them, and tells sinks at once of new ones, since they affect the meaning of the next events. */
void engine_mark(struct trace_engine *engine, struct sums_process *process);

/* engine_budget.c */
void engine_hits(struct sums_process *process, uint16_t call, uint64_t counted, uint64_t nested,
		 void *userdata);
/* Hits of operators, at a collection. */
void engine_operator_hits(uint32_t tgid, uint64_t incarnation, double cost_ns, void *userdata);
void engine_budget(struct trace_engine *engine);

_printf_(3, 4) void engine_notice(const struct trace_engine *engine, int level, const char *fmt, ...);
