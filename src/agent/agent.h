// SPDX-License-Identifier: Apache-2.0
/*
 * The agent: collector, servers and tracer. The main thread owns all of it; the threads that render pages,
 * for the control socket and for the process that listens, access only the members below "shared", and
 * snapshots.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include <systemd/sd-event.h>

#include "config/cmdline.h"
#include "model/push_kinds.h"
#include "agent/atop_answers.h"
#include "agent/driver/collector.h"
#include "agent/dcgm/style.h"
#include "agent/outputs/prom_file.h"
#include "serve/http.h"

enum agent_request { REQUEST_NONE, REQUEST_RELEASE, REQUEST_RESUME };

/* The agent's addresses that /control/status reports. */
enum agent_place { PLACE_HTTP, PLACE_CONTAINER, PLACE_EXPORTER, PLACE_ATOP, PLACE_ATOP_SOCKET, AGENT_PLACES };

enum { PUSH_STATE_MAX = 1024 };

struct cupti_times;
struct history_service;
struct jobs;
struct dcgm;
struct inference;
struct kube;
struct kubelet;
struct device_access;
struct nccl_socket;
struct owner_files;
struct push;
struct record;
struct recording;
struct statsd;
struct textfile;
struct report_service;
struct timelines;
struct users;
struct tracer;
struct web;
struct web_pages;
struct web_watch;

struct agent {
	struct invocation *invocation; /* invocation->options are the options in effect */
	sd_event *event;
	sd_event_source *tick;
	sd_event_source *requests; /* wakes the main thread when a page has set @request */
	int64_t tick_ns; /* when the next tick is scheduled, on the boot clock */
	int64_t housekeeping_ns; /* when housekeeping() last ran, on the boot clock */
	unsigned housekeeping_runs;
	struct collector *collector;
	struct http *http; /* the control socket */
	struct atop_answers atop; /* of the thread of web_pages */
	struct web_pages *web_pages;
	struct web *web;
	struct web_watch *web_watch;
	struct tracer *tracer; /* NULL: the thread could not be started */
	struct owner_files *owner_files; /* NULL: not wanted */
	struct nccl_socket *nccl; /* NULL: no socket for NCCL's plugin */
	struct cupti_times *cupti; /* NULL: none for CUPTI's */
	struct jobs *jobs; /* NULL: environments are not read */
	struct dcgm *dcgm; /* NULL: no exporter is read */
	struct inference *inference; /* NULL: servers are not looked for */
	struct kubelet *kubelet; /* NULL: it is not asked */
	struct kube *kube; /* NULL: the API server is not asked */
	struct push *push[PUSH_KINDS]; /* NULL: nothing is pushed there */
	struct textfile *textfile; /* NULL: no file is written */
	struct statsd *statsd; /* NULL: nothing is sent */
	struct recording *recording; /* NULL: nothing is recorded */
	struct history_service *history; /* NULL: the same */
	struct report_service *report; /* NULL: the same */
	struct timelines *timelines;
	struct users *users;
	struct device_access *device_access; /* NULL: not wanted */
	struct dcgm_style dcgm_style; /* without names: those are the request's */
	const char *families; /* http.families: of the options */
	bool native_histograms; /* http.native_histograms */
	struct http_stats http_counted;
	double cpu_counted;
	char status_line[REASON_MAX]; /* last sent to systemd */

	/* shared with the threads of pages */
	int request_fd;
	atomic_int request; /* enum agent_request, only the newest */
	atomic_uint_fast64_t generation;
	_Atomic(struct record *) record; /* the tracer's; NULL: there is none yet */
	atomic_uint container_flags; /* of every /container/metrics: enum container_flags */
	pthread_mutex_t lock; /* protects what follows; held only to copy them */
	struct nvml_status status;
	char places[AGENT_PLACES][128]; /* configured addresses, "" if none */
	char access[64]; /* what is asked of clients over the network; "": nothing */
	char push_state[PUSH_KINDS][PUSH_STATE_MAX]; /* "off", "": it works, or why it does not */
	char textfile_state[PROM_FILE_ERROR]; /* the same */
	char statsd_state[160]; /* the same */
};

/* Runs the agent until a signal ends it. Returns the exit status; errors have been logged. */
int agent_run(struct invocation *invocation);

/* All HTTP routes (agent/pages.c). */
const struct http_route *agent_routes(void);

/*
 * Opens the control socket and the addresses of HTTP and atop. Errors are logged with their remedy
 * (agent/listen.c).
 */
int agent_listen(struct agent *agent, const struct options *options);
/* Copies the configured addresses for /control/status, and what pages are asked to be like. */
void agent_copy_places(struct agent *agent);
/* Reads the configuration again. If it has errors, logs them and keeps the current configuration. */
void agent_reload(struct agent *agent);
