// SPDX-License-Identifier: Apache-2.0
#include "serve/request.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
	{ MHD_HTTP_FORBIDDEN, "403 forbidden: this is served on the agent's UNIX socket only\n" },
	{ MHD_HTTP_NOT_FOUND, "404 not found: there is no such page; try /metrics\n" },
	{ MHD_HTTP_METHOD_NOT_ALLOWED, "405 method not allowed: see the Allow header\n" },
	{ MHD_HTTP_CONTENT_TOO_LARGE, "413 content too large: no page here takes a body\n" },
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
	conns_enter(&http->conns, conn, CONN_REPLY, page->slot ? page : NULL);
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

static enum MHD_Result refuse_error(struct http *http, struct MHD_Connection *connection, struct conn *conn,
				    int error)
{
	struct page *page = pages_begin(&http->pages, -1);

	if (!page)
		return MHD_NO;
	strbuf_addf(&page->body, "500 internal error: the page could not be made: %s\n",
		    strerrordesc_np(-error));
	if (pages_publish(page, MHD_HTTP_INTERNAL_SERVER_ERROR, http_plain_text, 0) < 0)
		return MHD_NO;
	return queue_once(http, connection, conn, page);
}

/* "?name" without "=" has an empty value. */
static const char *argument(const struct http_request *request, const char *name)
{
	const char *value = NULL;

	if (MHD_lookup_connection_value_n(request->priv, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value,
					  NULL) != MHD_YES)
		return NULL;
	return value ? value : "";
}

/* Renders a page. @slot as for pages_begin(). */
static int render(struct http *http, const struct http_route *route, const struct http_request *request,
		  int slot, uint64_t generation, struct page **ret_page)
{
	struct page *page = pages_begin(&http->pages, slot);
	struct http_reply reply = { .status = MHD_HTTP_OK, .content_type = http_plain_text };
	int r;

	if (!page)
		return -ENOMEM;
	reply.body = page->body;
	r = route->handle(request, &reply, http->config.userdata);
	page->body = reply.body;
	if (r == 0 && page->body.failed)
		r = -ENOMEM;
	if (r != 0) {
		pages_discard(page);
		return r < 0 ? r : -r;
	}
	r = pages_publish(page, reply.status, reply.content_type, generation);
	if (r == 0)
		*ret_page = page;
	return r;
}

static enum MHD_Result serve(struct http *http, struct MHD_Connection *connection, struct conn *conn,
			     const struct http_route *route, struct http_request *request)
{
	/*
	 * Read before rendering: the page may then be newer than its generation and be rendered once more,
	 * but never older.
	 */
	uint64_t generation = http->config.generation(http->config.userdata);
	int variant = route->variant ? route->variant(request, http->config.userdata) : 0;
	struct page *page = NULL;
	int slot = -1, r;

	request->variant = variant;
	if (variant >= 0 && variant < HTTP_VARIANTS) {
		slot = (int)(route - http->config.routes) * HTTP_VARIANTS + variant;
		page = pages_lookup(&http->pages, (unsigned)slot, generation);
	}
	if (page)
		return queue(http, connection, conn, page);
	r = render(http, route, request, slot, generation, &page);
	if (r < 0)
		return refuse_error(http, connection, conn, r);
	return slot < 0 ? queue_once(http, connection, conn, page) : queue(http, connection, conn, page);
}

static const char *allowed(unsigned methods)
{
	static const char *const by_methods[] = {
		[HTTP_GET] = "GET, HEAD", [HTTP_POST] = "POST", [HTTP_GET | HTTP_POST] = "GET, HEAD, POST"
	};

	return methods < ARRAY_SIZE(by_methods) ? by_methods[methods] : NULL;
}

static unsigned method_bit(const char *method)
{
	if (STRV_EQ(method, MHD_HTTP_METHOD_GET) || STRV_EQ(method, MHD_HTTP_METHOD_HEAD))
		return HTTP_GET;
	return STRV_EQ(method, MHD_HTTP_METHOD_POST) ? HTTP_POST : 0;
}

/* The path of a request's target; "http://HOST/PATH" is sent to proxies, and must be accepted. */
static const char *target_path(const char *url)
{
	const char *slash;

	if (strncmp(url, "http://", 7) != 0)
		return url;
	slash = strchr(url + 7, '/');
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

static enum MHD_Result dispatch(struct http *http, struct MHD_Connection *connection, struct conn *conn,
				const char *url, const char *method)
{
	struct http_request request = {
		.method = method_bit(method),
		.path = target_path(url),
		.accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT),
		.local = is_local(conn),
		.argument = argument,
		.priv = connection,
	};
	const struct http_route *route = find_route(http, conn, request.path);

	if (!route)
		return refuse(http, connection, conn, MHD_HTTP_NOT_FOUND, NULL);
	if (route->local_only && !is_local(conn))
		return refuse(http, connection, conn, MHD_HTTP_FORBIDDEN, NULL);
	if (!(route->methods & request.method))
		return refuse(http, connection, conn, MHD_HTTP_METHOD_NOT_ALLOWED, allowed(route->methods));
	return serve(http, connection, conn, route, &request);
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
	if (MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING))
		return MHD_HTTP_CONTENT_TOO_LARGE;
	length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	/* libmicrohttpd has already refused lengths that are not numbers. */
	if (length && length[strspn(length, "0")])
		return MHD_HTTP_CONTENT_TOO_LARGE;
	host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	if (host && !is_local(conn) && !host_is_allowed(host, http->config.hosts, conn->fd))
		return MHD_HTTP_MISDIRECTED_REQUEST;
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
	if (!conn)
		return MHD_NO;
	if (!conn->begun) {
		unsigned status = refused_by_headers(http, connection, conn);

		conn->begun = true;
		return status ? refuse(http, connection, conn, status, NULL) : MHD_YES;
	}
	if (*upload_size > 0)
		return MHD_NO;
	return dispatch(http, connection, conn, url, method);
}
