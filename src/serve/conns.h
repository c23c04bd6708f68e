// SPDX-License-Identifier: Apache-2.0
/*
 * The connections of the HTTP server: how many there are, what each is waiting for, and which one gives way when there are
 * enough. A connection is born in the main loop, lives and is closed on libmicrohttpd's thread; the lock here orders the two.
 *
 *              handed over      first bytes of a request     all of it          answered
 *   (accepted) ----> HANDED ----> FRESH ----> REQUEST ----> REPLY ----> IDLE ----> REQUEST ...
 *
 * Invariants
 *  1. At most `max` connections are open and not told to go; at most `max` + CONNS_LEAVING exist, those that leave included.
 *  2. A descriptor is shut down by us only under the lock and only in a state after HANDED: libmicrohttpd closes it after
 *     conns_closed(), so its number cannot have been given to something else in between.
 *  3. Who gives way: the one that has waited longest for its request to be complete; where none is incomplete, the one
 *     that has gone longest without progress. Each may first have CONNS_GRACE_NS, so that a flood cannot turn all of the
 *     table over between a scraper's connect() and its request; and while fewer than half are incomplete these have
 *     CONNS_PATIENCE_NS, so that those who sit on their answers do not push out one who is about to ask.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

enum { CONNS_LEAVING = 32 };
#define CONNS_GRACE_NS (10 * NSEC_PER_MSEC)
#define CONNS_PATIENCE_NS (250 * NSEC_PER_MSEC)

enum conn_state { CONN_FREE, CONN_HANDED, CONN_FRESH, CONN_REQUEST, CONN_REPLY, CONN_IDLE };

struct conn {
	int fd;
	enum conn_state state;
	bool local;
	bool leaving; /* was shut down by us */
	int64_t since_ns; /* in this state; monotonic */
	const void *page; /* cached page that is being sent, for conns_drop_page() */
	/* The request at hand; of libmicrohttpd's thread alone. */
	bool begun; /* its headers are known */
	bool malformed;
	uint64_t body_bytes;
};

struct conns {
	pthread_mutex_t lock;
	struct conn *slots;
	unsigned n;
	unsigned max;
	uint64_t accepted, evicted;
};

/* -ENOMEM. */
int conns_init(struct conns *conns, unsigned max);
void conns_done(struct conns *conns);

/* Makes room for one connection. 0: there is room; else nanoseconds after which to ask again. */
int64_t conns_room(struct conns *conns);
/* One connection gives way if there is any to spare: the process is out of descriptors. */
void conns_evict_one(struct conns *conns);
/* Enters an accepted socket, before libmicrohttpd gets it. NULL when full, which conns_room() has excluded. */
struct conn *conns_add(struct conns *conns, int fd, bool local);
/* libmicrohttpd did not take it. */
void conns_refused(struct conns *conns, struct conn *conn);

/* libmicrohttpd begins to serve this descriptor. NULL only if it never went through conns_add(). */
struct conn *conns_started(struct conns *conns, int fd);
void conns_enter(struct conns *conns, struct conn *conn, enum conn_state state, const void *page);
/* Whether any connection is HANDED. */
bool conns_handing(struct conns *conns);
/* Has never had a whole request, and was not told to go by us. */
bool conns_unanswered(struct conns *conns, const struct conn *conn);
/* libmicrohttpd is about to close the descriptor. The slot is free after. */
void conns_closed(struct conns *conns, struct conn *conn);
/* Every connection that still reads @page gives way. */
void conns_drop_page(struct conns *conns, const void *page);

/* Ever accepted, ever told to go, and open without having been told to go. */
void conns_stats(struct conns *conns, uint64_t *ret_accepted, uint64_t *ret_evicted, unsigned *ret_open);
