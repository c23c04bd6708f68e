// SPDX-License-Identifier: Apache-2.0
#include "needs.h"
#include "test.h"

#include "tracing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/clock.h"

enum { RING = 1 << 20 };
#define PATIENCE_NS (20 * NSEC_PER_SEC)

static int take(void *userdata, void *data, size_t size)
{
	struct tracing *tracing = userdata;
	const struct trace_header *header = data;

	assert_true(size >= sizeof(*header) && size <= sizeof(union tracing_event));
	assert_true(header->cpu < TRACING_CPUS);
	tracing->received[header->cpu]++;
	if (tracing->events_n < TRACING_EVENTS) {
		tracing->sizes[tracing->events_n] = size;
		memcpy(&tracing->events[tracing->events_n++], data, size);
	}
	return 0;
}

/*
 * A kernel that has crashed in there keeps its lock for ever, and a process that asks then can never be
 * ended: a child asks.
 */
static bool tracefs_answers(void)
{
	static bool silent;
	const struct timespec pause = { .tv_nsec = 10 * NSEC_PER_MSEC };
	pid_t pid;
	char c;

	if (silent)
		return false;
	pid = fork();
	if (pid == 0) {
		int fd;

		/* Nobody is to wait for our end through a pipe. */
		close_range(0, ~0U, 0);
		fd = open("/sys/kernel/tracing/uprobe_events", O_RDONLY | O_CLOEXEC);

		_exit(fd >= 0 && read(fd, &c, 1) < 0);
	}
	for (int64_t end_ns = clock_mono_ns() + PATIENCE_NS; clock_mono_ns() < end_ns;
	     nanosleep(&pause, NULL))
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return true;
	kill(pid, SIGKILL);
	silent = true;
	return false;
}

static int setup(void **state, bool no_multi)
{
	const struct attach_config config = { .ring_bytes = RING,
					      .threads = 1024,
					      .procs = 256,
					      .stats = 256,
					      .layered_threads = 64,
					      .nested_threads = 64,
					      .operators = 64,
					      .no_multi = no_multi };
	struct tracing *tracing = calloc(1, sizeof(*tracing));

	if (!tracing)
		return -1;
	*state = tracing;
	if (no_multi && !tracefs_answers()) {
		snprintf(tracing->error.text, sizeof(tracing->error.text),
			 "tracefs does not answer: the kernel has crashed in it, see dmesg; restart the "
			 "machine");
		return 0;
	}
	if (attach_backend_new(&config, &tracing->backend, &tracing->error) == 0)
		tracing->ring =
			ring_buffer__new(attach_map_fd(tracing->backend, "events"), take, tracing, NULL);
	/* A program that the verifier refuses would be hidden by the other way. */
	if (tracing->backend && !no_multi && attach_kernel_has_multi() &&
	    strcmp(attach_backend_name(tracing->backend), "uprobe_multi") != 0) {
		fprintf(stderr, "this kernel has uprobe_multi, and it is not used: %s\n",
			tracing->error.text);
		return -1;
	}
	return 0;
}

int tracing_setup_multi(void **state)
{
	return setup(state, false);
}

int tracing_setup_event(void **state)
{
	return setup(state, true);
}

void tracing_detach(struct tracing *tracing)
{
	while (tracing->attached_n)
		attachment_free(tracing->attached[--tracing->attached_n]);
}

int tracing_teardown(void **state)
{
	struct tracing *tracing = *state;

	tracing_detach(tracing);
	ring_buffer__free(tracing->ring);
	attach_backend_free(tracing->backend);
	free(tracing);
	traced_body = NULL;
	return 0;
}

struct tracing *tracing_of(void **state)
{
	struct tracing *tracing = *state;

	if (!tracing->backend)
		need_unmet(tracing->error.text);
	assert_non_null(tracing->ring);
	return tracing;
}

void tracing_attach_site(struct tracing *tracing, const struct attach_site *site,
			 const struct trace_spec *spec)
{
	assert_true(tracing->attached_n + 2 <= TRACING_ATTACHED);
	assert_int_equal(attach_set_spec(tracing->backend, site->call, spec), 0);
	for (int returns = spec->flags & TRACE_SPEC_RETURNS ? 1 : 0; returns >= 0; returns--) {
		int r = attach(tracing->backend, traced_file(), 0, returns, site, 1,
			       &tracing->attached[tracing->attached_n]);

		assert_int_equal(r, 0);
		tracing->attached_n++;
	}
}

void tracing_attach(struct tracing *tracing, const void *code, uint16_t call, const struct trace_spec *spec)
{
	struct attach_site site = traced_site(code, call);

	tracing_attach_site(tracing, &site, spec);
}

void tracing_drain(struct tracing *tracing)
{
	assert_true(ring_buffer__consume(tracing->ring) >= 0);
}

const union tracing_event *tracing_event(const struct tracing *tracing, enum trace_event_type type, int call,
					 pid_t pid, unsigned i)
{
	for (unsigned k = 0; k < tracing->events_n; k++) {
		const struct trace_header *h = &tracing->events[k].header;

		if (h->type == type && (call < 0 || h->call == call) && h->tgid == (uint32_t)pid && i-- == 0)
			return &tracing->events[k];
	}
	return NULL;
}

size_t tracing_size(const struct tracing *tracing, const struct trace_header *event)
{
	return tracing->sizes[(const union tracing_event *)(const void *)event - tracing->events];
}

struct trace_stat tracing_stat(const struct tracing *tracing, pid_t pid, uint16_t call)
{
	int fd = attach_map_fd(tracing->backend, "stats");
	struct trace_stat sum = { 0 }, stat;
	struct trace_stat_key key, *before = NULL;

	while (bpf_map_get_next_key(fd, before, &key) == 0) {
		before = &key;
		if (key.tgid != (uint32_t)pid || key.call != call || bpf_map_lookup_elem(fd, &key, &stat) < 0)
			continue;
		sum.count += stat.count;
		sum.errors += stat.errors;
		sum.bytes += stat.bytes;
		sum.total_ns += stat.total_ns;
		sum.nested += stat.nested;
		sum.other_codes += stat.other_codes;
		sum.codes += stat.codes;
		for (unsigned i = 0; i < TRACE_BUCKETS; i++)
			sum.buckets[i] += stat.buckets[i];
	}
	return sum;
}

uint64_t tracing_errors(const struct tracing *tracing, pid_t pid, uint16_t call, int32_t result)
{
	int fd = attach_map_fd(tracing->backend, "errors");
	struct trace_error_key key, *before = NULL;
	struct trace_error error;
	uint64_t sum = 0;

	while (bpf_map_get_next_key(fd, before, &key) == 0) {
		before = &key;
		if (key.tgid == (uint32_t)pid && key.call == call && key.result == result &&
		    bpf_map_lookup_elem(fd, &key, &error) == 0)
			sum += error.count;
	}
	return sum;
}

struct trace_counters tracing_counters(const struct tracing *tracing)
{
	struct trace_counters counters;

	assert_int_equal(attach_counters(tracing->backend, &counters, NULL, 0), 0);
	return counters;
}
