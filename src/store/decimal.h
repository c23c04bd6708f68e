// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers as views show them: of 15 significant digits (view/number.h), an integer times a power of ten. Most
 * of a driver's numbers are few digits, so the differences between two of them are small.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { DECIMAL_SCALE_MAX = 22 }; /* powers of ten up to here are exact in a double */

/* @digits divided by 10^@scale. */
struct decimal {
	int64_t digits; /* less than 2^53 in absolute value */
	unsigned scale;
};

/* False: it is none (infinite, not a number, too small or too large). */
bool decimal_of(double value, struct decimal *ret_decimal);
double decimal_value(struct decimal decimal);
/* The same number with another, not smaller scale. False: it would have too many digits. */
bool decimal_rescale(struct decimal *decimal, unsigned scale);
