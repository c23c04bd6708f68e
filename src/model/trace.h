// SPDX-License-Identifier: Apache-2.0
/*
 * The results of tracing, for the views: immutable, reference counted, made by the tracing thread once a tick
 * and referenced by the next snapshot. TRACE_METRIC rows of metrics.def are the numbers of a process on a
 * device; calls are listed by exported name. A device here is a GPU or MIG instance by UUID; "": it is not
 * known, which is an entry of its own.
 */
#pragma once

#include <stdatomic.h>

#include "base/process_id.h"
#include "model/blas.h"
#include "model/durations.h"
#include "model/metric.h"
#include "model/nccl.h"
#include "model/occupancy.h"
#include "model/stacks.h"
#include "model/torch.h"

enum {
	TRACED_UUID = 96,
	TRACED_COMM = 64,
	TRACED_THREADS_MAX = 8, /* listed per process */
	TRACED_SIZES_MAX = 8, /* of leaked allocations, listed per process */
	TRACED_PROCESSES_MAX = 16384,
	TRACED_SHAPES_MAX = 8, /* listed per kernel */
};

/* Bits of struct traced_process. */
enum traced_incomplete_bit {
#define INCOMPLETE(id_, name_) TRACED_INCOMPLETE_BIT_##id_,
#include "model/incomplete.def"
	TRACED_INCOMPLETE_BITS
};

enum traced_incomplete {
#define INCOMPLETE(id_, name_) TRACED_INCOMPLETE_##id_ = 1 << TRACED_INCOMPLETE_BIT_##id_,
#include "model/incomplete.def"
};

/* Why the device of a process's work is not known. */
enum traced_unplaced {
	TRACED_PLACED,
#define UNPLACED(id_, name_, words_) TRACED_UNPLACED_##id_,
#include "model/unplaced.def"
	TRACED_UNPLACEDS
};

struct traced_error {
	int32_t code; /* CUresult, cudaError_t or ncclResult_t; INT32_MIN: others, beyond the limit */
	uint64_t count;
	const char *words; /* description; static; NULL: unknown */
};

enum { TRACED_VALUES = 8, TRACED_TEXT = 64 };

/* One call of one process, or (process == UINT32_MAX) summed over all processes that ever were. */
struct traced_call {
	uint32_t process; /* index */
	const char *api; /* static */
	const char *layer; /* "cuda" (the runtime, too), "blas", ...; static; NULL: the user named it */
	uint64_t count, nested;
	uint64_t timed; /* calls with a traced return; below only these, and unknown if there are none */
	uint64_t errors, bytes;
	double seconds;
	double p50_ns, p95_ns, p99_ns; /* within 12.5 % */
	uint32_t errors_first, errors_n; /* range in the view's errors */
	/* up to each of traced_le; only in the sums over all processes; the last is 0: not known */
	uint64_t within[TRACED_LE];
	/* of a function that the user named */
	const char *library; /* as the user named it, static; NULL: a function of ours */
	bool has_series; /* of its own on /metrics */
	uint32_t arguments_first, arguments_n; /* range in the view's; only in the sums over all processes */
};

/* An argument of a function that the user named, over all calls that were seen: number or string. */
struct traced_argument {
	uint32_t position; /* from 0 */
	const char *type; /* "u64", ... "string", static */
	bool is_text, is_signed;
	uint64_t count;
	uint64_t min, max; /* of signed ones, as int64_t */
	double sum;
	/* of strings: the first that occurred, shortened, and those that are not among them */
	struct {
		char text[TRACED_TEXT]; /* sanitised UTF-8 */
		uint64_t count;
	} values[TRACED_VALUES];
	uint32_t values_n;
	uint64_t others, unread;
};

struct traced_thread {
	uint32_t tid;
	uint64_t bytes; /* on devices, allocated by this process and not freed */
};

struct traced_size {
	uint64_t bytes; /* of one allocation */
	uint64_t allocations;
};

struct traced_process {
	struct process_id id;
	uint32_t ns_pid; /* as in struct process */
	char comm[TRACED_COMM]; /* sanitised UTF-8 */
	int64_t first_real_ns;
	bool exited; /* shown for the last time, with its final figures */
	bool has_series;
	unsigned incomplete; /* enum traced_incomplete */
	uint8_t unplaced; /* enum traced_unplaced; some of its work is on a device that is not known */
	double overhead; /* share of a core that tracing costs it */
	uint32_t calls_first, calls_n;
	uint32_t devices_first, devices_n;
	uint32_t kernels_first, kernels_n;
	uint8_t threads_p; /* presence of the threads */
	uint32_t threads_n;
	struct traced_thread threads[TRACED_THREADS_MAX]; /* the most first */
	uint64_t other_threads_bytes;
	/* Never freed: ended with their context or with the process. Sizes: most bytes in all first. */
	uint8_t leaked_p;
	uint64_t leaked_allocations, leaked_bytes;
	uint32_t leaked_n;
	struct traced_size leaked[TRACED_SIZES_MAX];
};

/* A process on a device. */
struct traced_device {
	uint32_t process;
	char uuid[TRACED_UUID];
	double v[TRACED_METRICS];
	uint8_t p[TRACED_METRICS];
};

/* Shape of a launch. */
struct traced_shape {
	uint32_t grid[3], block[3];
	uint64_t shared_bytes; /* dynamic */
	uint64_t launches;
};

/* Launches of a kernel by one process on one device. Failed launches are not included. */
struct traced_launches {
	uint64_t launches, threads;
	double seconds; /* its share of the process's estimated busy time, by waves of threads: an estimate */
};

struct traced_kernel {
	uint32_t process; /* index */
	char uuid[TRACED_UUID];
	struct kernel *kernel; /* the view's reference; NULL: all kernels beyond the limit */
	uint8_t p; /* presence of its numbers: estimated if launches were missed */
	struct traced_launches all;
	bool has_series;
	struct traced_launches series; /* part of it: while the kernel had a series of its own */
	uint32_t shapes_n;
	struct traced_shape shapes[TRACED_SHAPES_MAX]; /* the most frequent first */
	uint64_t other_shapes; /* launches of other shapes */
	uint64_t measured; /* launches whose times CUPTI measured, with --cupti */
	double measured_seconds;
	bool occupancy_known; /* for the first shape on this device */
	struct occupancy occupancy;
};

/* From the return of a launch to the next one in the same stream. @within: as in struct traced_call. */
struct traced_gaps {
	uint64_t count, within[TRACED_LE];
	double seconds;
};

/* Sums over all processes that ever were on a device, and over those without a series of their own. */
struct traced_total {
	char uuid[TRACED_UUID];
	double v[TRACED_METRICS];
	uint8_t p[TRACED_METRICS];
	double other[TRACED_METRICS]; /* counters only */
	struct traced_gaps gaps;
	struct traced_launches kernels; /* of all kernels */
	struct traced_launches kernels_other; /* of those without a series at that moment */
};

/* What the traced processes of a workload did on a device, those that have ended included. */
struct traced_use {
	uint16_t name; /* index in workload_names; READING_NONE: workloads that did not fit, together */
	char uuid[TRACED_UUID]; /* as in struct traced_device */
	uint32_t live; /* traced processes now */
	double v[TRACED_METRICS]; /* counters, and memory held */
	uint8_t p[TRACED_METRICS];
};

/* An operator of PyTorch in a process. */
struct process_operator {
	uint32_t process; /* index in trace_view.processes */
	struct traced_operator op;
};

struct trace_view {
	atomic_uint refs;
	bool enabled; /* tracing is on */
	int stacks_error; /* -errno: they are recorded, and a view of them could not be made */
	char why[896]; /* why it is off, or what is missing; "" if nothing is */
	char backend[32];
	int64_t boot_ns; /* when this was made */
	double agent[AGENT_METRICS]; /* rows of metrics.def that tracing fills, for the model to copy */
	uint8_t agent_p[AGENT_METRICS];
	uint32_t left_out; /* further processes, beyond the limit of an agent's document */
	uint32_t processes_n, devices_n, calls_n, all_calls_n, errors_n, totals_n, kernels_n;
	uint32_t arguments_n, operators_n;
	struct traced_process *processes; /* sorted by PID */
	struct traced_device *devices;
	struct traced_call *calls; /* by process */
	struct traced_call *all_calls; /* sums over all processes, by name */
	struct traced_error *errors;
	struct traced_total *totals;
	struct traced_kernel *kernels; /* by process, within it by seconds, the most first */
	struct traced_argument *arguments; /* of all_calls; an allocation of its own, or NULL */
	struct nccl_view *nccl; /* an allocation of its own, as the next ones; NULL: not traced */
	struct blas_view *blas;
	struct stack_view *stacks;
	struct torch_view *torch;
	struct python_view *python;
	struct findings *findings; /* model/finding.h; NULL: nothing is analysed */
	/* over all processes that ever were: by estimated time, then by calls, the most first */
	struct traced_operator *operators;
	/* Only of a recording, whose torch is NULL: operators of processes; an allocation of its own. */
	struct process_operator *process_operators;
	uint32_t process_operators_n;
};

/* Space for so many elements, all zero, as the numbers `..._n` are, which the writer sets. One reference. */
int trace_view_new(uint32_t processes, uint32_t devices, uint32_t calls, uint32_t all_calls, uint32_t errors,
		   uint32_t totals, uint32_t kernels, struct trace_view **ret_view);
struct trace_view *trace_view_ref(struct trace_view *view);
void trace_view_unref(struct trace_view *view);

/* Among the first @n processes, which are sorted: index of the first with this PID, or where it would be. */
uint32_t trace_view_find(const struct trace_view *view, uint32_t n, uint32_t pid);

/* Meaning of a CUresult or cudaError_t; NULL: unknown. */
const char *cuda_error_words(int32_t code);

/* "lost_events" of a bit of traced_process.incomplete; "container" of an enum traced_unplaced; NULL: none. */
const char *traced_incomplete_name(unsigned bit);
const char *traced_unplaced_name(unsigned unplaced);
const char *traced_unplaced_words(unsigned unplaced);
/* Is this row filled only by tracing (trace_view.agent)? */
bool agent_metric_of_trace(enum agent_metric metric);
