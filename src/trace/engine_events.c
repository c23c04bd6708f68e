// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/clock.h"
#include "proc/proc.h"
#include "trace/engine_private.h"

/* The kernel wakes this thread when 1/8 of the ring is full; otherwise the timer does, every latency_ns. */
#define WAKE_SHARE 8

static void take_name(struct sums_process *process, const struct trace_process *event)
{
	process->start_boot_ns = event->start_boot_ns;
	memcpy(process->comm, event->comm, sizeof(process->comm));
	process->comm[sizeof(process->comm) - 1] = 0;
	process->no_event = false;
}

const char *trace_engine_comm(const struct trace_engine *engine, uint32_t tgid)
{
	const struct sums_process *process = sums_find(&engine->sums, tgid);

	return process && process->comm[0] ? process->comm : NULL;
}

static struct sums_process *process_seen(struct trace_engine *engine, uint32_t tgid, uint64_t incarnation)
{
	struct sums_process *process;
	bool made;
	int r = sums_process_seen(&engine->sums, tgid, incarnation, &process, &made);

	if (r == -ENOSPC || r == -ESTALE)
		engine->reconcile = true; /* reads or deletes its entries in the maps */
	if (r < 0)
		return NULL;
	if (made) {
		process->no_event = true;
		process->budget.begin_ns = clock_mono_ns();
		process->incomplete = engine_incomplete(engine, process);
	}
	return process;
}

void engine_mark(struct trace_engine *engine, struct sums_process *process)
{
	process->incomplete |= engine_incomplete(engine, process);
	if (process->incomplete != process->told_incomplete)
		event_sinks_incomplete(&engine->sinks, process->tgid, process->incarnation,
				       process->incomplete);
	process->told_incomplete = process->incomplete;
}

static void on_process(struct trace_engine *engine, const struct trace_process *event)
{
	struct sums_process *process = process_seen(engine, event->header.tgid, event->incarnation);

	if (process)
		take_name(process, event);
	event_sinks_event(&engine->sinks, &event->header, sizeof(*event));
	if (!process)
		return;
	process->told_incomplete = 0;
	engine_mark(engine, process);
}

static void on_ended(struct trace_engine *engine, const struct trace_process *event)
{
	struct sums_process *process = process_seen(engine, event->header.tgid, event->incarnation);

	if (!process)
		return;
	if (process->no_event)
		take_name(process, event);
	if (event->lost & TRACE_TABLES_OF_CALLS)
		process->incomplete |= TRACE_INCOMPLETE_UNCOUNTED;
	sums_process_ended(&engine->sums, process);
}

static void on_stat(struct trace_engine *engine, const struct trace_stat_new *event)
{
	struct sums_process *process = process_seen(engine, event->header.tgid, event->incarnation);

	if (!process)
		return;
	if (sums_call_seen(&engine->sums, process, event->header.call) < 0)
		engine->reconcile = true; /* out of memory: tries again later */
	engine_mark(engine, process);
}

/* A stack costs its process something; what is left out of a sample does not. */
static void count_stack(struct trace_engine *engine, const struct trace_header *event)
{
	struct sums_process *process;

	if (event->stack == TRACE_STACK_OFF || event->stack == TRACE_STACK_SKIPPED ||
	    event->stack == TRACE_STACK_GIVEN_UP)
		return;
	process = sums_find(&engine->sums, event->tgid);
	if (process)
		process->stacks++;
}

/* Waits for an interpreter's lock are no hits of probes, so engine_hits() does not count their events. */
static void count_wait(struct trace_engine *engine, const struct trace_header *event)
{
	struct sums_process *process = sums_find(&engine->sums, event->tgid);

	if (process)
		budget_add(&process->budget, PROBE_GROUP_CALLS, 0, 1);
}

static void on_record(const void *data, uint32_t size, void *userdata)
{
	struct trace_engine *engine = userdata;
	const struct trace_header *event = ring_order_take(&engine->order, data, size);

	if (engine->order.missing > engine->lost_reported)
		engine_check_lost(engine);
	if (!event)
		return;
	if (event->type == TRACE_EVENT_STAT) {
		on_stat(engine, (const struct trace_stat_new *)event);
		return;
	}
	if (event->type == TRACE_EVENT_PROCESS) {
		on_process(engine, (const struct trace_process *)event);
		return;
	}
	if (event->type == TRACE_EVENT_CALL || event->type == TRACE_EVENT_LAUNCH)
		count_stack(engine, event);
	if (event->type == TRACE_EVENT_CALL && event->op == TRACE_OP_PYTHON_GIL)
		count_wait(engine, event);
	event_sinks_event(&engine->sinks, event, size);
	if (event->type == TRACE_EVENT_EXIT || event->type == TRACE_EVENT_EXEC)
		on_ended(engine, (const struct trace_process *)event);
}

static void mark_lost(struct trace_engine *engine)
{
	for (uint32_t i = 0; i < engine->sums.processes_n; i++)
		if (!engine->sums.processes[i]->ended)
			engine->sums.processes[i]->incomplete |= TRACE_INCOMPLETE_LOST;
}

void engine_check_lost(struct trace_engine *engine)
{
	const struct trace_counters *c = &engine->counters;
	uint64_t lost;

	if (attach_counters(engine->backend, &engine->counters, NULL, 0) < 0)
		return;
	if (c->dropped <= engine->lost_reported)
		return;
	lost = c->dropped - engine->lost_reported;
	engine->lost_reported = c->dropped;
	engine->reconcile = true;
	mark_lost(engine);
	event_sinks_lost(&engine->sinks, lost);
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / NSEC_PER_SEC;
}

int trace_engine_drain(struct trace_engine *engine)
{
	double begin;

	if (engine->draining || !engine->ring.pages || !ring_pending(&engine->ring))
		return 0;
	engine->draining = true;
	begin = cpu_seconds();
	event_sinks_turn(&engine->sinks);
	ring_drain(&engine->ring, on_record, engine);
	engine->event_seconds += cpu_seconds() - begin;
	engine->draining = false;
	/* If the ring fills faster than it is drained, other event sources still get their turn. */
	if (ring_pending(&engine->ring))
		sd_event_source_set_enabled(engine->more, SD_EVENT_ONESHOT);
	return 0;
}

static int on_ring(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t events,
		   void *userdata)
{
	return trace_engine_drain(userdata);
}

static int on_more(_unused_ sd_event_source *source, void *userdata)
{
	return trace_engine_drain(userdata);
}

static int on_timer(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct trace_engine *engine = userdata;

	trace_engine_drain(engine);
	return engine_events_arm(engine);
}

int engine_events_arm(struct trace_engine *engine)
{
	uint64_t usec = (uint64_t)(engine->config.latency_ns / NSEC_PER_USEC);
	int r;

	if (engine->probed_n == 0)
		return sd_event_source_set_enabled(engine->timer, SD_EVENT_OFF);
	r = sd_event_source_set_time_relative(engine->timer, usec);
	return r < 0 ? r : sd_event_source_set_enabled(engine->timer, SD_EVENT_ONESHOT);
}

/* Not called before events can come, since mapped pages count as this process's memory. */
int engine_events_map(struct trace_engine *engine)
{
	return engine->ring.pages ? 0 :
				    ring_map(attach_map_fd(engine->backend, "events"),
					     engine->config.attach.ring_bytes, &engine->ring);
}

int engine_events_start(struct trace_engine *engine)
{
	int fd = attach_map_fd(engine->backend, "events");
	int r;

	if (fd < 0)
		return fd;
	engine->control->wake_bytes = engine->config.attach.ring_bytes / WAKE_SHARE;
	/* Edge-triggered, so that only events submitted with a wake-up flag wake this thread. */
	r = sd_event_add_io(engine->event, &engine->ring_source, fd, EPOLLIN | EPOLLET, on_ring, engine);
	if (r >= 0)
		r = sd_event_add_defer(engine->event, &engine->more, on_more, engine);
	if (r >= 0)
		r = sd_event_source_set_enabled(engine->more, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(engine->event, &engine->timer, CLOCK_MONOTONIC, 0,
					       USEC_PER_SEC / 1000, on_timer, engine);
	if (r >= 0)
		r = sd_event_source_set_enabled(engine->timer, SD_EVENT_OFF);
	return r < 0 ? r : 0;
}
