// SPDX-License-Identifier: Apache-2.0
/* The snapshots of a recording, one after the other, and how long each is shown. */
#pragma once

#include "store/walk.h"

struct film {
	struct store_walk walk;
	double speed; /* times as fast as it was */
	int64_t before_ns; /* when the last one was, since boot; 0: there was none */
};

void film_begin(struct film *film, struct store_reader *reader, int64_t since_ns, double speed);
/*
 * 1: *ret_snapshot is the caller's (restored_free()), to be shown *ret_pause_ns after the one before; what
 * was not recorded is passed over. 0: there is none; -errno.
 */
int film_next(struct film *film, struct snapshot **ret_snapshot, int64_t *ret_pause_ns);
