// SPDX-License-Identifier: Apache-2.0
#include "cmd/snapshot_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "agent/driver/collector.h"
#include "config/places.h"
#include "agent/readiness.h"
#include "serve/client.h"
#include "view/snapshot/read.h"
#include "view/view.h"

#define FIRST_READING_NS (5 * NSEC_PER_SEC) /* timeout; a healthy driver needs well under one second */
#define RATES_NS NSEC_PER_SEC /* between the two readings from which rates are computed */

struct snapshot_client {
	const struct options *options;
	sd_event *event;
	struct collector *collector; /* NULL: the agent answers, or there was no request yet */
	char note[400];
	char failure[400];
};

/* The page that has these sections, and perhaps more. */
static const char *page_of(unsigned sections)
{
	switch (sections) {
	case JSON_GPUS:
		return "/api/v1/gpus";
	case JSON_PROCESSES:
		return "/api/v1/processes";
	case JSON_NODE:
		return "/api/v1/node";
	case JSON_TRACE:
		return "/api/v1/trace";
	case JSON_KERNELS:
		return "/api/v1/kernels";
	case JSON_EVENTS:
		return "/api/v1/events";
	default:
		return sections & JSON_BRIEF ? "/api/v1/snapshot?brief=yes" : "/api/v1/snapshot";
	}
}

static bool is_no_agent(int error)
{
	return error == -ENOENT || error == -ECONNREFUSED;
}

int agent_request(const struct options *options, const char *method, const char *path, unsigned *ret_status,
		  struct strbuf *out)
{
	struct place places[PLACE_SOCKETS];
	unsigned n = places_of_socket(options, places);
	int r = -ENOENT;

	for (unsigned i = 0; i < n && is_no_agent(r); i++)
		r = control_request(places[i].path, method, path, out, ret_status);
	return r;
}

void agent_explain(const struct options *options, int error, char *ret_text, size_t size)
{
	struct place places[PLACE_SOCKETS];
	unsigned n = places_of_socket(options, places);
	const char *socket = places[0].path;

	if (n == 0) {
		snprintf(ret_text, size,
			 "no agent is queried, since control.socket is none: name the agent's socket with "
			 "--socket");
		return;
	}
	if (is_no_agent(error)) {
		snprintf(ret_text, size,
			 "no agent runs at %.100s%s%.100s (start it with gpusonde agent, or name its socket "
			 "with --socket)",
			 socket, n > 1 ? ", nor at " : "", n > 1 ? places[1].path : "");
		return;
	}
	/* The request went to the first socket that exists. */
	for (unsigned i = 1; i < n && access(socket, F_OK) < 0; i++)
		socket = places[i].path;
	switch (error) {
	case -EACCES:
	case -EPERM:
		snprintf(ret_text, size,
			 "no permission to query the agent at %s (use sudo, or join the socket's group: "
			 "control.group)",
			 socket);
		break;
	case -ETIMEDOUT:
		snprintf(ret_text, size,
			 "the agent at %s does not answer (run gpusonde doctor, or restart it)", socket);
		break;
	default:
		snprintf(ret_text, size, "the agent at %s cannot be queried: %s (run gpusonde doctor)",
			 socket, strerror(-error));
	}
}

int snapshot_client_new(const struct options *options, struct snapshot_client **ret_client)
{
	_cleanup_(snapshot_client_freep) struct snapshot_client *client = calloc(1, sizeof(*client));
	int r;

	if (!client)
		return -ENOMEM;
	client->options = options;
	r = sd_event_new(&client->event);
	if (r < 0)
		return r;
	*ret_client = TAKE_PTR(client);
	return 0;
}

void snapshot_client_free(struct snapshot_client *client)
{
	if (!client)
		return;
	collector_free(client->collector);
	sd_event_unref(client->event);
	free(client);
}

/* Runs the loop for @ns, or until there are @readings readings; @readings 0: for @ns. */
static int run(struct snapshot_client *client, uint64_t readings, int64_t ns)
{
	int64_t end = clock_mono_ns() + ns;

	for (;;) {
		int64_t left = end - clock_mono_ns();

		if (left <= 0 || (readings && collector_readings(client->collector) >= readings))
			return 0;
		int r = sd_event_run(client->event, (uint64_t)(left / NSEC_PER_USEC + 1));

		if (r < 0)
			return r;
	}
}

/* Takes two readings a second apart, or one if the first has no data. */
static int begin_sampling(struct snapshot_client *client)
{
	struct collector_config config = { .quiet = true, .host_figures = true };
	struct snapshot *snapshot;
	bool good;
	int r = collector_new(client->event, client->options, &config, &client->collector);

	if (r < 0)
		return r;
	/*
	 * Ticks update the reason why the first reading is delayed. If the child could not be started, there
	 * is nothing to wait for.
	 */
	for (int64_t waited = 0;
	     r == 0 && waited < FIRST_READING_NS && collector_readings(client->collector) == 0;
	     waited += RATES_NS) {
		struct nvml_status status;

		collector_tick(client->collector);
		collector_status(client->collector, &status);
		if (!status.running)
			break;
		r = run(client, 1, RATES_NS);
	}
	snapshot = collector_snapshot(client->collector);
	good = snapshot_driver(snapshot)->state == READING_OK && snapshot->fresh;
	snapshot_unref(snapshot);
	if (r < 0 || !good)
		return r;
	r = run(client, 0, RATES_NS);
	if (r < 0)
		return r;
	collector_tick(client->collector);
	return run(client, 2, FIRST_READING_NS);
}

static int sample(struct snapshot_client *client, unsigned sections, struct strbuf *out)
{
	struct snapshot *snapshot;
	int r = client->collector ? 0 : begin_sampling(client);

	if (r < 0) {
		snprintf(client->failure, sizeof(client->failure), "cannot sample: %s", strerror(-r));
		return r;
	}
	snapshot = collector_snapshot(client->collector);
	if (readiness(snapshot, clock_boot_ns(), client->failure, sizeof(client->failure)))
		client->failure[0] = 0;
	r = view_json_text(snapshot, sections, out);
	snapshot_unref(snapshot);
	return r;
}

/* The agent has its own driver library: notes that the one set for this command is not used. */
static void note_unused(struct snapshot_client *client)
{
	const struct option_value *library = &client->options->v[OPT_nvml_library];
	const char *what = NULL;

	if (library->origin == ORIGIN_FLAG || library->origin == ORIGIN_ENVIRONMENT)
		what = library->where;
	else if (getenv("GPUSONDE_SIM_SCENARIO"))
		what = "GPUSONDE_SIM_SCENARIO";
	client->note[0] = 0;
	if (what)
		snprintf(client->note, sizeof(client->note),
			 "these are the running agent's numbers, on which %s has no effect: with --socket "
			 "none this command takes its own samples",
			 what);
}

int snapshot_client_get(struct snapshot_client *client, unsigned sections, struct strbuf *out)
{
	char why[300];
	unsigned status = 0;
	int r = agent_request(client->options, "GET", page_of(sections), &status, out);

	if (r == 0 && status == 200) {
		collector_free(client->collector);
		client->collector = NULL;
		client->failure[0] = 0;
		note_unused(client);
		return 0;
	}
	strbuf_reset(out);
	agent_explain(client->options, r == 0 ? -EPROTO : r, why, sizeof(why));
	snprintf(client->note, sizeof(client->note), "%s: sampled by this command, counters begin now", why);
	return sample(client, sections, out);
}

static bool is_readable(int fd, int64_t wait_ns)
{
	const struct timespec ts = { wait_ns / NSEC_PER_SEC, wait_ns % NSEC_PER_SEC };
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return ppoll(&p, 1, &ts, NULL) == 1;
}

static int on_readable(sd_event_source *source, _unused_ int fd, _unused_ uint32_t events,
		       _unused_ void *userdata)
{
	return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

/* Whether @fd is readable before @end_ns. */
static int sample_until(struct snapshot_client *client, int64_t end_ns, int fd)
{
	int64_t period = options_number(client->options, OPT_sample_period),
		tick_ns = clock_mono_ns() + period;

	for (;;) {
		int64_t now_ns = clock_mono_ns();
		int r;

		if (now_ns >= tick_ns) {
			collector_tick(client->collector);
			tick_ns = now_ns + period;
		}
		if (now_ns >= end_ns)
			return 0;
		if (fd >= 0 && is_readable(fd, 0))
			return 1;
		r = sd_event_run(client->event,
				 (uint64_t)((MIN(end_ns, tick_ns) - now_ns) / NSEC_PER_USEC + 1));
		if (r < 0)
			return r;
	}
}

int snapshot_client_read(struct snapshot_client *client, unsigned sections, json_t **ret_document,
			 struct snapshot **ret_snapshot, char *ret_why, size_t size)
{
	json_t *document = NULL;
	struct strbuf text;
	int r;

	strbuf_init(&text, 0);
	r = snapshot_client_get(client, sections, &text);
	if (r == 0)
		document = json_loadb(text.data, text.len, 0, NULL);
	if (r == 0)
		r = snapshot_read(document, ret_snapshot);
	if (r == -EBADMSG || r == -E2BIG)
		snprintf(ret_why, size,
			 "the agent's answer is not understood: check that it has this command's version");
	else if (r < 0)
		snprintf(ret_why, size, "%s",
			 snapshot_client_failure(client) ? snapshot_client_failure(client) : strerror(-r));
	if (ret_document)
		*ret_document = document;
	else
		json_decref(document);
	strbuf_done(&text);
	return r;
}

int snapshot_client_wait(struct snapshot_client *client, int64_t ns, int fd)
{
	sd_event_source *source = NULL;
	int r = 0;

	if (!client->collector)
		return is_readable(fd, ns);
	if (fd >= 0)
		r = sd_event_add_io(client->event, &source, fd, EPOLLIN, on_readable, NULL);
	if (r >= 0)
		r = sample_until(client, clock_mono_ns() + ns, fd);
	sd_event_source_disable_unref(source);
	return r;
}

const char *snapshot_client_note(const struct snapshot_client *client)
{
	return client->note;
}

const char *snapshot_client_failure(const struct snapshot_client *client)
{
	return client->failure[0] ? client->failure : NULL;
}

bool snapshot_client_from_agent(const struct snapshot_client *client)
{
	return !client->collector;
}
