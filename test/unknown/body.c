// SPDX-License-Identifier: Apache-2.0
/*
 * What every entry point of a made-up library ends in: it keeps what it was called with, and gives back what
 * it was asked for.
 */
#include <stdint.h>

#include "body.h"

__attribute__((visibility("default"))) struct unknown_last unknown_last;

__attribute__((visibility("hidden"))) int body(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
					       uint64_t f, uint64_t g, uint64_t h, uint64_t i);
int body(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h,
	 uint64_t i)
{
	unknown_last = (struct unknown_last){ { a, b, c, d, e, f, g, h, i }, unknown_last.calls + 1 };
	return (int)(a & 3);
}
