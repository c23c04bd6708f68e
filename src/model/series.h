// SPDX-License-Identifier: Apache-2.0
/*
 * Which claims have a series of their own in /metrics, and where an increment is credited. Used wherever the
 * number of series is limited: processes on devices (process.c), traced processes and their kernels
 * (src/cuda).
 *
 * Invariants
 *  1. At most `limit` claims have a series.
 *  2. Each increment is credited to exactly one place: the owner's series if it has one at that moment, else
 *     to "other". So the sum of all is the sum of all series that ever existed, and "other"; neither falls.
 *  3. An owner that loses its series retains what was credited to it, and continues from there if it gets one
 *     again.
 *
 * Free series are given to the first that need one (series_take). When all are taken, either a much busier
 * claim takes one over (series_balance), or the claims with the best scores have them (series_offer). Claims
 * that live as long as their owner need neither.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/saturated.h"

struct series_claim {
	bool has; /* has a series */
	bool had; /* had one before series_offer() */
	double score; /* recent use; comparable among the claims of one set */
};

struct series_set {
	uint32_t limit, taken;
};

/* Takes a free series. Returns whether there was one. */
bool series_take(struct series_set *set, struct series_claim *claim);
void series_give_up(struct series_set *set, struct series_claim *claim);

/* Claims in an array of larger rows. */
struct series_rows {
	struct series_claim *first;
	size_t stride; /* bytes */
	uint32_t n;
};

/*
 * Gives free series to the claims with the highest scores; if the limit was lowered, takes series from those
 * with the lowest; and a few times a call, moves a series from the least busy claim to a much busier one.
 * Returns how many claims lost theirs.
 */
unsigned series_balance(struct series_set *set, struct series_rows rows);

/*
 * Selects the best claims by score, each time from scratch. The score of a claim that had a series is
 * multiplied by 1.5, so that two similar claims do not alternate. Begin with .n = 0, offer all claims, then
 * call series_settle().
 */
struct series_best {
	struct series_claim **heap; /* capacity @limit; the lowest score first */
	uint32_t n, limit;
};
/* Takes the claim's series away; with @may it is a candidate for getting one. */
void series_offer(struct series_best *best, struct series_claim *claim, bool may);
void series_settle(struct series_best *best);

/* @own: NULL if the owner stores its sum elsewhere. */
static inline void series_credit(bool has, double increment, double *all, double *own, double *other)
{
	*all += increment;
	if (!has)
		*other += increment;
	else if (own)
		*own += increment;
}

/* The same for integers, saturating at UINT64_MAX. */
static inline void series_credit_count(bool has, uint64_t increment, uint64_t *all, uint64_t *own,
				       uint64_t *other)
{
	uint64_t *place = has ? own : other;

	*all = add_saturated(*all, increment);
	*place = add_saturated(*place, increment);
}
