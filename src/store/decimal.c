// SPDX-License-Identifier: Apache-2.0
#include "store/decimal.h"

#include <math.h>

#define EXACT_MAX (INT64_C(1) << 53)
enum { DIGITS = 15 };

static const double powers[DECIMAL_SCALE_MAX + 1] = {
	1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

static bool is_exact_integer(double v)
{
	return fabs(v) < (double)EXACT_MAX && v == (double)(int64_t)v;
}

static void strip_zeros(struct decimal *d)
{
	while (d->scale > 0 && d->digits % 10 == 0) {
		d->digits /= 10;
		d->scale--;
	}
}

/* As number_add() rounds. */
static void round_plain(double v, struct decimal *ret_decimal)
{
	unsigned before = 0;

	while (before < DIGITS && fabs(v) >= powers[before])
		before++;
	ret_decimal->scale = DIGITS - before;
	ret_decimal->digits = (int64_t)(fabs(v) * powers[ret_decimal->scale] + 0.5);
	if (v < 0)
		ret_decimal->digits = -ret_decimal->digits;
}

/* Below 0.1: only what a decimal of few digits is exactly. */
static bool find_small(double v, struct decimal *ret_decimal)
{
	for (unsigned scale = 1; scale <= DECIMAL_SCALE_MAX; scale++) {
		double scaled = round(v * powers[scale]);

		if (fabs(scaled) >= powers[DIGITS])
			return false;
		if (scaled != 0 && scaled / powers[scale] == v) {
			*ret_decimal = (struct decimal){ (int64_t)scaled, scale };
			return true;
		}
	}
	return false;
}

bool decimal_of(double value, struct decimal *ret_decimal)
{
	if (!isfinite(value) || (value == 0 && signbit(value)))
		return false;
	if (is_exact_integer(value)) {
		*ret_decimal = (struct decimal){ (int64_t)value, 0 };
		return true;
	}
	if (fabs(value) >= powers[DIGITS])
		return false;
	if (fabs(value) < 0.1)
		return find_small(value, ret_decimal);
	round_plain(value, ret_decimal);
	strip_zeros(ret_decimal);
	return true;
}

double decimal_value(struct decimal decimal)
{
	return (double)decimal.digits / powers[decimal.scale];
}

bool decimal_rescale(struct decimal *d, unsigned scale)
{
	int64_t digits = d->digits;

	for (unsigned s = d->scale; s < scale; s++) {
		if (digits >= EXACT_MAX / 10 || digits <= -EXACT_MAX / 10)
			return false;
		digits *= 10;
	}
	*d = (struct decimal){ digits, scale };
	return true;
}
