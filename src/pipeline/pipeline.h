// SPDX-License-Identifier: Apache-2.0
/*
 * From traced events to figures: the engine's events go to src/cuda, src/symbolize names the kernels, and
 * once a window both are combined in a struct trace_view. A pipeline has no thread: the caller runs an event
 * loop and owns the engine.
 *
 *   engine ── pipeline_event_sink ──> pipeline ──> src/cuda ── pipeline_span_sinks ──> other users of spans
 *                                        │  └────> src/symbolize (a helper), answers by the caller's loop
 *   snapshot ── pipeline_set_node ──────>│
 *                                        └── pipeline_view(engine) ──> struct trace_view
 *
 * One thread owns a pipeline: the one that runs its event loop.
 */
#pragma once

#include <sys/types.h>

#include <systemd/sd-event.h>

#include "activity/event_sink.h"
#include "activity/span_sink.h"
#include "base/macro.h"
#include "blas/blas.h"
#include "cuda/cuda.h"
#include "model/gpu_work.h"
#include "model/nccl.h"
#include "model/snapshot.h"
#include "symbolize/client.h"
#include "trace/engine.h"

enum { PIPELINE_CARRIED_MAX = 256 };

struct pipeline_config {
	uint32_t series, kernel_series; /* processes and kernels with series of their own */
	bool operators; /* of PyTorch are traced, and what else it does */
	bool keep_ended; /* of PyTorch: figures of processes that have ended stay */
	bool name_kernels;
	bool nccl; /* is traced, too */
	bool blas; /* the same */
	bool python; /* the same */
	bool stacks; /* of calls are recorded */
	bool native_stacks; /* with native frames */
	bool measured; /* what CUPTI measures in programs is told (pipeline_take_works()) */
	/* All do, from their beginning. Estimates do not learn from it, and stand beside it. */
	bool measured_always;
	bool read_memory; /* kernel names may be read from a process's memory */
	/*
	 * Requests to name a kernel wait this long for the first devices, since its figures depend on the
	 * device. 0: no waiting.
	 */
	int64_t devices_wait_ns;
	/* For the log; may be NULL. */
	void (*notice)(int level, const char *text, void *userdata);
	void *userdata;
};

struct measured;
struct pipeline;

/*
 * @event: the loop of the owning thread. *ret_unnamed: a negative errno if kernels cannot be named; 0: they
 * are named, or that was disabled.
 */
int pipeline_new(sd_event *event, const struct pipeline_config *config, struct pipeline **ret_pipeline,
		 int *ret_unnamed);
/* To be called after the engine has been freed. */
void pipeline_free(struct pipeline *pipeline);
DEFINE_CLEANUP(struct pipeline *, pipeline_free, pipeline_freep)

/* The sink for the engine's events, to be added to trace_engine_sinks(). Valid as long as the pipeline. */
struct event_sink *pipeline_event_sink(struct pipeline *pipeline);
/* The sums of stacks, whose sink is to be added, too; NULL: they are not recorded. */
struct stack_sums *pipeline_stacks(struct pipeline *pipeline);
/* What CUPTI measures in programs; NULL: it is not told. */
struct measured *pipeline_measured(const struct pipeline *pipeline);
/* Once a second: what has come. */
void pipeline_take_works(struct pipeline *pipeline, const struct gpu_works *works);
/* Records that were dropped on their way here, so far. */
void pipeline_works_dropped(struct pipeline *pipeline, uint64_t dropped);
/* The list of sinks for finished spans. */
struct span_sinks *pipeline_span_sinks(struct pipeline *pipeline);
/* For blas_shape_of(); NULL: not traced. */
const struct blas *pipeline_blas(const struct pipeline *pipeline);
/* nccl_communicator(); NULL: not traced, or not known. */
const struct nccl_communicator *pipeline_communicator(const struct pipeline *pipeline, uint32_t tgid,
						      uint64_t handle);
/* cuda_launch_stream() */
bool pipeline_launch_stream(struct pipeline *pipeline, const struct trace_launch *launch,
			    uint32_t *ret_stream_id);
/* cuda_function_kernel() */
const struct kernel *pipeline_kernel(struct pipeline *pipeline, uint32_t tgid, uint64_t function);

/* The engine that it is told of interpreters; once that is there. */
void pipeline_set_engine(struct pipeline *pipeline, struct trace_engine *engine);
/* For struct trace_engine_ops. */
void pipeline_mapped(struct pipeline *pipeline, struct trace_engine *engine, pid_t pid);
void pipeline_remapped(struct pipeline *pipeline, pid_t pid);

/* Passes the node's devices, and NVML's figures of its processes, from a snapshot; once for each window. */
void pipeline_set_node(struct pipeline *pipeline, const struct snapshot *snapshot);

/*
 * Closes the window and returns a view, which the caller must unref. @left_out: ended processes that were
 * dropped from earlier views.
 */
int pipeline_view(struct pipeline *pipeline, struct trace_engine *engine, uint64_t left_out,
		  struct trace_view **ret_view);
/* Fills one call of a view from the engine's sums, and appends its errors to the view's. */
void pipeline_fill_call(struct trace_view *view, struct traced_call *call, const struct trace_sum *sum);
/* Adds the arguments of a function that the user named; @number: the call's. -ENOMEM. */
int pipeline_fill_arguments(struct trace_view *view, struct traced_call *call, uint16_t number,
			    const struct trace_engine *engine);
/* A view that says why tracing is not running. If it is not @wanted, the source is not reported as failed. */
int pipeline_view_off(const char *why, bool wanted, struct trace_view **ret_view);
/*
 * Adds the processes that ended in @before, which was never fetched, to @view (takes its reference). @before
 * may be NULL. Adds the number of dropped processes to @left_out: their figures are only in the totals.
 */
struct trace_view *pipeline_carry(const struct trace_view *before, struct trace_view *view,
				  uint64_t *left_out);

/* Stores the environment of a process that may have ended when it is needed; the newest 256 are stored. */
void pipeline_keep_environment(struct pipeline *pipeline, pid_t pid);
/*
 * Reads a file that a process is about to map, so that its kernels can be named after the process has ended.
 */
void pipeline_look(struct pipeline *pipeline, const struct symbolizer_mapping *mapping);
/*
 * Waits until all kernels launched so far are named or known to be unnamed, at most @timeout_ns. Drains
 * @engine meanwhile.
 */
void pipeline_settle(struct pipeline *pipeline, struct trace_engine *engine, int64_t timeout_ns);
