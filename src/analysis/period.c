// SPDX-License-Identifier: Apache-2.0
#include "analysis/period.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

static int compare_symbol(const void *a, const void *b)
{
	uint32_t first = *(const uint32_t *)a, other = *(const uint32_t *)b;

	return (first > other) - (first < other);
}

/* Share of pairs that would be equal in any order. */
static double equal_by_chance(const uint32_t *sorted, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && sorted[end] == sorted[i]; end++)
			;
		sum += (double)(end - i) * (end - i);
	}
	return sum / ((double)n * n);
}

/* Gives up a lag as soon as there are more differences than it may have. */
static bool has_lag(const uint32_t *symbols, uint32_t n, uint32_t lag, double chance)
{
	double allowed = (n - lag) * (1 - PERIOD_CORRELATION) * (1 - chance);
	uint32_t different = 0;

	for (uint32_t i = 0; i + lag < n; i++) {
		different += symbols[i] != symbols[i + lag];
		if (different > allowed)
			return false;
	}
	return true;
}

/* The least frequent of sorted symbols, and how often it is there. */
static uint32_t least_frequent(const uint32_t *sorted, uint32_t n, uint32_t *ret_times)
{
	uint32_t rare = 0, least = UINT32_MAX;

	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && sorted[end] == sorted[i]; end++)
			;
		if (end - i < least) {
			least = end - i;
			rare = sorted[i];
		}
	}
	*ret_times = least;
	return rare;
}

uint32_t period_find(const uint32_t *symbols, uint32_t n, uint32_t *ret_rare, bool *ret_once)
{
	uint32_t sorted[PERIOD_CALLS], times;
	double chance;

	n = MIN(n, (uint32_t)PERIOD_CALLS);
	memcpy(sorted, symbols, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_symbol);
	chance = equal_by_chance(sorted, n);
	for (uint32_t lag = 1; lag * PERIOD_REPEATS <= n; lag++) {
		if (!has_lag(symbols, n, lag, chance))
			continue;
		memcpy(sorted, symbols + n - lag, lag * sizeof(*sorted));
		qsort(sorted, lag, sizeof(*sorted), compare_symbol);
		*ret_rare = least_frequent(sorted, lag, &times);
		*ret_once = times == 1;
		return lag;
	}
	return 0;
}
