// SPDX-License-Identifier: Apache-2.0
/*
 * Handles requests on the HTTP thread: finds the route, checks method and access, and replies from the cache
 * or renders. Private to src/serve.
 */
#pragma once

#include <microhttpd.h>
#include <stdatomic.h>

#include "serve/conns.h"
#include "serve/http.h"
#include "serve/listener.h"
#include "serve/pages.h"
#include "serve/stream.h"

enum { HTTP_LISTENERS = 8 };

struct limit;
struct verify;

struct http {
	struct http_config config;
	char *hosts; /* config.hosts */
	sd_event *event;
	pthread_t thread;
	bool running; /* the thread has been started */
	atomic_bool stop;
	int wake_fd; /* eventfd: a connection was handed over, or the thread must stop */
	struct MHD_Daemon *daemon;
	int daemon_fd; /* readable when the daemon must run */
	struct conns conns;
	struct pages pages;
	struct streams streams;
	struct listener *listeners[HTTP_LISTENERS];
	unsigned n_listeners;
	atomic_uint_fast64_t requests, encodings, refused[HTTP_REFUSALS];
	bool has_tls; /* never changes */
	struct access *access; /* the HTTP thread's; NULL: none */
	_Atomic(struct access *) next_access; /* for the HTTP thread to take; NULL: none */
	struct verify *verify;
	struct limit *limit; /* NULL: there is none */
};

/* Content-Type of all our own messages. */
extern const char http_plain_text[];

/* The current page of a route without variants, as a client gets it. Borrowed. -ENOMEM, or the handler's. */
int request_page(struct http *http, const struct http_route *route, struct page **ret_page);

/* libmicrohttpd's access handler: @userdata is the struct http, *@context the struct conn. */
enum MHD_Result request_handle(void *userdata, struct MHD_Connection *connection, const char *url,
			       const char *method, const char *version, const char *upload,
			       size_t *upload_size, void **context);
