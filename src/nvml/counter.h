// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nvml/shared.h"

/* Bytes after which a 32-bit counter begins again. */
#define COUNTER_ROUND 4294967296.0

/*
 * Processes a new raw value of a counter that may have 32 bits, and returns its total, which never falls.
 * @expected is the estimated increase since the last value, from which the number of wraps follows; NAN: at
 * most one wrap. A counter that was ever above 32 bits does not wrap there: if it falls, the driver has
 * restarted.
 */
double counter_unwrap(struct persistent_counter *counter, double raw, double expected);

/*
 * Adds what each of @n links has counted since its last value to a total and returns it. An absent link
 * (negative raw value) changes nothing; one that restarts at 0 is continued from there.
 */
double counter_sum(double *total, double *last, const double *raw, unsigned n);
