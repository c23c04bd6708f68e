// SPDX-License-Identifier: Apache-2.0
/*
 * Gaussian mixtures with diagonal covariance, fitted by expectation maximisation: what latencies of an
 * operation are usual, when it has several modes. The number of components is chosen by the Bayesian
 * information criterion.
 *
 * Numbers: densities are added as logarithms (log-sum-exp), variances have a floor, and are computed around
 * the previous mean, so that nothing cancels. Equal observations are one component of the floor's variance.
 * Restarts differ in where components begin, not by chance: the same data have the same mixture.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	MIXTURE_COMPONENTS = 5,
	MIXTURE_DIMENSIONS = 4,
	MIXTURE_OBSERVATIONS = 2000,
	MIXTURE_OBSERVATIONS_MIN = 50,
};

#define MIXTURE_FLOOR 1e-6

/* The first dimension is the one that is judged: the logarithm of a latency. */
struct mixture {
	uint32_t components, dimensions;
	double weight[MIXTURE_COMPONENTS];
	double mean[MIXTURE_COMPONENTS][MIXTURE_DIMENSIONS];
	double variance[MIXTURE_COMPONENTS][MIXTURE_DIMENSIONS];
	/* ln of weight and of the densities' factors: of all dimensions, and without the first */
	double factor[MIXTURE_COMPONENTS], factor_others[MIXTURE_COMPONENTS];
	double criterion; /* BIC */
	double threshold; /* log-density, given the other dimensions: 0.1 % of the observations are below */
	double upper; /* of the fastest component: three standard deviations, a tenth at least */
};

/*
 * @observations: @n times @dimensions. @floors: of the variance in each dimension, by how exact it is; NULL:
 * MIXTURE_FLOOR. -ENODATA: fewer than MIXTURE_OBSERVATIONS_MIN; -EINVAL: not finite, or
 * too many dimensions; -ENOMEM.
 */
int mixture_fit(const float *observations, uint32_t n, uint32_t dimensions, const double *floors,
		struct mixture *ret_mixture);

double mixture_log_density(const struct mixture *mixture, const float *observation);
/* The probability of each component to have made the observation. */
void mixture_responsibilities(const struct mixture *mixture, const float *observation,
			      double ret_of[static MIXTURE_COMPONENTS]);
/*
 * Unusual, and slow: above the fastest component, so that values between two modes count, too; with several
 * dimensions, slower than what the others let expect.
 */
bool mixture_is_slow(const struct mixture *mixture, const float *observation);
/* The index of the component with the smallest mean of the first dimension. */
uint32_t mixture_fastest(const struct mixture *mixture);
