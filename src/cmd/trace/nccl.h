// SPDX-License-Identifier: Apache-2.0
/* "gpusonde trace --nccl": what the traced processes do with NCCL, those that have ended included. */
#pragma once

#include <systemd/sd-event.h>

#include "nccl/nccl.h"
#include "trace/engine.h"
#include "view/view.h"

struct trace_nccl;

/*
 * @listens: also for the plugin of NCCL in the command, which finds the socket by its environment variable.
 * To be called before the command is started. -errno, which is said.
 */
int trace_nccl_new(sd_event *event, bool listens, struct trace_nccl **ret_nccl);
/* Takes what the plugin has sent. */
void trace_nccl_collect(struct trace_nccl *nccl);
void trace_nccl_free(struct trace_nccl *nccl); /* free the engine first */
/* The sink of the engine's events. */
struct event_sink *trace_nccl_sink(struct trace_nccl *nccl);
/* -ENOMEM/-E2BIG. */
int trace_nccl_table(struct trace_nccl *nccl, struct trace_engine *engine,
		     const struct table_options *options, struct strbuf *out);
/* The value of the member `nccl`. */
int trace_nccl_json(struct trace_nccl *nccl, struct trace_engine *engine, struct strbuf *out);
