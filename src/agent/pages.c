// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's HTTP routes, in one table. Handlers run on the HTTP thread and read snapshots.
 */
#include "agent/agent.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "agent/own_capabilities.h"
#include "agent/readiness.h"
#include "config.h"
#include "view/names.h"
#include "view/view.h"

static const char plain_text[] = "text/plain; charset=utf-8";
static const char json_text[] = "application/json";

static const struct {
	const char *argument;
	enum dcgm_names names;
} dcgm_profiles[] = {
	{ "old", DCGM_NAMES_OLD },
	{ "4.9", DCGM_NAMES_49 },
};

static int metrics_variant(const struct http_request *request, void *userdata)
{
	(void)userdata;
	return (int)exposition_negotiate(request->accept);
}

static int get_metrics(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	enum exposition format = exposition_negotiate(request->accept);
	struct agent *agent = userdata;
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	int r = view_prometheus(snapshot, format, &reply->body);

	reply->content_type = exposition_content_type(format);
	snapshot_unref(snapshot);
	return r;
}

/* Index in dcgm_profiles; 0 without a query, -1 for an unknown name. */
static int dcgm_profile(const struct http_request *request)
{
	const char *wanted = request->argument(request, "names");

	if (!wanted)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(dcgm_profiles); i++)
		if (STRV_EQ(dcgm_profiles[i].argument, wanted))
			return (int)i;
	return -1;
}

static int dcgm_variant(const struct http_request *request, void *userdata)
{
	int profile = dcgm_profile(request);

	(void)userdata;
	_Static_assert(ARRAY_SIZE(dcgm_profiles) * EXPOSITIONS <= HTTP_VARIANTS, "a cached page for each");
	return profile < 0 ? -1 : profile * EXPOSITIONS + (int)exposition_negotiate(request->accept);
}

static int get_dcgm(const struct http_request *request, struct http_reply *reply, void *userdata)
{
	enum exposition format = exposition_negotiate(request->accept);
	struct agent *agent = userdata;
	int profile = dcgm_profile(request);

	if (profile < 0) {
		reply->status = 400;
		strbuf_adds(&reply->body, "400 bad request: names= must be");
		for (size_t i = 0; i < ARRAY_SIZE(dcgm_profiles); i++)
			strbuf_addf(&reply->body, "%s %s", i ? " or" : "", dcgm_profiles[i].argument);
		strbuf_addc(&reply->body, '\n');
		return 0;
	}
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	int r = view_dcgm(snapshot, dcgm_profiles[profile].names, format, &reply->body);

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
JSON_PAGE(get_snapshot, JSON_GPUS | JSON_PROCESSES | JSON_NODE)

/* No cache: these answers depend on the time of the request, not only on a snapshot. */
static int uncached(_unused_ const struct http_request *request, _unused_ void *userdata)
{
	return -1;
}

static int get_health(_unused_ const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	bool alive = liveness(snapshot, clock_boot_ns());

	reply->status = alive ? 200 : 503;
	strbuf_adds(&reply->body,
		    alive ? "ok\n" :
			    "the agent's main loop has stopped; restart the agent and report this\n");
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
	char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;

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

static int get_status(_unused_ const struct http_request *request, struct http_reply *reply, void *userdata)
{
	struct agent *agent = userdata;
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	struct nvml_status s;
	char why[REASON_MAX], places[AGENT_PLACES][sizeof(agent->places[0])];

	pthread_mutex_lock(&agent->lock);
	s = agent->status;
	memcpy(places, agent->places, sizeof(places));
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

	snapshot_unref(snapshot);
	return put_json(json, reply);
}

static int get_index(const struct http_request *request, struct http_reply *reply, void *userdata);

/* path, methods, only over the UNIX socket, variant, handler, help */
#define PAGES(PAGE)                                                                                        \
	PAGE("/", HTTP_GET, false, NULL, get_index, "this list")                                           \
	PAGE("/metrics", HTTP_GET, false, metrics_variant, get_metrics,                                    \
	     "Prometheus text, or OpenMetrics if asked for")                                               \
	PAGE("/metrics/dcgm", HTTP_GET, false, dcgm_variant, get_dcgm,                                     \
	     "the names of the DCGM exporter; ?names=4.9 for those from release 4.9 on")                   \
	PAGE("/api/v1/gpus", HTTP_GET, false, NULL, get_gpus, "GPUs and MIG instances as JSON")            \
	PAGE("/api/v1/processes", HTTP_GET, false, NULL, get_processes, "processes on GPUs as JSON")       \
	PAGE("/api/v1/node", HTTP_GET, false, NULL, get_node,                                              \
	     "the machine, its driver and the agent as JSON")                                              \
	PAGE("/api/v1/trace", HTTP_GET, false, NULL, get_trace, "traced processes and CUDA calls as JSON") \
	PAGE("/api/v1/kernels", HTTP_GET, false, NULL, get_kernels,                                        \
	     "kernels that traced processes launch as JSON")                                               \
	PAGE("/api/v1/snapshot", HTTP_GET, false, NULL, get_snapshot,                                      \
	     "GPUs, processes and node in one document")                                                   \
	PAGE("/healthz", HTTP_GET, false, uncached, get_health, "is the agent alive?")                     \
	PAGE("/readyz", HTTP_GET, false, uncached, get_ready, "are the data fresh? If not, why")           \
	PAGE("/control/status", HTTP_GET, true, uncached, get_status,                                      \
	     "state of the driver's child (UNIX socket only)")                                             \
	PAGE("/control/capabilities", HTTP_GET, true, uncached, get_capabilities,                          \
	     "capabilities that the agent has, and lacks (UNIX socket only)")                              \
	PAGE("/control/release", HTTP_POST, true, uncached, post_release,                                  \
	     "release the driver (UNIX socket only)")                                                      \
	PAGE("/control/resume", HTTP_POST, true, uncached, post_resume,                                    \
	     "attach to the driver again (UNIX socket only)")

#define ROUTE(path_, methods_, local_, variant_, handle_, help_) \
	{ path_, methods_, local_, variant_, handle_ },
#define HELP(path_, methods_, local_, variant_, handle_, help_) { path_, help_ },

static const struct http_route routes[] = { PAGES(ROUTE){ 0 } };

static int get_index(_unused_ const struct http_request *request, struct http_reply *reply, void *userdata)
{
	static const struct {
		const char *path, *help;
	} pages[] = { PAGES(HELP) };
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

const struct http_route *agent_routes(void)
{
	return routes;
}
