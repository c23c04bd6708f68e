// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by pipeline.c, view.c (figures), carry.c, symbols.c (names of kernels), node.c (what it knows of the
 * node) and environ.c.
 */
#pragma once

#include "pipeline/pipeline.h"

enum { PIPELINE_DEVICES_MAX = 256 };

struct pipeline {
	struct pipeline_config config;
	struct event_sink sink; /* figures */
	struct cuda *cuda;
	struct symbols *symbols; /* kernels and environments; NULL: not available */
	int64_t devices_by_ns; /* until then requests wait for the first devices */
	struct cuda_device devices[PIPELINE_DEVICES_MAX];
	uint32_t devices_n;
	uint64_t node_seq; /* of the newest processed snapshot */
	struct environments *environments; /* NULL: none */
};

/* view.c: events and rows dropped at a limit or by sinks */
uint64_t pipeline_overflows(const struct pipeline *pipeline, const struct event_sinks *events);

/* node.c */
extern const struct cuda_ops pipeline_cuda_ops;

/*
 * environ.c; -EAGAIN: cuda_environment() tells when it is known; -ESRCH: the process has ended, and its
 * environment was not stored
 */
int pipeline_environment(uint32_t tgid, char *buf, size_t size, size_t *ret_n, void *userdata);
void pipeline_on_environment(uint32_t pid, int error, const char *text, size_t n, void *userdata);
void pipeline_forget_environment(struct pipeline *pipeline, uint32_t tgid);
void pipeline_environments_done(struct pipeline *pipeline);
int pipeline_contained(const struct pipeline *pipeline, uint32_t tgid, bool *ret_contained);

/* symbols.c */
/* Makes the client, and sets its callbacks in @ops if kernels are to be named; all or nothing. */
int pipeline_symbols(struct pipeline *pipeline, sd_event *event, struct cuda_ops *ops);
void pipeline_symbols_view(const struct pipeline *pipeline, struct trace_view *view);
