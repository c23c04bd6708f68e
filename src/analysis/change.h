// SPDX-License-Identifier: Apache-2.0
/*
 * Change points of a series, found as it comes: Bayesian online detection (Adams and MacKay, 2007), with
 * observations that are normal, of a mean and variance that are not known and change when a run ends.
 *
 * A run begins with an observation that the prior explains; the others continue runs. Probabilities are kept
 * as logarithms, moments by Welford's update; of more than CHANGE_RUNS runs the two longest become one. A
 * single outlier begins a run, too, and raises its mean: so whether there is a change is asked of runs of
 * CHANGE_CONFIRM observations, by their median and their mean, and by how much those before them scattered.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CHANGE_RUNS = 128, CHANGE_FIRST = 20, CHANGE_CONFIRM = 10, CHANGE_RECENT = 128 };

struct change {
	uint64_t seen;
	double first[CHANGE_FIRST]; /* what the prior is made of */
	double prior_mean, prior_variance;
	uint32_t runs_n; /* by length, the shortest first */
	struct change_run {
		double probability; /* ln */
		double n, mean, squares;
	} runs[CHANGE_RUNS];
	double newest[CHANGE_RECENT]; /* observations, a ring */
	double before, after; /* medians around the newest change; equal: there was none */
};

/*
 * An observation, finite: the logarithm of a time, so that a difference is a ratio. True: with a probability
 * of 0.9 a run began in the newest 2 * CHANGE_CONFIRM observations; it has CHANGE_CONFIRM or more; their
 * median differs from that of the newest change, and their mean from that of the observations before them, by
 * @least or more, and by five standard errors. `before` and `after` are set.
 */
bool change_add(struct change *change, double x, double least);
