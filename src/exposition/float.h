// SPDX-License-Identifier: Apache-2.0
/* Numbers of the exposition format: those that Go's strconv.ParseFloat() takes, without hexadecimal ones. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * False: it is none, or beyond the range of a double. *ret_whole: it is written without point and exponent.
 */
bool float_parse(const char *p, size_t n, double *ret_value, bool *ret_whole);
