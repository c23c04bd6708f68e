// SPDX-License-Identifier: Apache-2.0
#include "analysis/change.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

#define HAZARD (1.0 / 250) /* of a change at an observation */
#define SURE 0.9
#define CLEARLY 5.0 /* standard errors */
/* The prior: worth so many observations of the mean, and of the variance. */
#define PRIOR_MEAN 0.01
#define PRIOR_SHAPE 1.0
#define DEVIATION_MIN 0.005 /* half a percent: clocks and their readers are no better */

static int compare_value(const void *a, const void *b)
{
	double first = *(const double *)a, other = *(const double *)b;

	return (first > other) - (first < other);
}

/* Median and median absolute deviation of the first ones: some may be of a warm-up. */
static void make_prior(struct change *c)
{
	double away[CHANGE_FIRST], deviation;

	qsort(c->first, CHANGE_FIRST, sizeof(*c->first), compare_value);
	c->prior_mean = c->before = c->after = c->first[CHANGE_FIRST / 2];
	for (unsigned i = 0; i < CHANGE_FIRST; i++)
		away[i] = fabs(c->first[i] - c->prior_mean);
	qsort(away, CHANGE_FIRST, sizeof(*away), compare_value);
	deviation = MAX(1.4826 * away[CHANGE_FIRST / 2], DEVIATION_MIN);
	c->prior_variance = deviation * deviation;
}

/* ln of the density of @x, given the prior and the run: Student's t. */
static double predict(const struct change *c, const struct change_run *run, double x)
{
	double weight = PRIOR_MEAN + run->n, shape = PRIOR_SHAPE + run->n / 2,
	       off = run->mean - c->prior_mean;
	double mean = (PRIOR_MEAN * c->prior_mean + run->n * run->mean) / weight;
	double rate = PRIOR_SHAPE * c->prior_variance + run->squares / 2 +
		      PRIOR_MEAN * run->n * off * off / (2 * weight);
	double scale = rate * (weight + 1) / (shape * weight), freedom = 2 * shape, away = x - mean;

	return lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - 0.5 * log(freedom * M_PI * scale) -
	       (freedom + 1) / 2 * log1p(away * away / (freedom * scale));
}

static void run_add(struct change_run *run, double x)
{
	double away = x - run->mean;

	run->n++;
	run->mean += away / run->n;
	run->squares += away * (x - run->mean);
}

static void normalize(struct change *c)
{
	double greatest = -INFINITY, sum = 0;

	for (uint32_t i = 0; i < c->runs_n; i++)
		greatest = MAX(greatest, c->runs[i].probability);
	for (uint32_t i = 0; i < c->runs_n; i++)
		sum += exp(c->runs[i].probability - greatest);
	for (uint32_t i = 0; i < c->runs_n; i++)
		c->runs[i].probability -= greatest + log(sum);
}

/* The two longest become one: the more probable one's moments, the probability of both. */
static void merge_longest(struct change *c)
{
	struct change_run *longest = &c->runs[c->runs_n - 1], *other = &c->runs[c->runs_n - 2];
	double both = log(exp(longest->probability) + exp(other->probability));

	if (longest->probability > other->probability)
		*other = *longest;
	other->probability = MAX(both, -1e3);
	c->runs_n--;
}

static void add_to_runs(struct change *c, double x)
{
	const struct change_run empty = { 0 };

	if (c->runs_n == CHANGE_RUNS)
		merge_longest(c);
	for (uint32_t i = 0; i < c->runs_n; i++) {
		c->runs[i].probability += log1p(-HAZARD) + predict(c, &c->runs[i], x);
		run_add(&c->runs[i], x);
	}
	memmove(&c->runs[1], &c->runs[0], c->runs_n * sizeof(*c->runs));
	c->runs[0] = (struct change_run){ .probability = log(HAZARD) + predict(c, &empty, x) };
	run_add(&c->runs[0], x);
	c->runs_n++;
	normalize(c);
}

/* The most probable of those that have begun lately; NULL: it is not sure that one has. */
static const struct change_run *begun_lately(const struct change *c)
{
	const struct change_run *best = NULL;
	double sum = 0;

	for (uint32_t i = 0; i < c->runs_n && c->runs[i].n <= 2 * CHANGE_CONFIRM; i++) {
		sum += exp(c->runs[i].probability);
		if (!best || c->runs[i].probability > best->probability)
			best = &c->runs[i];
	}
	return sum > SURE ? best : NULL;
}

/* The newest @n observations but the first @skip of them, sorted. */
static void sort_newest(const struct change *c, uint32_t skip, uint32_t n,
			double sorted[static CHANGE_RECENT])
{
	for (uint32_t i = 0; i < n; i++)
		sorted[i] = c->newest[(c->seen - 1 - skip - i) % CHANGE_RECENT];
	qsort(sorted, n, sizeof(*sorted), compare_value);
}

static double mean_of(const double *values, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += values[i];
	return sum / n;
}

struct change_before {
	uint32_t n;
	double mean, deviation;
};

/* Those before the newest @n, without the greatest twentieth: pauses. */
static struct change_before look_before(const struct change *c, uint32_t n)
{
	uint32_t there = (uint32_t)MIN(c->seen, (uint64_t)CHANGE_RECENT) - n, kept = there - there / 20;
	struct change_before before = { .n = kept };
	double sorted[CHANGE_RECENT], squares = 0;

	sort_newest(c, n, there, sorted);
	before.mean = mean_of(sorted, kept);
	for (uint32_t i = 0; i < kept; i++)
		squares += (sorted[i] - before.mean) * (sorted[i] - before.mean);
	before.deviation = sqrt(squares / kept);
	return before;
}

bool change_add(struct change *c, double x, double least)
{
	double sorted[CHANGE_RECENT], median, mean;
	const struct change_run *run;
	struct change_before before;
	uint32_t n;

	c->newest[c->seen++ % CHANGE_RECENT] = x;
	if (c->seen <= CHANGE_FIRST) {
		c->first[c->seen - 1] = x;
		if (c->seen == CHANGE_FIRST)
			make_prior(c);
		return false;
	}
	add_to_runs(c, x);
	run = begun_lately(c);
	if (!run || run->n < CHANGE_CONFIRM)
		return false;
	n = (uint32_t)run->n;
	sort_newest(c, 0, n, sorted);
	median = sorted[n / 2];
	mean = mean_of(sorted, n);
	before = look_before(c, n);
	least = MAX(least, CLEARLY * before.deviation * sqrt(1.0 / n + 1.0 / before.n));
	if (fabs(median - c->after) < least || fabs(mean - before.mean) < least)
		return false;
	c->before = c->after;
	c->after = median;
	return true;
}
