// SPDX-License-Identifier: Apache-2.0
/*
 * What traced processes do with PyTorch, for the views: the operators that they call, its allocators, the
 * nodes of graphs that backward passes evaluate, and the ranges that programs mark, among them steps of
 * optimizers. A part of struct trace_view, immutable as it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/metric.h"

enum { TORCH_COMM = 64, TORCH_LABEL = 96, TORCH_DEVICE_TEXT = 24 };

/* c10::Device */
struct torch_device {
	int8_t type, index; /* index below 0: the type has only one, or it is the current one */
};

/* A process's allocator for a device, as it says itself. */
struct torch_memory {
	struct torch_device device;
	/* by the newest report, and the greatest of all reports that were seen */
	uint64_t allocated, reserved, allocated_peak, reserved_peak;
	uint64_t allocations, frees;
	uint64_t allocated_bytes; /* by all allocations that were seen */
	uint64_t ooms;
	/* of the newest one that failed: what was asked for, what was held, and by which operator */
	uint64_t oom_asked, oom_allocated, oom_reserved;
	uint16_t oom_call; /* row in the table of probes; 0: outside of operators */
	char oom_operator[TORCH_LABEL]; /* its name; "": outside */
};

/* How often something of a name was done. */
struct torch_count {
	char name[TORCH_LABEL]; /* sanitised UTF-8 */
	uint64_t count;
	double seconds; /* from the first to the last one */
};

/* An operator of PyTorch: of a process, or over all of them. */
struct traced_operator {
	char name[TORCH_LABEL]; /* "add.Tensor", printable; "": what was done outside of operators */
	bool has_series; /* of its own on /metrics; only over all processes */
	double v[OPERATOR_METRICS];
	uint8_t p[OPERATOR_METRICS];
};

struct torch_process {
	uint32_t pid;
	char comm[TORCH_COMM]; /* sanitised UTF-8 */
	bool exited; /* shown for the last time */
	bool has_series;
	/* What NVML says it holds on GPUs, and on how many; 0: not known. */
	uint64_t nvml_bytes;
	uint32_t nvml_gpus;
	bool lost; /* events of it were lost: counts and peaks are less than what happened */
	uint32_t memories_first, memories_n;
	uint32_t nodes_first, nodes_n; /* by count, the most first */
	uint32_t ranges_first, ranges_n; /* the same */
	uint32_t operators_first, operators_n; /* by estimated time, then by calls, the most first */
	uint32_t other_operators; /* beyond the limit */
	double other_operator_calls; /* of these */
	uint64_t other_nodes, other_ranges; /* of names that are not known, or beyond the limit */
	uint64_t joined; /* nodes whose operator is known */
	uint64_t steps; /* ranges that are steps of an optimizer */
	double step_seconds; /* mean from one step to the next; 0: not known */
};

struct torch_view {
	uint32_t processes_n, memories_n, counts_n, operators_n;
	uint64_t beyond; /* events of processes beyond the limit, which are in none */
	struct torch_process *processes; /* by PID */
	struct torch_memory *memories; /* by process */
	struct torch_count *counts; /* the same: nodes, then ranges */
	struct traced_operator *operators; /* the same */
};

/* Zeroed, with room for so many; one allocation, to be freed. NULL: out of memory. */
struct torch_view *torch_view_new(uint32_t processes, uint32_t memories, uint32_t counts,
				  uint32_t operators);

/*
 * What the process's allocators of GPUs have reserved, and what NVML says it holds beside: the context,
 * kernels, memory of other libraries. An estimate: both are read at different moments. False: it is not
 * known, as long as an allocator has not said anything that has memory on one of these GPUs.
 */
bool torch_beside(const struct torch_view *view, const struct torch_process *process, uint64_t *ret_reserved,
		  uint64_t *ret_beside);

/* "cuda:0", "cpu". */
void torch_device_text(struct torch_device device, char text[static TORCH_DEVICE_TEXT]);
