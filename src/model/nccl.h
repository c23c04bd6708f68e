// SPDX-License-Identifier: Apache-2.0
/*
 * What traced processes do with NCCL, for the views: operations by the size of their communicator, the
 * communicators, groups. A part of struct trace_view, immutable as it. Times are those of calls, which only
 * enqueue: no bandwidth follows from them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum nccl_operation {
#define NCCL_OPERATION(id_, name_, per_rank_, bus_) NCCL_##id_,
#include "model/nccl_operations.def"
#undef NCCL_OPERATION
	NCCL_OPERATIONS,
};

enum {
	NCCL_RANKS_UNKNOWN = 0, /* the communicator was made before it was traced, or by ncclCommSplit() */
	NCCL_RANKS_OTHER = UINT16_MAX, /* sizes beyond the limit, together */
	NCCL_RANK_UNKNOWN = -1,
	NCCL_COMM = 64,
	NCCL_SIZE_TEXT = 16,
};

/* Calls that succeeded, of an operation on communicators of one size. */
struct nccl_row {
	uint32_t ranks; /* or NCCL_RANKS_... */
	uint8_t operation; /* enum nccl_operation */
	uint64_t calls, failed;
	uint64_t grouped; /* calls within a group */
	uint64_t bytes; /* of the argument */
	uint64_t traffic; /* by nccl-tests' convention; valid unless `unsized` */
	bool unsized; /* traffic is not known, since the number of ranks is not */
	double seconds; /* in the calls, of which those in a group return at once */
};

struct nccl_communicator {
	uint64_t id; /* NCCL's hash of its ID, equal on all ranks; 0: not known */
	uint64_t handle;
	uint32_t ranks; /* 0: not known */
	int32_t rank; /* NCCL_RANK_UNKNOWN */
	uint64_t sequence; /* collectives enqueued so far: equal on all ranks of a healthy program */
	uint64_t point_to_point;
	double per_second; /* operations, since the last view */
	int32_t async_error; /* the last that ncclCommGetAsyncError() told; 0: none */
	bool late; /* it was made before it was traced, so that the sequence began earlier */
	bool ended;
};

struct nccl_process {
	uint32_t pid;
	char comm[NCCL_COMM]; /* sanitised UTF-8 */
	bool exited; /* shown for the last time */
	bool has_series;
	uint64_t groups, group_operations;
	double group_seconds; /* from the outermost ncclGroupStart() to the end of its ncclGroupEnd() */
	uint64_t left_out; /* communicators beyond the limit, by their operations */
	uint32_t rows_first, rows_n, communicators_first, communicators_n;
};

struct nccl_view {
	uint32_t processes_n, rows_n, communicators_n, totals_n;
	struct nccl_process *processes; /* by PID */
	struct nccl_row *rows; /* by process */
	struct nccl_communicator *communicators; /* by process */
	struct nccl_row *totals; /* of all processes that ever were */
	uint64_t beyond; /* operations of processes beyond the limit: in the totals, and in no process */
	uint64_t groups; /* of all processes that ever were */
	double group_seconds;
};

/* Zeroed, with room for so many; one allocation, to be freed. NULL: out of memory. */
struct nccl_view *nccl_view_new(uint32_t processes, uint32_t rows, uint32_t communicators, uint32_t totals);

const char *nccl_operation_name(enum nccl_operation operation);
/* Whether the argument is of one rank, so that the traffic is that times the ranks. */
bool nccl_operation_is_per_rank(enum nccl_operation operation);
/* What an algorithm's bandwidth is multiplied by for that of the bus. */
double nccl_bus_factor(enum nccl_operation operation, uint32_t ranks);
/* "8", "unknown", "other" */
void nccl_size_text(uint32_t ranks, char buf[static NCCL_SIZE_TEXT]);
/* Bytes of an ncclDataType_t; 0: unknown. */
uint32_t nccl_type_bytes(uint32_t type);
/* "float32"; NULL: unknown. */
const char *nccl_type_name(uint32_t type);
/* "sum" of an ncclRedOp_t; NULL: one of the program's own. */
const char *nccl_reduction_name(uint32_t reduction);
/* Meaning of an ncclResult_t; NULL: unknown. */
const char *nccl_error_words(int32_t code);
