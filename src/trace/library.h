// SPDX-License-Identifier: Apache-2.0
/* The table of traced libraries, from libraries.def, and how their files are recognised. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

enum probe_library {
#define LIBRARY(id_, ...) PROBE_##id_,
#include "trace/libraries.def"
#undef LIBRARY
	PROBE_LIBRARIES,
};

/* The table with the names of a library's error codes. */
enum library_errors {
	LIBRARY_ERRORS_NONE, /* shown as numbers */
	LIBRARY_ERRORS_CUDA, /* CUresult and cudaError_t, which have the same codes */
};

enum { LIBRARY_FILES_MAX = 4 };

struct library {
	const char *name;
	const char *files[LIBRARY_FILES_MAX]; /* prefixes of its file names; NULL-terminated if fewer */
	enum trace_layer layer;
	enum trace_result result;
	enum library_errors errors;
	unsigned groups; /* bits 1 << enum probe_group of its probes */
	uint16_t event_flags; /* enum trace_event_flag that all its events have */
	bool anywhere; /* any file may contain a static copy */
	bool companion; /* probed only in its own files, in processes that map another library of the table */
	/*
	 * Its functions call functions of @made_of, of the same layer. Where one cannot have a return probe,
	 * those calls are traced instead.
	 */
	bool has_made_of;
	enum probe_library made_of;
};

extern const struct library probe_libraries[PROBE_LIBRARIES];

/* Bits 1 << enum probe_library. */
#define LIBRARY_BIT(library) (1U << (library))

/* The libraries that a file may be, by the last component of its path. */
unsigned library_of_path(const char *path, size_t path_n);
/* The libraries that are companions. */
unsigned library_companions(void);
