// SPDX-License-Identifier: Apache-2.0
#include "model/series.h"

#define TAKEOVER_FACTOR 1.5 /* much busier: 1.5 times the score */
#define TAKEOVER_MARGIN 0.1 /* plus a tenth of a device, so that two similar claims do not alternate */
#define HOLDER_FACTOR 1.5 /* factor on the score of a claim that has a series */
enum { TAKEOVERS_MAX = 4 }; /* per call */

bool series_take(struct series_set *set, struct series_claim *claim)
{
	if (claim->has || set->taken >= set->limit)
		return claim->has;
	claim->has = true;
	set->taken++;
	return true;
}

void series_give_up(struct series_set *set, struct series_claim *claim)
{
	set->taken -= claim->has;
	claim->has = false;
}

/* ---- takeovers ---- */

/* The busiest claim without a series, or the least busy with one; NULL if there is none. */
static struct series_claim *series_extreme(struct series_rows rows, bool with_series)
{
	struct series_claim *found = NULL;

	for (uint32_t i = 0; i < rows.n; i++) {
		struct series_claim *claim = (void *)((char *)rows.first + i * rows.stride);

		if (claim->has != with_series)
			continue;
		if (!found || (with_series ? claim->score < found->score : claim->score > found->score))
			found = claim;
	}
	return found;
}

unsigned series_balance(struct series_set *set, struct series_rows rows)
{
	struct series_claim *out, *in;
	unsigned lost = 0;

	for (; set->taken > set->limit; lost++)
		series_give_up(set, series_extreme(rows, true));
	while (set->taken < set->limit && set->taken < rows.n)
		series_take(set, series_extreme(rows, false));
	if (set->taken == rows.n || set->taken == 0)
		return lost;
	for (unsigned i = 0; i < TAKEOVERS_MAX; i++, lost++) {
		in = series_extreme(rows, false);
		out = series_extreme(rows, true);
		if (in->score <= out->score * TAKEOVER_FACTOR + TAKEOVER_MARGIN)
			break;
		series_give_up(set, out);
		series_take(set, in);
	}
	return lost;
}

/* ---- the best by score ---- */

static double claim_score(const struct series_claim *claim)
{
	return claim->score * (claim->had ? HOLDER_FACTOR : 1);
}

/* A claim that had a series ranks before others with the same score. */
static bool claim_is_less(const struct series_claim *a, const struct series_claim *b)
{
	if (claim_score(a) < claim_score(b) || claim_score(a) > claim_score(b))
		return claim_score(a) < claim_score(b);
	return b->had && !a->had;
}

static void sift_down(struct series_claim **heap, uint32_t n, uint32_t at)
{
	for (uint32_t child = 2 * at + 1; child < n; at = child, child = 2 * at + 1) {
		struct series_claim *claim = heap[at];

		if (child + 1 < n && claim_is_less(heap[child + 1], heap[child]))
			child++;
		if (!claim_is_less(heap[child], claim))
			return;
		heap[at] = heap[child];
		heap[child] = claim;
	}
}

static void sift_up(struct series_claim **heap, uint32_t at)
{
	for (uint32_t parent; at > 0 && claim_is_less(heap[at], heap[parent = (at - 1) / 2]); at = parent) {
		struct series_claim *claim = heap[at];

		heap[at] = heap[parent];
		heap[parent] = claim;
	}
}

void series_offer(struct series_best *best, struct series_claim *claim, bool may)
{
	claim->had = claim->has;
	claim->has = false;
	if (!may || best->limit == 0)
		return;
	if (best->n < best->limit) {
		best->heap[best->n] = claim;
		sift_up(best->heap, best->n++);
	} else if (claim_is_less(best->heap[0], claim)) {
		best->heap[0] = claim;
		sift_down(best->heap, best->n, 0);
	}
}

void series_settle(struct series_best *best)
{
	for (uint32_t i = 0; i < best->n; i++)
		best->heap[i]->has = true;
}
