// SPDX-License-Identifier: Apache-2.0
/*
 * Sends figures as DogStatsD's datagrams (statsd.address), by the thread of the event loop: a datagram that
 * the system does not take at once is lost and counted, so nobody is waited for. docs/statsd.md.
 */
#pragma once

#include "base/macro.h"
#include "config/options.h"
#include "model/model.h"

struct statsd;

/* 0 and NULL if nothing is to be sent. -EINVAL: statsd.address is no address. -ENOMEM. */
int statsd_new(const struct options *options, struct statsd **ret_statsd);
void statsd_free(struct statsd *statsd);
DEFINE_CLEANUP(struct statsd *, statsd_free, statsd_freep)

/* Sends the snapshot when it is time. */
void statsd_tick(struct statsd *statsd, const struct snapshot *snapshot, struct model *model);
/* Why nothing is sent; "": it is. Borrowed until the next tick. */
const char *statsd_error(const struct statsd *statsd);
