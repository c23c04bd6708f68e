// SPDX-License-Identifier: Apache-2.0
#include "analysis/mixture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/macro.h"

enum {
	ITERATIONS_MAX = 200,
	RESTARTS = 3,
	EVERY = 4, /* restarts are tried on every fourth observation, and the best goes on with all */
	WORSE_MAX = 2, /* numbers of components in a row that are no better: more are not tried */
};
#define COSTS 0.0953 /* ln(1.1): what is less than a tenth slower is not worth a word */
#define GAIN_MIN 1e-3 /* of the log-likelihood, by an iteration */
#define CRITERION_MARGIN 10.0 /* by which another component must be better */
#define NOTHING 36.0 /* exp(-36) adds nothing to a double near 1 */
#define RARE 0.001 /* share of the observations below the threshold */

struct sample {
	const float *x;
	uint32_t n, d;
	uint32_t *order; /* of the observations, by one dimension */
	double floor[MIXTURE_DIMENSIONS];
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

/*
 * The probability of each component to have made the observation, by its dimensions from @first on (0 or 1);
 * returns ln of the density of all.
 */
static double share_out(const struct mixture *m, uint32_t first, const float *x,
			double shares[static MIXTURE_COMPONENTS])
{
	double greatest = -INFINITY, sum = 0;

	for (uint32_t k = 0; k < m->components; k++) {
		shares[k] = first == 0 ? m->factor[k] : m->factor_others[k];
		for (uint32_t d = first; d < m->dimensions; d++) {
			double away = (double)x[d] - m->mean[k][d];

			shares[k] -= 0.5 * away * away / m->variance[k][d];
		}
		greatest = MAX(greatest, shares[k]);
	}
	for (uint32_t k = 0; k < m->components; k++) {
		shares[k] = shares[k] > greatest - NOTHING ? exp(shares[k] - greatest) : 0;
		sum += shares[k];
	}
	for (uint32_t k = 0; k < m->components; k++)
		shares[k] /= sum;
	return greatest + log(sum);
}

double mixture_log_density(const struct mixture *mixture, const float *observation)
{
	double shares[MIXTURE_COMPONENTS];

	return share_out(mixture, 0, observation, shares);
}

void mixture_responsibilities(const struct mixture *mixture, const float *observation,
			      double ret_of[static MIXTURE_COMPONENTS])
{
	memset(ret_of, 0, MIXTURE_COMPONENTS * sizeof(*ret_of));
	share_out(mixture, 0, observation, ret_of);
}

/* Of the first dimension, given the others: an unusual GPU clock alone makes no latency unusual. */
static double judged_density(const struct mixture *m, const float *x)
{
	double shares[MIXTURE_COMPONENTS], all = share_out(m, 0, x, shares);

	return m->dimensions == 1 ? all : all - share_out(m, 1, x, shares);
}

/* The first dimension's mean, given the others. */
static double expected_first(const struct mixture *m, const float *x)
{
	double shares[MIXTURE_COMPONENTS], mean = 0;

	share_out(m, 1, x, shares);
	for (uint32_t k = 0; k < m->components; k++)
		mean += shares[k] * m->mean[k][0];
	return mean;
}

bool mixture_is_slow(const struct mixture *mixture, const float *observation)
{
	double least =
		mixture->dimensions == 1 ? mixture->upper : expected_first(mixture, observation) + COSTS;

	return (double)observation[0] > least && judged_density(mixture, observation) < mixture->threshold;
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
		variance[d] = squares / s->n + s->floor[d];
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

		likelihood += share_out(m, 0, x, of);
		for (uint32_t k = 0; k < m->components; k++) {
			double share = of[k];

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
				MAX(sum->second[d] / sum->n - moved * moved, 0.0) + s->floor[d];
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

/* @part: every EVERYth observation of @s. */
static void best_of(const struct sample *s, const struct sample *part, uint32_t components,
		    struct mixture *ret_mixture)
{
	double best = -INFINITY, likelihood;

	for (unsigned restart = 0; restart < (components == 1 ? 1 : RESTARTS); restart++) {
		struct mixture m;

		place(part, components, restart, &m);
		likelihood = improve(part, &m);
		if (likelihood > best) {
			*ret_mixture = m;
			best = likelihood;
		}
	}
	likelihood = improve(s, ret_mixture);
	ret_mixture->criterion =
		(ret_mixture->components * (2.0 * s->d + 1) - 1) * log(s->n) - 2 * likelihood;
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
		densities[i] = judged_density(m, s->x + (size_t)i * s->d);
	qsort(densities, s->n, sizeof(*densities), compare_double);
	m->threshold = densities[(uint32_t)(RARE * (s->n - 1))];
	m->upper = m->mean[fastest][0] + MAX(3 * sqrt(m->variance[fastest][0]), COSTS);
	return 0;
}

static bool are_finite(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return false;
	return true;
}

static void choose_components(const struct sample *s, const struct sample *part, struct mixture *ret_mixture)
{
	for (uint32_t k = 1, worse = 0; k <= MIXTURE_COMPONENTS && worse < WORSE_MAX; k++) {
		struct mixture m = { 0 };

		best_of(s, part, k, &m);
		worse++;
		if (k == 1 || m.criterion < ret_mixture->criterion - CRITERION_MARGIN) {
			*ret_mixture = m;
			worse = 0;
		}
	}
}

int mixture_fit(const float *observations, uint32_t n, uint32_t dimensions, const double *floors,
		struct mixture *ret_mixture)
{
	_cleanup_free_ uint32_t *order = NULL;
	_cleanup_free_ float *some = NULL;
	struct sample s = { .x = observations, .n = n, .d = dimensions }, part;
	struct mixture best = { 0 };
	int r;

	if (n < MIXTURE_OBSERVATIONS_MIN)
		return -ENODATA;
	if (dimensions < 1 || dimensions > MIXTURE_DIMENSIONS ||
	    !are_finite(observations, (size_t)n * dimensions))
		return -EINVAL;
	for (uint32_t d = 0; d < dimensions; d++)
		s.floor[d] = floors ? floors[d] : MIXTURE_FLOOR;
	part = s;
	part.n = n / EVERY;
	part.order = order = malloc(part.n * sizeof(*order));
	part.x = some = malloc((size_t)part.n * dimensions * sizeof(*some));
	if (!order || !some)
		return -ENOMEM;
	for (uint32_t i = 0; i < part.n; i++)
		memcpy(some + (size_t)i * dimensions, observations + (size_t)i * EVERY * dimensions,
		       dimensions * sizeof(*some));
	choose_components(&s, &part, &best);
	r = set_thresholds(&s, &best);
	if (r < 0)
		return r;
	*ret_mixture = best;
	return 0;
}
