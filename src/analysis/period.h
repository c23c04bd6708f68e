// SPDX-License-Identifier: Apache-2.0
/*
 * How many calls an iteration of a program has, found in the sequence of its calls, without instrumentation:
 * the smallest lag at which the sequence's autocorrelation reaches PERIOD_CORRELATION (Falcon's rule).
 *
 * Calls are symbols: equal numbers for equal calls. The autocorrelation of such a sequence is that of its
 * symbols' indicators: (matches - chance) / (1 - chance), with the share of equal symbols a lag apart, and
 * what that share would be by chance. So a sequence that is nearly always the same call has no period of one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PERIOD_CORRELATION 0.95
enum { PERIOD_CALLS = 2048, PERIOD_REPEATS = 3 };

/*
 * Of @n symbols, at most PERIOD_CALLS, in order. 0: there is none of which PERIOD_REPEATS are there.
 * *ret_rare: the symbol that is least often in the last period; *ret_once: it is there once, and so marks an
 * iteration.
 */
uint32_t period_find(const uint32_t *symbols, uint32_t n, uint32_t *ret_rare, bool *ret_once);
