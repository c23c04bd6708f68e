// SPDX-License-Identifier: Apache-2.0
/* Shared by the files of src/python. */
#pragma once

#include "python/layout.h"

/* PyThreadState._status.active in 3.12 and later: the fifth bit. */
enum { PYTHON_STATUS_ACTIVE = 1 << 4 };

/* Offsets of members that differ by version. */
struct python_layout {
	uint16_t interpreters,
		current; /* _PyRuntimeState: interpreters.head, gilstate.tstate_current (0: none) */
	uint16_t threads; /* PyInterpreterState: the first thread */
	uint16_t thread_id, status, frame, cframe; /* PyThreadState; cframe: in _PyCFrame */
	uint16_t back, code, at, owner; /* of a frame */
	uint16_t tlbc; /* of a frame: tlbc_index; 0: none */
	uint16_t entry; /* of a frame: is_entry; 0: none */
	uint16_t first_line, file, name, lines; /* PyCodeObject; name: co_qualname, where there is one */
	uint16_t instructions; /* co_code_adaptive; 0: none */
	uint8_t text_ascii, text_compact; /* bytes of a str object before its characters */
	uint8_t table; /* enum trace_lines */
	uint8_t flags; /* enum trace_python_flag */
};

/* The smallest part of a structure, from a multiple of 8 on, that has all members. */
void python_window(const uint32_t *offsets, const uint8_t *sizes, size_t n, uint32_t *ret_from,
		   uint32_t *ret_n);
/*
 * Sets what of a frame and a code object is read. -EBADMSG: they are larger than is read at once, or
 * unaligned.
 */
int python_set_windows(const struct python_layout *layout, struct trace_python *python);
/* Sets what of a thread's state is read. -EBADMSG: as above. */
int python_set_thread(struct trace_python *python);

/* Why the native frames end (enum trace_native_stop); NULL: nothing called the last one. */
const char *native_stop_text(uint8_t stop);
/* What stands in place of a frame (enum trace_frame_mark); NULL: it is a frame. */
const char *python_mark_text(uint64_t mark);
/* Why there are no frames of Python (enum trace_stack_none); NULL: the thread has none. */
const char *python_none_text(uint8_t why);
