// SPDX-License-Identifier: Apache-2.0
/*
 * Processes, or rather what they are between one exec and the next: incarnations. One begins with the PROCESS
 * event of its first call, or with any call if that event was lost; it ends with its EXEC or EXIT event, when
 * another begins under the same PID, or when the caller says so. It is then shown once more, and
 * forgotten. Whether it has series of its own is decided when it begins, so that what it did is in one series
 * only.
 */
#include "cuda/private.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"

struct process *process_find(struct cuda *cuda, uint32_t tgid)
{
	uint32_t index;

	if (cuda->last < cuda->processes_n && cuda->processes[cuda->last]->tgid == tgid &&
	    !cuda->processes[cuda->last]->over)
		return cuda->processes[cuda->last];
	if (!hashmap_get(&cuda->process_map, salted(cuda, tgid), &index))
		return NULL;
	cuda->last = index;
	return cuda->processes[index];
}

static bool processes_grow(struct cuda *cuda)
{
	uint32_t room = (uint32_t)MIN(MAX((uint64_t)16, (uint64_t)cuda->processes_room * 2),
				      (uint64_t)cuda->limits.processes);
	struct process **processes;

	if (room <= cuda->processes_room)
		return false;
	processes = realloc(cuda->processes, room * sizeof(struct process *));
	if (!processes)
		return false;
	cuda->processes = processes;
	cuda->processes_room = room;
	return true;
}

void process_free(struct cuda *cuda, struct process *p)
{
	if (!p)
		return;
	ledger_drop(cuda, p, NONE, true);
	for (uint32_t i = 0; i < p->usages_n; i++) {
		free(p->usages[i].spans);
		free(p->usages[i].measured);
	}
	free(p->usages);
	free(p->contexts);
	for (unsigned i = 0; i < TRACE_VARIABLES; i++)
		free(p->variables[i].value);
	functions_done(cuda, p);
	handles_done(cuda, p);
	rows_done(cuda, p);
	operator_rows_done(p);
	pool_done(&p->threads);
	pool_done(&p->streams);
	pool_done(&p->events);
	pool_done(&p->graphs);
	pool_done(&p->captures);
	pool_done(&p->holders);
	hashmap_done(&p->context_map);
	hashmap_done(&p->thread_map);
	hashmap_done(&p->stream_map);
	hashmap_done(&p->own_stream_map);
	hashmap_done(&p->event_map);
	hashmap_done(&p->graph_map);
	hashmap_done(&p->holder_map);
	for (unsigned i = 0; i < SPACES; i++)
		hashmap_done(&p->memory[i]);
	free(p->leaked);
	free(p);
}

static struct process *process_new(struct cuda *cuda, uint32_t tgid)
{
	struct process *p;

	if (cuda->processes_n >= cuda->limits.processes ||
	    (cuda->processes_n == cuda->processes_room && !processes_grow(cuda)))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->tgid = tgid;
	if (process_usage(p, 0) != 0 || context_setup(p) < 0 ||
	    hashmap_put(&cuda->process_map, salted(cuda, tgid), cuda->processes_n) < 0) {
		process_free(cuda, p);
		return NULL;
	}
	cuda->last = cuda->processes_n;
	cuda->processes[cuda->processes_n++] = p;
	series_take(&cuda->series, &p->claim);
	return p;
}

/*
 * The process of an event other than its begin or end. NULL: limit reached, or a late event of an ended
 * process.
 */
struct process *process_get(struct cuda *cuda, const struct trace_header *header)
{
	struct process *p = process_find(cuda, header->tgid);

	if (p && !p->over)
		return p;
	if (p && header->time_ns <= p->over_ns) {
		cuda->stats.late_events++;
		return NULL;
	}
	p = process_new(cuda, header->tgid);
	if (!p) {
		cuda->stats.overflow[CUDA_LIMIT_PROCESSES]++;
		return NULL;
	}
	p->first_ns = header->time_ns;
	p->incomplete = TRACED_INCOMPLETE_LOST;
	p->unheard = true;
	return p;
}

void process_first(struct cuda *cuda, const struct trace_process *event)
{
	struct process *p = process_find(cuda, event->header.tgid);

	/* A call on another CPU overtook the event: both are of the same process. */
	if (p && !p->over && p->incarnation != 0 && p->incarnation != event->incarnation)
		process_over(cuda, p, event->header.time_ns);
	if (!p || p->over)
		p = process_new(cuda, event->header.tgid);
	if (!p) {
		cuda->stats.overflow[CUDA_LIMIT_PROCESSES]++;
		return;
	}
	if (p->unheard)
		p->incomplete &= ~(unsigned)TRACED_INCOMPLETE_LOST; /* it was only overtaken */
	p->unheard = false;
	p->incarnation = event->incarnation;
	p->start_boot_ns = event->start_boot_ns;
	p->ns_pid = event->ns_tgid;
	p->first_ns = event->header.time_ns;
	snprintf(p->comm, sizeof(p->comm), "%.*s", (int)sizeof(event->comm), event->comm);
	utf8_sanitize(p->comm);
}

void process_over(struct cuda *cuda, struct process *p, uint64_t time_ns)
{
	if (p->over)
		return;
	p->over = true;
	p->over_ns = time_ns;
	streams_drop(cuda, p, NONE, time_ns);
	span_sinks_process_over(&cuda->span_sinks, p->tgid, p->incarnation);
	ledger_drop(cuda, p, NONE, true);
	handles_done(cuda, p);
}

void processes_forget(struct cuda *cuda)
{
	for (uint32_t i = 0; i < cuda->processes_n;) {
		struct process *p = cuda->processes[i], *last = cuda->processes[cuda->processes_n - 1];
		uint32_t index;

		if (!p->shown_over) {
			i++;
			continue;
		}
		/* A successor may have its PID by now. */
		if (hashmap_get(&cuda->process_map, salted(cuda, p->tgid), &index) && index == i)
			hashmap_del(&cuda->process_map, salted(cuda, p->tgid));
		series_give_up(&cuda->series, &p->claim);
		process_free(cuda, p);
		cuda->processes[i] = last;
		cuda->processes_n--;
		/* Replaces the value of an existing key: cannot fail. */
		if (p != last && hashmap_get(&cuda->process_map, salted(cuda, last->tgid), &index) &&
		    index == cuda->processes_n)
			hashmap_put(&cuda->process_map, salted(cuda, last->tgid), i);
	}
	cuda->last = NONE;
}

uint32_t process_usage(struct process *p, uint32_t uuid)
{
	struct usage *usages;
	uint32_t room;

	for (uint32_t i = 0; i < p->usages_n; i++)
		if (p->usages[i].device == uuid)
			return i;
	if (p->usages_n == p->usages_room) {
		room = p->usages_room ? MIN(p->usages_room * 2, (uint32_t)USAGES_MAX) : 2;
		usages = room > p->usages_room ? realloc(p->usages, room * sizeof(*usages)) : NULL;
		if (!usages)
			return p->usages_n ? 0 : NONE;
		p->usages = usages;
		p->usages_room = room;
	}
	p->usages[p->usages_n] = (struct usage){ .device = uuid };
	return p->usages_n++;
}

static void process_lose(struct process *p, unsigned incomplete)
{
	p->incomplete |= incomplete;
	if (incomplete & TRACED_INCOMPLETE_LOST)
		p->unheard = false;
}

void cuda_mark(struct cuda *cuda, uint32_t tgid, uint64_t incarnation, unsigned incomplete)
{
	struct process *p = process_find(cuda, tgid);

	/* Also an ended one, whose final figures have not been shown yet. */
	if (!p || (p->incarnation != 0 && p->incarnation != incarnation))
		return;
	/* Its devices depend on whether cuInit may have been missed. */
	if (incomplete & ~p->incomplete & TRACED_INCOMPLETE_LATE)
		p->looked = false;
	process_lose(p, incomplete);
}

void cuda_lost(struct cuda *cuda, uint64_t events)
{
	for (uint32_t i = 0; events > 0 && i < cuda->processes_n; i++)
		if (!cuda->processes[i]->over)
			process_lose(cuda->processes[i], TRACED_INCOMPLETE_LOST);
}

void cuda_process_over(struct cuda *cuda, uint32_t tgid, uint64_t incarnation)
{
	struct process *p = process_find(cuda, tgid);

	if (p && (p->incarnation == 0 || p->incarnation == incarnation))
		process_over(cuda, p, (uint64_t)clock_mono_ns());
}
