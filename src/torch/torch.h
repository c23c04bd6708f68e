// SPDX-License-Identifier: Apache-2.0
/*
 * src/torch interprets what PyTorch does beside calling operators (bpf/torch.h): what its allocators say of
 * themselves, the nodes that backward passes evaluate, and ranges that programs mark. It is told which
 * operators a process calls, and keeps that with the rest.
 *
 * Invariants
 *  1. An allocator's totals are its own: what it said last. A lost report makes them old, never wrong in sum.
 *  2. What an operator holds are the bytes of allocations that were made within it, it being the innermost
 *     one, and whose end was not seen. An address that is allocated again had ended before.
 *  3. A process has nothing of the one before exec, and a child of fork() nothing of its parent.
 *  4. Memory is bounded: TORCH_PROCESSES_MAX processes, each with so many devices, names and allocations, and
 *     TORCH_BLOCKS_MAX allocations in all. Nothing is allocated for an event but by what is seen first.
 *
 * One thread owns a struct torch: the one that drains the ring.
 */
#pragma once

#include "base/macro.h"
#include "bpf/event.h"
#include "model/torch.h"

enum {
	TORCH_PROCESSES_MAX = 1024,
	TORCH_DEVICES_MAX = 32, /* of a process */
	TORCH_NODES_MAX = 256, /* names of nodes of a process */
	TORCH_RANGES_MAX = 64, /* names of ranges of a process */
	TORCH_PROCESS_OPERATORS_MAX = 64, /* of a process; */
	/* of all: a process has at most an eighth of those that are left, and a user his share of them */
	TORCH_OPERATORS_MAX = 1 << 14,
	TORCH_BLOCKS_MAX = 1 << 18, /* allocations whose operator is known, of all processes */
	TORCH_PROCESS_BLOCKS_MAX = 1 << 16,
};

struct torch;

/* What an operator has of PyTorch's allocators, in all processes. */
struct torch_operator {
	uint64_t allocated_bytes;
	uint64_t held_bytes;
};

/* @series, @keep: as for blas_new(). */
struct torch *torch_new(uint32_t series, bool keep);
void torch_free(struct torch *torch);
DEFINE_CLEANUP(struct torch *, torch_free, torch_freep)
/* From now on the users of processes share its tables. */
struct traced_users;
void torch_share(struct torch *torch, struct traced_users *users);

/* Whether the event is of PyTorch, and of nothing else. */
bool torch_is_event(const struct trace_header *event);
/* One event, in ring order: those of PyTorch, and beginnings and ends of processes. */
void torch_event(struct torch *torch, const struct trace_header *event, uint32_t size);
/* Events of a process, or of any (@tgid 0), were lost. */
void torch_lost(struct torch *torch, uint32_t tgid);
/* 0: any incarnation. */
void torch_process_over(struct torch *torch, uint32_t tgid, uint64_t incarnation);

/*
 * Which operators a process calls, by estimated time: they take the place of those before. @over: how often
 * it was found to have ended; from the second time on it is not added if it is not known. @work_known:
 * @operators have what CUDA did for them; those that have it are not replaced by others without.
 */
void torch_operators_of(struct torch *torch, uint32_t tgid, uint64_t incarnation, unsigned over,
			bool work_known, const struct traced_operator *operators, uint32_t n);

/* What the process is called: shown also after it has ended, if it is kept. */
void torch_call_process(struct torch *torch, uint32_t tgid, const char *comm);

/* By row of the table of probes, TRACE_CALLS_MAX of them; 0: outside of operators. */
const struct torch_operator *torch_operators(const struct torch *torch);
/* Whether what operators hold is only an estimate: events were lost, or there was no room for allocations. */
bool torch_is_doubtful(const struct torch *torch);

/* As blas_window(). */
struct torch_view *torch_window(struct torch *torch);

/*
 * The name of a type of node as C++ has it, "N5torch8autograd9generated12MulBackward0E": MulBackward0. False:
 * it is none, and what is not known is not named.
 */
bool torch_node_name(const char *type, char name[static TORCH_LABEL]);
