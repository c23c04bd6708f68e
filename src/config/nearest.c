// SPDX-License-Identifier: Apache-2.0
#include "config/nearest.h"

#include <string.h>

#include "base/macro.h"

enum { WORD_MAX = 80 }; /* longer words are not compared: all our names are shorter */

/*
 * Optimal string alignment distance; three rows suffice because a swap refers to the row before the previous
 * one.
 */
static size_t distance(const char *a, const char *b)
{
	size_t row[3][WORD_MAX + 1];
	size_t n = strlen(a), m = strlen(b);
	size_t *before = row[0], *last = row[1], *now = row[2];

	for (size_t j = 0; j <= m; j++)
		last[j] = j;
	for (size_t i = 1; i <= n; i++) {
		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t d = MIN(last[j], now[j - 1]) + 1;

			d = MIN(d, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d = MIN(d, before[j - 2] + 1);
			now[j] = d;
		}
		size_t *recycled = before;
		before = last;
		last = now;
		now = recycled;
	}
	return last[m];
}

void nearest_init(struct nearest *nearest, const char *word)
{
	*nearest = (struct nearest){ .word = word, .distance = strlen(word) / 3 + 1 };
}

void nearest_offer(struct nearest *nearest, const char *candidate)
{
	if (strlen(nearest->word) > WORD_MAX || strlen(candidate) > WORD_MAX)
		return;
	size_t d = distance(nearest->word, candidate);
	/* The first of several equally near candidates is used; a distance at the threshold is accepted. */
	if (d < nearest->distance || (!nearest->best && d == nearest->distance && d < strlen(candidate))) {
		nearest->best = candidate;
		nearest->distance = d;
	}
}
