// SPDX-License-Identifier: Apache-2.0
/*
 * "gpusonde trace --kernels": what the events mean (src/cuda) on the node's devices, as the agent has it, and
 * what processes that have ended launched. Devices and busy time come from a collector of its own, where
 * there is a driver.
 */
#pragma once

#include <systemd/sd-event.h>

#include "cmd/trace/exec_gate.h"
#include "config/options.h"
#include "trace/engine.h"
#include "view/view.h"

enum {
	TRACE_KERNELS_MAX = 65536, /* rows of ended processes that are kept */
	TRACE_KERNELS_LIVE = 20, /* rows of a table that is drawn again and again */
};

struct trace_kernels;

int trace_kernels_new(sd_event *event, const struct options *options, struct trace_kernels **ret_kernels);
void trace_kernels_free(struct trace_kernels *kernels); /* after the engine */
DEFINE_CLEANUP(struct trace_kernels *, trace_kernels_free, trace_kernels_freep)

/*
 * Until the devices are known, some seconds at most; then nothing that is launched is of a device that is
 * not.
 */
int trace_kernels_prepare(struct trace_kernels *kernels);

/* What takes the engine's events. */
struct event_sink *trace_kernels_sink(struct trace_kernels *kernels);

/* A process that is held maps, or becomes, a file: what it launches can be named when it has ended. */
void trace_kernels_mapping(struct trace_kernels *kernels, const struct exec_gate_mapping *mapping);

/* What has been launched so far is named, or cannot be; some seconds at most. */
void trace_kernels_settle(struct trace_kernels *kernels, struct trace_engine *engine);

/* After each collection: closes a window, keeps what ended. */
int trace_kernels_collect(struct trace_kernels *kernels, struct trace_engine *engine);

/* All kernels, ended processes' too. @rows: as many at most; 0: all. */
int trace_kernels_table(struct trace_kernels *kernels, const struct table_options *options, bool full,
			size_t rows, struct strbuf *out);
/* As GET /api/v1/kernels has them: the value of the member `kernels`. */
int trace_kernels_json(struct trace_kernels *kernels, struct strbuf *out);
