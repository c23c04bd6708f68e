// SPDX-License-Identifier: Apache-2.0
/*
 * src/serve answers others: HTTP (http.h), atop's protocol (atop_server.h), and the command line's end of the
 * control socket (client.h). What is in the answers comes through function pointers; this folder knows no
 * model and no view.
 *
 * HTTP is parsed by libmicrohttpd, on one thread of its own; listening sockets are the main loop's, which
 * accepts and hands over, so that the number of connections is ours to bound.
 *
 * Invariants
 *  1. A page is rendered at most once per generation and variant, then served from memory. A slow or stuck
 *     client costs one connection (16 KiB and what the kernel buffers), and no rendering.
 *  2. At the bound, the connection that has waited longest for a complete request gives way (conns.h): a
 *     newcomer waits milliseconds, whatever the others do.
 *  3. Old pages live on in their slow readers only, at most a handful of them (pages.h).
 *  4. Handlers run on the HTTP thread, one at a time; every other function of this header belongs to the
 *     main loop.
 */
#pragma once

#include <systemd/sd-event.h>

#include "base/strbuf.h"

enum http_method { HTTP_GET = 1 << 0, HTTP_POST = 1 << 1 }; /* HEAD goes with GET */

struct http_request {
	enum http_method method;
	const char *path;
	const char *accept; /* Accept header or NULL */
	bool local; /* came over the UNIX socket */
	/* Value of a query argument, NULL absent. Valid during the call. */
	const char *(*argument)(const struct http_request *request, const char *name);
	void *priv;
};

struct http_reply {
	unsigned status; /* default 200 */
	const char *content_type; /* static string */
	struct strbuf body;
};

struct http_route {
	const char *path; /* exact */
	unsigned methods; /* enum http_method bits */
	bool local_only; /* only over the UNIX socket, else 403 */
	/*
	 * Which of at most HTTP_VARIANTS cached pages this request wants; -1: do not cache. NULL: variant 0.
	 */
	int (*variant)(const struct http_request *request, void *userdata);
	/* Fills the reply. On the HTTP thread. Non-zero errno makes a 500 that says so. */
	int (*handle)(const struct http_request *request, struct http_reply *reply, void *userdata);
};

enum { HTTP_VARIANTS = 4 };

struct http_config {
	const struct http_route *routes; /* ends with path NULL */
	void *userdata;
	/*
	 * Changes whenever cached pages are out of date (sequence number of the newest snapshot). Any thread.
	 */
	uint64_t (*generation)(void *userdata);
	unsigned max_connections; /* default 128 */
	unsigned timeout_s; /* idle connections, default 30 */
	size_t max_body; /* request body, default 64 KiB; more is 413 */
};

struct http_stats {
	uint64_t requests, evicted, accepted;
	unsigned connections;
};

struct http;
int http_new(sd_event *event, const struct http_config *config, struct http **ret_http);
/* Finishes within a second whatever clients do. */
void http_free(struct http *http);
/*
 * Listen on "ADDR:PORT" ("[::1]:9470", ":9470", "localhost:0"); may be called again for more. -EADDRINUSE
 * etc.
 */
int http_listen_tcp(struct http *http, const char *address);
/*
 * Listen on a UNIX stream socket with this mode; a stale socket file is replaced, a live one is -EADDRINUSE.
 */
int http_listen_unix(struct http *http, const char *path, unsigned mode);
/* Stop listening on every TCP address (reload); open connections go on, and so does the UNIX socket. */
void http_unlisten_tcp(struct http *http);
/* Port actually bound of the n-th TCP listener; 0 none. */
unsigned http_port(const struct http *http, unsigned n);
void http_stats(struct http *http, struct http_stats *ret_stats);
