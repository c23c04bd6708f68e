// SPDX-License-Identifier: Apache-2.0
/*
 * "gpusonde trace --kernels" and "--torch": the kernels that traced processes launch, as in the agent, and
 * those of processes that have ended. Devices and busy time come from the agent, else from the driver, if
 * there is one.
 */
#pragma once

#include <systemd/sd-event.h>

#include "cmd/trace/exec_gate.h"
#include "config/options.h"
#include "pipeline/pipeline.h"
#include "trace/engine.h"
#include "view/view.h"

enum {
	TRACE_KERNELS_MAX = 65536, /* stored rows of ended processes */
	TRACE_KERNELS_LIVE = 20, /* rows of the live table */
};

struct trace_kernels;
struct trace_cupti;

struct trace_kernels_config {
	bool names; /* kernels are named */
	bool operators; /* of PyTorch are traced */
	bool nccl; /* communicators are followed */
	bool measured; /* CUPTI measures in the command */
};

int trace_kernels_new(sd_event *event, const struct options *options,
		      const struct trace_kernels_config *config, struct trace_kernels **ret_kernels);
void trace_kernels_free(struct trace_kernels *kernels); /* free the engine first */
DEFINE_CLEANUP(struct trace_kernels *, trace_kernels_free, trace_kernels_freep)

/*
 * Asks the agent, else waits up to 3 seconds for the first reading, so that the devices are known before
 * the first launch.
 */
int trace_kernels_prepare(struct trace_kernels *kernels, const struct trace_cupti *cupti);

struct pipeline *trace_kernels_pipeline(struct trace_kernels *kernels);
/* The newest snapshot of the node; NULL before trace_kernels_prepare(). */
/* Time of all its kernels on a device, as estimated, those of graphs too. */
double trace_kernels_estimated(const struct trace_kernels *kernels, uint32_t pid, const char *uuid);
const struct snapshot *trace_kernels_node(const struct trace_kernels *kernels);

/* The sink of the engine's events. */
struct event_sink *trace_kernels_sink(struct trace_kernels *kernels);

/* A held process maps or executes a file, which is read now: the process may end before it is needed. */
void trace_kernels_mapping(struct trace_kernels *kernels, const struct exec_gate_mapping *mapping);

/* Waits up to 3 seconds until the kernels launched so far are named or known to have no name. */
void trace_kernels_settle(struct trace_kernels *kernels, struct trace_engine *engine);

/* To be called after each collection: closes a window, stores the kernels of ended processes. */
int trace_kernels_collect(struct trace_kernels *kernels, struct trace_engine *engine);

/* The newest view; NULL before the first collection. */
const struct trace_view *trace_kernels_view(const struct trace_kernels *kernels);
/* All kernels, including those of ended processes. @rows: at most so many; 0: all. */
int trace_kernels_table(struct trace_kernels *kernels, const struct table_options *options, bool full,
			size_t rows, struct strbuf *out);
/* Operators of PyTorch; the value of the member `operators`. */
int trace_kernels_operators(struct trace_kernels *kernels, const struct table_options *options, size_t rows,
			    struct strbuf *out);
int trace_kernels_operators_json(struct trace_kernels *kernels, struct strbuf *out);
/* What else PyTorch does; the value of the member `torch`. */
int trace_kernels_torch_json(struct trace_kernels *kernels, struct strbuf *out);
/* The value of the member `kernels`, as in GET /api/v1/kernels. */
int trace_kernels_json(struct trace_kernels *kernels, struct strbuf *out);
