// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/sample.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/thread.h"
#include "cmd/snapshot_client.h"
#include "cmd/top/columns.h"
#include "cmd/top/growth.h"
#include "cmd/top/host.h"
#include "cmd/top/hosts.h"
#include "cmd/top/prune.h"
#include "cmd/top/replayed.h"
#include "view/snapshot/read.h"
#include "view/view.h"

enum { STACK_BYTES = 1 << 20 };
#define END_PATIENCE_NS (200 * NSEC_PER_MSEC)
#define SOME_NS (250 * NSEC_PER_MSEC) /* what some hosts have said is shown after so long */

struct sampler {
	const struct options *options;
	const struct host_list *host_list; /* empty: this machine */
	int64_t period_ns;
	pthread_t thread;
	int ready, woken; /* eventfds: for the owner, for the thread */
	atomic_uint wanted;
	atomic_uint timeline; /* of this process; 0: nothing is asked */
	atomic_uint watched; /* whose environment is read; 0: nobody's */
	_Atomic int64_t asked_moment; /* real time; 0: none */
	atomic_bool ends, holds;
	struct replayed *replayed; /* NULL: what is now */
	pthread_mutex_t mutex;
	struct sample *newest, *moment; /* not taken yet */
	/* the thread's own */
	struct sample *previous; /* what was published last; NULL: nothing */
	json_int_t timeline_asked; /* the agent has not said yet what has become of it; 0: nothing is asked */
	bool timeline_ends;
	json_t *findings; /* the page as it was asked for last; NULL: there is none */
	int64_t findings_ns; /* when that was; 0: never */
	struct snapshot_client *client;
	struct host_process *before;
	uint32_t before_n;
	int64_t before_mono_ns;
};

struct sample *sample_ref(struct sample *sample)
{
	if (sample)
		atomic_fetch_add(&sample->references, 1);
	return sample;
}

void sample_free(struct sample *sample)
{
	if (!sample || atomic_fetch_sub(&sample->references, 1) > 1)
		return;
	for (uint32_t i = 0; i < sample->parts_n; i++)
		sample_free(sample->parts[i].sample);
	free(sample->parts);
	for (unsigned i = 0; i < PAGES; i++)
		json_decref(sample->pages[i]);
	snapshot_read_free(sample->snapshot);
	growth_free(sample->before);
	strbuf_done(&sample->text);
	free(sample->processes);
	free(sample->users);
	free(sample);
}

uint32_t sample_parts(const struct sample *sample)
{
	return sample->parts ? sample->parts_n : 1;
}

const struct sample *sample_part(const struct sample *sample, uint32_t i)
{
	return sample->parts ? sample->parts[i].sample : sample;
}

const struct host_process *sample_process(const struct sample *sample, uint32_t pid)
{
	return host_find(sample->processes, sample->processes_n, pid);
}

const char *sample_user(const struct sample *sample, uint32_t uid)
{
	for (uint32_t i = 0; i < sample->users_n; i++)
		if (sample->users[i].uid == uid)
			return sample->users[i].name;
	return NULL;
}

static struct sample *sample_new(void)
{
	struct sample *sample = calloc(1, sizeof(*sample));

	if (!sample)
		return NULL;
	atomic_init(&sample->references, 1);
	strbuf_init(&sample->text, 0);
	sample->mono_ns = clock_mono_ns();
	sample->real_ns = clock_real_ns();
	return sample;
}

/* What the screen shows of it is the sample's text, too. */
static int decode(struct sample *sample, const char *text, size_t length)
{
	struct strbuf *kept = &sample->text;

	prune(text, length, kept);
	if (kept->failed)
		return -ENOMEM;
	sample->pages[PAGE_NODE] = json_loadb(kept->data, kept->len, 0, NULL);
	if (!json_is_object(sample->pages[PAGE_NODE]))
		return -EBADMSG;
	return snapshot_read(sample->pages[PAGE_NODE], &sample->snapshot);
}

int sample_of_text(const char *text, size_t length, struct sample **ret_sample)
{
	_cleanup_(sample_freep) struct sample *sample = sample_new();
	int r = sample ? decode(sample, text, length) : -ENOMEM;

	if (r < 0)
		return r;
	strbuf_done(&sample->text);
	*ret_sample = TAKE_PTR(sample);
	return 0;
}

/* ---- the thread ---- */

static void sample_node(struct sampler *sampler, struct sample *sample)
{
	_cleanup_(strbuf_done) struct strbuf text = { 0 };
	const char *failure;
	int r;

	strbuf_init(&text, 0);
	r = snapshot_client_get(sampler->client, JSON_GPUS | JSON_PROCESSES | JSON_NODE | JSON_BRIEF, &text);
	failure = snapshot_client_failure(sampler->client);
	if (r == 0)
		r = text.failed ? -ENOMEM : decode(sample, text.data, text.len);
	sample->from_agent = snapshot_client_from_agent(sampler->client);
	snprintf(sample->note, sizeof(sample->note), "%s", snapshot_client_note(sampler->client));
	if (failure)
		snprintf(sample->failure, sizeof(sample->failure), "%s", failure);
	else if (r == -EBADMSG || r == -E2BIG)
		snprintf(sample->failure, sizeof(sample->failure),
			 "the agent's answer is not understood: check that it has this command's version");
	else if (r < 0)
		snprintf(sample->failure, sizeof(sample->failure), "%s", strerror(-r));
}

const char *page_path(enum page page)
{
	static const char *const paths[PAGES] = {
		[PAGE_NODE] = "/api/v1/snapshot?brief=yes", [PAGE_TRACE] = "/api/v1/trace",
		[PAGE_KERNELS] = "/api/v1/kernels",         [PAGE_EVENTS] = "/api/v1/events",
		[PAGE_FINDINGS] = "/api/v1/findings",       [PAGE_STACKS] = "/api/v1/stacks",
	};

	return paths[page];
}

/* A page that cannot be had is none: what is on (tracing, analysis) is said by the tab. */
static void sample_page(struct sampler *sampler, struct sample *sample, enum page page)
{
	_cleanup_(strbuf_done) struct strbuf text = { 0 };
	unsigned status = 0;

	strbuf_init(&text, 0);
	if (sample->from_agent &&
	    agent_request(sampler->options, "GET", page_path(page), &status, &text) == 0 && status == 200)
		sample->pages[page] = json_loadb(text.data, text.len, 0, NULL);
}

/*
 * What is wrong is said above all tabs, and findings are part of it. Each sample has a copy of its own, since
 * others are in other threads' hands.
 */
static void sample_findings(struct sampler *sampler, struct sample *sample, bool newest)
{
	if (!newest && sampler->findings_ns && sample->mono_ns - sampler->findings_ns < FINDINGS_NS) {
		sample->pages[PAGE_FINDINGS] = json_deep_copy(sampler->findings);
		return;
	}
	sample_page(sampler, sample, PAGE_FINDINGS);
	json_decref(sampler->findings);
	sampler->findings = json_deep_copy(sample->pages[PAGE_FINDINGS]);
	sampler->findings_ns = sample->mono_ns;
}

/* The agent's answer to GET, or to POST; NULL: it has none, and the sample says why. */
static json_t *ask_recorder(struct sampler *sampler, const char *method, const char *target,
			    struct sample *sample)
{
	_cleanup_(strbuf_done) struct strbuf text = { 0 };
	unsigned status = 0;
	int r;

	strbuf_init(&text, 0);
	r = agent_request(sampler->options, method, target, &status, &text);
	if (r < 0) {
		agent_explain(sampler->options, r, sample->answer, sizeof(sample->answer));
		return NULL;
	}
	if (status == 200 || status == 202)
		return json_loadb(text.data, text.len, 0, NULL);
	snprintf(sample->answer, sizeof(sample->answer), "%.*s", (int)strcspn(text.data, "\n"), text.data);
	return NULL;
}

/* Begins a timeline, or ends the one that is recorded. */
static void ask_timeline(struct sampler *sampler, uint32_t pid, struct sample *sample)
{
	json_t *state = ask_recorder(sampler, "GET", "/control/record", sample), *answer;
	char target[96];

	if (!state)
		return;
	sampler->timeline_ends = json_is_true(json_object_get(state, "recording"));
	json_decref(state);
	if (sampler->timeline_ends)
		snprintf(target, sizeof(target), "/control/record?action=stop");
	else
		snprintf(target, sizeof(target), "/control/record?action=start&pid=%" PRIu32, pid);
	answer = ask_recorder(sampler, "POST", target, sample);
	sampler->timeline_asked = json_integer_value(json_object_get(answer, "asked"));
	json_decref(answer);
}

/* Which file it is, once the agent has opened or written it. */
static void see_timeline(struct sampler *sampler, struct sample *sample)
{
	json_t *state = ask_recorder(sampler, "GET", "/control/record", sample);
	const json_t *file = json_object_get(state, "timeline");
	const char *error =
		*text_member(state, "error") ? text_member(state, "error") : text_member(file, "error");
	bool done = json_integer_value(json_object_get(state, "done")) >= sampler->timeline_asked;

	if (!state || (done && *error)) {
		sampler->timeline_asked = 0;
		if (*error)
			snprintf(sample->answer, sizeof(sample->answer), "%.200s", error);
	} else if (done && sampler->timeline_ends && json_is_true(json_object_get(file, "written"))) {
		sampler->timeline_asked = 0;
		snprintf(sample->answer, sizeof(sample->answer), "the timeline is written: %.200s",
			 text_member(file, "file"));
	} else if (done && !sampler->timeline_ends &&
		   json_integer_value(json_object_get(file, "files")) > 0) {
		sampler->timeline_asked = 0;
		snprintf(sample->answer, sizeof(sample->answer), "a timeline is recorded, t ends it: %.200s",
			 text_member(file, "file"));
	}
	json_decref(state);
}

static void publish_moment(struct sampler *sampler, struct sample *moment)
{
	struct sample *before;

	pthread_mutex_lock(&sampler->mutex);
	before = sampler->moment;
	sampler->moment = moment;
	pthread_mutex_unlock(&sampler->mutex);
	sample_free(before);
}

/* False: the agent is still reading it. */
static bool ask_moment(struct sampler *sampler, int64_t real_ns, struct sample *sample)
{
	_cleanup_(strbuf_done) struct strbuf text = { 0 };
	struct sample *moment = NULL;
	unsigned status = 0;
	char target[64];
	int r;

	strbuf_init(&text, 0);
	snprintf(target, sizeof(target), "/api/v1/moment?at=%" PRId64 ".%03d", real_ns / NSEC_PER_SEC,
		 (int)(real_ns % NSEC_PER_SEC / NSEC_PER_MSEC));
	r = agent_request(sampler->options, "GET", target, &status, &text);
	if (r == 0 && status == 202)
		return false;
	if (r == 0 && status == 200)
		r = sample_of_text(text.data, text.len, &moment);
	if (r == 0 && moment && moment->snapshot) {
		moment->real_ns = moment->snapshot->real_ns;
		publish_moment(sampler, moment);
		return true;
	}
	sample_free(moment);
	snprintf(sample->answer, sizeof(sample->answer),
		 "no earlier moment: the agent has no recording of that time (recording.path)");
	return true;
}

static void remember_host(struct sampler *sampler, const struct sample *sample)
{
	struct host_process *copy = malloc((sample->processes_n + 1) * sizeof(*copy));

	free(sampler->before);
	sampler->before = copy;
	sampler->before_n = copy ? sample->processes_n : 0;
	sampler->before_mono_ns = sample->mono_ns;
	if (copy)
		memcpy(copy, sample->processes, sample->processes_n * sizeof(*copy));
}

static void publish(struct sampler *sampler, struct sample *sample)
{
	struct sample *before;

	growth_follow(sample, sampler->previous);
	sample_free(sampler->previous);
	sampler->previous = sample_ref(sample);
	pthread_mutex_lock(&sampler->mutex);
	before = sampler->newest;
	sampler->newest = sample;
	pthread_mutex_unlock(&sampler->mutex);
	sample_free(before);
	eventfd_write(sampler->ready, 1);
}

static void sample_all(struct sampler *sampler)
{
	struct sample *sample = sample_new();
	unsigned wanted = atomic_load(&sampler->wanted), pid = atomic_exchange(&sampler->timeline, 0);
	int64_t moment_ns = atomic_exchange(&sampler->asked_moment, 0), none = 0;

	if (!sample)
		return;
	if (pid)
		ask_timeline(sampler, pid, sample);
	if (sampler->timeline_asked)
		see_timeline(sampler, sample);
	sample->watched_pid = atomic_load(&sampler->watched);
	if (sample->watched_pid)
		host_read_environment(sample);
	if (moment_ns && !ask_moment(sampler, moment_ns, sample))
		atomic_compare_exchange_strong(&sampler->asked_moment, &none, moment_ns);
	sample_node(sampler, sample);
	for (unsigned i = PAGE_NODE + 1; i < PAGES; i++)
		if (wanted >> i & 1 && i != PAGE_FINDINGS)
			sample_page(sampler, sample, (enum page)i);
	sample_findings(sampler, sample, wanted >> PAGE_FINDINGS & 1);
	if (host_fill(sample, sampler->before, sampler->before_n, sampler->before_mono_ns) == 0)
		remember_host(sampler, sample);
	publish(sampler, sample);
}

/* ---- several machines ---- */

static int on_woken(_unused_ sd_event_source *source, int fd, _unused_ uint32_t events,
		    _unused_ void *userdata)
{
	eventfd_t ignored;

	eventfd_read(fd, &ignored);
	return 0;
}

static void publish_hosts(struct sampler *sampler, struct hosts *hosts)
{
	struct sample *sample = sample_new();

	if (sample && hosts_fill(hosts, sample) == 0)
		publish(sampler, sample);
	else
		sample_free(sample);
}

/* Until the period is over, or other pages are wanted. What has come is published when all have answered. */
static int wait_for_hosts(struct sampler *sampler, sd_event *event, struct hosts *hosts, unsigned wanted)
{
	int64_t now_ns = clock_mono_ns(), end_ns = now_ns + sampler->period_ns, shown_ns = now_ns;
	int r = 0;

	while (r >= 0 && now_ns < end_ns && !atomic_load(&sampler->ends) &&
	       atomic_load(&sampler->wanted) == wanted) {
		if (hosts_have_news(hosts) && (hosts_are_done(hosts) || now_ns - shown_ns >= SOME_NS)) {
			publish_hosts(sampler, hosts);
			shown_ns = now_ns;
		}
		r = sd_event_run(event, (uint64_t)(MIN(end_ns - now_ns, SOME_NS) / NSEC_PER_USEC + 1));
		now_ns = clock_mono_ns();
	}
	return r;
}

static void *hosts_thread(void *userdata)
{
	struct sampler *sampler = userdata;
	_cleanup_(hosts_freep) struct hosts *hosts = NULL;
	sd_event *event = NULL;
	int r = sd_event_new(&event);

	if (r >= 0)
		r = sd_event_add_io(event, NULL, sampler->woken, EPOLLIN, on_woken, sampler);
	if (r >= 0)
		r = hosts_new(event, sampler->options, sampler->host_list, &hosts);
	while (r >= 0 && !atomic_load(&sampler->ends)) {
		unsigned wanted = atomic_load(&sampler->wanted);

		hosts_ask(hosts, wanted);
		r = wait_for_hosts(sampler, event, hosts, wanted);
		/* Ages grow, whether anybody has said anything. */
		publish_hosts(sampler, hosts);
	}
	hosts_free(TAKE_PTR(hosts));
	sd_event_unref(event);
	return NULL;
}

static void *sampler_thread(void *userdata)
{
	struct sampler *sampler = userdata;
	eventfd_t ignored;

	while (!atomic_load(&sampler->ends)) {
		int64_t next_ns = clock_mono_ns() + sampler->period_ns;

		eventfd_read(sampler->woken, &ignored);
		sample_all(sampler);
		if (snapshot_client_wait(sampler->client, MAX(next_ns - clock_mono_ns(), INT64_C(0)),
					 sampler->woken) < 0)
			break;
	}
	return NULL;
}

/* ---- a recording ---- */

static void say_failure(struct sampler *sampler, int error)
{
	struct sample *sample = sample_new();

	if (!sample)
		return;
	snprintf(sample->answer, sizeof(sample->answer), "%s", replayed_error(sampler->replayed, error));
	publish(sampler, sample);
}

static void replay_moment(struct sampler *sampler, int64_t real_ns)
{
	struct sample *sample;
	int r = replayed_moment(sampler->replayed, real_ns, &sample);

	if (r < 0) {
		say_failure(sampler, r);
		return;
	}
	publish_moment(sampler, sample);
	eventfd_write(sampler->ready, 1);
}

/* Returns how long to wait. */
static int64_t replay_on(struct sampler *sampler, int64_t *played_ns)
{
	int64_t now_ns = clock_mono_ns(), moment_ns = atomic_exchange(&sampler->asked_moment, 0);
	struct sample *sample;
	int r;

	if (moment_ns) {
		replay_moment(sampler, moment_ns);
		*played_ns = now_ns;
	} else if (atomic_load(&sampler->holds)) {
		*played_ns = now_ns;
	} else if (now_ns - *played_ns >= sampler->period_ns) {
		r = replayed_advance(sampler->replayed, now_ns - *played_ns, &sample);
		*played_ns = now_ns;
		if (r > 0)
			publish(sampler, sample);
		else if (r < 0)
			say_failure(sampler, r);
	}
	return MAX(*played_ns + sampler->period_ns - clock_mono_ns(), INT64_C(0));
}

static void *replay_thread(void *userdata)
{
	struct sampler *sampler = userdata;
	struct pollfd woken = { .fd = sampler->woken, .events = POLLIN };
	int64_t played_ns = clock_mono_ns();
	eventfd_t ignored;

	while (!atomic_load(&sampler->ends)) {
		int64_t wait_ns = replay_on(sampler, &played_ns);

		poll(&woken, 1, (int)(wait_ns / NSEC_PER_MSEC) + 1);
		eventfd_read(sampler->woken, &ignored);
	}
	return NULL;
}

/* ---- its owner ---- */

static void sampler_done(struct sampler *sampler)
{
	snapshot_client_free(sampler->client);
	replayed_free(sampler->replayed);
	closep(&sampler->ready);
	closep(&sampler->woken);
	sample_free(sampler->newest);
	sample_free(sampler->previous);
	sample_free(sampler->moment);
	json_decref(sampler->findings);
	free(sampler->before);
	free(sampler);
}

static struct sampler *sampler_alloc(int64_t period_ns)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));

	if (!sampler)
		return NULL;
	sampler->period_ns = period_ns;
	pthread_mutex_init(&sampler->mutex, NULL);
	sampler->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sampler->woken = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return sampler;
}

static int sampler_start(struct sampler *sampler, void *(*thread)(void *userdata),
			 struct sampler **ret_sampler)
{
	int r = sampler->ready < 0 || sampler->woken < 0 ? -EMFILE : 0;

	if (r == 0)
		r = thread_start(STACK_BYTES, thread, sampler, &sampler->thread);
	if (r < 0)
		sampler_done(sampler);
	else
		*ret_sampler = sampler;
	return r;
}

int sampler_new(const struct options *options, const struct host_list *hosts, int64_t period_ns,
		struct sampler **ret_sampler)
{
	struct sampler *sampler = sampler_alloc(period_ns);
	int r;

	if (!sampler)
		return -ENOMEM;
	sampler->options = options;
	sampler->host_list = hosts;
	r = snapshot_client_new(options, &sampler->client);
	if (r < 0) {
		sampler_done(sampler);
		return r;
	}
	return sampler_start(sampler, hosts->n > 0 ? hosts_thread : sampler_thread, ret_sampler);
}

int sampler_new_replayed(struct replayed *replayed, int64_t period_ns, struct sampler **ret_sampler)
{
	struct sampler *sampler = sampler_alloc(period_ns);

	if (!sampler) {
		replayed_free(replayed);
		return -ENOMEM;
	}
	sampler->replayed = replayed;
	return sampler_start(sampler, replay_thread, ret_sampler);
}

void sampler_hold(struct sampler *sampler, bool holds)
{
	if (atomic_exchange(&sampler->holds, holds) != holds)
		eventfd_write(sampler->woken, 1);
}

void sampler_free(struct sampler *sampler)
{
	if (!sampler)
		return;
	atomic_store(&sampler->ends, true);
	eventfd_write(sampler->woken, 1);
	if (thread_join(sampler->thread, END_PATIENCE_NS))
		sampler_done(sampler);
}

void sampler_want(struct sampler *sampler, unsigned pages)
{
	if (atomic_exchange(&sampler->wanted, pages) != pages)
		eventfd_write(sampler->woken, 1);
}

void sampler_watch(struct sampler *sampler, uint32_t pid)
{
	if (atomic_exchange(&sampler->watched, pid) != pid)
		eventfd_write(sampler->woken, 1);
}

void sampler_timeline(struct sampler *sampler, uint32_t pid)
{
	atomic_store(&sampler->timeline, pid);
	eventfd_write(sampler->woken, 1);
}

void sampler_ask_moment(struct sampler *sampler, int64_t real_ns)
{
	atomic_store(&sampler->asked_moment, real_ns);
	eventfd_write(sampler->woken, 1);
}

struct sample *sampler_take_moment(struct sampler *sampler)
{
	struct sample *sample;

	pthread_mutex_lock(&sampler->mutex);
	sample = TAKE_PTR(sampler->moment);
	pthread_mutex_unlock(&sampler->mutex);
	return sample;
}

int sampler_fd(const struct sampler *sampler)
{
	return sampler->ready;
}

struct sample *sampler_take(struct sampler *sampler)
{
	struct sample *sample;
	eventfd_t ignored;

	eventfd_read(sampler->ready, &ignored);
	pthread_mutex_lock(&sampler->mutex);
	sample = TAKE_PTR(sampler->newest);
	pthread_mutex_unlock(&sampler->mutex);
	return sample;
}
