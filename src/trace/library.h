// SPDX-License-Identifier: Apache-2.0
/* The table of traced libraries, from libraries.def, and how their files are recognised. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "userprobe/userprobe.h"

enum probe_library {
#define LIBRARY(id_, ...) PROBE_##id_,
#include "trace/libraries.def"
#undef LIBRARY
	PROBE_LIBRARIES,
};

/* The table with the names of a library's error codes. */
enum library_errors {
	LIBRARY_ERRORS_NONE, /* shown as numbers */
	LIBRARY_ERRORS_CUBLAS, /* cublasStatus_t */
	LIBRARY_ERRORS_CUDA, /* CUresult and cudaError_t, which have the same codes */
	LIBRARY_ERRORS_NCCL, /* ncclResult_t */
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
	/*
	 * Its functions call functions of @made_of, of the same layer. Where one cannot have a return probe,
	 * those calls are traced instead.
	 */
	bool has_made_of;
	enum probe_library made_of;
};

extern const struct library probe_libraries[PROBE_LIBRARIES];

/* Bits 1 << enum probe_library; after those, one for each of the user's probes. */
#define LIBRARY_BIT(library) (1U << (library))
#define LIBRARY_USER_BIT(user) (1U << (PROBE_LIBRARIES + (user)))

/*
 * The user's probes of this process. To be set before anything else of trace/ is used, and once: rows of the
 * table of probes are made of them.
 */
void library_set_user(const struct user_probes *user);
/* The same from an option's text, which was checked; NULL: none. */
void library_set_user_text(const char *text);
const struct user_probes *library_user(void);
/*
 * Functions are found by patterns, so that the table of probes has room for them. To be set before anything
 * else of trace/ is used.
 */
void library_set_patterns(bool used);
bool library_patterns(void);
/*
 * The first of the user's probes, of those whose LIBRARY_USER_BIT() is set, that matches a function, from
 * 1; 0: none.
 */
unsigned library_user_of(unsigned bits, const char *symbol);
/* Whether any of the user's probes shows an argument, which comes with events. */
bool library_user_has_arguments(void);
/* Of the user's probes: all their bits. */
unsigned library_user_bits(void);

/* The libraries that a file may be, and the user's probes that it may have, by its path. */
unsigned library_of_path(const char *path, size_t path_n);
