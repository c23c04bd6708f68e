// SPDX-License-Identifier: Apache-2.0
/*
 * Patterns of functions (patterns.def): of PyTorch, thousands of operators that are all alike; of CPython,
 * a few whose names differ. Probed at
 * entry only, in a group of their own (PROBE_GROUP_OPERATORS), and with bounds of their own: what a file has
 * of them takes nothing from other probes.
 */
#pragma once

#include "trace/probe.h"

enum {
	PATTERN_ROWS_MAX = 8192, /* in the table of probes; files of users make at most half of them */
	PATTERN_FILE_MAX = 8192, /* functions of a file */
};

struct pattern {
	enum probe_library library;
	bool (*matches)(const char *symbol);
	struct trace_spec spec;
};

extern const struct pattern patterns[];
extern const uint8_t patterns_n;

/* The first pattern of these libraries that a function matches, from 1; 0: none. */
uint8_t pattern_of(const bool libraries[PROBE_LIBRARIES], const char *symbol);
/* Whether the functions of any of these libraries are found by patterns. */
bool pattern_is_used(const bool libraries[PROBE_LIBRARIES]);
