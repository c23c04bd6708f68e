// SPDX-License-Identifier: Apache-2.0
/* "gpusonde trace --python": waits for Python's lock and collections of garbage of the traced processes. */
#pragma once

#include "python/figures.h"
#include "trace/engine.h"
#include "view/view.h"

struct trace_python_figures;

int trace_python_new(struct trace_python_figures **ret_python);
void trace_python_free(struct trace_python_figures *python); /* free the engine first */
/* The sink of the engine's events. */
struct event_sink *trace_python_sink(struct trace_python_figures *python);
/*
 * A process maps a probed file: finds its interpreter, now or when it is tried again, since the file may be
 * mapped before the interpreter is.
 */
void trace_python_mapped(struct trace_python_figures *python, struct trace_engine *engine, pid_t pid);
void trace_python_again(struct trace_python_figures *python, struct trace_engine *engine);
/* -ENOMEM/-E2BIG. */
int trace_python_table(struct trace_python_figures *python, struct trace_engine *engine,
		       const struct table_options *options, struct strbuf *out);
/* The value of the member `python`. */
int trace_python_json(struct trace_python_figures *python, struct trace_engine *engine, struct strbuf *out);
