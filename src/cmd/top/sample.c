// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/sample.h"

#include <errno.h>
#include <inttypes.h>
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
#include "cmd/top/host.h"
#include "view/snapshot_read.h"
#include "view/view.h"

enum { STACK_BYTES = 1 << 20 };
#define END_PATIENCE_NS (200 * NSEC_PER_MSEC)

struct sampler {
	const struct options *options;
	int64_t period_ns;
	pthread_t thread;
	int ready, woken; /* eventfds: for the owner, for the thread */
	atomic_uint wanted;
	atomic_uint timeline; /* of this process; 0: nothing is asked */
	_Atomic int64_t asked_moment; /* real time; 0: none */
	atomic_bool ends;
	pthread_mutex_t mutex;
	struct sample *newest, *moment; /* not taken yet */
	/* the thread's own */
	struct snapshot_client *client;
	struct host_process *before;
	uint32_t before_n;
	int64_t before_mono_ns;
};

void sample_free(struct sample *sample)
{
	if (!sample)
		return;
	for (unsigned i = 0; i < PAGES; i++)
		json_decref(sample->pages[i]);
	snapshot_read_free(sample->snapshot);
	strbuf_done(&sample->text);
	free(sample->processes);
	free(sample->users);
	free(sample);
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
	strbuf_init(&sample->text, 0);
	sample->mono_ns = clock_mono_ns();
	sample->real_ns = clock_real_ns();
	return sample;
}

static int decode(struct sample *sample, const char *text, size_t length)
{
	sample->pages[PAGE_NODE] = json_loadb(text, length, 0, NULL);
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
	*ret_sample = TAKE_PTR(sample);
	return 0;
}

/* ---- the thread ---- */

static void sample_node(struct sampler *sampler, struct sample *sample)
{
	int r = snapshot_client_get(sampler->client, JSON_GPUS | JSON_PROCESSES | JSON_NODE, &sample->text);
	const char *failure = snapshot_client_failure(sampler->client);

	if (r == 0)
		r = sample->text.failed ? -ENOMEM : decode(sample, sample->text.data, sample->text.len);
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

/* A page that cannot be had is none: what is on (tracing, analysis) is said by the tab. */
static void sample_page(struct sampler *sampler, struct sample *sample, enum page page)
{
	static const char *const paths[PAGES] = {
		[PAGE_TRACE] = "/api/v1/trace",
		[PAGE_KERNELS] = "/api/v1/kernels",
		[PAGE_EVENTS] = "/api/v1/events",
		[PAGE_FINDINGS] = "/api/v1/findings",
	};
	_cleanup_(strbuf_done) struct strbuf text = { 0 };
	unsigned status = 0;

	strbuf_init(&text, 0);
	if (sample->from_agent && agent_request(sampler->options, "GET", paths[page], &status, &text) == 0 &&
	    status == 200)
		sample->pages[page] = json_loadb(text.data, text.len, 0, NULL);
}

/* Begins a timeline, or ends the one that is recorded. */
static void ask_timeline(struct sampler *sampler, uint32_t pid, struct sample *sample)
{
	static const char path[] = "/control/record";
	_cleanup_(strbuf_done) struct strbuf text = { 0 };
	unsigned status = 0;
	char target[96];
	json_t *state;
	bool on;
	int r;

	strbuf_init(&text, 0);
	r = agent_request(sampler->options, "GET", path, &status, &text);
	state = r == 0 && status == 200 ? json_loadb(text.data, text.len, 0, NULL) : NULL;
	on = json_is_true(json_object_get(state, "recording"));
	json_decref(state);
	if (on)
		snprintf(target, sizeof(target), "%s?action=stop", path);
	else
		snprintf(target, sizeof(target), "%s?action=start&pid=%" PRIu32, path, pid);
	strbuf_reset(&text);
	if (r == 0)
		r = agent_request(sampler->options, "POST", target, &status, &text);
	if (r < 0)
		agent_explain(sampler->options, r, sample->answer, sizeof(sample->answer));
	else if (status != 202)
		snprintf(sample->answer, sizeof(sample->answer), "%.*s", (int)strcspn(text.data, "\n"),
			 text.data);
	else if (on)
		snprintf(sample->answer, sizeof(sample->answer),
			 "the timeline ends: gpusonde record status says which file");
	else
		snprintf(sample->answer, sizeof(sample->answer),
			 "a timeline of process %" PRIu32 " is recorded: t ends it", pid);
}

/* False: the agent is still reading it. */
static bool ask_moment(struct sampler *sampler, int64_t real_ns, struct sample *sample)
{
	_cleanup_(strbuf_done) struct strbuf text = { 0 };
	struct sample *moment = NULL, *before;
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
		pthread_mutex_lock(&sampler->mutex);
		before = sampler->moment;
		sampler->moment = moment;
		pthread_mutex_unlock(&sampler->mutex);
		sample_free(before);
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
	if (moment_ns && !ask_moment(sampler, moment_ns, sample))
		atomic_compare_exchange_strong(&sampler->asked_moment, &none, moment_ns);
	sample_node(sampler, sample);
	for (unsigned i = PAGE_NODE + 1; i < PAGES; i++)
		if (wanted >> i & 1)
			sample_page(sampler, sample, (enum page)i);
	if (host_fill(sample, sampler->before, sampler->before_n, sampler->before_mono_ns) == 0)
		remember_host(sampler, sample);
	publish(sampler, sample);
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

/* ---- its owner ---- */

static void sampler_done(struct sampler *sampler)
{
	snapshot_client_free(sampler->client);
	closep(&sampler->ready);
	closep(&sampler->woken);
	sample_free(sampler->newest);
	sample_free(sampler->moment);
	free(sampler->before);
	free(sampler);
}

int sampler_new(const struct options *options, int64_t period_ns, struct sampler **ret_sampler)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));
	int r;

	if (!sampler)
		return -ENOMEM;
	*sampler = (struct sampler){ .options = options, .period_ns = period_ns, .ready = -1, .woken = -1 };
	pthread_mutex_init(&sampler->mutex, NULL);
	sampler->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sampler->woken = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = sampler->ready < 0 || sampler->woken < 0 ? -errno : 0;
	if (r == 0)
		r = snapshot_client_new(options, &sampler->client);
	if (r == 0)
		r = thread_start(STACK_BYTES, sampler_thread, sampler, &sampler->thread);
	if (r < 0) {
		sampler_done(sampler);
		return r;
	}
	*ret_sampler = sampler;
	return 0;
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
