// SPDX-License-Identifier: Apache-2.0
/*
 * Who has a series of its own in /metrics, and where an increment is credited. Whatever has series in bounded
 * number uses this: processes on devices (process.c), traced processes and their kernels (src/cuda).
 *
 * Invariants
 *  1. At most `limit` claims have a series.
 *  2. Each increment is credited to exactly one place: the owner's series if it has one at that moment, else
 *     to "other". So the sum of all is the sum of all series that ever were, and "other"; neither falls.
 *  3. An owner that loses its series keeps what was credited to it, and goes on from there if it gets one
 *     again.
 *
 * Who gets one: first come, first served while there are free ones (series_take). When all are taken, either
 * a much busier claim takes over (series_balance), or the best by score have them (series_offer). What lasts
 * as long as its owner needs neither.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/saturated.h"

struct series_claim {
	bool has; /* a series */
	bool had; /* before series_offer() */
	double score; /* recent use; comparable among the claims of one set */
};

struct series_set {
	uint32_t limit, taken;
};

/* One that is free. Did the claim get it? */
bool series_take(struct series_set *set, struct series_claim *claim);
void series_give_up(struct series_set *set, struct series_claim *claim);

/* Claims in an array of larger rows. */
struct series_rows {
	struct series_claim *first;
	size_t stride; /* bytes */
	uint32_t n;
};

/*
 * Free series go to the claims with the highest scores; beyond a limit that was lowered the lowest lose
 * theirs; and few times a call, one that is much busier than the least busy that has one takes it over.
 * Returns how many lost theirs.
 */
unsigned series_balance(struct series_set *set, struct series_rows rows);

/*
 * The best of all claims by score, chosen again each time; one that had a series is worth half as much again,
 * so that two like each other do not take turns. Begin with .n = 0, offer all, then settle.
 */
struct series_best {
	struct series_claim **heap; /* room for @limit; the least on top */
	uint32_t n, limit;
};
/* Takes what the claim has away; @may: it is one of those to choose from. */
void series_offer(struct series_best *best, struct series_claim *claim, bool may);
void series_settle(struct series_best *best);

/* @own: NULL where the owner keeps its sum by itself. */
static inline void series_credit(bool has, double increment, double *all, double *own, double *other)
{
	*all += increment;
	if (!has)
		*other += increment;
	else if (own)
		*own += increment;
}

/* The same for whole numbers, at most UINT64_MAX. */
static inline void series_credit_count(bool has, uint64_t increment, uint64_t *all, uint64_t *own,
				       uint64_t *other)
{
	uint64_t *place = has ? own : other;

	*all = add_saturated(*all, increment);
	*place = add_saturated(*place, increment);
}
