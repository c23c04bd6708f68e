// SPDX-License-Identifier: Apache-2.0
#include "samples/native.h"

#include <math.h>

void native_histogram_make(const uint64_t *within, uint32_t n, int32_t first,
			   struct native_histogram *ret_native, int64_t *deltas)
{
	struct native_histogram native = { .zero_threshold = ldexp(1, 2 * first),
					   .count = within[n - 1],
					   .zero_count = within[0] };
	uint32_t begin = 1;
	uint64_t before = 0;

	while (begin < n && within[begin] == within[0])
		begin++;
	for (uint32_t i = begin; i < n && within[i - 1] < native.count; i++) {
		uint64_t here = within[i] - within[i - 1];

		deltas[native.length++] = (int64_t)(here - before);
		before = here;
	}
	if (native.length > 0)
		native.offset = first + (int32_t)begin;
	*ret_native = native;
}
