// SPDX-License-Identifier: Apache-2.0
/*
 * Tables of lines of CPython's code objects (Objects/lnotab_notes.txt, Objects/locations.md): from a place
 * in the instructions to a line. A table is hostile: it is read in time proportional to its size.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bpf/stack.h"

/*
 * The line of the instruction at byte @offset. 0: it has none, or the table does not reach it: a cut table,
 * or an offset beyond the code.
 */
uint32_t python_line(enum trace_lines kind, const uint8_t *table, size_t n, int32_t first_line,
		     uint32_t offset);
