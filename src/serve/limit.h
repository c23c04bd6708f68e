// SPDX-License-Identifier: Apache-2.0
/*
 * How often each client may ask: one request each interval, and a burst of several at once. Clients are told
 * apart by a number for where they are. Of those that have a full burst again nothing is kept; a client whose
 * place another one takes begins anew, so that many of them make the limit looser and never one stricter.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { LIMIT_CLIENTS = 1024 };

struct limit {
	struct {
		uint64_t client;
		int64_t full_ns; /* when its burst will be a full one again */
	} rows[LIMIT_CLIENTS];
};

/* Whether one more request of @client may be answered now; if so, it is counted. */
bool limit_take(struct limit *limit, uint64_t client, int64_t now_ns, int64_t interval_ns, unsigned burst);
