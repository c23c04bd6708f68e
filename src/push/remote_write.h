// SPDX-License-Identifier: Apache-2.0
/*
 * The kind `remote_write`: Prometheus' remote write, 1.0 and 2.0 (remote_write.proto), packed by Snappy.
 *
 * A series that was on the page before and is no more gets a stale marker, and so do all when the agent ends:
 * a NaN of its own, by which a server knows that there is no value any more. Pages that are not of a later
 * millisecond than the one before are refused, so that no server sees samples out of order.
 *
 * A server that does not take 2.0 (status 415, or no word of what it has written) is sent 1.0, what waits
 * included, for as long as the process lives.
 */
#pragma once

#include "push/kind.h"

#define STALE_NAN_BITS UINT64_C(0x7ff0000000000002)

enum { REMOTE_WRITE_1, REMOTE_WRITE_2 }; /* struct batch's format */

extern const struct push_kind remote_write_kind;

/* A batch of 2.0 as one of 1.0. -EBADMSG: it is none; -ENOMEM. */
int remote_write_convert(const struct batch *batch, struct batch *ret_batch);
