// SPDX-License-Identifier: Apache-2.0
/*
 * The tracing engine: targets found, sites chosen, probes attached and given up, the ring drained, the
 * kernel's sums read. It hands events to a list of sinks (activity/event_sink.h), and keeps one sum per
 * process and call; what CUDA's state makes of the events is src/cuda's business.
 *
 * One thread owns an engine: the one that runs @event. Memory is bounded: TRACE_PROCESSES_MAX processes with
 * sums, each with as many calls as it uses; what does not fit is counted.
 *
 * A process here is an *incarnation*: a PID between exec and exec or exit.
 *
 * Budget: what tracing costs each process is hits times the measured cost of the site's class, averaged over
 * 10 s; what its events cost this thread is weighed, too: above max_overhead the process with most events is
 * quieted. Above it in a process, the engine first quiets that process (no events, sums only), then gives up
 * the dearest group of sites of a file that the process maps, and takes it back after a back-off that
 * doubles. What this makes incomplete is said in struct trace_process_sum.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "activity/event_sink.h"
#include "trace/attach.h"
#include "trace/probe.h"
#include "trace/site.h"
#include "trace/target.h"

enum { TRACE_PROCESSES_MAX = 16384, TRACE_ERROR_CODES_MAX = 16 };

struct trace_engine;

struct trace_engine_config {
	struct attach_config attach; /* ring_bytes is rounded up to a power of two */
	bool libraries[PROBE_LIBRARIES];
	pid_t pid; /* this process and what it makes; 0: all */
	bool follow; /* with @pid: also what it starts */
	/* with @pid: whoever calls offers each file before it is mapped, so nothing else has to be found */
	bool held;
	bool return_probes; /* trace.return_probes; without them only the driver is probed */
	bool allow_single_step;
	bool events; /* raw events at all; false: sums only */
	bool every_call; /* events of every call, for --raw */
	double max_overhead; /* share of one core per traced process; 0: no budget */
	int64_t latency_ns; /* how long an event may wait in the ring */
	/* paths of libraries that are probed before somebody maps them, ends with NULL; or NULL */
	const char *const *expected;
};

struct trace_engine_ops {
	/*
	 * Something that people should know: probes given up and taken back, files that could not be probed.
	 * May be NULL.
	 */
	void (*notice)(int level, const char *text, void *userdata);
};

/* Sums of one call in one process. */
struct trace_sum {
	uint16_t call;
	uint64_t count, errors, bytes, total_ns, nested;
	int64_t last_ns; /* CLOCK_MONOTONIC */
	uint64_t buckets[TRACE_BUCKETS];
	struct {
		int32_t code;
		uint64_t count;
		/* ended by count 0; the last one sums up what does not fit, code INT32_MIN */
	} codes[TRACE_ERROR_CODES_MAX];
};

/* What is told where proc_sees_all() is not so. */
#define TRACE_SEES_OWN_ONLY                                                                                  \
	"gpusonde runs in a PID namespace of its own: programs outside of it are not traced; run it in the " \
	"machine's "                                                                                         \
	"(hostPID: true, docker run --pid=host)"

enum trace_incomplete {
	TRACE_INCOMPLETE_LOST = 1 << 0, /* events were lost */
	TRACE_INCOMPLETE_QUIET = 1 << 1, /* events were not collected, for the budget */
	TRACE_INCOMPLETE_GIVEN_UP = 1 << 2, /* probes were taken away, for the budget */
	TRACE_INCOMPLETE_LATE =
		1 << 3, /* the process ran before it was probed: what it had allocated before is unknown */
	TRACE_INCOMPLETE_NO_RETURNS = 1 << 4, /* no return probes: results and addresses are unknown */
	TRACE_INCOMPLETE_SITES = 1 << 5, /* entry points that were refused: calls of theirs are not seen */
};

struct trace_process_sum {
	uint32_t tgid;
	uint64_t incarnation;
	uint64_t start_boot_ns;
	char comm[TRACE_COMM];
	unsigned incomplete; /* enum trace_incomplete */
	double overhead; /* share of a core that tracing costs it, over the last 10 s */
	bool over; /* has ended; gone after the next collection */
	const struct trace_sum *sums;
	uint32_t sums_n;
};

struct trace_engine_status {
	const char *backend;
	uint64_t produced, received, dropped; /* events, all CPUs */
	uint64_t unknown_events, bad_events; /* received, of a type or size that we do not know */
	uint64_t hits, return_hits, abandoned, unmatched, unidentified;
	uint64_t lost_threads, lost_procs, lost_stats, lost_errors, lost_processes;
	uint32_t files, sites_attached, sites_refused, sites_given_up;
	uint32_t processes;
	/*
	 * the runtime was asked for, but without return probes its calls and the driver's would be counted
	 * twice
	 */
	bool driver_only;
	double event_seconds; /* CPU of this thread that events took */
	double probe_seconds; /* what all hits have cost the traced, reckoned */
	uint32_t groups_given_up, processes_quiet;
	struct target_stats targets;
	struct site_rules rules;
};

int trace_engine_new(sd_event *event, const struct trace_engine_config *config,
		     const struct trace_engine_ops *ops, void *userdata, struct trace_engine **ret_engine,
		     struct attach_error *ret_error);
/* Detaches at once; the traced go on. */
void trace_engine_free(struct trace_engine *engine);
DEFINE_CLEANUP(struct trace_engine *, trace_engine_free, trace_engine_freep)

/*
 * Those who get its events: the caller adds and removes sinks of its own, at any time but within a callback.
 * Nothing is delivered before the event loop runs, so what is added right after trace_engine_new() misses
 * nothing.
 */
struct event_sinks *trace_engine_sinks(struct trace_engine *engine);

/*
 * Drains the ring and reads the sums of those that were active. Forgets the processes that were over at the
 * last collection.
 */
int trace_engine_collect(struct trace_engine *engine);
/* Hands on what is in the ring now; for whoever wants it within 10 ms. */
int trace_engine_drain(struct trace_engine *engine);
/* All processes, as of the last collection; stops with what @fn gives when that is not 0. */
int trace_engine_each(struct trace_engine *engine,
		      int (*fn)(const struct trace_process_sum *process, void *userdata), void *userdata);
/*
 * Sums over all processes that ever were, as of the last collection, valid until the next: place is the
 * call's number, NULL: never called.
 */
void trace_engine_totals(const struct trace_engine *engine, const struct trace_sum *const **ret_sums,
			 uint32_t *ret_n);
void trace_engine_status(struct trace_engine *engine, struct trace_engine_status *ret_status);
/* Probes a file before somebody maps it, and counts it as mapped by @pid. 0 also when it is no target. */
int trace_engine_offer(struct trace_engine *engine, pid_t pid, int fd, const char *path);

/* Latency that share @q (0..1) of the calls stayed below, in ns; within 12.5 %. 0 without calls. */
double trace_sum_quantile(const struct trace_sum *sum, double q);
/* Calls of at most @bound_ns; those of the bucket that the bound lies in count if most of it is below. */
uint64_t trace_sum_below(const struct trace_sum *sum, uint64_t bound_ns);

/*
 * Every probe of a file, chosen or refused, and newer versions of what is probed, which are refused:
 * "gpusonde probes".
 */
struct trace_listing {
	const struct probe *probe; /* or what @symbol is a newer version of, and then never chosen */
	const char *symbol; /* valid in the callback only */
	struct site site;
	uint64_t file_offset;
	/*
	 * Not chosen: the driver's calls within it are probed instead. A call of the runtime's that makes
	 * none (arguments that it finds wrong, a driver too old for it) is not seen.
	 */
	bool left_to_driver;
};
int trace_list_sites(int fd, const bool libraries[PROBE_LIBRARIES], const struct site_rules *rules,
		     int (*fn)(const struct trace_listing *listing, void *userdata), void *userdata);
