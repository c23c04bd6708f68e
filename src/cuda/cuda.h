// SPDX-License-Identifier: Apache-2.0
/*
 * Interprets the events of traced programs: contexts and devices, streams and their order, kernel spans, the
 * memory ledger, aggregates by process and device. Input: events of trace/ in ring order; output: figures.
 * /proc is read only through the caller's callbacks. One thread.
 *
 * Invariants
 *  1. A failed call changes nothing but counts. A call without a result (no return probe) is taken to have
 *     succeeded where that is harmless, and marks what it feeds incomplete.
 *  2. A stream is (process incarnation, context, handle, generation): what is created after a destroy with
 *     the same handle is another one.
 *  3. Nothing is reported as kernel time. `span_upper_bound` is first launch to the return of the sync;
 *     `busy` is an estimate, flagged as such, and shown with its error against NVML's figure.
 *  4. All that a program can make grow has a limit (struct cuda_limits); beyond it sums stay correct and
 *     dropped items are counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "activity/span_sink.h"
#include "base/macro.h"
#include "bpf/event.h"
#include "model/kernel.h"
#include "model/trace.h"

struct cuda;

/* 0 means the default, but for series and kernel_series. */
struct cuda_limits {
	uint32_t processes; /* default 16384 */
	uint32_t series; /* processes with series of their own; default 128 */
	uint32_t streams; /* per process; default 1024 */
	uint32_t contexts; /* per process; default 64 */
	uint32_t threads; /* per process, whose current context is known; default 1024 */
	uint32_t allocations; /* all processes together; default 1 << 20, allocated on demand */
	uint32_t events; /* CUDA events per process, and as many graphs; default 4096 */
	uint32_t kernels; /* per process; default 4096. Others are counted together */
	uint32_t kernel_series; /* of all processes, with series of their own; default 64 */
	bool operators; /* what operators make CUDA do is added up, too */
};

/* A device of the node as NVML lists them, in NVML's (PCI) order. */
struct cuda_device {
	char uuid[TRACED_UUID]; /* GPU-... or MIG-... */
	char parent[TRACED_UUID]; /* of a MIG instance; else "" */
	bool mig; /* a GPU in MIG mode: not usable itself */
	uint32_t minor; /* N of a GPU's /dev/nvidiaN; UINT32_MAX: unknown, or an instance */
	uint32_t gi, ci; /* of a MIG instance */
	uint32_t number; /* of a MIG instance, by the driver: index within its GPU; UINT32_MAX: unknown */
	uint32_t cores; /* CUDA cores, 0 unknown */
	uint64_t memory; /* bytes, 0 unknown */
	uint16_t sm; /* 90: compute capability 9.0; 0 unknown */
	double speed; /* what FASTEST_FIRST sorts by, clock times cores; 0 unknown */
};

/* A function launched by a process, with the known data about it. */
struct cuda_function {
	uint64_t id; /* for cuda_kernel(); never reused */
	uint32_t tgid;
	uint64_t incarnation;
	uint64_t start_boot_ns; /* of the process; 0: not known */
	/*
	 * as passed to the launch; if that handle refers to another handle or to a host function: the latter
	 */
	uint64_t function;
	uint16_t sm; /* of the device; 0 unknown */
	const char *symbol; /* that its handle was made for, or NULL */
	/* The launch made a handle for @symbol: where nothing else shows the kernel, that is it. */
	bool symbol_last;
	uint64_t image; /* in the process's memory, that it is of; 0: not known */
	const char *path; /* of the file that it was loaded from, or NULL */
};

/* The variables that select devices, compared with those that the process was started with. */
enum cuda_environment {
	CUDA_ENVIRONMENT_KEPT,
	CUDA_ENVIRONMENT_CHANGED, /* whether before cuInit or after it is not known */
	CUDA_ENVIRONMENT_UNKNOWN, /* only those that it was started with could be read */
};

/* How sure the devices are that a process may use. */
enum cuda_allowed {
	CUDA_ALLOWED_KNOWN,
	CUDA_ALLOWED_GIVEN, /* an estimate that nothing is expected to make better */
	CUDA_ALLOWED_GUESSED, /* an estimate, until more is known */
};

struct cuda_ops {
	/*
	 * The process's environment as it is now, into @buf, and enum cuda_environment. -errno; what does not
	 * fit is cut. -EAGAIN: cuda_environment() will be called.
	 */
	int (*environment)(uint32_t tgid, char *buf, size_t size, size_t *ret_n, void *userdata);
	/*
	 * UUIDs of the devices that the container or job of the process may use, in any order. enum
	 * cuda_allowed; -ENOENT: all; -ENODATA: not known, and all are assumed, an estimate; -ENXIO: not
	 * known, but that it was given some; -EAGAIN: cuda_environment() will be called.
	 */
	int (*allowed)(uint32_t tgid, char (*uuids)[TRACED_UUID], size_t max, size_t *ret_n, void *userdata);
	/*
	 * Requests the kernel of a function. 0: cuda_kernel() will be called once; -EAGAIN: try again at the
	 * next window. NULL: only handles with a name are named.
	 */
	int (*function)(const struct cuda_function *function, void *userdata);
	/* A process loads an image from its memory. May be NULL. */
	void (*image)(uint32_t tgid, uint64_t incarnation, uint64_t address, void *userdata);
};

int cuda_new(const struct cuda_limits *limits, const struct cuda_ops *ops, void *userdata,
	     struct cuda **ret_cuda);
void cuda_free(struct cuda *cuda);
DEFINE_CLEANUP(struct cuda *, cuda_free, cuda_freep)

/* The node's devices, whenever they change. */
int cuda_set_devices(struct cuda *cuda, const struct cuda_device *devices, size_t n);
/* The list of sinks for finished spans; the caller must call span_sinks_turn(). */
struct span_sinks *cuda_span_sinks(struct cuda *cuda);
/* One event, in ring order. */
void cuda_event(struct cuda *cuda, const struct trace_header *event, uint32_t size);
/* The answer to ops.function; takes a reference. Ignored if the process has ended. */
void cuda_kernel(struct cuda *cuda, uint64_t id, struct kernel *kernel);
/*
 * The kernel that a process, whose figures are still shown, launches as @function on any device; NULL: not
 * known, or not yet. Valid until the next call.
 */
const struct kernel *cuda_function_kernel(struct cuda *cuda, uint32_t tgid, uint64_t function);
/*
 * Of a launch that was handed in last: which stream it went into (struct span's stream_id). False: it is not
 * known, not one that is tracked by itself, or it is captured.
 */
bool cuda_launch_stream(struct cuda *cuda, const struct trace_launch *launch, uint32_t *ret_stream_id);
/* The environment of the process is known now, or why it is not. */
void cuda_environment(struct cuda *cuda, uint32_t tgid);
/* More is known of what ops.allowed() is asked for. */
void cuda_limits_changed(struct cuda *cuda);
/* Events were lost: everything that depends on order is incomplete from here on, for all processes. */
void cuda_lost(struct cuda *cuda, uint64_t events);
/*
 * Sets bits of enum traced_incomplete for causes outside of src/cuda (budget, late attachment). They are
 * never cleared.
 */
void cuda_mark(struct cuda *cuda, uint32_t tgid, uint64_t incarnation, unsigned incomplete);
/* The process has ended: everything it held is freed implicitly. Idempotent. */
void cuda_process_over(struct cuda *cuda, uint32_t tgid, uint64_t incarnation);
/*
 * NVML's figures of a process on a device, for calibration and leak detection: totals since the process was
 * first seen. Once for each window, before it is closed. @memory_bytes: below 0: not known.
 */
void cuda_nvml(struct cuda *cuda, struct process_id id, const char *uuid, double busy_seconds,
	       double observed_seconds, double memory_bytes);

/*
 * What CUPTI measured in a process whose program had connected by @since_boot_ns: from @begin_ns to @end_ns
 * the device worked for it for @busy_ns. For calibration; of a device that the process is not known to use,
 * nothing is taken.
 */
void cuda_measured(struct cuda *cuda, uint32_t tgid, uint64_t since_boot_ns, const char *uuid,
		   uint64_t begin_ns, uint64_t end_ns, uint64_t busy_ns);

/*
 * Closes the window that began at the last call (at first: at cuda_new): aggregates as of @now_ns
 * (CLOCK_MONOTONIC), written into the devices, totals and processes of a view. Reading has no side effects:
 * pending work counts up to now and stays pending.
 */
struct cuda_figures {
	uint32_t processes_n, devices_n, totals_n, kernels_n;
};
int cuda_window(struct cuda *cuda, int64_t now_ns, struct cuda_figures *ret_figures);
/*
 * Fills processes[], devices[], totals[] and kernels[] of @view, which must have the size in ret_figures of
 * the last cuda_window(), and sets kernels_n; the caller sets the other numbers.
 */
void cuda_fill(struct cuda *cuda, struct trace_view *view);
/* What an operator has made CUDA do. */
struct cuda_operator {
	uint64_t launches, copied_bytes, allocated_bytes; /* allocated: on devices, by CUDA's own functions */
	uint64_t wait_ns; /* for streams, events and devices */
	double ns; /* estimate: its part of the processes' busy time */
	/* what was done in backward passes by nodes that it has made, by whichever operator */
	uint64_t backward_launches;
	double backward_ns;
};
/*
 * In all processes that ever were, by row of the table of probes, TRACE_CALLS_MAX of them; 0: outside of
 * operators. As of the last window.
 * NULL: they are not added up. *ret_doubtful: calls were missed.
 */
const struct cuda_operator *cuda_operators(const struct cuda *cuda, bool *ret_doubtful);
typedef void cuda_operator_fn(uint16_t call, const struct cuda_operator *done, void *userdata);
/*
 * The same of one process that was in the last window: those that did something. False: it was not.
 * *ret_doubtful: it did more.
 */
bool cuda_process_operators(const struct cuda *cuda, uint32_t tgid, uint64_t incarnation,
			    cuda_operator_fn *each, void *userdata, bool *ret_doubtful);
/* What is counted when it is beyond struct cuda_limits. */
enum cuda_limit {
	CUDA_LIMIT_PROCESSES,
	CUDA_LIMIT_STREAMS,
	CUDA_LIMIT_CONTEXTS,
	CUDA_LIMIT_THREADS,
	CUDA_LIMIT_ALLOCATIONS,
	CUDA_LIMIT_PENDING, /* streams that a stream waits for */
	CUDA_LIMIT_EVENTS,
	CUDA_LIMIT_KERNELS, /* launches whose kernel has no row */
	CUDA_LIMIT_NAMES, /* of handles and modules, dropped */
	CUDA_LIMITS,
};

/* Why a stream is no longer followed. */
enum cuda_stream_end {
	CUDA_STREAM_DESTROYED,
	CUDA_STREAM_CONTEXT, /* its context ended */
	CUDA_STREAM_PROCESS,
	CUDA_STREAM_ROOM, /* an idle one, at the limit */
	CUDA_STREAM_ENDS,
};

struct cuda_stats {
	uint64_t events, unknown_events;
	uint64_t late_events; /* of an ended process */
	uint64_t overflow[CUDA_LIMITS]; /* what was beyond */
	uint64_t answers, late_answers; /* to ops.function; late: the requesting process has ended */
	uint64_t unknown_frees; /* whose allocation was not seen */
	uint64_t implicit_frees;
	uint64_t replaced_allocations; /* an address allocated again whose free was not seen */
	uint64_t calibration_windows;
	uint64_t streams; /* now */
	uint64_t streams_ended[CUDA_STREAM_ENDS];
	uint32_t processes_without_device; /* with work on a device that is not known */
};
void cuda_stats(const struct cuda *cuda, struct cuda_stats *ret_stats);
