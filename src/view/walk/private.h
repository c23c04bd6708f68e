// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of the walk, called by walk.c. Each walks whole families.
 *
 *   gpus.c         identity and state of GPUs, every GPU row of the table, XIDs
 *   processes.c    processes with series of their own, the sum of the others, workloads, jobs
 *   allocations.c  who was given which GPU
 *   traced.c       traced processes, likewise, and totals of devices
 *   kernels.c      kernels of traced processes
 *   operators.c    operators of PyTorch
 *   calls.c        traced calls, errors and latencies by name of the call
 *   probes.c       the same of functions that the user names
 *   blas.c         multiplications of cuBLAS
 *   findings.c     what an analysis has found
 *   python.c       waits for Python's lock, collections of garbage
 *   torch.c        PyTorch's allocators, steps of optimizers
 *   nccl.c         operations of NCCL; measured.c: how long they took
 *   node.c         the node, the agent itself, rejected values of the driver
 */
#pragma once

#include "view/walk/walk.h"

#define WALK_PREFIX "gpusonde_"
/* Label value of the sum over processes, or kernels, without series of their own. */
#define WALK_OTHER "other"

struct arena_chunk;

/* Label sets of one index: link="0". */
struct walk_index {
	struct walk_index *next;
	const char *name;
	const struct label_set *sets[NVLINKS_MAX];
};
_Static_assert(NVLINKS_MAX >= FANS_MAX && NVLINKS_MAX >= C2C_LINKS_MAX, "no row has more slots");

struct walk {
	const struct snapshot *s;
	const struct walk_sink *sink;
	enum walk_subject subject;
	struct arena_chunk *chunks; /* labels and texts */
	struct walk_index *indexes;
	uint32_t sets_n;
	bool failed; /* out of memory */
	const struct label_set **entities; /* gpu="0",uuid="GPU-..." and gi, ci of an instance */
	const struct label_set *other_process; /* pid="other",comm="other" */
};

/* False: the sink does not want the family. */
bool walk_family(struct walk *walk, const struct family *family);
/* Begins a family that is not in a table. */
bool walk_family_named(struct walk *walk, const char *name, enum family_type type, enum metric_unit unit,
		       const char *help);
/*
 * Begins the family of the rows from @first on; *ret_end is the index after the last of them. @prefix
 * replaces the first @strip bytes of its name; @help precedes its help text and may be NULL.
 */
bool walk_family_rows(struct walk *walk, const char *prefix, size_t strip, const char *help,
		      const struct metric *rows, unsigned n, unsigned first, unsigned *ret_end);
void walk_series(struct walk *walk, const struct series *series);

/*
 * A set with a copy of @labels, whose texts are not copied; with an id if @shared. NULL: out of memory, which
 * sets walk->failed; a series treats NULL as an empty set.
 */
enum { OWNER_LABELS = 3 };
/* Adds the names of a container and its pod that are known to @n labels; returns how many there are then. */
uint32_t walk_owner_labels(struct label *labels, uint32_t n, const struct owner *owner);
const struct label_set *walk_set(struct walk *walk, bool shared, const struct label *labels, uint32_t n);
#define WALK_SET(walk, shared, ...)                                       \
	walk_set((walk), (shared), (const struct label[]){ __VA_ARGS__ }, \
		 sizeof((const struct label[]){ __VA_ARGS__ }) / sizeof(struct label))
/* Texts that live as long as the walk; "" if out of memory. */
const char *walk_number(struct walk *walk, uint64_t number);
const char *walk_text(struct walk *walk, const char *text, const char *more);
/* Zeroed memory that lives as long as the walk. NULL: out of memory. */
void *walk_zeroes(struct walk *walk, size_t n, size_t size);

/* The label that distinguishes the rows of a family, e.g. engine="gpu"; NULL for a row without one. */
const struct label_set *walk_row_set(struct walk *walk, const struct metric *metric);
/* metric="gpusonde_...", for lists of estimates. */
const struct label_set *walk_metric_set(struct walk *walk, const char *prefix, const char *name);
/* Equal labels in equal order? */
bool label_set_equal(const struct label_set *a, const struct label_set *b);

/* The first row after @i that belongs to another family. */
unsigned family_end(const struct metric *rows, unsigned n, unsigned i);

static inline bool presence_estimated(uint8_t presence)
{
	return presence_is(presence) && (presence & PRESENCE_ESTIMATED);
}

void walk_gpus(struct walk *walk);
void walk_xids(struct walk *walk);
void walk_processes(struct walk *walk);
void walk_workloads(struct walk *walk);
void walk_jobs(struct walk *walk);
void walk_runs(struct walk *walk);
void walk_allocations(struct walk *walk);
void walk_traced(struct walk *walk);
void walk_kernels(struct walk *walk);
void walk_operators(struct walk *walk);
void walk_calls(struct walk *walk);
void walk_probes(struct walk *walk);
void walk_blas(struct walk *walk);
void walk_findings(struct walk *walk);
void walk_python(struct walk *walk);
void walk_nccl(struct walk *walk);
void walk_torch(struct walk *walk);
void walk_measured(struct walk *walk);
void walk_gpu_time(struct walk *walk);
void walk_node(struct walk *walk);
void walk_host(struct walk *walk);
void walk_servers(struct walk *walk);
/* A row's series if it is there, with the labels of @subject (NULL: none) and its own; host.c. */
void walk_row(struct walk *walk, const struct metric *row, const struct label_set *subject, double value,
	      uint8_t presence);
void walk_agent(struct walk *walk);

/* calls.c, for functions that the user names */
/* A series of a call: its labels and, or NULL, those that tell its series of a family apart. */
void walk_call_value(struct walk *walk, const struct label_set *call, const struct label_set *more,
		     double value);
/*
 * A series of durations. @within: of struct traced_call; made cumulative where that of a recording is not. No
 * series if it is not known, as in a recording of another version with other bounds.
 */
void walk_durations(struct walk *walk, const struct label_set *set, const uint64_t within[static TRACED_LE],
		    double seconds);

/* traced.c, for other parts that show traced processes. */
/*
 * The labels of a device's other series; by UUID alone if the driver has not listed it, NULL if the device is
 * unknown.
 */
const struct label_set *traced_device_set(struct walk *walk, const char *uuid);
/* Totals of devices; of devices with equal labels only the first. */
struct traced_totals {
	const struct label_set **sets;
	bool *shown;
};
bool traced_totals_init(struct walk *walk, struct traced_totals *ret_totals);
/*
 * Processes are sorted by PID. Among those that share @first's PID, of which it is the first, returns the one
 * that may have series; *ret_end is the index after the last of them.
 */
uint32_t traced_youngest(const struct trace_view *view, uint32_t first, uint32_t *ret_end);
/* pid="12",comm="name" */
const struct label_set *traced_process_set(struct walk *walk, const struct traced_process *process);
