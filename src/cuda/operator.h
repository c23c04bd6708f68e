// SPDX-License-Identifier: Apache-2.0
/*
 * What operators make CUDA do: launches, copies, allocations and waits of calls whose event names an operator
 * (struct trace_header), of each process and summed over all of them; and the estimated time of a process's
 * launches, split among the operators that made them.
 *
 * Time: as for kernels (share.c), by waves of threads, but of the launches of a window alone: a window
 * without launches, in which earlier ones still run, is split as the last one with launches was.
 */
#pragma once

#include <stdint.h>

#include "bpf/event.h"
#include "cuda/cuda.h"

struct process;

/* Of a process. */
enum {
	OPERATOR_ROWS_MAX = 4096, /* pairs of a device and an operator; others have no time */
	OPERATOR_SUMS_MAX = 512, /* operators; what others do is only in the sums over all processes */
};

/* An operator's launches on a device. */
struct operator_row {
	uint32_t next_free; /* the pool's */
	uint32_t usage;
	uint16_t operator; /* 0: those outside of operators */
	uint16_t forward; /* in a backward pass: the operator whose node is evaluated; 0: none is known */
	double fresh, old; /* weight of launches in this window; in the last one that had any */
};

/* What the process has of an operator. */
struct operator_sums {
	uint32_t next_free; /* the pool's */
	uint16_t operator;
	struct cuda_operator sums;
};

/* A successful call of CUDA. */
void operator_call(struct cuda *cuda, struct process *p, const struct trace_call *call);
/* A launch with its weight; @launches kernels. */
void operator_launch(struct cuda *cuda, struct process *p, uint32_t usage, const struct trace_header *header,
		     uint64_t launches, double weight);
/* The window ends: splits each usage's estimate. */
void operator_rows_share(struct cuda *cuda, struct process *p);
void operator_rows_done(struct process *p);
