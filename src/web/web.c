// SPDX-License-Identifier: Apache-2.0
#include "web/web.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/fd.h"
#include "helper/message.h"
#include "serve/access.h"
#include "serve/atop_server.h"
#include "serve/http.h"
#include "page/asset.h"
#include "web/ask.h"
#include "web/routes.h"

/* Below half of WatchdogSec= of gpusonde-web.service. */
#define WATCH_NS (10 * NSEC_PER_SEC)

/* 4096 connections, and every page at its maximum: more than a process that is not misused needs. */
const struct confinement web_confinement = {
	.name = "gpusonde-web",
	.serves = true,
	.shares_memory = true,
	.memory_bytes = UINT64_C(1) << 30,
};

struct web {
	int channel, watchdog;
	sd_event *event;
	const struct web_news *news;
	struct web_counts *counts;
	struct web_channel pages; /* of the HTTP thread */
	struct web_channel atop_pages; /* of the main thread */
	struct access *access;
	struct web_setup *setup; /* with its names; NULL: not started yet */
	struct http *http;
	struct atop_server *atop;
	atomic_bool pinged; /* and not answered yet */
	atomic_bool watched; /* and systemd not told yet */
	char *message; /* MESSAGE_MAX bytes */
};

enum { MESSAGE_MAX = sizeof(struct web_setup) + WEB_HOSTS_MAX };

/* ---- pages ---- */

static uint64_t generation(void *userdata)
{
	struct web *web = userdata;

	return atomic_load(&web->news->generation);
}

/* Without the agent this process is of no use, and is replaced if only the socket was closed. */
static int ask_agent(struct web_channel *channel, const struct web_ask *ask, struct strbuf *ret_body)
{
	int r = web_ask(channel, ask, ret_body);

	if (r == -ECONNRESET || r == -EPIPE)
		_exit(EXIT_FAILURE);
	return r;
}

/* @right: the page's. Only of what changes something does the agent need to know the method. */
static int get_page(struct web *web, enum web_page page, enum access_right right,
		    const struct http_request *request, struct http_reply *reply)
{
	struct web_ask ask = {
		.question = WEB_PAGE,
		.page = (uint8_t)page,
		.variant = (uint8_t)MAX(request->variant, 0),
		.posts = right == ACCESS_CONTROL && request->method == HTTP_POST,
	};
	int r;

	memcpy(ask.who, request->who, sizeof(ask.who));
	memcpy(ask.numbers, request->numbers, sizeof(ask.numbers));
	memcpy(ask.text, request->text, sizeof(ask.text));
	r = ask_agent(&web->pages, &ask, &reply->body);

	if (r == -ETIMEDOUT) {
		reply->status = 503;
		strbuf_adds(&reply->body, "503 the agent does not answer\n");
		return 0;
	}
	if (r == 0) {
		reply->status = web->pages.answer.status;
		reply->content_type = web->pages.answer.content_type;
		reply->age = web->pages.answer.age;
		reply->age.state[sizeof(reply->age.state) - 1] = '\0';
	}
	return r;
}

/* A file of the web page, which the agent is not asked for. */
static int get_file(const char *path, const struct http_request *request, struct http_reply *reply)
{
	const struct asset *asset = asset_find(path);

	if (!asset)
		return -ENOENT;
	reply->content_type = asset->content_type;
	reply->tag = asset->tag;
	if (request->variant != INDEX_GZIP)
		return asset_unpack(asset, &reply->body);
	reply->encoding = "gzip";
	strbuf_add(&reply->body, asset->data, asset->bytes);
	return 0;
}

static int get_asset(const struct http_request *request, struct http_reply *reply, _unused_ void *userdata)
{
	return get_file(request->path, request, reply);
}

#define PAGE(path_, methods_, right_, variant_, handle_, help_)                                          \
	static int handle_(const struct http_request *request, struct http_reply *reply, void *userdata) \
	{                                                                                                \
		if (PAGE_##handle_ == PAGE_get_dcgm && request->variant < 0)                             \
			return dcgm_refuse(reply);                                                       \
		if (PAGE_##handle_ == PAGE_get_snapshot && request->variant < 0)                         \
			return snapshot_refuse(reply);                                                   \
		if (PAGE_##handle_ == PAGE_get_stacks && request->variant < 0)                           \
			return stacks_refuse(reply);                                                     \
		if (PAGE_##handle_ == PAGE_get_index && request->variant != INDEX_LIST)                  \
			return get_file(ASSET_INDEX, request, reply);                                    \
		return get_page(userdata, PAGE_##handle_, right_, request, reply);                       \
	}
#include "web/routes.def"

/* Those for the UNIX socket only are listed, so that they are refused with a reason. */
static const struct http_route routes[] = {
#define PAGE_AS(path_, methods_, right_, variant_, handle_, manner_, help_) \
	{ path_, methods_, right_, variant_, handle_, manner_ },
#define PAGE(path_, methods_, right_, variant_, handle_, help_) \
	PAGE_AS(path_, methods_, right_, variant_, handle_, NULL, help_)
#include "web/routes.def"
#define ASSET(path_, ...) { path_, HTTP_GET, ACCESS_VIEWS, asset_variant, get_asset, &asset_manner },
#include "page/assets.inc"
	{ 0 },
};

static const struct http_rename renames[] = {
#define RENAME(path_, route_) { path_, route_ },
#include "web/routes.def"
	{ 0 },
};

/* ---- atop ---- */

static int atop_types(unsigned version, struct strbuf *out, void *userdata)
{
	struct web *web = userdata;
	const struct web_ask ask = { .question = WEB_ATOP_TYPES, .atop_version = (uint8_t)version };

	return ask_agent(&web->atop_pages, &ask, out);
}

static int atop_stats(unsigned version, uint64_t exit_seq, struct strbuf *out, uint64_t *ret_exit_seq,
		      void *userdata)
{
	struct web *web = userdata;
	const struct web_ask ask = {
		.question = WEB_ATOP_STATS,
		.atop_version = (uint8_t)version,
		.exit_seq = exit_seq,
	};
	int r = ask_agent(&web->atop_pages, &ask, out);

	if (r == 0)
		*ret_exit_seq = web->atop_pages.answer.exit_seq;
	return r;
}

static uint64_t atop_layout(void *userdata)
{
	struct web *web = userdata;

	return atomic_load(&web->news->atop_layout);
}

static uint64_t atop_newest_exit(void *userdata)
{
	struct web *web = userdata;

	return atomic_load(&web->news->atop_newest_exit);
}

static const struct atop_source atop_source = { atop_types, atop_stats, atop_layout, atop_newest_exit };

/* ---- the agent's orders ---- */

/*
 * On the HTTP thread: both threads have gone through a round since the agent asked, so both are alive. What
 * cannot be sent is a ping without an answer.
 */
static void on_round(void *userdata)
{
	struct web *web = userdata;
	const struct web_message pong = { .order = WEB_PING };
	struct http_stats http;

	if (atomic_exchange(&web->pinged, false))
		(void)send_with_fd(web->channel, &pong, sizeof(pong), -1);
	if (atomic_exchange(&web->watched, false))
		(void)send(web->watchdog, "WATCHDOG=1", strlen("WATCHDOG=1"), MSG_DONTWAIT | MSG_NOSIGNAL);
	http_stats(web->http, &http);
	atomic_store(&web->counts->http_requests, http.requests);
	atomic_store(&web->counts->http_evicted, http.evicted);
	for (unsigned i = 0; i < HTTP_REFUSALS; i++)
		atomic_store(&web->counts->http_refused[i], http.refused[i]);
	atomic_store(&web->counts->http_connections, http.connections);
	atomic_store(&web->counts->http_streams, http.streams);
	atomic_store(&web->counts->http_streams_dropped, http.streams_dropped);
}

static void count_atop(struct web *web)
{
	struct atop_server_stats atop;

	if (!web->atop)
		return;
	atop_server_stats(web->atop, &atop);
	atomic_store(&web->counts->atop_clients, atop.clients);
}

static int map_shared(int fd, size_t n, int protection, void **ret_memory)
{
	void *memory = mmap(NULL, n, protection, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	*ret_memory = memory;
	return 0;
}

static int start_http(struct web *web)
{
	const struct http_config config = {
		.routes = routes,
		.renames = renames,
		.userdata = web,
		.generation = generation,
		.round = on_round,
		.streams = true,
		.max_connections = web->setup->max_connections,
		.hosts = web->setup->hosts,
		.access = web->access,
	};

	return http_new(web->event, &config, &web->http);
}

static int start_serving(struct web *web, size_t n)
{
	int r;

	if (n <= sizeof(*web->setup) || web->message[n - 1] || !web->news || !web->counts || web->setup)
		return -EPROTO;
	web->setup = malloc(n);
	if (!web->setup)
		return -ENOMEM;
	memcpy(web->setup, web->message, n);
	r = atop_server_new(web->event, &atop_source, web, &web->atop);
	return r < 0 ? r : start_http(web);
}

static int read_access(int fd, struct access **ret_access)
{
	char *records = malloc(ACCESS_BYTES_MAX);
	ssize_t n = records ? pread(fd, records, ACCESS_BYTES_MAX, 0) : -1;
	int r = n < 0 ? -EIO : access_new(records, (size_t)n, ret_access, NULL);

	if (n > 0)
		explicit_bzero(records, (size_t)n);
	free(records);
	return r;
}

/* With or without TLS the server is another one. */
static int change_access(struct web *web, int fd)
{
	struct access *access;
	int r = read_access(fd, &access);

	if (r < 0)
		return r;
	access_unref(web->access);
	web->access = access;
	r = web->http ? http_set_access(web->http, access) : 0;
	if (r != -ENOTSUP)
		return r;
	http_free(web->http); /* whose thread goes by web->http until it has ended */
	web->http = NULL;
	return start_http(web);
}

static int adopt(int *channel, int *fd)
{
	closep(channel);
	*channel = TAKE_FD(*fd);
	return 0;
}

static int on_agent_end(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t events,
			_unused_ void *userdata)
{
	_exit(EXIT_SUCCESS);
}

/* @fd is the caller's, unless it has been set to -1. */
static int obey(struct web *web, size_t n, int *fd)
{
	const struct web_message *message = (const struct web_message *)web->message;

	if (message->order > WEB_START && !web->http)
		return -EPROTO;
	switch ((enum web_order)message->order) {
	case WEB_NEWS:
		return map_shared(*fd, sizeof(*web->news), PROT_READ, (void **)&web->news);
	case WEB_COUNTS:
		return map_shared(*fd, sizeof(*web->counts), PROT_READ | PROT_WRITE, (void **)&web->counts);
	case WEB_PAGE_CHANNEL:
		return adopt(&web->pages.socket, fd);
	case WEB_ATOP_CHANNEL:
		return adopt(&web->atop_pages.socket, fd);
	case WEB_LIFELINE:
		return MIN(sd_event_add_io(web->event, NULL, TAKE_FD(*fd), EPOLLIN, on_agent_end, web), 0);
	case WEB_ACCESS:
		return change_access(web, *fd);
	case WEB_START:
		return start_serving(web, n);
	case WEB_LISTEN_HTTP:
		return http_listen_fd(web->http, TAKE_FD(*fd));
	case WEB_LISTEN_EXPORTER:
		return http_listen_renamed_fd(web->http, TAKE_FD(*fd));
	case WEB_LISTEN_ATOP:
		return atop_server_listen_fd(web->atop, TAKE_FD(*fd));
	case WEB_UNLISTEN_HTTP:
		http_unlisten_tcp(web->http);
		return 0;
	case WEB_UNLISTEN_ATOP:
		atop_server_unlisten(web->atop);
		return 0;
	case WEB_PING:
		atomic_store(&web->pinged, true);
		http_wake(web->http);
		return 0;
	}
	return -EPROTO;
}

static int on_order(sd_event_source *source, _unused_ int socket, _unused_ uint32_t events, void *userdata)
{
	struct web *web = userdata;
	_cleanup_close_ int fd = -1;
	ssize_t n = receive_with_fd(web->channel, web->message, MESSAGE_MAX, &fd);
	int r;

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0)
		return sd_event_exit(sd_event_source_get_event(source), n < 0);
	r = obey(web, (size_t)n, &fd);
	return r < 0 ? sd_event_exit(sd_event_source_get_event(source), EXIT_FAILURE) : 0;
}

static int on_watch(sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct web *web = userdata;

	if (web->http) {
		atomic_store(&web->watched, true);
		http_wake(web->http);
	}
	return sd_event_source_set_time_relative(source, WATCH_NS / NSEC_PER_USEC);
}

static int watch(struct web *web)
{
	sd_event_source *timer;
	int r = sd_event_add_time_relative(web->event, &timer, CLOCK_MONOTONIC, WATCH_NS / NSEC_PER_USEC,
					   USEC_PER_SEC, on_watch, web);

	return r < 0 ? r : sd_event_source_set_enabled(timer, SD_EVENT_ON);
}

static int obey_all(struct web *web)
{
	int r = sd_event_new(&web->event);

	if (r >= 0 && web->watchdog >= 0)
		r = watch(web);
	if (r >= 0)
		r = sd_event_add_io(web->event, NULL, web->channel, EPOLLIN, on_order, web);
	while (r >= 0 && sd_event_get_state(web->event) != SD_EVENT_FINISHED) {
		r = sd_event_run(web->event, UINT64_MAX);
		count_atop(web);
	}
	return r;
}

int web_serve(int channel, int watchdog)
{
	struct web web = {
		.channel = channel,
		.watchdog = watchdog,
		.pages.socket = -1,
		.atop_pages.socket = -1,
		.message = malloc(MESSAGE_MAX),
	};
	int r = web.message ? obey_all(&web) : -ENOMEM;

	/* Addresses and connections are closed by the kernel; the HTTP thread may still wait for a page. */
	_exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}
