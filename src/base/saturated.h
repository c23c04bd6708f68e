// SPDX-License-Identifier: Apache-2.0
/*
 * Sums and products that saturate at UINT64_MAX instead of wrapping, for numbers chosen by programs.
 */
#pragma once

#include <stdint.h>

static inline uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t multiply_saturated(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
