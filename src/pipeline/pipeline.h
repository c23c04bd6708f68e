// SPDX-License-Identifier: Apache-2.0
/*
 * From traced events to figures: the engine's events go to src/cuda, kernels are named by src/symbolize, and
 * once a window both become a struct trace_view. A pipeline has no thread of its own: the caller runs an
 * event loop and owns the engine.
 *
 *   engine ── pipeline_event_sink ──> pipeline ──> src/cuda ── pipeline_span_sinks ──> who wants spans
 *                                        │  └────> src/symbolize (own thread), answers by the caller's loop
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
#include "cuda/cuda.h"
#include "model/snapshot.h"
#include "symbolize/symbolize.h"
#include "trace/engine.h"

enum { PIPELINE_CARRIED_MAX = 256 };

struct pipeline_config {
	uint32_t series, kernel_series; /* processes and kernels with series of their own */
	bool name_kernels;
	bool read_memory; /* kernels may be named from a process's memory */
	/*
	 * Questions wait this long for the first devices: which of a kernel's images is launched depends on
	 * them. 0: not at all.
	 */
	int64_t devices_wait_ns;
};

struct pipeline;

/*
 * @event: the loop of the thread that owns it. *ret_unnamed: why kernels are named by their handles alone, a
 * negative errno; 0: they are named, or that was not wanted.
 */
int pipeline_new(sd_event *event, const struct pipeline_config *config, struct pipeline **ret_pipeline,
		 int *ret_unnamed);
/* After its engine. */
void pipeline_free(struct pipeline *pipeline);
DEFINE_CLEANUP(struct pipeline *, pipeline_free, pipeline_freep)

/* What takes the engine's events: for the list of trace_engine_sinks(). Lives as long as the pipeline. */
struct event_sink *pipeline_event_sink(struct pipeline *pipeline);
/* Those who get finished spans, to be added to. */
struct span_sinks *pipeline_span_sinks(struct pipeline *pipeline);

/* The node's devices, and NVML's figures of its processes, from a snapshot; once for each window. */
void pipeline_set_node(struct pipeline *pipeline, const struct snapshot *snapshot);

/*
 * Closes the window: what is known now, for the caller to unref. @left_out: ended processes that found no
 * room in earlier views.
 */
int pipeline_view(struct pipeline *pipeline, struct trace_engine *engine, uint64_t left_out,
		  struct trace_view **ret_view);
/* One call of a view, from the engine's sums; its errors go behind those that the view has. */
void pipeline_fill_call(struct trace_view *view, struct traced_call *call, const struct trace_sum *sum);
/* A view of tracing that is not running, and why; a source that nobody wanted is not down. */
int pipeline_view_off(const char *why, bool wanted, struct trace_view **ret_view);
/*
 * @view, which it takes, with what ended in @before, which nobody has seen; @before may be NULL. Adds to
 * @left_out those without room: their figures are in the totals only.
 */
struct trace_view *pipeline_carry(const struct trace_view *before, struct trace_view *view,
				  uint64_t *left_out);

/* The environment of a process that may be gone when it is asked for; the newest 64 are kept. */
void pipeline_keep_environment(struct pipeline *pipeline, pid_t pid);
/* A file that a process is about to map: its kernels can be named when the process has ended. */
void pipeline_look(struct pipeline *pipeline, const struct symbolizer_mapping *mapping);
/* What has been launched so far is named, or cannot be; @timeout_ns at most. Drains @engine meanwhile. */
void pipeline_settle(struct pipeline *pipeline, struct trace_engine *engine, int64_t timeout_ns);
