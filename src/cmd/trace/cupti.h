// SPDX-License-Identifier: Apache-2.0
/* "gpusonde trace --cupti": true times of the GPUs' work, as CUPTI measures them in the command. */
#pragma once

#include <systemd/sd-event.h>

#include "model/cupti_wire.h"
#include "model/snapshot.h"
#include "pipeline/pipeline.h"
#include "view/gpu_time.h"
#include "view/view.h"

struct trace_cupti;
struct trace_kernels;

/*
 * Listens for the plugin, which the command loads by its environment variable. To be called before it is
 * started. -errno, which is said.
 */
int trace_cupti_start(sd_event *event, struct trace_cupti **ret_cupti);
/* Takes what the plugin has sent; NULL is fine. */
void trace_cupti_collect(struct trace_cupti *cupti);
void trace_cupti_free(struct trace_cupti *cupti); /* the same */
/*
 * Work is handed on to @pipeline, which has been told that there is some (pipeline_config.measured), with
 * each collection, once its launches have come; NULL: no longer, and says what found no room. @cupti may be
 * NULL.
 */
void trace_cupti_to_pipeline(struct trace_cupti *cupti, struct pipeline *pipeline);
/* What was measured of a kernel, on a device; 0: nothing. */
uint64_t trace_cupti_kernel(const struct trace_cupti *cupti, uint32_t pid, const char *uuid,
			    const char *symbol, double *ret_seconds);
/* @kernels: has the node's GPUs and estimates; may be NULL. -ENOMEM/-E2BIG. */
int trace_cupti_table(struct trace_cupti *cupti, const struct trace_kernels *kernels,
		      const struct table_options *options, struct strbuf *out);
/* The value of the member `cupti`. */
int trace_cupti_json(struct trace_cupti *cupti, const struct trace_kernels *kernels, struct strbuf *out);
