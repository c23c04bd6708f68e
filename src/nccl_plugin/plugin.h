// SPDX-License-Identifier: Apache-2.0
/*
 * src/nccl_plugin is libgpusonde-nccl.so, which NCCL loads into the program where its user asks for it
 * (NCCL_PROFILER_PLUGIN). It tells the agent how long operations took on the GPU, and by which algorithm.
 *
 *   versions.c   ncclProfiler_v1 ... _v6: each version's descriptors, made one
 *   operations.c operations that run: begun, enqueued, their channels' starts and ends
 *   ring.c       operations that have ended, until they are sent
 *   sender.c     a thread that sends them
 *
 * Invariants
 *  1. NCCL's threads never wait while operations run: what has no room is counted as lost. Locks are held
 *     for a few instructions. Only when a communicator ends, what is left is sent first: at most 0.1 s, where
 *     the agent is there and busy.
 *  2. Every function says success to NCCL. What it hands out as handles are numbers: a late or wrong one
 *     finds nothing.
 *  3. A child of fork() does nothing: the thread is its parent's.
 *  4. It is never unloaded, since its thread may run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/nccl_wire.h"

/* What NCCL says of an operation that begins. */
struct plugin_operation {
	struct nccl_wire_operation told;
	bool timed; /* its channels' events will come */
	const void *context; /* of its communicator; only compared */
};

/* operations.c; handles are never NULL, 0: there was no room */
uintptr_t operation_begin(const struct plugin_operation *operation);
/* It is enqueued: its channels may still run. */
void operation_enqueued(uintptr_t handle);
/* A channel of the kernel begins or ends, at @gpu_ns by the GPU's clock; 0: by ours, now. */
uintptr_t operation_channel_begin(uintptr_t parent, uint64_t gpu_ns);
void operation_channel_time(uintptr_t handle, uint64_t gpu_ns);
void operation_proxy(uintptr_t parent);
/* An event's end, whatever it is of. */
void operation_event_end(uintptr_t handle);
/* A communicator ends: those of its operations whose channels were not told end without a duration. */
void operations_end(const void *context);

/* ring.c */
enum { PLUGIN_RING = 4096 }; /* power of two */
bool ring_put(const struct nccl_wire_operation *operation); /* false: it is full, which is counted */
bool ring_take(struct nccl_wire_operation *ret_operation);
void ring_lose(void); /* counts one that was lost elsewhere */
uint64_t ring_lost(void);

/* sender.c */
void sender_start(void); /* once for the process; later calls do nothing */
void sender_wake(void); /* there is something to send */
void sender_flush(void); /* sends what is left, within 0.1 s */
bool sender_is_child(void); /* this process was forked from the one that has the thread */
