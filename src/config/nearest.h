// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

/*
 * For "did you mean": finds the name nearest to a mistyped word. Call nearest_offer() with each candidate;
 * best remains NULL if none is near. Swapped neighbours count as one mistake.
 */
struct nearest {
	const char *word;
	const char *best;
	size_t distance;
};

void nearest_init(struct nearest *nearest, const char *word);
void nearest_offer(struct nearest *nearest, const char *candidate);
