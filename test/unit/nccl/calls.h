// SPDX-License-Identifier: Apache-2.0
/* Events of NCCL's calls, as the kernel side sends them. */
#pragma once

#include "nccl/nccl.h"
#include "test.h"

enum { PID = 100, COMM = 0x1000, OTHER = 0x2000, CHILD = 0x3000 };

/* A call that takes 1 us; members of struct trace_call as further arguments. */
#define CALL(nccl_, op_, ...)                                                                        \
	call((nccl_),                                                                                \
	     &(struct trace_call){                                                                   \
		     .header = { .tgid = PID, .type = TRACE_EVENT_CALL, .op = TRACE_OP_NCCL_##op_ }, \
		     .duration_ns = 1000,                                                            \
		     __VA_ARGS__ })
void call(struct nccl *nccl, const struct trace_call *event);
/* A process begins (TRACE_EVENT_PROCESS), executes or ends; @incarnation: which one, 0 does not say. */
void life(struct nccl *nccl, uint8_t type, uint64_t incarnation);

/* The newest figures, which the next call replaces. */
const struct nccl_view *figures(struct nccl *nccl);
/* The only process's row; NULL: there is none. */
const struct nccl_row *row_of(const struct nccl_view *view, enum nccl_operation operation, uint32_t ranks);

int setup(void **state);
int teardown(void **state);
