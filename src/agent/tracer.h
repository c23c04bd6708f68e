// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's tracing: a thread with the engine (src/trace) and the interpretation of its events (src/cuda).
 * Once a second it makes a struct trace_view of both, which the main thread fetches for the next snapshot.
 *
 *   main thread ── tracer_feed(snapshot) ──> devices, NVML's figures of processes
 *               ── tracer_feed_works() ───> true times of GPUs' work, of programs with CUPTI's plugin
 *               <── tracer_take() ────────── the newest view
 *
 * Invariants
 *  1. The main thread never waits for this thread, neither at start nor in a tick. tracer_free() waits at
 *     most TRACER_PATIENCE_NS; a thread that has not ended by then is abandoned, with all memory it uses.
 *  2. Where tracing is impossible, there is one view that contains the reason, and the thread ends.
 */
#pragma once

#include "base/clock.h"
#include "config/options.h"
#include "model/gpu_work.h"
#include "model/snapshot.h"
#include "model/trace.h"

#define TRACER_PATIENCE_NS (1200 * NSEC_PER_MSEC)

struct record;
struct tracer;

/* Where the driver's library is expected; ends with NULL. */
extern const char *const tracer_drivers[];

/* Starts the thread, unless tracing is disabled. -ENOMEM, -EAGAIN: the thread cannot be started. */
int tracer_new(const struct options *options, struct tracer **ret_tracer);
void tracer_free(struct tracer *tracer);
DEFINE_CLEANUP(struct tracer *, tracer_free, tracer_freep)

/* Passes the node's current devices and processes; takes a reference to the snapshot. */
void tracer_feed(struct tracer *tracer, struct snapshot *snapshot);
/*
 * Passes what CUPTI has measured since the last call; takes it over. What the thread has no time to fetch is
 * bounded: then the oldest is dropped, and counted.
 */
void tracer_feed_works(struct tracer *tracer, struct gpu_works *works);
/* Its recordings of timelines; valid as long as the tracer. */
struct record *tracer_record(struct tracer *tracer);
/*
 * Writes what is kept of the timeline (timeline.last), because of a finding, a hang or the like. From any
 * thread; it may be called again and again.
 */
void tracer_write_last(struct tracer *tracer, const char *reason);
/* The newest view that has not been fetched yet, to be unreferenced by the caller; NULL: none. */
struct trace_view *tracer_take(struct tracer *tracer);
