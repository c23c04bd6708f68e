// SPDX-License-Identifier: Apache-2.0
#include "serve/request.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "serve/gate.h"
#include "serve/host.h"

const char http_plain_text[] = "text/plain; charset=utf-8";

/* Replies to refused requests: cause and remedy in one line. */
static const struct {
	unsigned status;
	const char *text;
} refusals[] = {
	{ MHD_HTTP_BAD_REQUEST,
	  "400 bad request: a zero byte in the path, Host or Content-Length given twice, or too many "
	  "arguments\n" },
	{ MHD_HTTP_NOT_FOUND, "404 not found: there is no such page; try /metrics\n" },
	{ MHD_HTTP_METHOD_NOT_ALLOWED, "405 method not allowed: see the Allow header\n" },
	{ MHD_HTTP_CONTENT_TOO_LARGE, "413 content too large: no page here takes a body\n" },
	{ MHD_HTTP_SERVICE_UNAVAILABLE,
	  "503 service unavailable: parts of pages that others do not read take all memory for them; ask "
	  "for the whole page, or again\n" },
	{ MHD_HTTP_MISDIRECTED_REQUEST,
	  "421 misdirected request: the Host header has a name that is not this agent's; use an address or "
	  "localhost, or add the name to http.hosts\n" },
};

static bool is_local(const struct conn *conn)
{
	return conn->origin == CONN_LOCAL;
}

static enum MHD_Result queue(struct http *http, struct MHD_Connection *connection, struct conn *conn,
			     const struct page *page)
{
	atomic_fetch_add_explicit(&http->requests, 1, memory_order_relaxed);
	conns_enter(&http->conns, conn, CONN_REPLY, page->slot || page->copy ? page : NULL);
	return MHD_queue_response(connection, page->status, page->response);
}

static enum MHD_Result queue_once(struct http *http, struct MHD_Connection *connection, struct conn *conn,
				  struct page *page)
{
	enum MHD_Result queued = queue(http, connection, conn, page);

	pages_unref(page);
	return queued;
}

/*
 * @allow: value of an Allow header or NULL. MHD_NO closes the connection, if there is no memory for a reply.
 */
static enum MHD_Result refuse(struct http *http, struct MHD_Connection *connection, struct conn *conn,
			      unsigned status, const char *allow)
{
	struct page *page = pages_begin(&http->pages, -1);

	if (!page)
		return MHD_NO;
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (refusals[i].status == status)
			strbuf_adds(&page->body, refusals[i].text);
	}
	if (pages_publish(page, status, http_plain_text, 0) < 0)
		return MHD_NO;
	if (allow && MHD_add_response_header(page->response, MHD_HTTP_HEADER_ALLOW, allow) != MHD_YES) {
		pages_unref(page);
		return MHD_NO;
	}
	return queue_once(http, connection, conn, page);
}

static enum http_refusal refusal_of(unsigned status)
{
	return status == MHD_HTTP_UNAUTHORIZED ? HTTP_REFUSED_UNKNOWN :
	       status == MHD_HTTP_FORBIDDEN    ? HTTP_REFUSED_FORBIDDEN :
						 HTTP_REFUSED_TOO_OFTEN;
}

static enum MHD_Result refuse_at_gate(struct http *http, struct MHD_Connection *connection, struct conn *conn,
				      const struct refusal *refusal)
{
	struct page *page = pages_begin(&http->pages, -1);

	atomic_fetch_add_explicit(&http->refused[refusal_of(refusal->status)], 1, memory_order_relaxed);
	if (!page)
		return MHD_NO;
	strbuf_adds(&page->body, refusal->text);
	if (pages_publish(page, refusal->status, http_plain_text, 0) < 0)
		return MHD_NO;
	if (refusal->header.name)
		MHD_add_response_header(page->response, refusal->header.name, refusal->header.value);
	return queue_once(http, connection, conn, page);
}

/* In the words of another program; like its own server's with an end of line. */
static enum MHD_Result refuse_as(struct http *http, struct MHD_Connection *connection, struct conn *conn,
				 unsigned status, const char *text)
{
	struct page *page = pages_begin(&http->pages, -1);

	if (!page)
		return MHD_NO;
	strbuf_addf(&page->body, "%s\n", text);
	if (pages_publish(page, status, http_plain_text, 0) < 0)
		return MHD_NO;
	return queue_once(http, connection, conn, page);
}

static enum MHD_Result refuse_error(struct http *http, struct MHD_Connection *connection, struct conn *conn,
				    const struct http_route *route, int error)
{
	char text[128];

	snprintf(text, sizeof(text), "500 internal error: the page could not be made: %s",
		 strerrordesc_np(-error));
	return refuse_as(http, connection, conn, MHD_HTTP_INTERNAL_SERVER_ERROR,
			 route->manner && route->manner->failed ? route->manner->failed : text);
}

struct wanted_argument {
	const char *name;
	const char *value; /* of the first of this name; NULL: none */
};

/* Names of arguments are case-sensitive, as elsewhere; a look-up of libmicrohttpd's is not. */
static enum MHD_Result match_argument(void *userdata, _unused_ enum MHD_ValueKind kind, const char *name,
				      const char *value)
{
	struct wanted_argument *wanted = userdata;

	if (!STRV_EQ(name, wanted->name))
		return MHD_YES;
	wanted->value = value ? value : ""; /* "?name" without "=" */
	return MHD_NO;
}

static const char *argument(const struct http_request *request, const char *name)
{
	struct wanted_argument wanted = { .name = name };

	MHD_get_connection_values(request->priv, MHD_GET_ARGUMENT_KIND, match_argument, &wanted);
	return wanted.value;
}

static void add_age(struct MHD_Response *response, const struct http_age *age)
{
	char text[32];

	if (!age->state[0])
		return;
	MHD_add_response_header(response, "X-Gpusonde-State", age->state);
	if (age->real_ns == 0)
		return;
	snprintf(text, sizeof(text), "%.3f", age->age_seconds);
	MHD_add_response_header(response, "X-Gpusonde-Age", text);
	snprintf(text, sizeof(text), "%.3f", (double)age->real_ns / NSEC_PER_SEC);
	MHD_add_response_header(response, "X-Gpusonde-Time", text);
}

static void add_headers(const struct http *http, struct MHD_Response *response,
			const struct http_route *route, const struct http_reply *reply)
{
	const struct http_header *header = route->manner ? route->manner->headers : NULL;

	for (; header && header->name; header++)
		if (!access_header(http->access, header->name))
			MHD_add_response_header(response, header->name, header->value);
	if (reply->encoding)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, reply->encoding);
	add_age(response, &reply->age);
}

static int call_handler(struct http *http, const struct http_route *route, struct http_request *request,
			struct http_reply *reply)
{
	const struct http_manner *manner = route->manner;

	if (request->variant < 0 && manner && manner->refuse)
		return manner->refuse(request, reply, http->config.userdata);
	if (manner && manner->numbers && !manner->numbers(request, request->numbers, reply))
		return 0;
	if (manner && manner->text && !manner->text(request, request->text, reply))
		return 0;
	return route->handle(request, reply, http->config.userdata);
}

/* Renders a page. @slot as for pages_begin(). */
static int render(struct http *http, const struct http_route *route, struct http_request *request, int slot,
		  uint64_t generation, struct page **ret_page)
{
	struct page *page = pages_begin(&http->pages, slot);
	struct http_reply reply = { .status = MHD_HTTP_OK, .content_type = http_plain_text };
	int r;

	if (!page)
		return -ENOMEM;
	reply.body = page->body;
	r = call_handler(http, route, request, &reply);
	page->body = reply.body;
	if (r == 0 && page->body.failed)
		r = -ENOMEM;
	if (r != 0) {
		pages_discard(page);
		return r < 0 ? r : -r;
	}
	page->tag = reply.tag;
	r = pages_publish(page, reply.status, reply.content_type, generation);
	if (r < 0)
		return r;
	add_headers(http, page->response, route, &reply);
	*ret_page = page;
	return 0;
}

/* The part of @page that the request asks for, in *ret_part; else that is @page. */
static int filter(struct http *http, const struct http_route *route, const struct http_request *request,
		  struct page *page, struct page **ret_part)
{
	const struct http_manner *manner = route->manner;
	struct page *part;
	int r;

	*ret_part = page;
	if (!manner || !manner->filter || page->status != MHD_HTTP_OK)
		return 0;
	part = pages_begin(&http->pages, -1);
	if (!part)
		return -ENOMEM;
	r = manner->filter(request, &page->body, &part->body);
	if (r >= 0 && part->body.failed)
		r = -ENOMEM;
	if (r <= 0 || part->body.len == page->body.len) {
		pages_discard(part);
		return MIN(r, 0);
	}
	r = pages_publish_copy(part, page);
	if (r == 0)
		*ret_part = part;
	return r;
}

/* Of @page in this encoding, from the cache or made; borrowed. */
static int encode(struct http *http, unsigned slot, enum http_encoding encoding, const struct page *page,
		  struct page **ret_encoded)
{
	struct page *encoded = pages_lookup(&http->pages, slot, page->generation, 0);
	int r;

	/* Pages of one generation may be made again: the one that is newer than its encoded form. */
	if (encoded && encoded->made_ns >= page->made_ns) {
		*ret_encoded = encoded;
		return 0;
	}
	encoded = pages_begin(&http->pages, (int)slot);
	if (!encoded)
		return -ENOMEM;
	atomic_fetch_add_explicit(&http->encodings, 1, memory_order_relaxed);
	r = encoding_apply(encoding, &page->body, &encoded->body);
	if (r < 0) {
		pages_discard(encoded);
		return r;
	}
	r = pages_publish_encoded(encoded, page, encoding);
	if (r == 0)
		*ret_encoded = encoded;
	return r;
}

/* @page, or it in the encoding that the client takes. */
static int encode_wanted(struct http *http, const struct http_route *route,
			 const struct http_request *request, struct page *page, struct page **ret_page)
{
	enum http_encoding encoding = HTTP_PLAIN;

	*ret_page = page;
	/* A tag is of one form of a page. */
	if (route->manner && route->manner->encodes && page->slot && !page->tag &&
	    page->status == MHD_HTTP_OK)
		encoding = encoding_negotiate(request->accept_encoding);
	if (encoding == HTTP_PLAIN)
		return 0;
	return encode(http,
		      pages_slot((unsigned)(route - http->config.routes), (unsigned)request->variant,
				 encoding),
		      encoding, page, ret_page);
}

/* Whether the client has kept this very page. A proxy may have made its tag a weak one. */
static bool is_kept(struct MHD_Connection *connection, const struct page *page)
{
	const char *kept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);

	return page->tag && kept && page->status == MHD_HTTP_OK && strstr(kept, page->tag);
}

/* 304, for a client that has the page. */
static int not_modified(struct http *http, const struct page *page, struct page **ret_part)
{
	struct page *part = pages_begin(&http->pages, -1);

	if (!part)
		return -ENOMEM;
	part->tag = page->tag;
	*ret_part = part;
	return pages_publish(part, MHD_HTTP_NOT_MODIFIED, http_plain_text, 0);
}

/* Sends the page, of which we hold a reference unless it has a slot, or the part of it that was asked for. */
static enum MHD_Result send_part(struct http *http, struct MHD_Connection *connection, struct conn *conn,
				 const struct http_route *route, const struct http_request *request,
				 struct page *page)
{
	enum MHD_Result queued;
	struct page *part;
	int r = is_kept(connection, page) ? not_modified(http, page, &part) :
					    filter(http, route, request, page, &part);

	if (r == 0 && part == page)
		r = encode_wanted(http, route, request, page, &part);
	if (r == -ENOBUFS)
		queued = refuse(http, connection, conn, MHD_HTTP_SERVICE_UNAVAILABLE, NULL);
	else if (r < 0)
		queued = refuse_error(http, connection, conn, route, r);
	else if (!part->slot && part != page)
		queued = queue_once(http, connection, conn, part);
	else
		queued = queue(http, connection, conn, part);
	if (!page->slot)
		pages_unref(page);
	return queued;
}

/* Of the newest generation, from the cache or rendered; with a slot borrowed, else the caller's. */
static int current_page(struct http *http, const struct http_route *route, struct http_request *request,
			struct page **ret_page)
{
	/*
	 * Read before rendering: the page may then be newer than its generation and be rendered once more,
	 * but never older.
	 */
	uint64_t generation = http->config.generation(http->config.userdata);
	int variant = route->variant ? route->variant(request, http->config.userdata) : 0;
	struct page *page = NULL;
	int slot = -1, r = 0;

	request->variant = variant;
	if (variant >= 0 && variant < HTTP_VARIANTS) {
		slot = (int)pages_slot((unsigned)(route - http->config.routes), (unsigned)variant,
				       HTTP_PLAIN);
		page = pages_lookup(&http->pages, (unsigned)slot, generation,
				    route->manner ? route->manner->max_age_ns : 0);
	}
	if (!page)
		r = render(http, route, request, slot, generation, &page);
	*ret_page = page;
	return r;
}

static const char *no_argument(_unused_ const struct http_request *request, _unused_ const char *name)
{
	return NULL;
}

int request_page(struct http *http, const struct http_route *route, struct page **ret_page)
{
	struct http_request request = { .method = HTTP_GET, .path = route->path, .argument = no_argument };

	return current_page(http, route, &request, ret_page);
}

static enum MHD_Result serve(struct http *http, struct MHD_Connection *connection, struct conn *conn,
			     const struct http_route *route, struct http_request *request)
{
	struct page *page;
	int r = current_page(http, route, request, &page);

	return r < 0 ? refuse_error(http, connection, conn, route, r) :
		       send_part(http, connection, conn, route, request, page);
}

/* Events that do not end; or the reason why not. */
static enum MHD_Result open_stream(struct http *http, struct MHD_Connection *connection, struct conn *conn,
				   const struct http_request *request)
{
	enum MHD_Result queued = MHD_NO;
	struct page *page;
	unsigned status;
	const char *why =
		streams_open(http, connection, conn, request->argument(request, "pages"), &status, &queued);

	if (!why) {
		atomic_fetch_add_explicit(&http->requests, 1, memory_order_relaxed);
		return queued;
	}
	page = pages_begin(&http->pages, -1);
	if (!page)
		return MHD_NO;
	strbuf_adds(&page->body, why);
	if (pages_publish(page, status, http_plain_text, 0) < 0)
		return MHD_NO;
	return queue_once(http, connection, conn, page);
}

static const char *allowed(unsigned methods)
{
	static const char *const by_methods[] = {
		[HTTP_GET] = "GET, HEAD", [HTTP_POST] = "POST", [HTTP_GET | HTTP_POST] = "GET, HEAD, POST"
	};

	return methods < ARRAY_SIZE(by_methods) ? by_methods[methods] : NULL;
}

static enum http_method method_bit(const char *method)
{
	static const struct {
		const char *name;
		enum http_method bit;
	} methods[] = {
		{ MHD_HTTP_METHOD_GET, HTTP_GET },
		{ MHD_HTTP_METHOD_HEAD, HTTP_HEAD },
		{ MHD_HTTP_METHOD_POST, HTTP_POST },
	};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (STRV_EQ(methods[i].name, method))
			return methods[i].bit;
	return HTTP_OTHER;
}

static bool takes(const struct http_route *route, enum http_method method)
{
	bool head = !route->manner || !route->manner->method_refused;

	return (route->methods & method) || (method == HTTP_HEAD && head && (route->methods & HTTP_GET));
}

/* The path of a request's target; "http://HOST/PATH" is sent to proxies, and must be accepted. */
static const char *target_path(const char *url)
{
	const char *host = strncmp(url, "http", 4) == 0 ? url + 4 : url, *slash;

	host += *host == 's';
	if (host == url || strncmp(host, "://", 3) != 0)
		return url;
	slash = strchr(host + 3, '/');
	return slash ? slash : "/";
}

/* The route of a path: on a renamed listener, of the page that has the path as its name there. */
static const struct http_route *find_route(const struct http *http, const struct conn *conn, const char *path)
{
	const struct http_rename *rename = conn->origin == CONN_RENAMED ? http->config.renames : NULL;
	const struct http_route *route = http->config.routes;

	for (; rename && rename->path; rename++)
		if (STRV_EQ(rename->path, path)) {
			path = rename->route;
			break;
		}
	while (route->path && !STRV_EQ(route->path, path))
		route++;
	return route->path ? route : NULL;
}

/* Of the process at the other end of the UNIX socket. */
static void name_peer(const struct conn *conn, struct http_request *request)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0)
		snprintf(request->who, sizeof(request->who), "uid %u, pid %d", peer.uid, (int)peer.pid);
}

static enum MHD_Result dispatch(struct http *http, struct MHD_Connection *connection, struct conn *conn,
				const char *url, const char *method)
{
	struct http_request request = {
		.method = method_bit(method),
		.path = target_path(url),
		.accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT),
		.accept_encoding = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							       MHD_HTTP_HEADER_ACCEPT_ENCODING),
		.local = is_local(conn),
		.argument = argument,
		.priv = connection,
	};
	const struct http_route *route = find_route(http, conn, request.path);
	const struct refusal *refusal;

	switch (gate_pass(http, connection, conn, route ? route->right : ACCESS_VIEWS, &request, &refusal)) {
	case GATE_WAIT:
		/* Nobody waits for this client but itself. */
		conns_enter(&http->conns, conn, CONN_REPLY, NULL);
		return MHD_YES;
	case GATE_CLOSED:
		return refuse_at_gate(http, connection, conn, refusal);
	case GATE_OPEN:
		break;
	}
	if (!route)
		return refuse(http, connection, conn, MHD_HTTP_NOT_FOUND, NULL);
	if (request.local)
		name_peer(conn, &request);
	if (http->config.streams && route->manner && route->manner->stream && request.method == HTTP_GET)
		return open_stream(http, connection, conn, &request);
	if (takes(route, request.method))
		return serve(http, connection, conn, route, &request);
	if (route->manner && route->manner->method_refused)
		return refuse_as(http, connection, conn, MHD_HTTP_METHOD_NOT_ALLOWED,
				 route->manner->method_refused);
	return refuse(http, connection, conn, MHD_HTTP_METHOD_NOT_ALLOWED, allowed(route->methods));
}

/* Headers that must not be given twice. */
struct header_counts {
	unsigned hosts, lengths;
};

static enum MHD_Result count_header(void *userdata, _unused_ enum MHD_ValueKind kind, const char *name,
				    _unused_ const char *value)
{
	struct header_counts *counts = userdata;

	counts->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
	counts->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
	return MHD_YES;
}

/* Status of a refusal based on the headers; 0: accepted. */
static unsigned refused_by_headers(const struct http *http, struct MHD_Connection *connection,
				   const struct conn *conn)
{
	struct header_counts counts = { 0 };
	const char *length, *host;

	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &counts);
	if (conn->malformed || counts.hosts > 1 || counts.lengths > 1)
		return MHD_HTTP_BAD_REQUEST;
	host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	if (host && !is_local(conn) && !host_is_allowed(host, http->config.hosts, conn->fd))
		return MHD_HTTP_MISDIRECTED_REQUEST;
	if (MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING))
		return MHD_HTTP_CONTENT_TOO_LARGE;
	length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	/* libmicrohttpd has already refused lengths that are not numbers. */
	if (length && length[strspn(length, "0")])
		return MHD_HTTP_CONTENT_TOO_LARGE;
	return 0;
}

enum MHD_Result request_handle(void *userdata, struct MHD_Connection *connection, const char *url,
			       const char *method, const char *version, const char *upload,
			       size_t *upload_size, void **context)
{
	struct http *http = userdata;
	struct conn *conn = *context;

	(void)version;
	(void)upload;
	if (!conn || !gate_is_current(http, conn))
		return MHD_NO;
	if (!conn->begun) {
		unsigned status = refused_by_headers(http, connection, conn);
		const struct http_route *route = find_route(http, conn, target_path(url));

		conn->begun = true;
		/* Answered at once, such a request ends its connection, and its body is not read. */
		if (status == MHD_HTTP_CONTENT_TOO_LARGE && route && route->manner &&
		    route->manner->ignores_body)
			return dispatch(http, connection, conn, url, method);
		return status ? refuse(http, connection, conn, status, NULL) : MHD_YES;
	}
	if (*upload_size > 0)
		return MHD_NO;
	return dispatch(http, connection, conn, url, method);
}
