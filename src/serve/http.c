// SPDX-License-Identifier: Apache-2.0
#include "serve/http.h"

#include <errno.h>
#include <linux/tcp.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fd.h"
#include "serve/address.h"
#include "serve/request.h"

enum {
	DEFAULT_CONNECTIONS = 128,
	DEFAULT_TIMEOUT_S = 30,
	DEFAULT_BODY_BYTES = 64 << 10,
	/* libmicrohttpd's, for one request's line and headers: what does not fit is 414 or 431. */
	REQUEST_BYTES = 16 << 10,
	/* Rendering formats numbers and little else. Only what is touched becomes resident. */
	STACK_BYTES = 512 << 10,
	HANDOVER_MS = 200,
};

static struct conn *conn_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* A request line has come. What this returns is on_request()'s *context. */
static void *on_target(void *userdata, const char *target, struct MHD_Connection *connection)
{
	struct http *http = userdata;
	struct conn *conn = conn_of(connection);

	if (!conn)
		return NULL;
	conns_enter(&http->conns, conn, CONN_REQUEST, NULL);
	conn->begun = false;
	conn->body_bytes = 0;
	/* Unescaped it would end the path early, and name another page than the one asked for. */
	conn->malformed = target && strstr(target, "%00");
	return conn;
}

static void on_completed(void *userdata, struct MHD_Connection *connection, void **context,
			 enum MHD_RequestTerminationCode how)
{
	struct http *http = userdata;
	struct conn *conn = *context;

	(void)connection;
	(void)how;
	if (conn)
		conns_enter(&http->conns, conn, CONN_IDLE, NULL);
}

/*
 * libmicrohttpd hangs up without a word on a first line in which it finds no method and target, and on a client that took too
 * long to send one. Tells such a client what was wrong: one that has sent something and has got nothing.
 */
static void explain_silence(const struct conn *conn)
{
	static const char line[] = "400 bad request: what came in time was not a whole HTTP request\n";
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	char reply[256];
	int n;

	if (getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 || info.tcpi_bytes_received == 0 ||
	    info.tcpi_data_segs_out > 0)
		return;
	n = snprintf(reply, sizeof(reply),
		     "HTTP/1.1 400 Bad Request\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		     "Connection: close\r\n\r\n%s",
		     http_plain_text, strlen(line), line);
	(void)!send(conn->fd, reply, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void on_connection(void *userdata, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct http *http = userdata;
	struct conn *conn = *context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*context = conns_started(
			&http->conns,
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
	} else if (conn) {
		if (conns_unanswered(&http->conns, conn))
			explain_silence(conn);
		conns_closed(&http->conns, conn);
	}
}

static int64_t room(void *userdata)
{
	struct http *http = userdata;

	return conns_room(&http->conns);
}

static void exhausted(void *userdata)
{
	struct http *http = userdata;

	conns_evict_one(&http->conns);
}

static void accepted(int fd, bool local, void *userdata)
{
	struct http *http = userdata;
	struct conn *conn = conns_add(&http->conns, fd, local);
	/* libmicrohttpd keeps an address for limits that we do not use. */
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	if (!conn)
		close(fd);
	else if (MHD_add_connection(http->daemon, fd, &nobody, sizeof(nobody)) != MHD_YES)
		conns_refused(&http->conns, conn); /* it has closed the socket */
}

static const struct listener_ops listener_ops = { .room = room, .accepted = accepted, .exhausted = exhausted };

static int start_daemon(struct http *http)
{
	sigset_t all, before;

	/* The thread inherits the mask: signals are the main loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* Turbo: a new connection is read at once, and explain_silence() finds it still open for sending. */
	http->daemon = MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_TURBO, 0,
		NULL, NULL, request_handle, http, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, http, MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
		MHD_OPTION_CONNECTION_LIMIT, 2 * http->conns.n, MHD_OPTION_CONNECTION_TIMEOUT,
		http->config.timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
		MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return http->daemon ? 0 : -EAGAIN;
}

int http_new(sd_event *event, const struct http_config *config, struct http **ret_http)
{
	struct http *http = calloc(1, sizeof(*http));
	unsigned n_routes = 0;
	int r;

	if (!http)
		return -ENOMEM;
	http->config = *config;
	if (!http->config.max_connections)
		http->config.max_connections = DEFAULT_CONNECTIONS;
	if (!http->config.timeout_s)
		http->config.timeout_s = DEFAULT_TIMEOUT_S;
	if (!http->config.max_body)
		http->config.max_body = DEFAULT_BODY_BYTES;
	while (config->routes[n_routes].path)
		n_routes++;
	http->event = sd_event_ref(event);
	r = conns_init(&http->conns, http->config.max_connections);
	if (r == 0)
		r = pages_init(&http->pages, &http->conns, n_routes);
	if (r == 0)
		r = start_daemon(http);
	if (r < 0) {
		http_free(http);
		return r;
	}
	*ret_http = http;
	return 0;
}

/* When libmicrohttpd ends it frees, without taking its lock, what it was handed and has not begun. Leave it nothing of that. */
static void stop_daemon(struct http *http)
{
	struct timespec pause = { .tv_nsec = NSEC_PER_MSEC };

	for (unsigned i = 0; i < HANDOVER_MS && conns_handing(&http->conns); i++)
		nanosleep(&pause, NULL);
	MHD_stop_daemon(http->daemon);
}

void http_free(struct http *http)
{
	if (!http)
		return;
	http_unlisten(http);
	if (http->daemon)
		stop_daemon(http);
	pages_done(&http->pages);
	conns_done(&http->conns);
	sd_event_unref(http->event);
	free(http);
}

static int listen_on(struct http *http, int fd, const char *path)
{
	struct listener *listener;
	int r;

	if (http->n_listeners == HTTP_LISTENERS) {
		close(fd);
		return -ENOSPC;
	}
	r = listener_new(http->event, fd, path, &listener_ops, http, &listener);
	if (r == 0)
		http->listeners[http->n_listeners++] = listener;
	return r;
}

int http_listen_tcp(struct http *http, const char *address)
{
	struct addresses found;
	unsigned before = http->n_listeners;
	int r, fd;

	r = address_parse(address, &found);
	for (unsigned i = 0; r == 0 && i < found.n; i++) {
		r = listen_tcp(&found.list[i], &fd);
		if (r == 0)
			r = listen_on(http, fd, NULL);
		else if (i > 0 && r != -EADDRINUSE)
			r = 0; /* "localhost" where there is no IPv6 */
		if (i == 0 && found.n > 1 && r == 0)
			found.list[1].in6.sin6_port = htons((uint16_t)listener_port(http->listeners[before]));
	}
	while (r < 0 && http->n_listeners > before)
		listener_free(http->listeners[--http->n_listeners]);
	return r;
}

int http_listen_unix(struct http *http, const char *path, unsigned mode)
{
	int fd, r;

	r = listen_unix(path, mode, &fd);
	if (r < 0)
		return r;
	return listen_on(http, fd, path[0] == '@' ? NULL : path);
}

void http_unlisten(struct http *http)
{
	while (http->n_listeners > 0)
		listener_free(http->listeners[--http->n_listeners]);
}

unsigned http_port(const struct http *http, unsigned n)
{
	for (unsigned i = 0; i < http->n_listeners; i++) {
		unsigned port = listener_port(http->listeners[i]);

		if (port && n-- == 0)
			return port;
	}
	return 0;
}

void http_stats(struct http *http, struct http_stats *ret_stats)
{
	conns_stats(&http->conns, &ret_stats->accepted, &ret_stats->evicted, &ret_stats->connections);
	ret_stats->requests = atomic_load_explicit(&http->requests, memory_order_relaxed);
}
