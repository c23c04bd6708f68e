// SPDX-License-Identifier: Apache-2.0
/*
 * The connections of the HTTP server: how many there are, what each is waiting for, and which one gives way
 * when there are enough. A connection is born in the main loop, lives and is closed on the HTTP thread; the
 * lock here orders the two, and the table is their queue.
 *
 *            accepted    given to libmicrohttpd    first line      all of the request     answered
 *   main loop -> HANDED -> TAKEN -> FRESH ----------> REQUEST ---------> REPLY ------------> IDLE -> REQUEST
 *   ...
 *
 * Invariants
 *  1. At most `max` connections are open and not told to go; at most `max` + CONNS_LEAVING exist, those
 *     that leave included.
 *  2. A descriptor is shut down by us only under the lock and only in the states from FRESH on:
 *     libmicrohttpd closes it after conns_closed(), so its number cannot have been given to something else in
 *     between.
 *  3. Who gives way: the one that has waited longest for its request to be complete; where none is
 *     incomplete, the one that has gone longest without progress. Each may first have CONNS_GRACE_NS, so that
 *     a flood cannot turn all of the table over between a scraper's connect() and its request; and while
 *     fewer than half are incomplete these have CONNS_PATIENCE_NS, so that those who sit on their answers do
 *     not push out one who is about to ask.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

enum { CONNS_LEAVING = 32 };
#define CONNS_GRACE_NS (10 * NSEC_PER_MSEC)
#define CONNS_PATIENCE_NS (250 * NSEC_PER_MSEC)

enum conn_state { CONN_FREE, CONN_HANDED, CONN_TAKEN, CONN_FRESH, CONN_REQUEST, CONN_REPLY, CONN_IDLE };

struct conn {
	int fd;
	enum conn_state state;
	bool local;
	bool leaving; /* was shut down by us */
	int64_t since_ns; /* in this state; monotonic */
	const void *page; /* cached page that is being sent, for conns_drop_page() */
	/* The request at hand; of the HTTP thread alone. */
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
/* Closes what is still HANDED; all others must have been closed. */
void conns_done(struct conns *conns);

/* Makes room for one connection. 0: there is room; else nanoseconds after which to ask again. */
int64_t conns_room(struct conns *conns);
/* One connection gives way if there is any to spare: the process is out of descriptors. */
void conns_evict_one(struct conns *conns);
/*
 * Enters an accepted socket, for the HTTP thread to take; the descriptor is the table's. False when full:
 * still the caller's.
 */
bool conns_add(struct conns *conns, int fd, bool local);

/* The HTTP thread takes the one that was handed first, to give it to libmicrohttpd. NULL: none. */
struct conn *conns_take(struct conns *conns);
/* libmicrohttpd begins to serve this descriptor: TAKEN becomes FRESH. NULL: there is none such. */
struct conn *conns_started(struct conns *conns, int fd);
/*
 * libmicrohttpd has closed what it was given without ever serving it: @only, or all, if TAKEN still. The
 * slots are free after.
 */
void conns_lost(struct conns *conns, const struct conn *only);
void conns_enter(struct conns *conns, struct conn *conn, enum conn_state state, const void *page);
/* Has never had a whole request, and was not told to go by us. */
bool conns_unanswered(struct conns *conns, const struct conn *conn);
/* libmicrohttpd is about to close the descriptor. The slot is free after. */
void conns_closed(struct conns *conns, struct conn *conn);
/* Every connection that still reads @page gives way. */
void conns_drop_page(struct conns *conns, const void *page);

/* Ever accepted, ever told to go, and open without having been told to go. */
void conns_stats(struct conns *conns, uint64_t *ret_accepted, uint64_t *ret_evicted, unsigned *ret_open);
