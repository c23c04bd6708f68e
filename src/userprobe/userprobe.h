// SPDX-License-Identifier: Apache-2.0
/*
 * Probes of the user's own: functions of any library, which the user names on the command line
 * (gpusonde trace --probe) or in the configuration (trace.probes).
 *
 *   LIBRARY:PATTERN[,PATTERN...] [argN[:TYPE]...] [returns[:RESULT]]
 *
 *   LIBRARY   a file name, with or without its version (libfoo.so is libfoo.so.1, too), or an absolute path
 *   PATTERN   names of functions as the file's symbols have them; * and ? as in a shell
 *   argN      argument N, from 0, of those that are integers or pointers, shown as TYPE: u64, s64, x64, u32,
 *             s32, x32 or string. At most USER_ARGS_MAX, or a string and two others
 *   returns   the functions are C functions that cannot throw, so that their returns may be probed: for
 *             latencies and, with a RESULT, failures: status (0 is success) or pointer (NULL is failure)
 *
 * Several are separated by semicolons.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

enum {
	USER_PROBES_MAX = 16,
	USER_LIBRARY_MAX = 256, /* with its NUL, as the next two */
	USER_PATTERNS_MAX = 512,
	USER_SYMBOL_MAX = 1024, /* functions with a longer name are not probed */
	USER_ARGS_MAX = 4,
};

enum user_arg_type {
	USER_ARG_U64,
	USER_ARG_S64,
	USER_ARG_X64,
	USER_ARG_U32,
	USER_ARG_S32,
	USER_ARG_X32,
	USER_ARG_STRING,
	USER_ARG_TYPES,
};

struct user_arg {
	uint8_t position; /* from 0 */
	uint8_t type; /* enum user_arg_type */
};

/* How the functions report failure. */
enum user_result {
	USER_RESULT_NONE, /* not, or it is not known */
	USER_RESULT_STATUS, /* an int: 0 is success */
	USER_RESULT_POINTER, /* NULL is failure */
};

/* Of fixed size, since it is sent to helpers. */
struct user_probe {
	char library[USER_LIBRARY_MAX];
	char patterns[USER_PATTERNS_MAX]; /* separated by commas */
	struct user_arg args[USER_ARGS_MAX];
	uint8_t args_n;
	uint8_t returns; /* bool */
	uint8_t result; /* enum user_result */
	uint8_t pad;
};

struct user_probes {
	uint32_t n;
	struct user_probe at[USER_PROBES_MAX];
};

/* -EINVAL: a line in @errors has the cause and the remedy. @text "" gives no probes. */
int user_probes_parse(const char *text, struct user_probes *ret_probes, struct strbuf *errors);

/* Whether a file of this path is the probe's library. */
bool user_probe_has_library(const struct user_probe *probe, const char *path, size_t path_n);
/* Whether one of its patterns matches. */
bool user_probe_matches(const struct user_probe *probe, const char *symbol);
/* Bytes of the argument that are used: 4 or 8. */
unsigned user_arg_width(enum user_arg_type type);
const char *user_arg_type_name(enum user_arg_type type);
