// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <math.h>

#include "test.h"

/* cmocka 1.1 compares floats, not doubles. */
#define assert_near(a, b, epsilon) _assert_near((a), (b), (epsilon), __FILE__, __LINE__)

static inline void _assert_near(double a, double b, double epsilon, const char *file, int line)
{
	if (fabs(a - b) <= epsilon)
		return;
	print_error("%.17g is not %.17g\n", a, b);
	_fail(file, line);
}
