// SPDX-License-Identifier: Apache-2.0
#include "nvml/counter.h"

/* A rate at which the counter would wrap more often than this is invalid. */
#define COUNTER_EXPECTED_MAX (1e6 * COUNTER_ROUND)

double counter_unwrap(struct persistent_counter *counter, double raw, double expected)
{
	double added = raw - counter->raw;

	if (raw >= COUNTER_ROUND)
		counter->wide = 1;
	if (!counter->known) {
		counter->known = 1;
		counter->total = raw;
	} else if (counter->wide) {
		counter->total += added >= 0 ? added : raw;
	} else {
		if (added < 0)
			added += COUNTER_ROUND;
		if (expected > added && expected < COUNTER_EXPECTED_MAX)
			added += COUNTER_ROUND * (double)(int64_t)((expected - added) / COUNTER_ROUND + 0.5);
		counter->total += added;
	}
	counter->raw = raw;
	return counter->total;
}

double counter_sum(double *total, double *last, const double *raw, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (raw[i] < 0)
			continue;
		if (last[i] < 0)
			*total += raw[i];
		else
			*total += raw[i] >= last[i] ? raw[i] - last[i] : raw[i];
		last[i] = raw[i];
	}
	return *total;
}
