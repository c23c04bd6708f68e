// SPDX-License-Identifier: Apache-2.0
#include "serve/http.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <linux/tcp.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/fd.h"
#include "base/thread.h"
#include "serve/address.h"
#include "serve/access.h"
#include "serve/limit.h"
#include "serve/request.h"
#include "serve/tls.h"
#include "serve/verify.h"

enum {
	DEFAULT_CONNECTIONS = 128,
	DEFAULT_TIMEOUT_S = 30,
	/*
	 * libmicrohttpd's memory for a request's line and headers: larger ones are refused with 414 or 431.
	 */
	REQUEST_BYTES = 16 << 10,
	ARGUMENTS_MAX = 32, /* of a query; no page has as many */
	/* Rendering needs little stack; only touched pages become resident. */
	STACK_BYTES = 512 << 10,
	/* Idle connections are checked at least this often. */
	ROUND_MS = 1000,
};

static struct conn *conn_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static int fd_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

/*
 * Whether the target has a zero byte: then more than one zero and blanks are between its first part and
 * "HTTP/". 0.9 terminates both where it has received them; 1.0 refuses such a target itself.
 */
static bool is_cut(const char *target)
{
	size_t length = strlen(target);
	const char *after = target + length + 1;

	/* At most half of the memory for a request, so that what follows is in it. */
	if (strcmp(MHD_get_version(), "1.") >= 0 || length > REQUEST_BYTES / 2)
		return false;
	return strncmp(after + strspn(after, " \t"), "HTTP/", strlen("HTTP/")) != 0;
}

/*
 * libmicrohttpd, which looks for arguments next, needs memory for each, and closes without an answer where
 * there is none. A target with too many loses them; it lies in the connection's own memory.
 */
static bool drop_many_arguments(const char *target)
{
	char *query = strchr(target, '?');
	unsigned n = 1;

	for (const char *p = query; p && *p; p++)
		n += *p == '&';
	if (n <= ARGUMENTS_MAX)
		return false;
	query[1] = '\0';
	return true;
}

/* Called for each request line. The return value is on_request()'s *context. */
static void *on_target(void *userdata, const char *target, struct MHD_Connection *connection)
{
	struct http *http = userdata;
	struct conn *conn = conn_of(connection);

	if (!conn)
		return NULL;
	conns_enter(&http->conns, conn, CONN_REQUEST, NULL);
	conn->begun = false;
	conn->counted = false;
	/* A zero byte would terminate the path, which then names another page. */
	conn->malformed = target && (strstr(target, "%00") || is_cut(target));
	if (target && drop_many_arguments(target))
		conn->malformed = true;
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

static gnutls_session_t session_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	return info ? info->tls_session : NULL;
}

/* GnuTLS calls it when the client has said hello; libmicrohttpd has set the session's pointer. */
static int on_hello(gnutls_session_t session, _unused_ unsigned type, _unused_ unsigned when,
		    _unused_ unsigned incoming, _unused_ const gnutls_datum_t *message)
{
	struct conn *conn = conn_of(gnutls_session_get_ptr(session));

	if (conn)
		conn->said_hello = true;
	return 0;
}

/* With the certificate and the rules of now. False: it may not be served. */
static bool begin_tls(struct http *http, struct MHD_Connection *connection, struct conn *conn)
{
	gnutls_session_t session = session_of(connection);

	if (!access_has_tls(http->access))
		return !session;
	if (!session || tls_begin(session, http->access) < 0)
		return false;
	gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_CLIENT_HELLO, GNUTLS_HOOK_POST,
					   on_hello);
	conn->access = access_ref(http->access);
	return true;
}

/*
 * libmicrohttpd closes the connection without a reply if the first line has no method and target, or is not
 * complete in time. Sends an error to such a client if it has sent something and received nothing.
 */
static void explain_silence(const struct conn *conn)
{
	static const char plain[] = "400 bad request: what came in time was not a whole HTTP request\n";
	static const char secure[] = "400 bad request: this port speaks TLS; use https://\n";
	const char *line = conn->access ? secure : plain;
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	char reply[256];
	int n;

	if (conn->said_hello)
		return;
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
		*context = conns_started(&http->conns, fd_of(connection));
		/* A descriptor that we did not hand over cannot be counted, so it is not served. */
		if (!*context || !begin_tls(http, connection, *context))
			shutdown(fd_of(connection), SHUT_RDWR);
	} else if (conn) {
		struct access *access = conn->access;

		if (conns_unanswered(&http->conns, conn))
			explain_silence(conn);
		conns_closed(&http->conns, conn);
		access_unref(access);
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

static void hand(struct http *http, int fd, enum conn_origin origin)
{
	if (conns_add(&http->conns, fd, origin))
		eventfd_write(http->wake_fd, 1);
	else
		close(fd);
}

static void accepted(int fd, bool local, void *userdata)
{
	hand(userdata, fd, local ? CONN_LOCAL : CONN_TCP);
}

static void accepted_renamed(int fd, _unused_ bool local, void *userdata)
{
	hand(userdata, fd, CONN_RENAMED);
}

static const struct listener_ops listener_ops = { .room = room,
						  .accepted = accepted,
						  .exhausted = exhausted };
static const struct listener_ops renamed_ops = { .room = room,
						 .accepted = accepted_renamed,
						 .exhausted = exhausted };

static void take_handed(struct http *http)
{
	/* libmicrohttpd stores addresses only for limits that we do not use. */
	static const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	struct conn *conn;

	/*
	 * 0.9 calls on_connection() before this returns, 1.0 from the next MHD_run(). A refused connection
	 * has been closed.
	 */
	while ((conn = conns_take(&http->conns))) {
		if (MHD_add_connection(http->daemon, conn->fd, &nobody, sizeof(nobody)) != MHD_YES)
			conns_lost(&http->conns, conn);
	}
}

/* Time to sleep: until connections time out or unused pages are to be freed. */
static int round_ms(struct http *http)
{
	uint64_t accepted, evicted;
	unsigned open;
	MHD_UNSIGNED_LONG_LONG wait_ms;
	bool pages_kept = pages_expire(&http->pages);

	conns_stats(&http->conns, &accepted, &evicted, &open);
	if (MHD_get_timeout(http->daemon, &wait_ms) == MHD_YES &&
	    wait_ms < (http->streams.viewers ? STREAM_ROUND_MS : ROUND_MS))
		return (int)wait_ms;
	if (http->streams.viewers)
		return STREAM_ROUND_MS;
	return open || pages_kept ? ROUND_MS : -1;
}

/* Closes connections let in by the former rules: their clients connect again. */
static void take_access(struct http *http)
{
	struct access *next = atomic_exchange(&http->next_access, NULL);

	if (!next)
		return;
	if (http->access)
		streams_end(http);
	access_unref(http->access);
	http->access = next;
	http->pages.access = next;
	if (next->users && !http->verify && verify_new(http->wake_fd, &http->verify) < 0)
		http->verify = NULL;
	if (next->interval_ns && !http->limit)
		http->limit = calloc(1, sizeof(*http->limit));
}

static void *http_thread(void *userdata)
{
	struct http *http = userdata;
	struct pollfd fds[] = {
		{ .fd = http->daemon_fd, .events = POLLIN },
		{ .fd = http->wake_fd, .events = POLLIN },
	};

	while (!atomic_load(&http->stop)) {
		eventfd_t woken;

		if (poll(fds, ARRAY_SIZE(fds), round_ms(http)) > 0 && fds[1].revents) {
			eventfd_read(http->wake_fd, &woken);
			take_access(http);
			if (http->verify)
				verify_resume(http->verify);
			take_handed(http);
		}
		MHD_run(http->daemon);
		/* 1.0 has no callback for a connection that it failed to start. */
		conns_lost(&http->conns, NULL);
		streams_round(http);
		if (http->config.round)
			http->config.round(http->config.userdata);
	}
	return NULL;
}

static int start_thread(struct http *http)
{
	int r = thread_start(STACK_BYTES, http_thread, http, &http->thread);

	if (r < 0)
		return r;
	http->running = true;
	pthread_setname_np(http->thread, "http");
	return 0;
}

static int no_certificate(_unused_ gnutls_session_t session, _unused_ const gnutls_datum_t *authorities,
			  _unused_ int n, _unused_ const gnutls_pk_algorithm_t *algorithms,
			  _unused_ int algorithms_n, _unused_ gnutls_pcert_st **ret_certificates,
			  _unused_ unsigned *ret_n, _unused_ gnutls_privkey_t *ret_key)
{
	return -1;
}

/*
 * The loop around libmicrohttpd is ours, not its internal thread: in 0.9.75 that one, when exactly 128
 * connections are ready at once, waits for a 129th event before it serves any of them. Turbo: a new
 * connection is read at once, and explain_silence() finds it still open for sending.
 */
static int start_daemon(struct http *http)
{
	const unsigned tls = http->has_tls ? MHD_USE_TLS : 0;
	/* libmicrohttpd wants to know of a certificate; sessions get theirs from begin_tls(). */
	const struct MHD_OptionItem tls_options[] = {
		{ tls ? MHD_OPTION_HTTPS_CERT_CALLBACK : MHD_OPTION_END, 0, (void *)no_certificate },
		{ MHD_OPTION_END, 0, NULL },
	};

	http->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME | tls, 0,
		NULL, NULL, request_handle, http, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, http, MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
		MHD_OPTION_CONNECTION_LIMIT, http->conns.n, MHD_OPTION_CONNECTION_TIMEOUT,
		http->config.timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
		MHD_OPTION_ARRAY, tls_options, MHD_OPTION_END);
	if (!http->daemon)
		return -EAGAIN;
	http->daemon_fd = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	return start_thread(http);
}

int http_new(sd_event *event, const struct http_config *config, struct http **ret_http)
{
	struct http *http = calloc(1, sizeof(*http));
	unsigned n_routes = 0;
	int r;

	if (!http)
		return -ENOMEM;
	http->wake_fd = -1;
	http->config = *config;
	if (!http->config.max_connections)
		http->config.max_connections = DEFAULT_CONNECTIONS;
	if (!http->config.timeout_s)
		http->config.timeout_s = DEFAULT_TIMEOUT_S;
	if (!http->config.stream_bytes)
		http->config.stream_bytes = STREAM_BYTES;
	http->config.hosts = http->hosts = strdup(config->hosts ? config->hosts : "");
	if (!http->hosts) {
		free(http);
		return -ENOMEM;
	}
	while (config->routes[n_routes].path)
		n_routes++;
	http->event = sd_event_ref(event);
	http->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = http->wake_fd < 0 ? -errno : 0;
	if (r == 0)
		r = conns_init(&http->conns, http->config.max_connections);
	if (r == 0)
		r = pages_init(&http->pages, &http->conns, n_routes);
	if (r == 0 && config->access) {
		atomic_store(&http->next_access, access_ref(config->access));
		take_access(http);
	}
	http->has_tls = access_has_tls(config->access);
	if (r == 0)
		r = start_daemon(http);
	if (r < 0) {
		http_free(http);
		return r;
	}
	*ret_http = http;
	return 0;
}

static void unlisten(struct http *http, bool local)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < http->n_listeners; i++) {
		if (local || listener_port(http->listeners[i]))
			listener_free(http->listeners[i]);
		else
			http->listeners[kept++] = http->listeners[i];
	}
	http->n_listeners = kept;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	unlisten(http, true);
	if (http->running) {
		atomic_store(&http->stop, true);
		eventfd_write(http->wake_fd, 1);
		pthread_join(http->thread, NULL);
	}
	if (http->daemon)
		streams_end(http);
	verify_free(http->verify);
	if (http->daemon)
		MHD_stop_daemon(http->daemon);
	if (http->wake_fd >= 0)
		close(http->wake_fd);
	pages_done(&http->pages);
	conns_done(&http->conns);
	free(http->limit);
	access_unref(http->access);
	access_unref(atomic_load(&http->next_access));
	sd_event_unref(http->event);
	free(http->hosts);
	free(http);
}

static int listen_on(struct http *http, int fd, const char *path, const struct listener_ops *ops)
{
	struct listener *listener;
	int r;

	if (http->n_listeners == HTTP_LISTENERS) {
		close(fd);
		return -ENOSPC;
	}
	r = listener_new(http->event, fd, path, ops, http, &listener);
	if (r == 0)
		http->listeners[http->n_listeners++] = listener;
	return r;
}

int http_listen_fd(struct http *http, int fd)
{
	return listen_on(http, fd, NULL, &listener_ops);
}

int http_listen_renamed_fd(struct http *http, int fd)
{
	return listen_on(http, fd, NULL, &renamed_ops);
}

int http_listen_unix(struct http *http, const char *path, unsigned mode)
{
	int fd, r;

	r = listen_unix(path, mode, &fd);
	if (r < 0)
		return r;
	return listen_on(http, fd, path[0] == '@' ? NULL : path, &listener_ops);
}

void http_unlisten_tcp(struct http *http)
{
	unlisten(http, false);
}

void http_wake(struct http *http)
{
	eventfd_write(http->wake_fd, 1);
}

int http_set_access(struct http *http, struct access *access)
{
	if (access_has_tls(access) != http->has_tls)
		return -ENOTSUP;
	access_unref(atomic_exchange(&http->next_access, access_ref(access)));
	http_wake(http);
	return 0;
}

void http_stats(struct http *http, struct http_stats *ret_stats)
{
	conns_stats(&http->conns, &ret_stats->accepted, &ret_stats->evicted, &ret_stats->connections);
	ret_stats->streams = atomic_load(&http->streams.open);
	ret_stats->streams_dropped = atomic_load(&http->streams.dropped);
	ret_stats->requests = atomic_load_explicit(&http->requests, memory_order_relaxed);
	ret_stats->encodings = atomic_load_explicit(&http->encodings, memory_order_relaxed);
	for (unsigned i = 0; i < HTTP_REFUSALS; i++)
		ret_stats->refused[i] = atomic_load_explicit(&http->refused[i], memory_order_relaxed);
}
