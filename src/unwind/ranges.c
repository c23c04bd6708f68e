// SPDX-License-Identifier: Apache-2.0
#include "unwind/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

int ranges_take(struct ranges *ranges, uint32_t n, uint32_t *ret_first)
{
	uint32_t first = 0, i = 0;

	for (; i < ranges->used_n && ranges->used[i].first - first < n; i++)
		first = ranges->used[i].first + ranges->used[i].n;
	if (i == ranges->used_n && (first > ranges->size || n > ranges->size - first))
		return -ENOBUFS;
	if (ranges->used_n == ranges->used_cap) {
		uint32_t cap = MAX(2 * ranges->used_cap, 64U);
		struct range *grown = reallocarray(ranges->used, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		ranges->used = grown;
		ranges->used_cap = cap;
	}
	memmove(&ranges->used[i + 1], &ranges->used[i], (ranges->used_n - i) * sizeof(*ranges->used));
	ranges->used[i] = (struct range){ first, n };
	ranges->used_n++;
	*ret_first = first;
	return 0;
}

void ranges_give(struct ranges *ranges, uint32_t first)
{
	for (uint32_t i = 0; i < ranges->used_n; i++)
		if (ranges->used[i].first == first) {
			ranges->used_n--;
			memmove(&ranges->used[i], &ranges->used[i + 1],
				(ranges->used_n - i) * sizeof(*ranges->used));
			return;
		}
}

void ranges_done(struct ranges *ranges)
{
	free(ranges->used);
	*ranges = (struct ranges){ 0 };
}
