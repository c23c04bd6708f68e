// SPDX-License-Identifier: Apache-2.0
#include "base/heap.h"

#include <malloc.h>

enum { RETURNED_BYTES = 128 << 10 };

void heap_keep_small(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, RETURNED_BYTES);
	mallopt(M_TRIM_THRESHOLD, RETURNED_BYTES);
}
