// SPDX-License-Identifier: Apache-2.0
/*
 * The tracing engine finds targets, chooses sites, attaches probes and gives them up, drains the ring, and
 * reads the kernel's sums. It hands events to a list of sinks (activity/event_sink.h) and keeps sums by
 * process and call. The meaning of events for CUDA's state is in src/cuda.
 *
 * One thread owns an engine: the one that runs @event. Memory is bounded: TRACE_PROCESSES_MAX processes with
 * sums, each with the calls that it uses. Processes beyond the limit are counted.
 *
 * A process here is an *incarnation*: a PID from one exec to the next, or to its exit.
 *
 * Budget: the cost of tracing a process is its hits times the measured cost of the site's class, averaged
 * over 10 s. If it exceeds max_overhead, the engine takes fewer stacks, without native frames, or none, gives
 * up operators, then libraries above CUDA, quiets the process (no events, sums only), and then gives up the
 * most expensive group of sites of the files that the process maps; it takes each back after a back-off
 * that doubles. If handling events takes this thread more than max_overhead, the process with the most events
 * is quieted. trace_process_sum.incomplete: what is incomplete by this.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "activity/event_sink.h"
#include "trace/attach.h"
#include "trace/probe.h"
#include "trace/site.h"
#include "trace/site_list.h"
#include "trace/target.h"

enum { TRACE_ERROR_CODES_MAX = TRACE_CODES_MAX + 1 /* the others */ };

struct argument_figures;
struct operators;
struct trace_engine;

struct trace_engine_config {
	struct attach_config attach; /* ring_bytes is rounded up to a power of two */
	bool libraries[PROBE_LIBRARIES];
	pid_t pid; /* trace only this process; 0: all */
	bool follow; /* with @pid: also its descendants */
	/* with @pid: the caller offers each file before it is mapped, so no others have to be found */
	bool held;
	/*
	 * trace.return_probes; without them only the driver is probed. None are used either where they do
	 * harm (trace_engine_status.rules.returns), after a notice.
	 */
	bool return_probes;
	bool no_launch_returns; /* launches are probed at entry only; for the driver alone */
	/*
	 * without @pid: the helper program, NULL for gpusonde-reader, and which files are trusted
	 * (proc/trust.h, checked), NULL for none
	 */
	const char *reader, *trust;
	bool allow_single_step;
	bool events; /* send events; false: sums only */
	bool every_call; /* events of every call, for --raw */
	unsigned stack_shift; /* with @stacks: of 1 << this many events, or more, one has it; below 16 */
	double stacks_max; /* without max_overhead: share of one core that stacks may cost; 0: no limit */
	bool stacks; /* events of launches, memory and waits have a stack (bpf/stack.h) */
	unsigned stack_kinds; /* with @stacks: enum trace_stack_kind, of its frames; 0: Python */
	double max_overhead; /* share of one core per traced process; 0: no budget */
	int64_t latency_ns; /* how long an event may wait in the ring */
	/* paths of libraries that are probed before a process maps them, NULL-terminated; or NULL */
	const char *const *expected;
};

struct trace_engine_ops {
	/* For the log: probes given up or taken back, files that could not be probed. May be NULL. */
	void (*notice)(int level, const char *text, void *userdata);
	/* A process maps a probed file, also before trace_engine_new() returns: finds its interpreter. */
	void (*mapped)(struct trace_engine *engine, pid_t pid, void *userdata);
	void (*remapped)(pid_t pid, void *userdata); /* any file with code; both may be NULL */
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
		/* terminated by count 0; code INT32_MIN: errors that are counted without their code */
	} codes[TRACE_ERROR_CODES_MAX];
};

/* The message where proc_sees_all() is false. */
#define TRACE_SEES_OWN_ONLY                                                                                  \
	"gpusonde runs in a PID namespace of its own: programs outside of it are not traced; run it in the " \
	"machine's "                                                                                         \
	"(hostPID: true, docker run --pid=host)"

enum trace_incomplete {
	TRACE_INCOMPLETE_LOST = 1 << 0, /* events were lost */
	TRACE_INCOMPLETE_QUIET = 1 << 1, /* events were not collected, for the budget */
	TRACE_INCOMPLETE_GIVEN_UP = 1 << 2, /* probes were detached, for the budget */
	/* the process ran before it was probed: its earlier allocations are unknown */
	TRACE_INCOMPLETE_LATE = 1 << 3,
	TRACE_INCOMPLETE_NO_RETURNS = 1 << 4, /* no return probes: results and addresses are unknown */
	TRACE_INCOMPLETE_SITES = 1 << 5, /* entry points that were refused: their calls are not seen */
	/* it maps a library that is not read, since its pages could be withheld (proc/trust.h) */
	TRACE_INCOMPLETE_UNTRUSTED = 1 << 6,
	TRACE_INCOMPLETE_UNCOUNTED = 1 << 7, /* no room for its entries in tables of the kernel side */
	TRACE_INCOMPLETE_LAUNCH_RETURNS = 1 << 8, /* launches are probed at entry only */
	TRACE_INCOMPLETE_OPERATORS = 1 << 9, /* of operators: given up, refused, or no room for them */
	TRACE_INCOMPLETE_STACKS = 1 << 10, /* of stacks: given up, or no room for them */
	TRACE_INCOMPLETE_PYTHON = 1 << 11, /* no room for threads that wait for Python's lock */
	TRACE_INCOMPLETE_NATIVE = 1 << 12, /* of native frames in stacks: given up */
};

struct trace_process_sum {
	uint32_t tgid;
	uint64_t incarnation;
	uint64_t start_boot_ns;
	char comm[TRACE_COMM];
	unsigned incomplete; /* enum trace_incomplete */
	double overhead; /* share of a core that tracing costs it, over the last 10 s */
	unsigned stack_shift; /* of 1 << this many events one has a stack now */
	bool stackless; /* stacks are given up now */
	bool ended; /* removed after the next collection */
	const struct trace_sum *sums;
	uint32_t sums_n;
};

struct trace_engine_status {
	const char *backend;
	uint64_t produced, received, dropped; /* events, all CPUs */
	uint64_t received_by_type[TRACE_EVENTS]; /* the valid ones */
	uint64_t unknown_events, bad_events; /* received, of an unknown type; with an invalid size or CPU */
	uint64_t hits, return_hits, abandoned, unmatched, unidentified;
	uint64_t stacks; /* that were sent */
	uint64_t stackless[TRACE_STACK_NONES]; /* as in struct trace_counters */
	__u64 lost[TRACE_TABLES], refused[TRACE_TABLES]; /* as in struct trace_counters */
	uint64_t lost_processes; /* beyond TRACE_PROCESSES_MAX */
	uint32_t files, sites_attached, sites_refused, sites_given_up;
	uint32_t processes;
	/*
	 * the runtime is not probed although it was requested: without return probes, its calls would be
	 * counted twice
	 */
	bool driver_only;
	double event_seconds; /* CPU time of this thread for events */
	double probe_seconds; /* estimated cost of all hits to the traced processes */
	uint32_t groups_given_up, processes_quiet;
	struct target_stats targets;
	struct site_rules rules;
	const char *no_returns; /* why none are used though config.return_probes; NULL: they are */
};

/* Hits that are not counted at all: all of @lost but those by error code. */
uint64_t trace_uncounted(const __u64 lost[TRACE_TABLES]);

int trace_engine_new(sd_event *event, const struct trace_engine_config *config,
		     const struct trace_engine_ops *ops, void *userdata, struct trace_engine **ret_engine,
		     struct attach_error *ret_error);
/* Detaches all probes; the traced processes continue. */
void trace_engine_free(struct trace_engine *engine);
DEFINE_CLEANUP(struct trace_engine *, trace_engine_free, trace_engine_freep)

/*
 * The sinks that get its events. The caller may add and remove sinks at any time except within a callback. No
 * event is delivered before the event loop runs, so a sink that is added right after trace_engine_new() gets
 * all events.
 */
struct event_sinks *trace_engine_sinks(struct trace_engine *engine);

/*
 * The end of tracing: no call is seen from here on. After the next collection all events of those that were
 * have been delivered, or are counted as lost, and the sums are of the same calls.
 */
void trace_engine_end(struct trace_engine *engine);
/* Drains the ring, reads sums of processes that were active. Drops those that had ended by the last time. */
int trace_engine_collect(struct trace_engine *engine);
/* Delivers the events in the ring now, for callers that cannot wait for latency_ns. */
int trace_engine_drain(struct trace_engine *engine);
/*
 * Calls @fn for all processes, as of the last collection. Stops when it returns non-zero, and returns that.
 */
int trace_engine_each(struct trace_engine *engine,
		      int (*fn)(const struct trace_process_sum *process, void *userdata), void *userdata);
/*
 * Sums over all processes since the start, as of the last collection; valid until the next one. Indexed by
 * call number; NULL: never called.
 */
void trace_engine_totals(const struct trace_engine *engine, const struct trace_sum *const **ret_sums,
			 uint32_t *ret_n);
/* Calls of operators (trace/operators.h), as of the last collection; valid until the next one. */
const struct operators *trace_engine_operators(const struct trace_engine *engine);
/*
 * Figures of the arguments of a function that the user named (trace/arguments.h), as of the last event;
 * NULL: none seen. Valid until the next one.
 */
const struct argument_figures *trace_engine_arguments(const struct trace_engine *engine, uint16_t call);
void trace_engine_status(struct trace_engine *engine, struct trace_engine_status *ret_status);
/* The name of a process that is traced now. NULL: not known. */
const char *trace_engine_comm(const struct trace_engine *engine, uint32_t tgid);
int trace_engine_every_call(struct trace_engine *engine, bool every); /* for config.every_call */
/* From now on stacks of @pid, and of its followed children, are walked. -ENOSPC: there are too many. */
int trace_engine_set_python(struct trace_engine *engine, pid_t pid, const struct trace_python *python);
void trace_engine_forget_python(struct trace_engine *engine, pid_t pid);
/* A map of the kernel side, for src/unwind. */
int trace_engine_map(struct trace_engine *engine, const char *name);
/* The kernel side sends all functions and stacks again. */
void trace_engine_forget_stacks(struct trace_engine *engine);
/* Probes a file before @pid maps it, and counts it as mapped. 0 also when it is not a target. */
int trace_engine_offer(struct trace_engine *engine, pid_t pid, int fd, const char *path);

/* The @q-quantile (0..1) of the latency in ns, within 12.5 % up to 4096 s; 0 without calls. */
double trace_sum_quantile(const struct trace_sum *sum, double q);
/* Adds errors. Those beyond TRACE_CODES_MAX codes share one row, INT32_MIN. */
void trace_sum_add_code(struct trace_sum *sum, int32_t code, uint64_t count);
/* Number of calls whose duration is known, and how many took no longer than each of traced_le, exactly. */
uint64_t trace_sum_timed(const struct trace_sum *sum);
void trace_sum_within(const struct trace_sum *sum, uint64_t ret_within[static TRACE_BOUNDS]);
