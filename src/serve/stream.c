// SPDX-License-Identifier: Apache-2.0
#include "serve/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "serve/delta.h"
#include "serve/request.h"

enum { BLOCK_BYTES = 16 << 10 };

/* Events for any number of viewers. */
struct frame {
	unsigned holders;
	struct streams *streams;
	size_t counted; /* in streams->bytes */
	struct strbuf text;
};

struct stream_viewer {
	struct http *http;
	struct MHD_Connection *connection;
	struct conn *conn;
	bool suspended, ended;
	uint64_t topics; /* bits of routes */
	uint64_t fresh; /* of these, those of which it has nothing yet */
	struct frame *queue[STREAM_QUEUE];
	unsigned queued;
	size_t at; /* within the first */
	int64_t told_ns; /* when it was given something last */
	struct stream_viewer *next;
};

static struct frame *frame_new(struct streams *streams)
{
	struct frame *frame = calloc(1, sizeof(*frame));

	if (!frame)
		return NULL;
	frame->holders = 1;
	frame->streams = streams;
	strbuf_init(&frame->text, 0);
	return frame;
}

/* Its text is whole. */
static void frame_count(struct frame *frame)
{
	frame->counted = frame->text.len;
	frame->streams->bytes += frame->counted;
}

static void frame_unref(struct frame *frame)
{
	if (!frame || --frame->holders > 0)
		return;
	frame->streams->bytes -= frame->counted;
	strbuf_done(&frame->text);
	free(frame);
}

/* ---- one viewer ---- */

static void resume(struct stream_viewer *viewer)
{
	if (!viewer->suspended)
		return;
	viewer->suspended = false;
	MHD_resume_connection(viewer->connection);
}

static bool does_not_read(const struct stream_viewer *viewer)
{
	const struct http *http = viewer->http;

	return viewer->queued == STREAM_QUEUE ||
	       (viewer->queued > 0 && http->streams.bytes > http->config.stream_bytes);
}

static void give(struct stream_viewer *viewer, struct frame *frame)
{
	struct streams *streams = &viewer->http->streams;

	if (viewer->ended)
		return;
	if (does_not_read(viewer)) {
		viewer->ended = true;
		atomic_fetch_add(&streams->dropped, 1);
		conns_drop_page(&viewer->http->conns, viewer);
	} else {
		frame->holders++;
		viewer->queue[viewer->queued++] = frame;
		viewer->told_ns = clock_mono_ns();
	}
	resume(viewer);
}

static void drop_first(struct stream_viewer *viewer)
{
	frame_unref(viewer->queue[0]);
	viewer->queued--;
	memmove(viewer->queue, viewer->queue + 1, viewer->queued * sizeof(*viewer->queue));
	viewer->at = 0;
}

/* libmicrohttpd's, for the next bytes of a response. */
static ssize_t read_events(void *userdata, _unused_ uint64_t position, char *to, size_t max)
{
	struct stream_viewer *viewer = userdata;
	size_t n = 0;

	if (viewer->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	while (viewer->queued > 0 && n < max) {
		const struct strbuf *text = &viewer->queue[0]->text;
		size_t piece = MIN(text->len - viewer->at, max - n);

		memcpy(to + n, text->data + viewer->at, piece);
		n += piece;
		viewer->at += piece;
		if (viewer->at == text->len)
			drop_first(viewer);
	}
	if (n == 0) {
		viewer->suspended = true;
		MHD_suspend_connection(viewer->connection);
	} else {
		/* Progress: when there are too many connections it is not the one that waits longest. */
		conns_enter(&viewer->http->conns, viewer->conn, CONN_REPLY, viewer);
	}
	return (ssize_t)n;
}

static void viewer_free(void *userdata)
{
	struct stream_viewer *viewer = userdata;
	struct streams *streams = &viewer->http->streams;

	for (unsigned i = 0; i < STREAM_TOPICS; i++) {
		struct stream_topic *topic = &streams->topics[i];

		if (!(viewer->topics >> i & 1) || --topic->viewers > 0)
			continue;
		strbuf_done(&topic->text);
		strbuf_init(&topic->text, 0);
	}
	for (struct stream_viewer **v = &streams->viewers; *v; v = &(*v)->next) {
		if (*v == viewer) {
			*v = viewer->next;
			streams->n--;
			atomic_store(&streams->open, streams->n);
			break;
		}
	}
	while (viewer->queued > 0)
		drop_first(viewer);
	free(viewer);
}

/* ---- opening ---- */

static bool can_be_looked_at(const struct http_route *route, unsigned i)
{
	return i < STREAM_TOPICS && route->right == ACCESS_VIEWS && !route->variant &&
	       (route->methods & HTTP_GET) && strncmp(route->path, STREAM_PAGES, strlen(STREAM_PAGES)) == 0;
}

/* Bits of the routes that a list names; 0: it has one that there is not, or none, or too many. */
static uint64_t topics_of(const struct http *http, const char *pages)
{
	uint64_t topics = 0;

	while (pages && *pages) {
		size_t n = strcspn(pages, ",");
		uint64_t found = 0;

		for (unsigned i = 0; http->config.routes[i].path; i++) {
			const struct http_route *route = &http->config.routes[i];

			if (can_be_looked_at(route, i) && strlen(route->path) == strlen(STREAM_PAGES) + n &&
			    strncmp(route->path + strlen(STREAM_PAGES), pages, n) == 0)
				found = UINT64_C(1) << i;
		}
		if (!found)
			return 0;
		topics |= found;
		pages += n + (pages[n] == ',');
	}
	return __builtin_popcountll(topics) <= STREAM_PAGES_MAX ? topics : 0;
}

static struct stream_viewer *viewer_new(struct http *http, struct MHD_Connection *connection,
					struct conn *conn, uint64_t topics)
{
	struct stream_viewer *viewer = calloc(1, sizeof(*viewer));

	if (!viewer)
		return NULL;
	*viewer = (struct stream_viewer){
		.http = http,
		.connection = connection,
		.conn = conn,
		.topics = topics,
		.fresh = topics,
		.next = http->streams.viewers,
	};
	http->streams.viewers = viewer;
	http->streams.n++;
	atomic_store(&http->streams.open, http->streams.n);
	for (unsigned i = 0; i < STREAM_TOPICS; i++)
		http->streams.topics[i].viewers += topics >> i & 1;
	return viewer;
}

/* X-Accel-Buffering: for nginx, which would wait for a whole buffer. */
static bool add_stream_headers(const struct http *http, struct MHD_Response *response)
{
	pages_add_headers(&http->pages, response);
	return MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream") ==
		       MHD_YES &&
	       MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") == MHD_YES &&
	       (access_header(http->access, "X-Content-Type-Options") ||
		MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES) &&
	       MHD_add_response_header(response, "X-Accel-Buffering", "no") == MHD_YES;
}

const char *streams_open(struct http *http, struct MHD_Connection *connection, struct conn *conn,
			 const char *pages, unsigned *ret_status, enum MHD_Result *ret_queued)
{
	uint64_t topics = topics_of(http, pages);
	struct MHD_Response *response;
	struct stream_viewer *viewer;

	*ret_status = topics ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_BAD_REQUEST;
	if (!topics)
		return "400 bad request: pages= must be up to 4 names of /api/v1, as in pages=gpus,node\n";
	if (http->streams.n >= MIN((unsigned)STREAM_VIEWERS, http->config.max_connections / 2))
		return "503 service unavailable: too many look at pages; ask for the pages themselves\n";
	viewer = viewer_new(http, connection, conn, topics);
	if (!viewer)
		return "503 service unavailable: no memory\n";
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_events, viewer,
						     viewer_free);
	if (!response) {
		viewer_free(viewer);
		return "503 service unavailable: no memory\n";
	}
	*ret_queued = add_stream_headers(http, response) ?
			      MHD_queue_response(connection, MHD_HTTP_OK, response) :
			      MHD_NO;
	conns_enter(&http->conns, conn, CONN_REPLY, viewer);
	MHD_destroy_response(response);
	return NULL;
}

/* ---- a round ---- */

/* As a string of JSON; control characters become blanks. */
static void add_quoted(struct strbuf *out, const char *text, size_t n)
{
	strbuf_addc(out, '"');
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '"' || text[i] == '\\')
			strbuf_addc(out, '\\');
		strbuf_addc(out, (unsigned char)text[i] < ' ' ? ' ' : text[i]);
	}
	strbuf_addc(out, '"');
}

/* Why there is no such document, in the words of its page. */
static void add_absent(struct strbuf *out, const char *name, const struct strbuf *page)
{
	size_t n = page->len > 0 && page->data[page->len - 1] == '\n' ? page->len - 1 : page->len;

	strbuf_addf(out, "event: absent\ndata: {\"page\":\"%s\",\"text\":", name);
	add_quoted(out, page->len > 0 ? page->data : "", n);
	strbuf_adds(out, "}\n\n");
}

/* Events of what is on a page now, from @old or else from nothing. NULL: no memory. */
static struct frame *make_frame(struct streams *streams, const char *name, const struct strbuf *old,
				const struct page *page)
{
	const struct delta_text nothing = { 0 }, a = { old->data, old->len },
				b = { page->body.data, page->body.len };
	struct frame *frame = frame_new(streams);

	if (!frame)
		return NULL;
	if (page->status != MHD_HTTP_OK) {
		add_absent(&frame->text, name, &page->body);
	} else if (delta_events(name, &a, &b, &frame->text) < 0) {
		strbuf_reset(&frame->text);
		if (delta_events(name, &nothing, &b, &frame->text) < 0)
			strbuf_reset(&frame->text);
	}
	if (frame->text.failed) {
		frame_unref(frame);
		return NULL;
	}
	frame_count(frame);
	return frame;
}

static void give_to_all(struct http *http, unsigned i, struct frame *frame, bool fresh)
{
	uint64_t bit = UINT64_C(1) << i;

	if (!frame || frame->text.len == 0)
		return;
	for (struct stream_viewer *v = http->streams.viewers; v; v = v->next) {
		if (!(v->topics & bit) || fresh != !!(v->fresh & bit))
			continue;
		v->fresh &= ~bit;
		give(v, frame);
	}
}

static bool has_fresh(const struct streams *streams, unsigned i)
{
	for (const struct stream_viewer *v = streams->viewers; v; v = v->next)
		if (v->fresh >> i & 1)
			return true;
	return false;
}

/* Those who have the last text get what has changed, the others all. */
static void show_page(struct http *http, unsigned i, const struct page *page)
{
	static const struct strbuf nothing;
	struct stream_topic *topic = &http->streams.topics[i];
	const char *name = http->config.routes[i].path + strlen(STREAM_PAGES);
	struct frame *changes = make_frame(&http->streams, name, &topic->text, page), *all = NULL;

	if (page->status == MHD_HTTP_OK || !topic->absent)
		give_to_all(http, i, changes, false);
	topic->absent = page->status != MHD_HTTP_OK;
	if (has_fresh(&http->streams, i))
		all = make_frame(&http->streams, name, &nothing, page);
	give_to_all(http, i, all, true);
	frame_unref(changes);
	frame_unref(all);
	strbuf_reset(&topic->text);
	if (page->status == MHD_HTTP_OK)
		strbuf_add(&topic->text, page->body.data, page->body.len);
}

static void topic_look(struct http *http, unsigned i, uint64_t generation)
{
	struct stream_topic *topic = &http->streams.topics[i];
	struct page *page;

	if (topic->viewers == 0 || (topic->generation == generation && !has_fresh(&http->streams, i)))
		return;
	if (request_page(http, &http->config.routes[i], &page) < 0)
		return;
	topic->generation = generation;
	show_page(http, i, page);
}

static void beat(struct streams *streams, int64_t now_ns)
{
	struct frame *frame = NULL;

	for (struct stream_viewer *v = streams->viewers; v; v = v->next) {
		if (now_ns - v->told_ns < STREAM_BEAT_NS)
			continue;
		if (!frame) {
			frame = frame_new(streams);
			if (!frame)
				return;
			strbuf_adds(&frame->text, "event: beat\ndata: {}\n\n");
		}
		give(v, frame);
	}
	frame_unref(frame);
}

void streams_round(struct http *http)
{
	struct streams *streams = &http->streams;
	int64_t began_ns = clock_mono_ns();

	if (!streams->viewers)
		return;
	if (began_ns >= streams->next_ns) {
		uint64_t generation = http->config.generation(http->config.userdata);

		for (unsigned i = 0; i < STREAM_TOPICS && http->config.routes[i].path; i++)
			topic_look(http, i, generation);
		streams->next_ns = began_ns + (1 + STREAM_REST) * (clock_mono_ns() - began_ns);
	}
	beat(streams, clock_mono_ns());
}

void streams_end(struct http *http)
{
	for (struct stream_viewer *v = http->streams.viewers; v; v = v->next) {
		v->ended = true;
		resume(v);
	}
	if (http->streams.viewers)
		MHD_run(http->daemon);
}
