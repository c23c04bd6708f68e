// SPDX-License-Identifier: Apache-2.0
/*
 * src/blas interprets traced calls of cuBLAS and cublasLt: what is multiplied, of which types, and how many
 * FLOP that asks for. cuDNN's calls are counted only, by the engine.
 *
 * Invariants
 *  1. A call that failed asks for nothing; one whose result is not known is taken to have succeeded.
 *  2. Sizes of cublasLt's layouts are known by the digest of their contents (blas/layouts.h), or not at all.
 *  3. What is called within another call of this layer is not counted again (bpf/layers.h).
 *  4. Memory is bounded: BLAS_PROCESSES_MAX processes, each with so many shapes, layouts and handles. Shapes
 *     beyond the limit are in the sums by precision, and calls of processes beyond it in the totals, counted.
 *  5. A process is an incarnation, between two execs; what is said of another one with its PID is not of it.
 *
 * One thread owns a struct blas: the one that drains the ring.
 */
#pragma once

#include "base/macro.h"
#include "bpf/event.h"
#include "model/blas.h"

enum { BLAS_PROCESSES_MAX = 1024, BLAS_HANDLES_MAX = 1024 };

struct blas;

/*
 * @series: processes with series of their own. @shapes: of each process, with rows. @keep: processes that
 * have ended, too, as a command does that shows all at its end.
 */
struct blas *blas_new(uint32_t series, uint32_t shapes, bool keep);
void blas_free(struct blas *blas);
DEFINE_CLEANUP(struct blas *, blas_free, blas_freep)
/* From now on the users of processes share its table of them. */
struct traced_users;
void blas_share(struct blas *blas, struct traced_users *users);

bool blas_is_event(const struct trace_header *event);
/* One event, in ring order: those of cuBLAS, and beginnings and ends of processes. */
void blas_event(struct blas *blas, const struct trace_header *event, uint32_t size);
/* A process has ended, whose end may not have been seen. @incarnation, 0: not known. */
void blas_process_over(struct blas *blas, uint32_t tgid, uint64_t incarnation);
/* Events were lost: handles' math modes may have changed, and are not known. */
void blas_lost(struct blas *blas);
/* What a call multiplies, as far as is known after the events so far. False: its size is not known. */
bool blas_shape_of(const struct blas *blas, const struct trace_call *call, struct blas_shape *ret_shape);

/*
 * The figures, to be freed. Processes that have ended are in it for the last time, unless they are kept.
 * NULL: out of memory.
 */
struct blas_view *blas_window(struct blas *blas);
