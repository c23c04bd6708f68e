// SPDX-License-Identifier: Apache-2.0
#include "analysis/mixture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/macro.h"

enum { ITERATIONS_MAX = 200, RESTARTS = 3 };
#define VARIANCE_FLOOR 1e-6
#define GAIN_MIN 1e-3 /* of the log-likelihood, by an iteration */
#define CRITERION_MARGIN 10.0 /* by which another component must be better */
#define RARE 0.001 /* share of the observations below the threshold */

struct sample {
	const float *x;
	uint32_t n, d;
	uint32_t *order; /* of the observations, by one dimension */
};

/* ---- density ---- */

/* To be called when weights or variances are others. */
static void set_factors(struct mixture *m)
{
	for (uint32_t k = 0; k < m->components; k++) {
		m->factor_others[k] = log(m->weight[k]);
		for (uint32_t d = 1; d < m->dimensions; d++)
			m->factor_others[k] -= 0.5 * log(2 * M_PI * m->variance[k][d]);
		m->factor[k] = m->factor_others[k] - 0.5 * log(2 * M_PI * m->variance[k][0]);
	}
}

/* ln of weight times density from dimension @first on (0 or 1), of each component; returns their sum's. */
static double log_terms_from(const struct mixture *m, uint32_t first, const float *x,
			     double terms[static MIXTURE_COMPONENTS])
{
	double greatest = -INFINITY, sum = 0;

	for (uint32_t k = 0; k < m->components; k++) {
		terms[k] = first == 0 ? m->factor[k] : m->factor_others[k];
		for (uint32_t d = first; d < m->dimensions; d++) {
			double away = (double)x[d] - m->mean[k][d];

			terms[k] -= 0.5 * away * away / m->variance[k][d];
		}
		greatest = MAX(greatest, terms[k]);
	}
	for (uint32_t k = 0; k < m->components; k++)
		sum += exp(terms[k] - greatest);
	return greatest + log(sum);
}

static double log_terms(const struct mixture *m, const float *x, double terms[static MIXTURE_COMPONENTS])
{
	return log_terms_from(m, 0, x, terms);
}

double mixture_log_density(const struct mixture *mixture, const float *observation)
{
	double terms[MIXTURE_COMPONENTS];

	return log_terms(mixture, observation, terms);
}

void mixture_responsibilities(const struct mixture *mixture, const float *observation,
			      double ret_of[static MIXTURE_COMPONENTS])
{
	double all = log_terms(mixture, observation, ret_of);

	for (uint32_t k = 0; k < MIXTURE_COMPONENTS; k++)
		ret_of[k] = k < mixture->components ? exp(ret_of[k] - all) : 0;
}

/* The first dimension's mean, given the others. */
static double expected_first(const struct mixture *m, const float *x)
{
	double terms[MIXTURE_COMPONENTS], all = log_terms_from(m, 1, x, terms), mean = 0;

	for (uint32_t k = 0; k < m->components; k++)
		mean += exp(terms[k] - all) * m->mean[k][0];
	return mean;
}

bool mixture_is_slow(const struct mixture *mixture, const float *observation)
{
	double least = mixture->dimensions == 1 ? mixture->upper : expected_first(mixture, observation);

	return (double)observation[0] > least &&
	       mixture_log_density(mixture, observation) < mixture->threshold;
}

uint32_t mixture_fastest(const struct mixture *mixture)
{
	uint32_t fastest = 0;

	for (uint32_t k = 1; k < mixture->components; k++)
		if (mixture->mean[k][0] < mixture->mean[fastest][0])
			fastest = k;
	return fastest;
}

/* ---- fitting ---- */

static int compare_by(const void *a, const void *b, void *userdata)
{
	const float *x = ((const float *const *)userdata)[0];
	const uint32_t *stride = ((const uint32_t *const *)userdata)[1];
	float first = x[(size_t) * (const uint32_t *)a * *stride],
	      other = x[(size_t) * (const uint32_t *)b * *stride];

	return (first > other) - (first < other);
}

static void order_by(const struct sample *s, uint32_t dimension)
{
	const void *by[] = { s->x + dimension, &s->d };

	for (uint32_t i = 0; i < s->n; i++)
		s->order[i] = i;
	qsort_r(s->order, s->n, sizeof(*s->order), compare_by, by);
}

static void moments(const struct sample *s, double mean[MIXTURE_DIMENSIONS],
		    double variance[MIXTURE_DIMENSIONS])
{
	for (uint32_t d = 0; d < s->d; d++) {
		double sum = 0, squares = 0;

		for (uint32_t i = 0; i < s->n; i++)
			sum += (double)s->x[i * s->d + d];
		mean[d] = sum / s->n;
		for (uint32_t i = 0; i < s->n; i++) {
			double away = (double)s->x[i * s->d + d] - mean[d];

			squares += away * away;
		}
		variance[d] = squares / s->n + VARIANCE_FLOOR;
	}
}

/* Means at quantiles of one dimension; restarts take other ones, of the next dimension if there is one. */
static void place(const struct sample *s, uint32_t components, unsigned restart, struct mixture *m)
{
	static const double within[RESTARTS] = { 0.5, 0.25, 0.75 };
	double mean[MIXTURE_DIMENSIONS], variance[MIXTURE_DIMENSIONS];

	moments(s, mean, variance);
	order_by(s, restart % s->d);
	*m = (struct mixture){ .components = components, .dimensions = s->d };
	for (uint32_t k = 0; k < components; k++) {
		uint32_t at = (uint32_t)((k + within[restart]) / components * s->n);
		const float *x = s->x + (size_t)s->order[at] * s->d;

		m->weight[k] = 1.0 / components;
		for (uint32_t d = 0; d < s->d; d++) {
			m->mean[k][d] = (double)x[d];
			m->variance[k][d] = variance[d] / components;
		}
	}
	set_factors(m);
}

/* Sums of an expectation step, around the means that it began with. */
struct expected {
	double n, first[MIXTURE_DIMENSIONS], second[MIXTURE_DIMENSIONS];
};

static double expect(const struct sample *s, const struct mixture *m,
		     struct expected sums[static MIXTURE_COMPONENTS])
{
	double likelihood = 0, of[MIXTURE_COMPONENTS];

	memset(sums, 0, MIXTURE_COMPONENTS * sizeof(*sums));
	for (uint32_t i = 0; i < s->n; i++) {
		const float *x = s->x + (size_t)i * s->d;
		double all = log_terms(m, x, of);

		likelihood += all;
		for (uint32_t k = 0; k < m->components; k++) {
			double share = exp(of[k] - all);

			sums[k].n += share;
			for (uint32_t d = 0; d < s->d; d++) {
				double away = (double)x[d] - m->mean[k][d];

				sums[k].first[d] += share * away;
				sums[k].second[d] += share * away * away;
			}
		}
	}
	return likelihood;
}

/* What less than two observations make is no component. */
static void maximize(const struct sample *s, const struct expected sums[static MIXTURE_COMPONENTS],
		     struct mixture *m)
{
	uint32_t kept = 0;
	double all = 0;

	for (uint32_t k = 0; k < m->components; k++) {
		const struct expected *sum = &sums[k];

		if (sum->n < 2)
			continue;
		for (uint32_t d = 0; d < s->d; d++) {
			double moved = sum->first[d] / sum->n;

			m->mean[kept][d] = m->mean[k][d] + moved;
			m->variance[kept][d] =
				MAX(sum->second[d] / sum->n - moved * moved, 0.0) + VARIANCE_FLOOR;
		}
		m->weight[kept] = sum->n / s->n;
		all += m->weight[kept++];
	}
	m->components = kept;
	for (uint32_t k = 0; k < kept; k++)
		m->weight[k] /= all;
	set_factors(m);
}

/* The log-likelihood that is reached. */
static double improve(const struct sample *s, struct mixture *m)
{
	struct expected sums[MIXTURE_COMPONENTS];
	double likelihood = expect(s, m, sums);

	for (unsigned i = 0; i < ITERATIONS_MAX; i++) {
		uint32_t components = m->components;
		double before = likelihood;

		maximize(s, sums, m);
		likelihood = expect(s, m, sums);
		if (components == m->components && likelihood - before < GAIN_MIN)
			break;
	}
	return likelihood;
}

static void best_of(const struct sample *s, uint32_t components, struct mixture *ret_mixture)
{
	double best = -INFINITY;

	for (unsigned restart = 0; restart < RESTARTS; restart++) {
		struct mixture m;
		double likelihood;

		place(s, components, restart, &m);
		likelihood = improve(s, &m);
		if (likelihood > best) {
			double parameters = m.components * (2.0 * s->d + 1) - 1;

			m.criterion = parameters * log(s->n) - 2 * likelihood;
			*ret_mixture = m;
			best = likelihood;
		}
	}
}

static int compare_double(const void *a, const void *b)
{
	double first = *(const double *)a, other = *(const double *)b;

	return (first > other) - (first < other);
}

static int set_thresholds(const struct sample *s, struct mixture *m)
{
	_cleanup_free_ double *densities = malloc(s->n * sizeof(*densities));
	uint32_t fastest = mixture_fastest(m);

	if (!densities)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n; i++)
		densities[i] = mixture_log_density(m, s->x + (size_t)i * s->d);
	qsort(densities, s->n, sizeof(*densities), compare_double);
	m->threshold = densities[(uint32_t)(RARE * (s->n - 1))];
	m->upper = m->mean[fastest][0] + 3 * sqrt(m->variance[fastest][0]);
	return 0;
}

static bool are_finite(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return false;
	return true;
}

int mixture_fit(const float *observations, uint32_t n, uint32_t dimensions, struct mixture *ret_mixture)
{
	_cleanup_free_ uint32_t *order = NULL;
	struct sample s = { .x = observations, .n = n, .d = dimensions };
	struct mixture best = { 0 };
	int r;

	if (n < MIXTURE_OBSERVATIONS_MIN)
		return -ENODATA;
	if (dimensions < 1 || dimensions > MIXTURE_DIMENSIONS ||
	    !are_finite(observations, (size_t)n * dimensions))
		return -EINVAL;
	s.order = order = malloc(n * sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (uint32_t k = 1; k <= MIXTURE_COMPONENTS; k++) {
		struct mixture m = { 0 };

		best_of(&s, k, &m);
		if (k == 1 || m.criterion < best.criterion - CRITERION_MARGIN)
			best = m;
	}
	r = set_thresholds(&s, &best);
	if (r < 0)
		return r;
	*ret_mixture = best;
	return 0;
}
