// SPDX-License-Identifier: Apache-2.0
/*
 * src/serve has the network interfaces: HTTP (http.h), atop's protocol (atop_server.h), and the command
 * line's side of the control socket (client.h). The content of answers comes through function pointers; this
 * folder does not depend on model or views.
 *
 * HTTP is parsed by libmicrohttpd, on a thread of our own. The main loop owns the listening sockets, accepts
 * connections and hands them over, so that we can limit their number.
 *
 * Invariants
 *  1. A page is rendered at most once per generation and variant, then served from memory. A slow or stuck
 *     client costs one connection (16 KiB and the kernel's buffers), and no rendering.
 *  2. At the limit, the connection that has waited longest for a complete request is closed (conns.h): a new
 *     client waits only milliseconds.
 *  3. Old pages exist only while slow clients read them, and only a few of them (pages.h).
 *  4. No request has a body, and one that announces a body is refused before libmicrohttpd parses it: 0.9.75
 *     takes half a minute of CPU for 16 KiB of a chunk's extension.
 *  5. What a filter leaves of a page is a copy: all of them together have at most PAGES_COPIES_BYTES, and
 *     before that the readers of the oldest are closed.
 *  6. A page is encoded at most once per encoding, when the first client takes it.
 *  7. Handlers run on the HTTP thread, one at a time; every other function of this header belongs to the main
 *     loop.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/strbuf.h"
#include "serve/access.h"

/* HEAD is allowed with GET, unless the route's manner says that other methods are refused. */
enum http_method {
	HTTP_GET = 1 << 0,
	HTTP_POST = 1 << 1,
	HTTP_HEAD = 1 << 2, /* of a request; in a route GET stands for it */
	HTTP_OTHER = 1 << 3,
	HTTP_ANY = HTTP_GET | HTTP_POST | HTTP_OTHER,
};

/* The length of a text: of a name of Kubernetes, which are the longest, with its NUL. */
enum { HTTP_NUMBERS = 12, HTTP_TEXT_MAX = 256 };

struct http_request {
	enum http_method method;
	const char *path;
	const char *accept; /* Accept header or NULL */
	const char *accept_encoding; /* the same */
	bool local; /* received over the UNIX socket */
	/* Who asks, as the configuration names them, or which process of this machine; "": unknown. */
	char who[ACCESS_NAME_MAX];
	int variant; /* what the route's variant() returned */
	int64_t numbers[HTTP_NUMBERS]; /* what the manner's numbers() made of arguments; else 0 */
	char text[HTTP_TEXT_MAX]; /* and its text(); else "" */
	/* Value of a query argument, NULL if absent. Valid during the call. */
	const char *(*argument)(const struct http_request *request, const char *name);
	void *priv;
};

/* How old a reply's data are: headers X-Gpusonde-State, -Age and -Time (seconds since 1970). */
struct http_age {
	char state[16]; /* "": no such headers */
	double age_seconds;
	int64_t real_ns; /* when the data were read; 0: never, and then without the last two */
};

struct http_reply {
	unsigned status; /* default 200 */
	const char *content_type; /* static string */
	/*
	 * Static strings, or NULL: Content-Encoding; ETag: then the page may be kept, and be asked for by it.
	 */
	const char *encoding, *tag;
	struct http_age age;
	struct strbuf body;
};

struct http_header {
	const char *name, *value;
};

/* What is different about pages that people or other programs know otherwise. May be NULL in a route. */
struct http_manner {
	/*
	 * Plain text of a 405, without a header Allow, for every method that the route does not have, HEAD
	 * included. NULL: as other pages.
	 */
	const char *method_refused;
	const char *failed; /* plain text of a 500; NULL: as other pages */
	bool ignores_body; /* a body that is sent is not read, and changes no reply; others refuse it: 413 */
	/* Cached pages of status 200 are encoded (encoding.h) for who takes that; not a filter's copies. */
	bool encodes;
	bool stream; /* where http_config.streams is set, Server-Sent Events of other pages (stream.h) */
	const struct http_header *headers; /* of all of its replies; ends with name NULL; NULL: none */
	/* A cached page is made again after so long, even in the same generation; 0: it is not. */
	int64_t max_age_ns;
	/*
	 * What the handler needs of the arguments, as numbers. Returns whether they are right, else @reply
	 * says what they must be. May be NULL.
	 */
	bool (*numbers)(const struct http_request *request, int64_t ret_numbers[static HTTP_NUMBERS],
			struct http_reply *reply);
	/* The same for one that is a text, after it. May be NULL. */
	bool (*text)(const struct http_request *request, char ret_text[static HTTP_TEXT_MAX],
		     struct http_reply *reply);
	/* The reply if the route's variant() returned -1; NULL: the route's handle(). */
	int (*refuse)(const struct http_request *request, struct http_reply *reply, void *userdata);
	/*
	 * Applied to a finished page of status 200: appends to @out what this request asked for. Returns
	 * whether it did, else the page is sent as it is; or -errno. May be NULL.
	 */
	int (*filter)(const struct http_request *request, const struct strbuf *page, struct strbuf *out);
};

struct http_route {
	const char *path; /* exact */
	unsigned methods; /* enum http_method bits */
	/* What who asks must have. Over the UNIX socket everybody has all of them. */
	enum access_right right;
	/*
	 * Index of the cached page for this request, below HTTP_VARIANTS; -1: do not cache. NULL: variant 0.
	 */
	int (*variant)(const struct http_request *request, void *userdata);
	/* Fills the reply, on the HTTP thread. A non-zero errno results in a 500 with its text. */
	int (*handle)(const struct http_request *request, struct http_reply *reply, void *userdata);
	const struct http_manner *manner;
};

/* Another name of a route, where listeners have other names (http_listen_renamed_fd). */
struct http_rename {
	const char *path, *route;
};

enum { HTTP_VARIANTS = 4 };

struct http_config {
	const struct http_route *routes; /* ends with path NULL */
	const struct http_rename *renames; /* ends with path NULL; NULL: none */
	void *userdata;
	/* Changes whenever cached pages are outdated (sequence number of the newest snapshot). Any thread. */
	uint64_t (*generation)(void *userdata);
	bool streams;
	size_t stream_bytes; /* of events that viewers have not read yet (stream.h); default STREAM_BYTES */
	unsigned max_connections; /* default 128 */
	unsigned timeout_s; /* idle connections, default 30 */
	void (*round)(void *userdata); /* called on the HTTP thread after each of its rounds; may be NULL */
	const char *hosts; /* names that Host headers may have (host.h); copied; NULL: "" */
	/*
	 * Who may ask over TCP for what, and TLS for all of these connections; a reference is taken. NULL:
	 * everybody for all but control.
	 */
	struct access *access;
};

/* Requests that may not be answered, by status: 401, 403 and 429. */
enum http_refusal { HTTP_REFUSED_UNKNOWN, HTTP_REFUSED_FORBIDDEN, HTTP_REFUSED_TOO_OFTEN, HTTP_REFUSALS };

struct http_stats {
	uint64_t requests, encodings, evicted, accepted, streams_dropped, refused[HTTP_REFUSALS];
	unsigned connections, streams;
};

struct http;
int http_new(sd_event *event, const struct http_config *config, struct http **ret_http);
/* Takes at most a second, whatever clients do, and the one password that is being verified. */
void http_free(struct http *http);
/* Serves the connections to a listening TCP socket, and takes ownership, also on failure. */
int http_listen_fd(struct http *http, int fd);
/* The same; its clients find pages by the names of http_config.renames first. */
int http_listen_renamed_fd(struct http *http, int fd);
/*
 * Listens on a UNIX stream socket with this mode; a stale socket file is replaced, a live one is -EADDRINUSE.
 */
int http_listen_unix(struct http *http, const char *path, unsigned mode);
/* Stops listening on all TCP addresses (reload); open connections and the UNIX socket are not affected. */
void http_unlisten_tcp(struct http *http);
/* Has the HTTP thread go through a round, though there be nothing to do. */
void http_wake(struct http *http);
/*
 * From now on this one, of which a reference is taken. -ENOTSUP: one of the two has TLS and the other has
 * not, which needs another server.
 */
int http_set_access(struct http *http, struct access *access);
void http_stats(struct http *http, struct http_stats *ret_stats);
