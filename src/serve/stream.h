// SPDX-License-Identifier: Apache-2.0
/*
 * Server-Sent Events: viewers say which pages they look at (?pages=gpus,node), and are told what changes in
 * them (delta.h). A page is asked for, and its changes found, once a round for all of its viewers.
 *
 * Invariants
 *  1. Rounds take at most 2 % of a core: after one that took a while there is none for STREAM_REST
 *     times that while, however many viewers come or go.
 *  2. Events lie in memory once, for all viewers. A viewer is closed, and counted, when it
 *     has STREAM_QUEUE of them that it has not read, or one, while all together are longer than
 *     http_config.stream_bytes; its browser comes again.
 *  3. At most half of the connections are viewers, and never more than STREAM_VIEWERS: others are told
 *     503, and ask for the pages themselves.
 *  4. A viewer whose pages do not change is sent a sign of life each STREAM_BEAT_NS.
 *
 * All of it is on the HTTP thread.
 */
#pragma once

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "serve/conns.h"

struct http;
struct http_route;
struct stream_viewer;

enum {
	STREAM_VIEWERS = 64,
	STREAM_QUEUE = 8,
	STREAM_PAGES_MAX = 4, /* of a viewer: a round does not fill its queue */
	STREAM_BYTES = 32 << 20, /* http_config.stream_bytes unless given */
	STREAM_TOPICS = 64, /* routes that can be looked at: the first ones */
	STREAM_REST = 49, /* a round's time, and 49 times that without one: 2 % */
	STREAM_ROUND_MS = 100, /* how often it is looked for news */
};
#define STREAM_BEAT_NS (2 * NSEC_PER_SEC)

/* A page that somebody looks at. */
struct stream_topic {
	struct strbuf text; /* as viewers have it; empty: not yet */
	uint64_t generation;
	unsigned viewers;
	bool absent; /* viewers have been told that there is none */
};

struct streams {
	struct stream_viewer *viewers;
	unsigned n;
	atomic_uint open; /* the same, for other threads */
	struct stream_topic topics[STREAM_TOPICS];
	size_t bytes; /* of events that are still to be read */
	int64_t next_ns; /* of the next round, at the earliest */
	atomic_uint_fast64_t dropped;
};

/* Pages whose names in ?pages= are their paths without this. */
#define STREAM_PAGES "/api/v1/"

/*
 * Answers a request for events of @pages: queues a response that does not end. Returns NULL, or what is
 * wrong, as one line of text with the status in *ret_status.
 */
const char *streams_open(struct http *http, struct MHD_Connection *connection, struct conn *conn,
			 const char *pages, unsigned *ret_status, enum MHD_Result *ret_queued);
/* Sends viewers what is new. To be called after each round of libmicrohttpd. */
void streams_round(struct http *http);
/* Ends all of them, before libmicrohttpd is stopped. */
void streams_end(struct http *http);
