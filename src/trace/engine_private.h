// SPDX-License-Identifier: Apache-2.0
/*
 * What the engine's files share: engine.c makes it and answers, engine_events.c drains the ring,
 * engine_targets.c hears of files and processes, engine_budget.c collects and keeps the budget.
 */
#pragma once

#include "base/hashmap.h"
#include "trace/engine.h"
#include "trace/files.h"
#include "trace/ring.h"
#include "trace/sums.h"
#include "trace/sums_maps.h"

enum {
	MAPPED_FILES_MAX = 16, /* probed files of a process whose gaps and costs are known */
	TOLD_FILES_MAX = 1024,
};

enum late {
	LATE_NOT,
	LATE_MAYBE, /* probed in the moment after it mapped the file: not late if its first call is cuInit */
	LATE_SURELY,
};

/* A process that maps probed files; whether or not it has made a call. */
struct mapper {
	uint32_t tgid;
	uint8_t files_n;
	uint8_t late;
	bool more; /* than MAPPED_FILES_MAX: what is incomplete about those is not known */
	struct file_probes *files[MAPPED_FILES_MAX];
};

struct trace_engine {
	struct trace_engine_config config;
	struct event_sinks sinks;
	struct trace_engine_ops ops;
	void *userdata;
	sd_event *event;
	sd_event_source *ring_source, *timer, *more;
	struct attach_backend *backend;
	struct trace_control *control;
	struct site_rules rules;
	struct files_config probing;
	uint32_t *hit_ns; /* by call: what a hit costs */
	bool driver_only;

	struct ring ring;
	struct ring_order order;
	struct trace_counters counters; /* as last read */
	uint64_t lost_told; /* events */
	uint64_t uncounted_told; /* calls that a table of the kernel side had no room for */
	bool reconcile; /* events were lost since the sums were last compared with what there is */
	bool draining;

	struct sums_maps_of maps;
	struct sums sums;
	struct trace_sum *scratch; /* one process's, for whoever looks at it */
	uint32_t scratch_n;
	double cost_ns; /* of all hits */

	struct targets *targets;
	struct target_file **files; /* that are probed: data is their struct file_probes */
	uint32_t files_n, files_cap;
	struct hashmap told_files; /* by device and inode: people know that they are not probed whole */
	uint64_t untold_files; /* times that one was probed when no more are told of */
	struct hashmap by_tgid; /* index in mappers */
	struct mapper *mappers;
	uint32_t mappers_n, mappers_cap;
	bool offering;
	unsigned said; /* needs (proc/capabilities.h) whose lack was told */
	bool refusal_said;
	int64_t expected_ns; /* when expected files were looked for last */
	uint32_t groups_given_up; /* ever */

	struct budget_own own;
	double event_seconds; /* CPU that draining the ring has taken */
};

/* engine_events.c */
int engine_events_start(struct trace_engine *engine);
/* When there is somebody to hear of. */
int engine_events_map(struct trace_engine *engine);
/* The timer runs only while somebody maps what is probed. */
int engine_events_arm(struct trace_engine *engine);
/* Reads the counters, tells what was lost. */
void engine_check_lost(struct trace_engine *engine);

/* engine_targets.c */
int engine_targets_start(struct trace_engine *engine);
struct mapper *engine_mapper(const struct trace_engine *engine, uint32_t tgid);
/* When a process began, or up to a clock tick before; 0: it is gone. */
int64_t engine_started_boot_ns(uint32_t tgid);
/* Probes libraries that will be mapped, now and then anew. */
void engine_expect(struct trace_engine *engine);
/* What is incomplete about a process because of the files it maps. */
unsigned engine_incomplete(const struct trace_engine *engine, const struct sums_process *process);

/* engine_budget.c */
void engine_hits(struct sums_process *process, uint16_t call, uint64_t counted, uint64_t nested,
		 void *userdata);
void engine_budget(struct trace_engine *engine);

_printf_(3, 4) void engine_notice(const struct trace_engine *engine, int level, const char *fmt, ...);
