// SPDX-License-Identifier: Apache-2.0
/*
 * Patterns of names: `*` stands for any text, `?` for any character. Linear in the name for each star: after
 * a mismatch only the last star takes one more character. fnmatch() may take exponential time, and users and
 * clients choose names and patterns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool glob_matches(const char *pattern, size_t pattern_n, const char *name);
/*
 * Whether @name is one of a list of patterns, separated by commas or blanks: it matches none of those with
 * `!`, and one of the others if there are any. NULL and "": every name is.
 */
bool glob_list_has(const char *list, const char *name);
