// SPDX-License-Identifier: Apache-2.0
/*
 * CUDA events, captures and graphs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"

struct cuda;
struct process;
struct stream;
struct dependency;

enum { CAPTURES_MAX = 64 }; /* active in a process */
#define CAPTURE_LOST UINT32_MAX /* of a stream: a capture that was dropped at a limit */

/* A CUDA event, as last recorded. */
struct cuda_event {
	uint32_t next_free;
	uint32_t stream, generation;
	uint32_t capture; /* plus one */
	uint64_t seq;
};

/* A graph, or an active capture. */
struct graph {
	uint32_t next_free;
	uint32_t generation; /* of a capture */
	uint64_t launches, threads;
};

/* event.c */
void event_call(struct cuda *cuda, struct process *p, const struct trace_call *call);
void graph_call(struct cuda *cuda, struct process *p, const struct trace_call *call);
void capture_launch(struct process *p, const struct stream *s, uint64_t threads);
bool dependency_is_stale(const struct process *p, const struct dependency *d);
void capture_leave(struct process *p, struct stream *s);
