// SPDX-License-Identifier: Apache-2.0
/* Pages of many hosts at once, by libcurl. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "hosts/protocol.h"

struct fetcher;

struct fetcher_ops {
	/* A page, whole. Negative: nobody wants it any more. */
	int (*page)(uint32_t host, uint32_t path, const char *data, size_t n, void *userdata);
	/* All pages of a host's round have come, or the rest will not; then @why says why, else "". */
	int (*end)(uint32_t host, const char *why, void *userdata);
};

/* @begin outlives it. -ENOMEM, -EBADMSG. */
int fetcher_new(const struct hosts_begin *begin, const struct fetcher_ops *ops, void *userdata,
		struct fetcher **ret_fetcher);
void fetcher_free(struct fetcher *fetcher);
DEFINE_CLEANUP(struct fetcher *, fetcher_free, fetcher_freep)
/* Asks those hosts that are not being asked. -ENOMEM. */
int fetcher_round(struct fetcher *fetcher, const struct hosts_round *round);
/* Goes on until @fd is readable, or for this time. -errno of the functions above. */
int fetcher_wait(struct fetcher *fetcher, int fd, int timeout_ms);
