// SPDX-License-Identifier: Apache-2.0
/*
 * A real HTTP server on an event loop in a thread of its own, and raw sockets to treat it badly with.
 * Whatever waits here waits for a condition, up to PATIENCE_MS.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "serve/http.h"

enum {
	PATIENCE_MS = 20000,
	LONG_TEXT_BYTES = 16 << 10, /* of page_bytes: with each generation much of /api/v1/numbers changes */
	STREAM_UNREAD_BYTES = 256 << 10, /* http_config.stream_bytes */
};
#define PART_AGE_NS (300 * NSEC_PER_MSEC)

struct server {
	struct http *http;
	sd_event *event;
	int control_fd;
	atomic_bool unlistened;
	pthread_t thread;
	int listen_fd; /* the server's, for options that its connections inherit */
	unsigned port;
	char folder[64]; /* temporary; its socket is "s" */
	char socket[80];
	atomic_uint_fast64_t generation;
	atomic_uint renders; /* calls of the handlers of /page, /big, /part and /packed */
	atomic_size_t page_bytes;
};

/*
 * Routes: /page cached, two variants by ?v=; /big the same in page_bytes; /echo uncached; /fail; /empty;
 * /do POST, local only; /part with a manner: cached, its first ?keep= bytes are sent, made again after
 * PART_AGE_NS; /sour the same, and fails; /packed encoded, with page_bytes, two variants by ?v=, but not its
 * first ?keep= bytes; /packed/missing a 404 of this manner; /any takes every method;
 * /api/v1/numbers, JSON; /api/v1/missing, fourth and fifth, 404; /api/v1/broken, no JSON; /api/v1/stream,
 * events of these.
 */
struct server *server_start(unsigned max_connections);
void server_stop(struct server *server);
/* http_unlisten_tcp() on the loop's thread. */
void server_unlisten(struct server *server);

/* Connected sockets, or a failed test. */
int dial(const struct server *server);
int dial_unix(const struct server *server);
/* Connects this UNIX socket. */
void dial_with(const struct server *server, int fd);
void put(int fd, const char *text);
/* Sends what the kernel takes at once, and ignores errors: for clients that may be hung up on. */
void put_try(int fd, const char *text);
/* Until the other side closes (or resets); false: it did not. */
bool read_to_end(int fd, struct strbuf *to);
/*
 * One reply with its body, by Content-Length; `head` for one without body. False: hung up before it was
 * whole.
 */
bool read_reply(int fd, bool head, struct strbuf *to);
/* True when the other side has closed or reset within this time. */
bool hung_up(int fd, int timeout_ms);
unsigned status_of(const struct strbuf *reply);
const char *body_of(const struct strbuf *reply);
/* Sends one request on a connection of its own; the reply's status. */
unsigned ask(const struct server *server, const char *request, struct strbuf *reply);

unsigned count_fds(void);
void sleep_ms(unsigned ms);
