// SPDX-License-Identifier: Apache-2.0
/*
 * Streams and the work pending in them; which work a wait proves to be finished; finished spans for the
 * sinks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "activity/span.h"
#include "bpf/event.h"

struct cuda;
struct process;
struct thread;

enum { DEPENDENCIES_MAX = 8 }; /* waits of a stream for others whose work is still pending */

struct dependency {
	uint32_t stream, generation;
	uint64_t upto; /* its work up to here */
	uint64_t at; /* ended before what was started after this time */
};

struct stream {
	uint32_t next_free; /* the pool's */
	uint32_t generation; /* 0: free */
	uint64_t handle;
	uint32_t tid; /* of a per-thread default stream */
	uint16_t context;
	bool legacy, own; /* default streams: the legacy one, a thread's own */
	bool non_blocking; /* no order with the legacy stream; also when its flags are not known */
	bool dead; /* destroyed, with work pending */
	uint32_t capture; /* plus one; 0: none; CAPTURE_LOST: dropped at a limit */
	uint32_t previous, next; /* of those with pending work, plus one */
	bool pending;
	uint64_t first_ns, last_return_ns; /* of the pending work */
	uint64_t last_seq, last_item; /* newest work; newest work, record or wait */
	uint64_t launches, threads; /* pending */
	uint64_t copies, bytes; /* pending; copies and sets */
	uint64_t epoch; /* number of the first of it: distinguishes one busy time from the next */
	uint64_t launched; /* window of the newest launch */
	uint64_t launch_end_ns; /* when its call returned; 0: none yet */
	uint32_t dependencies_n;
	struct dependency dependencies[DEPENDENCIES_MAX];
	/* While a wait is processed: */
	uint64_t visit, visit_upto;
	uint32_t visit_next;
};

/* stream.c */
uint32_t stream_of(struct cuda *cuda, struct process *p, const struct trace_header *header, uint64_t handle,
		   uint32_t context);
void stream_call(struct cuda *cuda, struct process *p, const struct trace_call *call);
/* Work was started in a stream that is not captured. */
void stream_work(struct process *p, uint32_t stream, uint64_t time_ns, uint64_t return_ns, uint64_t launches,
		 uint64_t threads);
/* Some of it were copies or sets. */
void stream_copies(struct process *p, uint32_t stream, uint64_t copies, uint64_t bytes);
/* A kernel was launched: counts the time since the launch before it in the same stream. */
void stream_gap(struct cuda *cuda, struct process *p, uint32_t stream, const struct trace_launch *launch);
/* All pending work of a stream has ended. */
void stream_finish(struct cuda *cuda, struct process *p, uint32_t stream, uint64_t sync_ns, uint64_t end_ns);
/* A context was destroyed, or all were (NONE). */
void streams_drop(struct cuda *cuda, struct process *p, uint32_t context, uint64_t end_ns);

/* span.c; only where spans_wanted() */
/* The pending work of the stream has ended; @how: SPAN_NO_WAIT or 0. */
void span_of_stream(struct cuda *cuda, const struct process *p, uint32_t stream, uint64_t end_ns,
		    uint64_t likely_ns, enum span_flag how);
/* A copy or wait of a thread, from the call to its return; @stream: NONE: several streams. */
void span_of_call(struct cuda *cuda, const struct process *p, enum span_kind kind, uint32_t context,
		  uint32_t stream, const struct trace_call *call);

/* sync.c */
void sync_call(struct cuda *cuda, struct process *p, const struct trace_call *call);
void sync_copy(struct cuda *cuda, struct process *p, uint32_t stream, const struct trace_call *call);
/* The thread makes another call, so its wait has ended. */
void sync_deferred(struct cuda *cuda, struct process *p, struct thread *thread, uint64_t time_ns);
