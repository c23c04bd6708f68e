// SPDX-License-Identifier: Apache-2.0
/*
 * src/python (L2) is what gpusonde knows of CPython, 3.8 and later:
 *
 *   find.h            the interpreter of a process: its file, its version, where it has what (struct
 *                     trace_python)
 *   layout.h          offsets of structures: tables up to 3.12, what the interpreter itself says from 3.13 on
 *   lines.h, text.h   tables of lines, and strings, as CPython has them in memory
 *   figures.h         waits for the interpreter's lock, collections of garbage
 *   stacks.h          from CODE and STACK events to functions, files and lines
 *
 * Invariants
 *  1. Nothing is read from the process's memory: of the interpreter's file, offsets; the rest comes as
 *     events.
 *  2. What an interpreter or its file says is hostile: every offset has a bound, every table is read with
 *     one.
 *  3. A frame whose line is not known has none. A wrong line is worse.
 *
 * No thread of its own: all runs in the thread that drains the ring.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/stack.h"

/* As PY_VERSION_HEX: 0x030b07f0 is 3.11.7. */
#define PYTHON_VERSION(major, minor) ((uint32_t)(major) << 24 | (uint32_t)(minor) << 16)
enum { PYTHON_OLDEST_MINOR = 8, PYTHON_NEWEST_MINOR = 15 };

/* Bytes at the beginning of _PyRuntime that python_debug_offsets() needs, at most. */
enum { PYTHON_DEBUG_OFFSETS = 1024 };

/* Of 3.8 to 3.12. `runtime` is left 0. -ENOTSUP: not one of these. */
int python_layout(uint32_t version, struct trace_python *ret_python);
/*
 * Of 3.13 and later, from _Py_DebugOffsets at the beginning of _PyRuntime. -ENODATA: it is none; -ENOTSUP:
 * of a version that is not known; -EBADMSG: an offset is none that a structure of CPython can have.
 */
int python_debug_offsets(const void *data, size_t n, uint32_t *ret_version, struct trace_python *ret_python);
