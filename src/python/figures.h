// SPDX-License-Identifier: Apache-2.0
/*
 * Adds up what events say of waits for the interpreter's lock and of collections of garbage (bpf/gil.h).
 * Memory is bounded: PYTHON_PROCESSES_MAX processes, PYTHON_WAITERS_MAX threads of each, and
 * PYTHON_ALL_WAITERS_MAX of all, of which a process leaves as many to others as it has.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "bpf/event.h"
#include "model/python.h"

enum { PYTHON_PROCESSES_MAX = 4096, PYTHON_WAITERS_MAX = 1024, PYTHON_ALL_WAITERS_MAX = 1 << 15 };

struct python_figures;

/*
 * @series: processes with series of their own. @keep: processes that have ended, too, as a command does that
 * shows all at its end.
 */
struct python_figures *python_figures_new(uint32_t series, bool keep);
void python_figures_free(struct python_figures *figures);
DEFINE_CLEANUP(struct python_figures *, python_figures_free, python_figures_freep)
/* From now on the users of processes share its tables. */
struct traced_users;
void python_figures_share(struct python_figures *figures, struct traced_users *users);

/* Of a wait or a collection, or of a call of PyObject_CallFunction, which the engine counts. */
bool python_is_event(const struct trace_header *event);
void python_figures_event(struct python_figures *figures, const struct trace_header *event, uint32_t size);
/* The process's interpreter was found, so that its waits are seen from now on. */
void python_figures_known(struct python_figures *figures, uint32_t tgid);
/* An interpreter was found whose structures are not known, of this version; 0: not even that is known. */
void python_figures_unknown(struct python_figures *figures, uint32_t version);
/* Events of a process were not seen; 0: of all. */
void python_figures_lost(struct python_figures *figures, uint32_t tgid);
/* A process has ended, whose end may not have been seen. @incarnation, 0: not known. */
void python_figures_process_over(struct python_figures *figures, uint32_t tgid, uint64_t incarnation);
/*
 * The figures, to be freed. Processes that have ended are in it for the last time, unless they are kept.
 * NULL: out of memory.
 */
struct python_view *python_figures_window(struct python_figures *figures);
