// SPDX-License-Identifier: Apache-2.0
#include "cmd/recording/replay_serve.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "agent/record/history.h"
#include "agent/record/report.h"
#include "agent/snapshot_pages.h"
#include "agent/web/web.h"
#include "base/clock.h"
#include "base/text.h"
#include "cmd/recording/film.h"

enum { CONNECTIONS = 32, LINE_TEXT = 200 };

struct server {
	const struct replay_pages *asked;
	struct store_reader *reader;
	struct film film;
	sd_event *event;
	sd_event_source *next; /* when the coming snapshot is shown */
	struct snapshot *coming; /* NULL: the last one is shown */
	struct history_service *history;
	struct report_service *report;
	struct web_pages *pages;
	struct web *web;
	uint64_t seq;
	pthread_mutex_t lock; /* of what follows: the thread of the pages renders it */
	struct snapshot *shown;
};

/* ---- marks ---- */

void replay_stamp(const struct strbuf *page, int64_t real_ns, struct strbuf *out)
{
	for (const char *line = page->data, *end; line < page->data + page->len; line = end + 1) {
		end = strchrnul(line, '\n');
		strbuf_add(out, line, (size_t)(end - line));
		if (*line != '#' && end > line)
			strbuf_addf(out, " %" PRId64, real_ns / NSEC_PER_MSEC);
		strbuf_addc(out, '\n');
		if (!*end)
			break;
	}
}

void replay_mark(const struct strbuf *page, int64_t real_ns, struct strbuf *out)
{
	const char *rest = page->len > 0 && page->data[0] == '{' ? page->data + 1 : NULL;
	char when[32];

	if (!rest) {
		strbuf_add(out, page->data, page->len);
		return;
	}
	format_rfc3339(real_ns, when);
	strbuf_addf(out, "{\"replay\":\"%s\"%s", when, *rest == '}' ? "" : ",");
	strbuf_add(out, rest, page->len - 1);
}

/* In place of the reply's text. */
static int change_text(struct http_reply *reply, int64_t real_ns,
		       void (*change)(const struct strbuf *page, int64_t real_ns, struct strbuf *out))
{
	struct strbuf changed;

	strbuf_init(&changed, reply->body.limit);
	change(&reply->body, real_ns, &changed);
	strbuf_done(&reply->body);
	reply->body = changed;
	return changed.failed ? -E2BIG : 0;
}

static int mark_reply(struct http_reply *reply, int64_t real_ns)
{
	snprintf(reply->age.state, sizeof(reply->age.state), "replay");
	reply->age.real_ns = real_ns;
	reply->age.age_seconds = (double)(clock_real_ns() - real_ns) / NSEC_PER_SEC;
	return STRV_EQ(reply->content_type, "application/json") ? change_text(reply, real_ns, replay_mark) :
								  0;
}

/* ---- pages ---- */

/* Other formats have no time of this form, and a program that asks for them takes the oldest as well. */
static int show_exposition(const struct server *server, enum web_page page,
			   const struct snapshot_page_style *style, const struct http_request *request,
			   struct http_reply *reply)
{
	struct http_request prometheus = *request;
	int r;

	prometheus.variant -=
		page == PAGE_get_metrics ? prometheus.variant : prometheus.variant % EXPOSITIONS;
	strbuf_addf(&reply->body, "# %s\n", style->replay);
	r = snapshot_page(page, server->shown, style, &prometheus, reply);
	return r < 0 ? r : change_text(reply, server->shown->real_ns, replay_stamp);
}

static int show_shown(struct server *server, enum web_page page, const struct http_request *request,
		      struct http_reply *reply)
{
	static const struct dcgm_style dcgm = { 0 };
	char line[LINE_TEXT], when[32];
	const struct snapshot_page_style style = { .dcgm = &dcgm, .replay = line };

	format_rfc3339(server->shown->real_ns, when);
	snprintf(line, sizeof(line), "REPLAY of a recording: as it was at %s", when);
	if (page == PAGE_get_metrics || page == PAGE_get_dcgm)
		return show_exposition(server, page, &style, request, reply);
	return snapshot_page(page, server->shown, &style, request, reply);
}

static int answer_replay(struct server *server, enum web_page page, const struct http_request *request,
			 struct http_reply *reply)
{
	int64_t real_ns;
	int r;

	pthread_mutex_lock(&server->lock);
	real_ns = server->shown->real_ns;
	r = page == PAGE_get_history || page == PAGE_get_moment || page == PAGE_get_report ?
		    0 :
		    show_shown(server, page, request, reply);
	pthread_mutex_unlock(&server->lock);
	if (page == PAGE_get_history)
		r = history_page(server->history, real_ns, request, reply);
	else if (page == PAGE_get_moment)
		r = moment_page(server->history, real_ns, request, reply);
	else if (page == PAGE_get_report)
		r = report_page(server->report, real_ns, request, reply);
	if (r == -ENOENT) {
		reply->status = 404;
		strbuf_adds(&reply->body, "404 a replay has no such page: it says what is now\n");
		r = 0;
	}
	return r < 0 ? r : mark_reply(reply, real_ns);
}

#define PAGE(path_, methods_, right_, variant_, handle_, help_)                                          \
	static int handle_(const struct http_request *request, struct http_reply *reply, void *userdata) \
	{                                                                                                \
		return answer_replay(userdata, PAGE_##handle_, request, reply);                          \
	}
#include "web/routes.def"

static const struct http_route replay_routes[] = {
#define PAGE(path_, methods_, right_, variant_, handle_, help_) \
	{ path_, methods_, right_, variant_, handle_, NULL },
#include "web/routes.def"
	{ 0 },
};

/* ---- what is shown ---- */

/* Takes @snapshot over. */
static void show_snapshot(struct server *server, struct snapshot *snapshot)
{
	struct snapshot *before;

	snapshot->seq = ++server->seq;
	pthread_mutex_lock(&server->lock);
	before = server->shown;
	server->shown = snapshot;
	pthread_mutex_unlock(&server->lock);
	if (server->web)
		web_publish(server->web, snapshot);
	restored_free(before);
}

static int prepare_next(struct server *server)
{
	int64_t pause_ns;
	int r = film_next(&server->film, &server->coming, &pause_ns);

	if (r <= 0)
		return r;
	r = sd_event_source_set_time_relative(server->next, (uint64_t)(pause_ns / NSEC_PER_USEC));
	return r < 0 ? r : sd_event_source_set_enabled(server->next, SD_EVENT_ONESHOT);
}

static int on_next(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct server *server = userdata;

	show_snapshot(server, TAKE_PTR(server->coming));
	return prepare_next(server);
}

static int show_first(struct server *server)
{
	struct snapshot *snapshot = NULL;
	int64_t pause_ns;
	int r;

	if (server->asked->speed <= 0) {
		r = store_moment(server->reader, server->asked->at_ns, &snapshot);
	} else {
		film_begin(&server->film, server->reader,
			   server->asked->at_ns == INT64_MAX ? INT64_MIN : server->asked->at_ns,
			   server->asked->speed);
		r = film_next(&server->film, &snapshot, &pause_ns);
		r = r == 0 ? -ENOENT : r;
	}
	if (r < 0)
		return r;
	show_snapshot(server, snapshot);
	return 0;
}

/* ---- life ---- */

static int add_sources(struct server *server)
{
	sigset_t mask;
	int r = sd_event_default(&server->event);

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	if (r >= 0)
		r = sd_event_add_signal(server->event, NULL, SIGTERM, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(server->event, NULL, SIGINT, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_time(server->event, &server->next, CLOCK_MONOTONIC, 0, 1000, on_next,
				      server);
	return r < 0 ? r : sd_event_source_set_enabled(server->next, SD_EVENT_OFF);
}

static int begin_serving(struct server *server)
{
	const struct web_pages_config pages = { .routes = replay_routes, .userdata = server };
	struct web_config web = { .max_connections = CONNECTIONS, .flag = "--serve" };
	const char *const addresses[WEB_ADDRESSES] = { [WEB_ADDRESS_HTTP] = server->asked->address };
	int r = history_service_new(server->asked->path, &server->history);

	if (r == 0)
		r = report_service_new(server->asked->path, &server->report);
	if (r == 0)
		r = web_pages_new(&pages, &server->pages);
	web.pages = server->pages;
	if (r == 0)
		r = web_new(server->event, &web, &server->web);
	if (r == 0)
		r = web_listen(server->web, addresses);
	if (r == 0)
		web_publish(server->web, server->shown);
	return r;
}

static void server_done(struct server *server)
{
	web_free(server->web);
	web_pages_free(server->pages);
	history_service_free(server->history);
	report_service_free(server->report);
	restored_free(server->shown);
	restored_free(server->coming);
	sd_event_source_disable_unref(server->next);
	sd_event_unref(server->event);
	pthread_mutex_destroy(&server->lock);
}

int replay_serve(struct store_reader *reader, const struct replay_pages *pages)
{
	struct server server = { .asked = pages, .reader = reader, .lock = PTHREAD_MUTEX_INITIALIZER };
	int r = show_first(&server);

	if (r == 0)
		r = add_sources(&server);
	if (r == 0)
		r = begin_serving(&server);
	if (r == 0 && pages->speed > 0)
		r = prepare_next(&server);
	if (r >= 0)
		r = sd_event_loop(server.event);
	server_done(&server);
	return r < 0 ? r : 0;
}
