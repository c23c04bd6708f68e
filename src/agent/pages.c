// SPDX-License-Identifier: Apache-2.0
/*
 * Handlers of the agent's pages (web/routes.def). They read snapshots, on the thread of the control socket or
 * on that which answers the process that listens (agent/web/pages.h).
 */
#include "agent/agent.h"
#include "agent/outputs/push_config.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "agent/record/history.h"
#include "agent/own_capabilities.h"
#include "agent/readiness.h"
#include "agent/record/record_page.h"
#include "agent/record/report.h"
#include "agent/snapshot_pages.h"
#include "agent/record/timelines.h"
#include "agent/users.h"
#include "config.h"
#include "view/container/container.h"
#include "view/names.h"
#include "view/view.h"
#include "web/routes.h"

static const char json_text[] = "application/json";

/* Of the newest snapshot. */
static int show_newest(enum web_page page, const struct http_request *request, struct http_reply *reply,
		       struct agent *agent)
{
	const struct snapshot_page_style style = {
		.dcgm = &agent->dcgm_style,
		.families = agent->families,
		.without_native = !agent->native_histograms,
	};
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	int r = snapshot_page(page, snapshot, &style, request, reply);

	snapshot_unref(snapshot);
	return r;
}

#define SNAPSHOT_PAGE(name_, show_)                                                                    \
	static int name_(const struct http_request *request, struct http_reply *reply, void *userdata) \
	{                                                                                              \
		return show_newest(PAGE_##name_, request, reply, userdata);                            \
	}
#include "agent/snapshot_pages.def"

/* gpusonde-web has them (serve/stream.h). */
static int get_stream(_unused_ const struct http_request *request, struct http_reply *reply,
		      _unused_ void *userdata)
{
	reply->status = 404;
	strbuf_adds(&reply->body, "404 events are at the agent's address (http.listen) only\n");
	return 0;
}

static int get_history(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;

	return history_page(agent->history, 0, request, reply);
}

static int get_moment(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;

	return moment_page(agent->history, 0, request, reply);
}

static int get_report(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;

	return report_page(agent->report, 0, request, reply);
}

static int get_timelines(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;

	return timelines_page(agent->timelines, atomic_load(&agent->record), request, reply);
}

static int get_users(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;

	return users_page(agent->users, request, reply);
}

static int get_timeline(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;

	return timeline_page(agent->timelines, request, reply);
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

/* Who had the agent do what. Paths and actions are ours; the kernel says who asks (serve/request.c). */
static void audit(const struct http_request *request, const char *action, const struct http_reply *reply)
{
	log_notice("audit: %s%s%s by %s: %u", request->path, *action ? " " : "", action, request->who,
		   reply->status);
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

static int post_release(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	int r = post_request(userdata, REQUEST_RELEASE, reply);

	audit(request, "", reply);
	return r;
}

static int post_resume(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	int r = post_request(userdata, REQUEST_RESUME, reply);

	audit(request, "", reply);
	return r;
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

/* Of each destination. */
static json_t *push_states(char states[static PUSH_KINDS][PUSH_STATE_MAX])
{
	json_t *json = json_object();

	for (unsigned k = 0; json && k < PUSH_KINDS; k++)
		json_object_set_new(json, push_kind_names[k], json_string(states[k]));
	return json;
}

static int get_status(_unused_ const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	struct nvml_status s;
	char why[REASON_MAX], places[AGENT_PLACES][sizeof(agent->places[0])];
	char push[PUSH_KINDS][PUSH_STATE_MAX];
	char textfile[PROM_FILE_ERROR], statsd[sizeof(agent->statsd_state)];
	char access[sizeof(agent->access)];

	pthread_mutex_lock(&agent->lock);
	s = agent->status;
	memcpy(places, agent->places, sizeof(places));
	memcpy(push, agent->push_state, sizeof(push));
	memcpy(textfile, agent->textfile_state, sizeof(textfile));
	memcpy(statsd, agent->statsd_state, sizeof(statsd));
	memcpy(access, agent->access, sizeof(access));
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
		json_object_set_new(json, "access", json_string(access));
	if (json)
		json_object_set_new(json, "push", push_states(push));
	if (json)
		json_object_set_new(json, "textfile", json_string(textfile));
	if (json)
		json_object_set_new(json, "statsd", json_string(statsd));
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
	bool is_order = request->method == HTTP_POST, is_possible = record && record_is_possible(record);

	if (is_order && record_page_request(request, &asked) < 0)
		return EINVAL;
	if (!is_possible) {
		reply->status = 409;
		strbuf_adds(&reply->body, "nothing is traced: gpusonde doctor says why (trace.enabled)\n");
		if (is_order)
			audit(request, record_action_name(asked.action), reply);
		return 0;
	}
	if (!is_order)
		return put_json(record_page_status(record), reply);
	reply->status = 202;
	audit(request, record_action_name(asked.action), reply);
	return put_json(json_pack("{s:I}", "asked", (json_int_t)record_ask(record, &asked)), reply);
}

static const struct http_route routes[] = {
#define PAGE_AS(path_, methods_, right_, variant_, handle_, manner_, help_) \
	{ path_, methods_, right_, variant_, handle_, manner_ },
#define PAGE(path_, methods_, right_, variant_, handle_, help_) \
	PAGE_AS(path_, methods_, right_, variant_, handle_, NULL, help_)
#include "web/routes.def"
	{ 0 },
};

const struct http_route *agent_routes(void)
{
	return routes;
}
