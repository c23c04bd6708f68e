// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by the files of this folder. Objects are referred to by index (into a process's arrays, which move
 * when they grow); no pointer may be kept across a call that may add one.
 *
 *   cuda.c                events to handlers, limits, statistics
 *   process.h             process.c: incarnations; everything of one
 *   context.h             context.c: contexts, current ones of threads
 *   device.h              device.c: the node's devices, which one a context is on;
 *                         visible.c: CUDA_VISIBLE_DEVICES
 *   stream.h              stream.c: streams, pending work; sync.c: what a wait proves to be over;
 *                         span.c: finished spans for the sinks
 *   event.h               event.c: CUDA events, captures, graphs
 *   ledger.h              ledger.c: allocations; holder.c: which threads hold them; leaked.c: never freed
 *   usage.h               window.c: aggregates of a window; fill.c: into a view; leak.c: the verdict on leaks
 *   operator.h            operator.c: what operators make CUDA do
 *   kernels.h             handle.c function.c row.c kernel.c share.c fill_kernel.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "activity/pool.h"
#include "activity/span_sink.h"
#include "base/hashmap.h"
#include "base/macro.h"
#include "base/saturated.h"
#include "cuda/context.h"
#include "cuda/cuda.h"
#include "cuda/device.h"
#include "cuda/event.h"
#include "cuda/kernels.h"
#include "cuda/ledger.h"
#include "cuda/operator.h"
#include "cuda/process.h"
#include "cuda/stream.h"
#include "cuda/usage.h"

enum { NONE = POOL_NONE };

struct cuda {
	struct cuda_limits limits;
	struct cuda_ops ops;
	void *userdata;
	uint64_t salt; /* so that no program can choose keys that collide */
	struct cuda_stats stats;
	struct span_sinks span_sinks;

	struct cuda_device *devices;
	uint16_t *device_uuids; /* of devices[] */
	uint32_t devices_n;
	char (*uuids)[TRACED_UUID]; /* ever seen; 0 is "" */
	struct total *totals; /* by UUID */
	uint32_t uuids_n, uuids_room;

	struct process **processes;
	uint32_t processes_n, processes_room;
	struct hashmap process_map; /* tgid */
	uint32_t last; /* process of the last event */
	struct series_set series; /* processes with series of their own */

	struct allocation **chunks;
	uint32_t chunks_n, allocations_n, allocations_made, allocation_free;

	struct process **shown; /* at the last window, by PID */
	uint32_t shown_n, shown_room, shown_devices, shown_totals, shown_kernels;

	uint32_t rows_n; /* kernels of all processes */
	uint64_t names_bytes; /* of symbols and paths */
	uint64_t texts_bytes; /* of kernels in rows */
	uint64_t questions_n; /* total number */
	struct hashmap questions; /* that wait for an answer: id to tgid */
	struct series_claim **best; /* scratch, of limits.kernel_series */

	struct cuda_operator *operators; /* by row of the table of probes; NULL: not added up */
	uint64_t visit; /* waits looked at */
	uint64_t window; /* windows closed, plus one */
	int64_t window_start_ns;
	char *environment; /* scratch, ENVIRONMENT_MAX */
};

static inline uint64_t salted(const struct cuda *cuda, uint64_t key)
{
	return key ^ cuda->salt;
}

static inline bool spans_wanted(const struct cuda *cuda)
{
	return cuda->span_sinks.list.n > 0;
}

/* When a call returned. */
static inline uint64_t returned_ns(const struct trace_call *call)
{
	return add_saturated(call->header.time_ns, call->duration_ns);
}
