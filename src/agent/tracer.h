// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's tracing: a thread of its own with the engine (src/trace) and what its events mean (src/cuda).
 * Once a second it makes a struct trace_view of both, which the main thread fetches for the next snapshot.
 *
 *   main thread ── tracer_feed(snapshot) ──> devices, NVML's word on processes
 *               <── tracer_take() ────────── the newest view
 *
 * Invariants
 *  1. Nobody waits for the thread: not the agent's start (tracing begins when it begins), not a tick, and
 *     at the end at most TRACER_PATIENCE_NS; a thread that hangs by then is left behind, with all it refers
 *     to.
 *  2. Where tracing cannot be, there is a view that says why, and no thread any more.
 */
#pragma once

#include "base/clock.h"
#include "config/options.h"
#include "model/snapshot.h"
#include "model/trace.h"

#define TRACER_PATIENCE_NS (1200 * NSEC_PER_MSEC)

struct tracer;

/* Where the driver's library is expected, ends with NULL. */
extern const char *const tracer_drivers[];

/* Starts in the background, or finds that it is not wanted. -ENOMEM, -EAGAIN: no thread. */
int tracer_new(const struct options *options, struct tracer **ret_tracer);
void tracer_free(struct tracer *tracer);
DEFINE_CLEANUP(struct tracer *, tracer_free, tracer_freep)

/* What the node's devices and processes are now; takes a reference of its own. */
void tracer_feed(struct tracer *tracer, struct snapshot *snapshot);
/* A view that has not been taken yet, for the caller to unref; NULL: none. */
struct trace_view *tracer_take(struct tracer *tracer);
