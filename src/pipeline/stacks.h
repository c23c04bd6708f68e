// SPDX-License-Identifier: Apache-2.0
/*
 * What stacks of calls cost: adds up launches, bytes and waits by process, stack and function of CUDA. The
 * only place where that is done: files of "gpusonde trace --stacks" and the agent's pages are made of it.
 *
 * Invariants
 *  1. Memory is bounded (struct stack_limits), and users share it (base/user_shares.h). What does not fit is
 *     counted in a row "[too many stacks]" of its process. Who is a user: proc_answers_for() of proc/user.h.
 *  2. An event that is of a sample counts for as many as it says. So weights are right on average.
 *  3. A process's end costs as much as that process has, not as all have. It is seen also where its event
 *     was lost, so that the next process with its PID has nothing of it.
 *
 * One thread owns it: the one that drains the engine's events.
 */
#pragma once

#include <systemd/sd-event.h>

#include "activity/event_sink.h"
#include "model/stacks.h"
#include "model/trace.h"
#include "trace/engine.h"

struct stack_limits {
	uint32_t rows; /* stacks by process and call */
	uint32_t paths; /* stacks; at most PYTHON_PATHS */
	uint32_t held; /* allocations that are not freed yet */
	uint32_t processes;
	/* As python/stacks.h's and unwind/names.h's, and at most those. */
	uint32_t places, frames, text_bytes, lines_bytes;
	uint32_t names, names_bytes; /* of native frames */
	bool keep_held; /* what a process had not freed when it ended is still held by its rows */
	int64_t renew_ns; /* what is full begins anew, at most so often; 0: never */
};

struct stack_sums;

int stack_sums_new(const struct stack_limits *limits, struct stack_sums **ret_sums);
void stack_sums_free(struct stack_sums *sums);
DEFINE_CLEANUP(struct stack_sums *, stack_sums_free, stack_sums_freep)

/*
 * Native frames are recorded, too: files are read for them when @event has nothing else to do, or by a
 * @helper.
 */
int stack_sums_add_native(struct stack_sums *sums, sd_event *event, bool helper);
struct event_sink *stack_sums_sink(struct stack_sums *sums);
/*
 * From now on the interpreter of each process is looked for at its first call: nobody has told of one that
 * was forked and is not followed.
 */
void stack_sums_set_engine(struct stack_sums *sums, struct trace_engine *engine);
struct python_finder;
/* Interpreters are looked for by this one, which tells stack_sums_found(). */
void stack_sums_use_finder(struct stack_sums *sums, struct python_finder *finder);
/* @r: as of python_find(), then of trace_engine_set_python(). */
void stack_sums_found(struct stack_sums *sums, pid_t pid, int r, uint32_t version);
/* A process maps a probed library: finds its Python interpreter. */
void stack_sums_mapped(struct stack_sums *sums, struct trace_engine *engine, pid_t pid);
/* A process has mapped a file with code, probed or not. */
void stack_sums_remapped(struct stack_sums *sums, pid_t pid);
/* A window of the figures has ended: the processes' estimated time on devices is split among their stacks. */
void stack_sums_window(struct stack_sums *sums, const struct trace_view *view);
/*
 * The @rows_max rows that weigh most, fewer if they and their texts would have more than @bytes_max bytes,
 * and the sums of the others by process; 0: all. -ENOMEM.
 */
int stack_sums_view(struct stack_sums *sums, uint32_t rows_max, size_t bytes_max,
		    struct stack_view **ret_view);
/*
 * For who tells events one by one: the path of an event's stack, false: it has none; and its frames as they
 * are named now, from the innermost (@i 0) on, false: there are no more. Valid until the next event; paths
 * until all begins anew, which changes stack_sums_since().
 */
bool stack_sums_path(const struct stack_sums *sums, const struct trace_header *event, uint32_t *ret_path);
bool stack_sums_frame(const struct stack_sums *sums, uint32_t path, uint32_t i, struct stack_place *ret_place,
		      bool *ret_native);
int64_t stack_sums_since(const struct stack_sums *sums);
/* Native functions that were met get their names: now, or when a helper has read them. */
void stack_sums_name(struct stack_sums *sums);
/* Of the helper that reads what native frames need. False: there is none. */
struct helper_stats;
bool stack_sums_reader_stats(const struct stack_sums *sums, struct helper_stats *ret_stats);
/* Rows and allocations of one process that were looked at in loops, for tests. */
uint64_t stack_sums_steps(const struct stack_sums *sums);
