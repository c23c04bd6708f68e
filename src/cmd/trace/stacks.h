// SPDX-License-Identifier: Apache-2.0
/* "gpusonde trace --stacks": adds up what each stack of calls costs, and writes it as a file. */
#pragma once

#include "activity/event_sink.h"
#include "model/trace.h"
#include "python/stacks.h"
#include "trace/engine.h"
#include "view/stacks.h"

enum {
	TRACE_STACK_ROWS = 1 << 18, /* stacks by process and call */
	TRACE_STACK_HELD = 1 << 20, /* allocations that are not freed yet */
	TRACE_STACK_PROCESSES = 1 << 16,
};

enum trace_stacks_format {
	TRACE_STACKS_FOLDED,
	TRACE_STACKS_PPROF,
	TRACE_STACKS_HTML,
};

struct trace_stacks;

/* The format that a file's name asks for. False: none. */
bool trace_stacks_format(const char *path, enum trace_stacks_format *ret_format);

int trace_stacks_new(struct trace_stacks **ret_stacks);
void trace_stacks_free(struct trace_stacks *stacks);
DEFINE_CLEANUP(struct trace_stacks *, trace_stacks_free, trace_stacks_freep)

struct event_sink *trace_stacks_sink(struct trace_stacks *stacks);
/*
 * From now on the interpreter of each process is looked for at its first call, too: nobody has told of one
 * that was forked and is not followed.
 */
void trace_stacks_set_engine(struct trace_stacks *stacks, struct trace_engine *engine);
/* A process maps a probed library: finds its Python interpreter. */
void trace_stacks_mapped(struct trace_stacks *stacks, struct trace_engine *engine, pid_t pid);
/* A window of the figures has ended: the processes' estimated time on devices is split among their stacks. */
void trace_stacks_window(struct trace_stacks *stacks, const struct trace_view *view);
/*
 * Writes the file whole, or not at all: beside, then renamed. @weight: of folded text. *ret_said: what the
 * user should know, "" if nothing; valid as long as @stacks.
 */
int trace_stacks_write(struct trace_stacks *stacks, struct trace_engine *engine, const char *path,
		       enum stack_weight weight, const char **ret_said);
