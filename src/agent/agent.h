// SPDX-License-Identifier: Apache-2.0
/*
 * The agent: the collector, the servers, and what holds them together. The main thread owns all of it; the
 * HTTP thread sees the members below "shared", and snapshots.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include <systemd/sd-event.h>

#include "config/cmdline.h"
#include "agent/collector.h"
#include "serve/http.h"

enum agent_request { REQUEST_NONE, REQUEST_RELEASE, REQUEST_RESUME };

/* Where the agent is reached, by the names that /control/status has for them. */
enum agent_place { PLACE_HTTP, PLACE_ATOP, PLACE_ATOP_SOCKET, AGENT_PLACES };

struct atop_listeners;
struct tracer;

struct agent {
	struct invocation *invocation; /* its options are the ones in effect */
	sd_event *event;
	sd_event_source *tick;
	sd_event_source *requests; /* of the HTTP thread, by an eventfd */
	int64_t tick_ns; /* when the next tick is due, on the boot clock */
	int64_t housekeeping_ns; /* when the slow things were done last */
	unsigned housekeeping_runs;
	bool http_lost; /* after a reload no HTTP port could be had */
	struct collector *collector;
	struct http *http;
	struct atop_listeners *atop;
	struct tracer *tracer; /* NULL: no thread could be had */
	struct http_stats http_counted;
	double cpu_counted;
	char status_line[REASON_MAX]; /* as systemd has it */

	/* shared */
	int request_fd;
	atomic_int request; /* enum agent_request, the newest */
	atomic_uint_fast64_t generation;
	pthread_mutex_t lock; /* for status; held for a copy only */
	struct nvml_status status;
	char places[AGENT_PLACES][128]; /* where it is reached, "" not */
};

/* Runs the agent until a signal ends it; its exit status. What fails has been logged. */
int agent_run(struct invocation *invocation);

/* Every page (agent/pages.c). */
const struct http_route *agent_routes(void);

/* Opens the control socket and the HTTP port; what fails has been logged with its remedy (agent/listen.c). */
int agent_listen(struct agent *agent, const struct options *options);
/* Tries once more where a reload could neither have the new address nor the old one again. */
void agent_listen_again(struct agent *agent);
/* Keeps for /control/status which addresses were configured. */
void agent_tell_places(struct agent *agent);
/* Reads the configuration again, or says what is wrong with it and keeps the old one. */
void agent_reload(struct agent *agent);
