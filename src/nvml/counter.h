// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nvml/shared.h"

/* Bytes after which a 32-bit counter begins again. */
#define COUNTER_ROUND 4294967296.0

/*
 * Takes in a new raw value of a counter that may have 32 bits, and returns its total, which never falls.
 * @expected is how much is believed to have been added since the last value, and tells how often the counter
 * came round; NAN: at most once. A counter that has ever been beyond 32 bits does not come round there: when
 * it falls, the driver has begun again.
 */
double counter_unwrap(struct persistent_counter *counter, double raw, double expected);

/*
 * Adds what each of @n links has counted since its last value to a total and returns it. A link that is not
 * there (negative raw value) neither adds nor takes away; one that begins again at zero goes on from there.
 */
double counter_sum(double *total, double *last, const double *raw, unsigned n);
