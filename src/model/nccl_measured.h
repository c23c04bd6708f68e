// SPDX-License-Identifier: Apache-2.0
/*
 * Operations of NCCL as its profiler plugin measured them (src/nccl_plugin), by process, for the views. A
 * row is what one process did by one algorithm and protocol on communicators of one size.
 *
 * Who sends them is the program itself: these are its claims about itself.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/nccl.h"

enum { NCCL_MEASURED_MAX = 8192, NCCL_NAME = 16, NCCL_TOTALS_MAX = 96 };

struct nccl_measured {
	uint32_t pid;
	uint32_t uid; /* of the process, as the kernel says */
	uint64_t since_boot_ns; /* when it connected: one that began later has its PID only */
	uint32_t ranks; /* or NCCL_RANKS_... */
	uint8_t operation; /* enum nccl_operation; NCCL_OPERATIONS: those beyond the limit, together */
	uint8_t gone; /* it has closed its connection */
	uint8_t channels; /* at most so many */
	uint8_t host_timed; /* durations are by the host's clock: longer than the GPU's work */
	char algorithm[NCCL_NAME], protocol[NCCL_NAME]; /* "": not known */
	uint64_t calls, bytes;
	uint64_t timed; /* calls whose duration is known: of these are */
	double seconds;
	uint64_t traffic; /* as nccl-tests counts; 0 where the ranks are not known */
	double bus_traffic; /* traffic times the factor of the bus */
	uint64_t proxy_operations; /* of network transfers */
	uint64_t lost; /* operations that the process's plugin had no room for; in its first row */
	char comm[NCCL_COMM]; /* the process's name, "": not known; the agent sets it */
};

/*
 * Of all processes that ever were, by operation and ranks, without their names; none goes away. What comes
 * after NCCL_TOTALS_MAX - 1 of them is in one row, whose operation is NCCL_OPERATIONS.
 */
struct nccl_totals {
	uint32_t n;
	uint64_t lost; /* operations that plugins had no room for */
	struct nccl_measured rows[NCCL_TOTALS_MAX];
};

/* Shared by snapshots. */
struct nccl_measurements {
	atomic_uint refs;
	uint32_t n;
	uint64_t refused; /* connections and messages */
	uint64_t left_out; /* rows for which there was no room this time */
	struct nccl_totals totals; /* those rows' included */
	struct nccl_measured rows[]; /* by process */
};

/* A copy of @rows; NULL: out of memory. */
struct nccl_measurements *nccl_measurements_new(const struct nccl_measured *rows, uint32_t n);
struct nccl_measurements *nccl_measurements_ref(struct nccl_measurements *measurements);
void nccl_measurements_unref(struct nccl_measurements *measurements);
/* Bytes per second; NAN: no duration is known, or not the ranks. */
double nccl_algorithm_bandwidth(const struct nccl_measured *row);
double nccl_bus_bandwidth(const struct nccl_measured *row);
/* "other" for those beyond the limit. */
const char *nccl_measured_operation(const struct nccl_measured *row);
/*
 * Adds the numbers of another row; its durations not where bandwidths follow from those of the sum, and not
 * from them: its ranks are not known.
 */
void nccl_measured_add(struct nccl_measured *to, const struct nccl_measured *row);
/* The row of an operation on so many ranks, which is made if needed. */
struct nccl_measured *nccl_totals_row(struct nccl_totals *totals, uint8_t operation, uint32_t ranks);
void nccl_totals_add(struct nccl_totals *to, const struct nccl_totals *totals);
