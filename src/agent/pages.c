// SPDX-License-Identifier: Apache-2.0
/*
 * Handlers of the agent's pages (web/routes.def). They read snapshots, on the thread of the control socket or
 * on that which answers the process that listens (agent/web_pages.h).
 */
#include "agent/agent.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "agent/history.h"
#include "agent/own_capabilities.h"
#include "agent/readiness.h"
#include "agent/record_page.h"
#include "config.h"
#include "view/container.h"
#include "view/findings.h"
#include "view/names.h"
#include "view/stacks.h"
#include "view/view.h"
#include "web/routes.h"

static const char plain_text[] = "text/plain; charset=utf-8";
static const char json_text[] = "application/json";

static int get_metrics(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	enum exposition format = (enum exposition)(request->variant % EXPOSITIONS);
	struct agent *agent = userdata;
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	int r = view_prometheus(snapshot, format, &reply->body);

	reply->content_type = exposition_content_type(format);
	snapshot_unref(snapshot);
	return r;
}

static int get_dcgm(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	enum exposition format;
	struct agent *agent = userdata;
	struct dcgm_style style;
	struct snapshot *snapshot;
	int r;

	if (request->variant < 0)
		return dcgm_refuse(reply);
	style = agent->dcgm_style;
	style.names = dcgm_names(request->variant);
	format = dcgm_format(request->variant);
	snapshot = collector_snapshot(agent->collector);
	r = view_dcgm(snapshot, &style, format, &reply->body);
	reply->content_type = exposition_content_type(format);
	snapshot_unref(snapshot);
	return r;
}

static int get_json(struct agent *agent, struct http_reply *reply, unsigned sections)
{
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	int r = view_json_text(snapshot, sections, &reply->body);

	reply->content_type = json_text;
	snapshot_unref(snapshot);
	return r;
}

#define JSON_PAGE(name_, sections_)                                                             \
	static int name_(_unused_ const struct http_request *request, struct http_reply *reply, \
			 void *userdata)                                                        \
	{                                                                                       \
		return get_json(userdata, reply, sections_);                                    \
	}
JSON_PAGE(get_gpus, JSON_GPUS)
JSON_PAGE(get_processes, JSON_PROCESSES)
JSON_PAGE(get_node, JSON_NODE)
JSON_PAGE(get_trace, JSON_TRACE)
JSON_PAGE(get_kernels, JSON_KERNELS)
JSON_PAGE(get_events, JSON_EVENTS)
JSON_PAGE(get_snapshot, JSON_GPUS | JSON_PROCESSES | JSON_NODE)

/* gpusonde-web has them (serve/stream.h). */
static int get_stream(_unused_ const struct http_request *request, struct http_reply *reply,
		      _unused_ void *userdata)
{
	reply->status = 404;
	strbuf_adds(&reply->body, "404 events are at the agent's address (http.listen) only\n");
	return 0;
}

static int get_plain(_unused_ const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	int r = view_html(snapshot, &reply->body);

	reply->content_type = "text/html; charset=utf-8";
	snapshot_unref(snapshot);
	return r;
}

static int render_stacks(const struct stack_page *page, int format, struct http_reply *reply)
{
	switch (format) {
	case STACKS_FOLDED:
		reply->content_type = plain_text;
		view_stacks_remarks(page, &reply->body);
		for (size_t row = 0; row < page->rows_n;)
			row = view_stacks_folded(page, STACK_LAUNCHES, row, SIZE_MAX, &reply->body);
		return 0;
	case STACKS_PPROF:
		reply->content_type = "application/octet-stream";
		return view_stacks_pprof(page, &reply->body);
	case STACKS_HTML:
		reply->content_type = "text/html; charset=utf-8";
		return view_stacks_html(page, &reply->body);
	default:
		reply->content_type = json_text;
		return view_stacks_json(page, &reply->body);
	}
}

static void no_stacks(const struct trace_view *view, struct http_reply *reply)
{
	if (view && view->stacks_error < 0) {
		reply->status = 503;
		strbuf_addf(&reply->body, "503 this second's stacks could not be put together: %s\n",
			    strerror(-view->stacks_error));
		return;
	}
	reply->status = 404;
	strbuf_adds(&reply->body, "404 no stacks are recorded: trace.stacks is off, or tracing is\n");
}

static int get_stacks(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;
	struct snapshot *snapshot;
	int r = 0;

	if (request->variant < 0)
		return stacks_refuse(reply);
	snapshot = collector_snapshot(agent->collector);
	if (snapshot->trace && snapshot->trace->stacks)
		r = render_stacks(&snapshot->trace->stacks->page, request->variant, reply);
	else
		no_stacks(snapshot->trace, reply);
	snapshot_unref(snapshot);
	return r;
}

static int get_findings(_unused_ const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	int r = 0;

	if (snapshot->trace && snapshot->trace->findings) {
		reply->content_type = json_text;
		r = json_findings(snapshot->trace->findings, &reply->body);
	} else {
		reply->status = 404;
		strbuf_adds(&reply->body, "404 nothing is analysed: trace.analysis is off, or tracing is\n");
	}
	snapshot_unref(snapshot);
	return r;
}

static int get_history(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;

	return history_page(agent->history, request, reply);
}

static int get_moment(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;

	return moment_page(agent->history, request, reply);
}

/* ---- pages for collectors of containers' GPUs ---- */

static void set_age(struct http_reply *reply, const struct container_status *status)
{
	snprintf(reply->age.state, sizeof(reply->age.state), "%s", container_state_name(status->state));
	reply->age.real_ns = status->real_ns;
	reply->age.age_seconds = status->age_seconds;
}

/* Nothing was ever read, which is not the same as nothing to show. */
static int not_ready(const struct snapshot *snapshot, struct http_reply *reply)
{
	reply->status = 503;
	strbuf_addf(&reply->body, "503 nothing has been read yet: %s\n", outage_reason(snapshot));
	return 0;
}

static int get_container_metrics(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	int64_t now_ns = clock_boot_ns();
	struct container_status status = container_status(snapshot, now_ns);
	unsigned flags = (unsigned)MAX(request->variant, 0) | atomic_load(&agent->container_flags);
	int r;

	set_age(reply, &status);
	if (status.state == CONTAINER_NOT_READY && !(flags & CONTAINER_ZXPORTER)) {
		r = not_ready(snapshot, reply);
	} else {
		reply->content_type = json_text;
		r = view_container_metrics(snapshot, flags, now_ns, &reply->body);
	}
	snapshot_unref(snapshot);
	return r;
}

typedef int container_view(const struct snapshot *snapshot, int64_t now_boot_ns, struct strbuf *out);

static int get_summary(struct agent *agent, struct http_reply *reply, container_view *view)
{
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	int64_t now_ns = clock_boot_ns();
	struct container_status status = container_status(snapshot, now_ns);
	int r = view(snapshot, now_ns, &reply->body);

	set_age(reply, &status);
	reply->status = status.state == CONTAINER_NOT_READY ? 503 : 200;
	reply->content_type = json_text;
	snapshot_unref(snapshot);
	return r;
}

#define SUMMARY_PAGE(name_, view_)                                                              \
	static int name_(_unused_ const struct http_request *request, struct http_reply *reply, \
			 void *userdata)                                                        \
	{                                                                                       \
		return get_summary(userdata, reply, view_);                                     \
	}
SUMMARY_PAGE(get_node_metrics, view_node_metrics)
SUMMARY_PAGE(get_container_snapshot, view_container_snapshot)
SUMMARY_PAGE(get_node_snapshot, view_node_snapshot)

static int get_health(_unused_ const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	bool alive = liveness(snapshot, clock_boot_ns());

	reply->status = alive ? 200 : 503;
	strbuf_adds(&reply->body,
		    alive ? "OK" : "the agent's main loop has stopped; restart the agent and report this\n");
	snapshot_unref(snapshot);
	return 0;
}

static int get_ready(_unused_ const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	char why[REASON_MAX];
	bool ready = readiness(snapshot, clock_boot_ns(), why, sizeof(why));

	reply->status = ready ? 200 : 503;
	strbuf_addf(&reply->body, "%s: %s\n", ready ? "ready" : "not ready", why);
	snapshot_unref(snapshot);
	return 0;
}

/* Hands the request to the main loop; the client polls /control/status until it is done. */
static int post_request(struct agent *agent, enum agent_request request, struct http_reply *reply)
{
	uint64_t one = 1;

	atomic_store(&agent->request, (int)request);
	if (write(agent->request_fd, &one, sizeof(one)) < 0)
		return -errno;
	reply->status = 202;
	strbuf_adds(&reply->body, "accepted\n");
	return 0;
}

static int post_release(_unused_ const struct http_request *request, struct http_reply *reply, void *userdata)
{
	return post_request(userdata, REQUEST_RELEASE, reply);
}

static int post_resume(_unused_ const struct http_request *request, struct http_reply *reply, void *userdata)
{
	return post_request(userdata, REQUEST_RESUME, reply);
}

static int put_json(json_t *json, struct http_reply *reply)
{
	char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_ENSURE_ASCII) : NULL;

	json_decref(json);
	if (!text)
		return -ENOMEM;
	strbuf_addf(&reply->body, "%s\n", text);
	free(text);
	reply->content_type = json_text;
	return 0;
}

static int get_capabilities(_unused_ const struct http_request *request, struct http_reply *reply,
			    _unused_ void *userdata)
{
	return put_json(own_capabilities(), reply);
}

/* Where it keeps what outlives it, and why it cannot; "": it can. */
static json_t *state_of(const struct agent *agent)
{
	int error;
	const char *dir = collector_state_dir(agent->collector, &error);

	return json_pack("{s:s, s:s}", "state_dir", dir, "state_error", error ? strerror(error) : "");
}

static int get_status(_unused_ const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	struct nvml_status s;
	char why[REASON_MAX], places[AGENT_PLACES][sizeof(agent->places[0])], push[PUSH_STATE_MAX];

	pthread_mutex_lock(&agent->lock);
	s = agent->status;
	memcpy(places, agent->places, sizeof(places));
	memcpy(push, agent->push_state, sizeof(push));
	pthread_mutex_unlock(&agent->lock);
	bool ready = readiness(snapshot, clock_boot_ns(), why, sizeof(why));
	json_t *json =
		json_pack("{s:s, s:i, s:b, s:s, s:b, s:s, s:b, s:i, s:s, s:f, s:s, s:b, s:s, s:s, s:s, s:i}",
			  "version", GPUSONDE_VERSION, "pid", (int)getpid(), "ready", ready, "why", why,
			  "released", s.released, "state", driver_state_name(snapshot), "busy", s.busy,
			  "stuck", (int)s.stuck, "call", s.call, "call_seconds", s.call_seconds, "trouble",
			  s.error, "simulated", snapshot->simulated, "http", places[PLACE_HTTP], "atop",
			  places[PLACE_ATOP], "atop_socket", places[PLACE_ATOP_SOCKET], "child",
			  (int)s.child);

	if (json)
		json_object_set_new(json, "kubelet", json_string(snapshot->sources[SOURCE_KUBELET].error));
	if (json)
		json_object_set_new(json, "dcgm", json_string(snapshot->sources[SOURCE_DCGM].error));
	if (json)
		json_object_set_new(json, "kube", json_string(snapshot->sources[SOURCE_KUBE].error));
	if (json)
		json_object_set_new(json, "http_container", json_string(places[PLACE_CONTAINER]));
	if (json)
		json_object_set_new(json, "push", json_string(push));
	if (json)
		json_object_set_new(json, "exporter", json_string(places[PLACE_EXPORTER]));
	if (json)
		json_object_update_new(json, state_of(agent));
	snapshot_unref(snapshot);
	return put_json(json, reply);
}

/* The tracing thread does it; the client polls until `done` is the number that it got. */
static int control_record(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;
	struct record *record = atomic_load(&agent->record);
	struct record_request asked;

	if (!record || !record_is_possible(record)) {
		reply->status = 409;
		strbuf_adds(&reply->body, "nothing is traced: gpusonde doctor says why (trace.enabled)\n");
		return 0;
	}
	if (request->method != HTTP_POST)
		return put_json(record_page_status(record), reply);
	if (!record_page_parse(request, &asked, reply))
		return 0;
	reply->status = 202;
	return put_json(json_pack("{s:I}", "asked", (json_int_t)record_ask(record, &asked)), reply);
}

static int get_index(_unused_ const struct http_request *request, struct http_reply *reply, void *userdata)
{
	static const struct {
		const char *path, *help;
	} pages[] = {
#define PAGE(path_, methods_, local_, variant_, handle_, help_) { path_, help_ },
#include "web/routes.def"
	};
	struct agent *agent = userdata;
	struct snapshot *snapshot = collector_snapshot(agent->collector);

	strbuf_addf(&reply->body, "gpusonde %s%s\n\n", GPUSONDE_VERSION,
		    snapshot->simulated ? " (simulated GPUs)" : "");
	snapshot_unref(snapshot);
	for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
		strbuf_addf(&reply->body, "%-20s %s\n", pages[i].path, pages[i].help);
	reply->content_type = plain_text;
	return 0;
}

static const struct http_route routes[] = {
#define PAGE_AS(path_, methods_, local_, variant_, handle_, manner_, help_) \
	{ path_, methods_, local_, variant_, handle_, manner_ },
#define PAGE(path_, methods_, local_, variant_, handle_, help_) \
	PAGE_AS(path_, methods_, local_, variant_, handle_, NULL, help_)
#include "web/routes.def"
	{ 0 },
};

const struct http_route *agent_routes(void)
{
	return routes;
}
