// SPDX-License-Identifier: Apache-2.0
/*
 * src/nccl interprets traced calls of NCCL: which communicator an operation is on, how many ranks it has, and
 * so how many bytes it moves. The arguments say what is asked for; the work is done later, on the GPUs, and
 * nothing here says how long that takes.
 *
 * Invariants
 *  1. A communicator belongs to a process between two execs: a child of fork() has none of its parent's.
 *  2. A communicator that was made before it was traced is known by its first operation. Its number of
 *     ranks is learnt when the program asks for it (ncclCommCount()), its rank too; until then the traffic of
 *     what is each rank's argument is not known, and is not told.
 *  3. Groups are followed on the kernel side, by thread (bpf/nccl.h), and end with their thread.
 *  4. Memory is bounded: NCCL_PROCESSES_MAX processes, operations of further ones are in the totals and
 *     counted; each with NCCL_COMMUNICATORS_MAX communicators, and NCCL_SIZES_MAX sizes of communicators in
 *     all, the others together. Nothing is allocated for an event but by a process's or communicator's first.
 *  5. A process is an incarnation, between two execs; what is said of another one with its PID is not of it.
 *
 * One thread owns a struct nccl: the one that drains the ring.
 */
#pragma once

#include "base/macro.h"
#include "bpf/event.h"
#include "model/nccl.h"

enum { NCCL_PROCESSES_MAX = 1024, NCCL_COMMUNICATORS_MAX = 256, NCCL_SIZES_MAX = 16 };

struct nccl;

/*
 * @series: processes with series of their own. @keep: those that have ended, too, and their communicators, as
 * a command does that shows all at its end.
 */
struct nccl *nccl_new(uint32_t series, bool keep);
void nccl_free(struct nccl *nccl);
DEFINE_CLEANUP(struct nccl *, nccl_free, nccl_freep)
/* From now on the users of processes share its table of them. */
struct traced_users;
void nccl_share(struct nccl *nccl, struct traced_users *users);

/* Whether the event is of NCCL, and of nothing else. */
bool nccl_is_event(const struct trace_header *event);
/* One event, in ring order: those of NCCL, and beginnings and ends of processes. */
void nccl_event(struct nccl *nccl, const struct trace_header *event, uint32_t size);
/*
 * Events of a process, or of any (@tgid 0), were lost or not collected: the sequences of its communicators
 * are behind, which are marked as if they had been made before they were traced; children have no ID.
 */
void nccl_lost(struct nccl *nccl, uint32_t tgid);
/* Whether it is a collective, which has a number in its communicator (nccl_communicator.sequence). */
bool nccl_is_collective(const struct trace_header *event);
/*
 * What is known of a live communicator, as of the newest event. NULL: nothing. Valid until the next event or
 * window.
 */
const struct nccl_communicator *nccl_communicator(const struct nccl *nccl, uint32_t tgid, uint64_t handle);
/* A process has ended, whose end may not have been seen. @incarnation, 0: not known. */
void nccl_process_over(struct nccl *nccl, uint32_t tgid, uint64_t incarnation);

/*
 * Closes the window: figures as of @now_ns (CLOCK_MONOTONIC), to be freed. Processes that have ended are in
 * it for the last time, unless they are kept. NULL: out of memory.
 */
struct nccl_view *nccl_window(struct nccl *nccl, uint64_t now_ns);

/* NCCL's hash of a child's ID: @count-th split of the parent, and its color. */
uint64_t nccl_child_id(uint64_t parent, uint32_t count, uint32_t color);
