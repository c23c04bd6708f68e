// SPDX-License-Identifier: Apache-2.0
/*
 * Calls of operators by process, read from the kernel side's map at each collection (bpf/operators.h).
 *
 * Invariants
 *  1. A process's calls are shown until it has been over for two collections, so that they are there when it
 *     is shown for the last time. Then they are deleted from the map.
 *  2. Totals include what was deleted, so they never fall.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "trace/attach.h"

struct operator_sum {
	uint16_t call;
	uint64_t calls, outermost, backward; /* as in struct trace_operator */
};

struct operators_process {
	uint32_t tgid;
	uint64_t incarnation;
	uint32_t first, n; /* range in the sums */
	uint8_t over; /* collections since it was found to have ended */
	double cost_ns; /* of all its hits so far */
};

struct operators {
	struct attach_backend *backend;
	int map, procs;
	uint32_t max; /* entries of the map; 0: operators are not traced */
	struct trace_stat_key *keys; /* scratch */
	struct trace_operator *values; /* the same */
	struct operator_sum *sums; /* by process, then by call */
	struct operators_process *processes; /* by PID and incarnation */
	uint32_t processes_n;
	struct operator_sum *gone, *totals; /* by call, TRACE_CALLS_MAX of each */
};

/* A process's hits since the last reading have cost it so much. */
typedef void operators_cost(uint32_t tgid, uint64_t incarnation, double cost_ns, void *userdata);

/* @max: entries of the map, 0 for none. */
int operators_init(struct operators *operators, struct attach_backend *backend, uint32_t max);
void operators_done(struct operators *operators);
/* Reads the map. @entry_ns: by call, what a hit costs. */
void operators_collect(struct operators *operators, const uint32_t *entry_ns, operators_cost *cost,
		       void *userdata);
/* Its calls; NULL: none. */
const struct operators_process *operators_find(const struct operators *operators, uint32_t tgid,
					       uint64_t incarnation);
