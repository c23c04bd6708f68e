// SPDX-License-Identifier: Apache-2.0
#include "serve/limit.h"

#include "base/macro.h"

/* Where a client's row may be. */
enum { WAYS = 8 };

bool limit_take(struct limit *limit, uint64_t client, int64_t now_ns, int64_t interval_ns, unsigned burst)
{
	const uint64_t first = (client * UINT64_C(0x9e3779b97f4a7c15) >> 32) % (LIMIT_CLIENTS / WAYS) * WAYS;
	unsigned row = 0;
	int64_t full_ns;

	for (unsigned i = 0; i < WAYS; i++) {
		if (limit->rows[first + i].client == client && limit->rows[first + i].full_ns) {
			row = i;
			break;
		}
		if (limit->rows[first + i].full_ns < limit->rows[first + row].full_ns)
			row = i;
	}
	full_ns = limit->rows[first + row].client == client ? limit->rows[first + row].full_ns : 0;
	full_ns = MAX(full_ns, now_ns) + interval_ns;
	if (full_ns - now_ns > interval_ns * (int64_t)burst)
		return false;
	limit->rows[first + row].client = client;
	limit->rows[first + row].full_ns = full_ns;
	return true;
}
