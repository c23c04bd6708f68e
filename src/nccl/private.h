// SPDX-License-Identifier: Apache-2.0
/* Shared by nccl.c (events), communicator.c and window.c (figures). */
#pragma once

#include "activity/incarnations.h"
#include "activity/users.h"
#include "base/hashmap.h"
#include "nccl/nccl.h"

struct communicator {
	struct nccl_communicator shown;
	uint64_t operations, operations_before; /* at the last window */
	uint32_t children; /* splits so far */
};

/* Of one size of communicator and operation. */
struct counts {
	uint64_t calls, failed, grouped, bytes, traffic;
	double seconds;
};

struct sizes {
	struct counts at[NCCL_SIZES_MAX][NCCL_OPERATIONS];
};

struct nccl_traced {
	uint32_t tgid, user;
	uint64_t incarnation; /* 0: not known */
	uint64_t first_ns; /* end of its first call */
	bool over, has_series;
	struct communicator *communicators;
	uint32_t communicators_n, communicators_room;
	uint32_t last; /* index of the last one that was found */
	struct sizes *sizes;
	uint64_t groups, group_operations, left_out;
	double group_seconds;
};

struct nccl {
	uint32_t series, series_used;
	bool keep;
	struct incarnations incarnations;
	struct traced_users *users; /* borrowed; NULL: all processes are one user's */
	struct nccl_traced *processes[NCCL_PROCESSES_MAX];
	uint32_t processes_n;
	struct hashmap by_tgid; /* index of those that run */
	/* Ranks of each size: of 0 not known, of the last one others. */
	uint32_t ranks[NCCL_SIZES_MAX];
	uint32_t sizes_n; /* without the last */
	struct sizes totals;
	uint64_t groups, beyond, window_ns;
	double group_seconds;
};

/* nccl.c: removes a process by its index; then, or when others moved, the index is made again. */
void nccl_forget(struct nccl *nccl, uint32_t i);
void nccl_index_again(struct nccl *nccl);

/* communicator.c */
/* A live one; NULL: there is none of that handle. */
struct communicator *communicator_find(struct nccl_traced *p, uint64_t handle);
/* The same, made if needed; NULL: no room. @keep: not in the place of one that has ended. */
struct communicator *communicator_get(struct nccl_traced *p, uint64_t handle, bool keep);
/* One that a call has just made: in place of an older one with its handle. */
struct communicator *communicator_make(struct nccl_traced *p, uint64_t handle, bool keep);
