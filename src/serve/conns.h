// SPDX-License-Identifier: Apache-2.0
/*
 * The connections of the HTTP server: their number, the state of each, and which one is closed when there are
 * too many. A connection is created in the main loop, and served and closed on the HTTP thread; the lock here
 * synchronises the two, and the table is their queue.
 *
 *            accepted    given to libmicrohttpd    first line      all of the request     answered
 *   main loop -> HANDED -> TAKEN -> FRESH ----------> REQUEST ---------> REPLY ------------> IDLE -> REQUEST
 *   ...
 *
 * Invariants
 *  1. At most `max` connections are open and not being closed by us; at most `max` + CONNS_LEAVING exist,
 *     including those being closed.
 *  2. A descriptor is shut down by us only under the lock and only in the states from FRESH on: libmicrohttpd
 *     closes it after conns_closed(), so its number cannot have been reused in between.
 *  3. When a connection must be closed, it is the one that has waited longest for its request to be complete;
 *     if none is incomplete, the one that has gone longest without progress. Each has CONNS_GRACE_NS first,
 *     so that a flood cannot replace the whole table between a scraper's connect() and its request. While
 *     fewer than half are incomplete, these have CONNS_PATIENCE_NS, so that clients that do not read their
 *     answers do not displace a client that is about to send a request.
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

/* Over which kind of listening socket it came. */
enum conn_origin { CONN_TCP, CONN_LOCAL, CONN_RENAMED };

struct access;

struct conn {
	int fd;
	enum conn_state state;
	enum conn_origin origin;
	bool leaving; /* was shut down by us */
	int64_t since_ns; /* in this state; monotonic */
	const void *page; /* cached page being sent, for conns_drop_page() */
	/* The current request; only used by the HTTP thread. */
	bool begun; /* its headers have been received */
	bool malformed;
	bool counted; /* for the limit of its client */
	/* Of the connection, by the HTTP thread: by what its TLS session began; NULL: none. A reference. */
	struct access *access;
	bool said_hello; /* it has begun to speak TLS */
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
/* Closes connections in state HANDED; all others must have been closed. */
void conns_done(struct conns *conns);

/* Frees a slot for one connection. 0: a slot is free; else the nanoseconds to wait before trying again. */
int64_t conns_room(struct conns *conns);
/* Closes one connection, if any may be closed, since the process has no free descriptors. */
void conns_evict_one(struct conns *conns);
/*
 * Adds an accepted socket, for the HTTP thread to take, and owns its descriptor. False if the table is full:
 * the caller still owns it.
 */
bool conns_add(struct conns *conns, int fd, enum conn_origin origin);

/* Returns the oldest HANDED connection, for the HTTP thread to give it to libmicrohttpd. NULL: none. */
struct conn *conns_take(struct conns *conns);
/* libmicrohttpd starts to serve this descriptor: TAKEN becomes FRESH. NULL: unknown descriptor. */
struct conn *conns_started(struct conns *conns, int fd);
/*
 * libmicrohttpd has closed connections without serving them: @only, or all, if still TAKEN. Frees their
 * slots.
 */
void conns_lost(struct conns *conns, const struct conn *only);
void conns_enter(struct conns *conns, struct conn *conn, enum conn_state state, const void *page);
/* Has never sent a complete request, and is not being closed by us. */
bool conns_unanswered(struct conns *conns, const struct conn *conn);
/* libmicrohttpd is about to close the descriptor. Frees the slot. */
void conns_closed(struct conns *conns, struct conn *conn);
/* Closes every connection that still reads @page. */
void conns_drop_page(struct conns *conns, const void *page);

/* Total accepted, total closed by us, and currently open ones that are not being closed. */
void conns_stats(struct conns *conns, uint64_t *ret_accepted, uint64_t *ret_evicted, unsigned *ret_open);
