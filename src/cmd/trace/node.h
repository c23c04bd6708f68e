// SPDX-License-Identifier: Apache-2.0
/*
 * The devices of the node for "gpusonde trace --kernels": those of the running agent, so that both show one
 * truth, else of a private collector.
 */
#pragma once

#include <systemd/sd-event.h>

#include "base/macro.h"
#include "config/options.h"
#include "model/snapshot.h"

struct trace_node;

/*
 * Asks the agent; without one, waits up to 3 seconds for the driver's first reading. -ENOMEM, or any of
 * sd_event_run().
 */
int trace_node_new(sd_event *event, const struct options *options, struct trace_node **ret_node);
void trace_node_free(struct trace_node *node); /* NULL is fine */
DEFINE_CLEANUP(struct trace_node *, trace_node_free, trace_node_freep)

/*
 * The newest snapshot: without an agent's sums, and without what either traces. Valid until the next
 * trace_node_read().
 */
const struct snapshot *trace_node_snapshot(const struct trace_node *node);
/* Reads it again, once a second; what an agent said last stays when it no longer answers. */
void trace_node_read(struct trace_node *node);
