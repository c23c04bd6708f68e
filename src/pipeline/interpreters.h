// SPDX-License-Identifier: Apache-2.0
/*
 * The Python interpreters of traced processes, for trace_engine_set_python(). A probed file may be mapped
 * before the interpreter is, so it is looked for again.
 */
#pragma once

#include <sys/types.h>

#include "base/clock.h"
#include "python/figures.h"
#include "python/finder.h"
#include "trace/engine.h"

#define INTERPRETERS_PATIENCE_NS (10 * NSEC_PER_SEC)
enum { INTERPRETERS_PENDING = 256 };

/* All zeros but `finder` and `figures` at the start. */
struct interpreters {
	/* Borrowed, and tells interpreters_found(); NULL: this process looks for interpreters itself. */
	struct python_finder *finder;
	struct trace_engine *engine; /* as of the newest call */
	struct python_figures *figures; /* are told whose interpreter is known */
	struct {
		pid_t pid;
		int64_t until_ns;
	} pending[INTERPRETERS_PENDING]; /* processes that have none yet */
	unsigned pending_n;
};

/* @r: as of python_find(), then of trace_engine_set_python(). */
void interpreters_found(struct interpreters *interpreters, pid_t pid, int r, uint32_t version);
/* A process maps a probed file. */
void interpreters_mapped(struct interpreters *interpreters, struct trace_engine *engine, pid_t pid);
/* Once a second or so, and when something more is mapped. */
void interpreters_again(struct interpreters *interpreters, struct trace_engine *engine);
/* It runs another program since then. */
void interpreters_exec(struct interpreters *interpreters, pid_t pid, uint64_t time_ns);
void interpreters_over(struct interpreters *interpreters, pid_t pid);
