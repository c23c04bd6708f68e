// SPDX-License-Identifier: Apache-2.0
#include "python/figures.h"

#include <stdlib.h>
#include <string.h>

#include "activity/incarnations.h"
#include "activity/users.h"
#include "base/clock.h"
#include "base/hashmap.h"
#include "base/saturated.h"

enum { KNOWN = PYTHON_PROCESSES_MAX };

struct python_traced {
	bool over;
	uint32_t user;
	uint64_t incarnation; /* 0: not known */
	uint64_t first_ns; /* when the first of its events ended */
	struct python_process shown; /* without comm, waiters */
	struct hashmap waiter_by; /* by TID */
	struct python_waiter *waiters;
	uint32_t waiters_n, waiters_cap;
};

struct python_figures {
	uint32_t series, series_used;
	bool keep;
	struct traced_users *users; /* borrowed; NULL: all processes are one user's */
	struct python_traced *processes[PYTHON_PROCESSES_MAX];
	uint32_t processes_n, waiters_n, unknown_version;
	uint64_t unknown;
	struct hashmap by_tgid; /* of those that run */
	struct incarnations incarnations;
	struct {
		uint32_t tgid;
		uint64_t since_ns, since_boot_ns; /* CLOCK_MONOTONIC, CLOCK_BOOTTIME */
	} known[KNOWN]; /* the newest processes whose interpreter was found */
	struct python_sum waits, collections[PYTHON_COLLECTIONS];
};

/* ---- processes and threads ---- */

static void python_traced_free(struct python_traced *p)
{
	hashmap_done(&p->waiter_by);
	free(p->waiters);
	free(p);
}

static struct python_traced *python_traced_find(const struct python_figures *f, uint32_t tgid)
{
	uint32_t i;

	return hashmap_get(&f->by_tgid, tgid, &i) ? f->processes[i] : NULL;
}

static struct python_traced *python_traced_get(struct python_figures *f, const struct trace_call *event)
{
	struct python_traced *p = python_traced_find(f, event->header.tgid);
	uint32_t user;

	if (p || f->processes_n == PYTHON_PROCESSES_MAX ||
	    traced_users_enter(f->users, TRACED_TABLE_PYTHON, event->header.tgid, &user) < 0)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p || hashmap_put(&f->by_tgid, event->header.tgid, f->processes_n) < 0) {
		traced_users_give(f->users, TRACED_TABLE_PYTHON, user, 1);
		free(p);
		return NULL;
	}
	p->user = user;
	p->shown.pid = event->header.tgid;
	p->incarnation = incarnations_of(&f->incarnations, p->shown.pid);
	p->first_ns = add_saturated(event->header.time_ns, event->duration_ns);
	p->shown.has_series = f->series_used < f->series;
	f->series_used += p->shown.has_series;
	f->processes[f->processes_n++] = p;
	return p;
}

/* Whether its interpreter was found before this time. */
static bool is_known(const struct python_figures *f, uint32_t tgid, uint64_t time_ns)
{
	return f->known[tgid % KNOWN].tgid == tgid && f->known[tgid % KNOWN].since_ns < time_ns;
}

static void python_traced_end(struct python_figures *f, struct python_traced *p, uint64_t time_ns)
{
	p->over = true;
	p->shown.known |= is_known(f, p->shown.pid, time_ns);
	hashmap_del(&f->by_tgid, p->shown.pid);
}

/* NULL: there is no room. */
static struct python_waiter *waiter_get(struct python_figures *f, struct python_traced *p, uint32_t tid)
{
	uint32_t i, cap = p->waiters_cap ? 2 * p->waiters_cap : 8;
	struct python_waiter *grown;

	if (hashmap_get(&p->waiter_by, tid, &i))
		return &p->waiters[i];
	if (p->waiters_n == PYTHON_WAITERS_MAX || p->waiters_n >= PYTHON_ALL_WAITERS_MAX - f->waiters_n ||
	    !traced_users_have(f->users, TRACED_TABLE_WAITERS, p->user, 1))
		return NULL;
	if (p->waiters_n == p->waiters_cap) {
		grown = reallocarray(p->waiters, cap, sizeof(*grown));
		if (!grown)
			return NULL;
		p->waiters = grown;
		p->waiters_cap = cap;
	}
	if (hashmap_put(&p->waiter_by, tid, p->waiters_n) < 0)
		return NULL;
	p->waiters[p->waiters_n] = (struct python_waiter){ .tid = tid };
	f->waiters_n++;
	traced_users_take(f->users, TRACED_TABLE_WAITERS, p->user, 1);
	return &p->waiters[p->waiters_n++];
}

/* ---- events ---- */

bool python_is_event(const struct trace_header *event)
{
	return event->type == TRACE_EVENT_CALL && event->op >= TRACE_OP_PYTHON_FIRST &&
	       event->op <= TRACE_OP_PYTHON_LAST;
}

static void on_waits(struct python_figures *f, const struct trace_call *event)
{
	struct python_traced *p = python_traced_get(f, event);
	struct python_waiter *waiter = p ? waiter_get(f, p, event->header.tid) : NULL;

	python_sum_add(&f->waits, event->size, event->duration_ns, event->addr);
	if (p) {
		/* A child of fork() has its parent's interpreter. */
		p->shown.known = true;
		python_sum_add(&p->shown.waits, event->size, event->duration_ns, event->addr);
	}
	if (waiter)
		python_sum_add(&waiter->waits, event->size, event->duration_ns, event->addr);
}

static void on_collection(struct python_figures *f, const struct trace_call *event)
{
	unsigned generation = event->kind < PYTHON_GENERATIONS ? event->kind : PYTHON_GENERATIONS;
	struct python_traced *p = python_traced_get(f, event);

	python_sum_add(&f->collections[generation], 1, event->duration_ns, event->duration_ns);
	if (p)
		python_sum_add(&p->shown.collections[generation], 1, event->duration_ns, event->duration_ns);
}

/* The process in which an interpreter was found runs another program or has ended. */
static bool knowledge_ends(const struct python_figures *f, const struct trace_header *event, uint32_t size)
{
	const struct trace_process *process = (const struct trace_process *)event;

	if (event->type != TRACE_EVENT_PROCESS)
		return is_known(f, event->tgid, event->time_ns);
	return size >= sizeof(*process) &&
	       process->start_boot_ns > f->known[event->tgid % KNOWN].since_boot_ns;
}

static void on_life(struct python_figures *f, const struct trace_header *event, uint32_t size)
{
	struct python_traced *p = python_traced_find(f, event->tgid);

	incarnations_event(&f->incarnations, event, size);
	if (p && incarnation_ends(&p->incarnation, p->first_ns, event, size))
		python_traced_end(f, p, event->time_ns);
	if (knowledge_ends(f, event, size))
		f->known[event->tgid % KNOWN].tgid = 0;
}

void python_figures_event(struct python_figures *f, const struct trace_header *event, uint32_t size)
{
	const struct trace_call *call = (const struct trace_call *)event;

	if (event->type == TRACE_EVENT_PROCESS || event->type == TRACE_EVENT_EXEC ||
	    event->type == TRACE_EVENT_EXIT)
		on_life(f, event, size);
	if (!python_is_event(event) || size < sizeof(*call))
		return;
	if (event->op == TRACE_OP_PYTHON_GIL)
		on_waits(f, call);
	else if (event->op == TRACE_OP_PYTHON_GC)
		on_collection(f, call);
}

void python_figures_known(struct python_figures *f, uint32_t tgid)
{
	f->known[tgid % KNOWN].tgid = tgid;
	f->known[tgid % KNOWN].since_ns = (uint64_t)clock_mono_ns();
	f->known[tgid % KNOWN].since_boot_ns = (uint64_t)clock_boot_ns();
}

void python_figures_unknown(struct python_figures *f, uint32_t version)
{
	f->unknown++;
	f->unknown_version = version;
}

void python_figures_lost(struct python_figures *f, uint32_t tgid)
{
	for (uint32_t i = 0; i < f->processes_n; i++)
		if (!f->processes[i]->over && (tgid == 0 || f->processes[i]->shown.pid == tgid))
			f->processes[i]->shown.incomplete = true;
}

void python_figures_process_over(struct python_figures *f, uint32_t tgid, uint64_t incarnation)
{
	struct python_traced *p = python_traced_find(f, tgid);

	if (p && incarnation_is(p->incarnation, incarnation))
		python_traced_end(f, p, UINT64_MAX);
}

/* ---- start and end ---- */

void python_figures_share(struct python_figures *f, struct traced_users *users)
{
	f->users = users;
	traced_users_room(users, TRACED_TABLE_PYTHON, PYTHON_PROCESSES_MAX);
	traced_users_room(users, TRACED_TABLE_WAITERS, PYTHON_ALL_WAITERS_MAX);
}

struct python_figures *python_figures_new(uint32_t series, bool keep)
{
	struct python_figures *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->series = series;
	f->keep = keep;
	return f;
}

void python_figures_free(struct python_figures *f)
{
	for (uint32_t i = 0; f && i < f->processes_n; i++)
		python_traced_free(f->processes[i]);
	if (f)
		hashmap_done(&f->by_tgid);
	free(f);
}

/* ---- figures ---- */

static int traced_by_pid(const void *a, const void *b)
{
	const struct python_traced *x = *(const struct python_traced *const *)a,
				   *y = *(const struct python_traced *const *)b;

	if (x->shown.pid != y->shown.pid)
		return x->shown.pid < y->shown.pid ? -1 : 1;
	return y->over - x->over; /* the one that has ended first */
}

static int by_waited(const struct python_waiter *x, const struct python_waiter *y)
{
	if (x->waits.total_ns != y->waits.total_ns)
		return x->waits.total_ns > y->waits.total_ns ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* Adds it to the first ones, which are in order. */
static void waiter_show(struct python_waiter *shown, uint32_t *n, const struct python_waiter *waiter)
{
	uint32_t at = *n;

	while (at > 0 && by_waited(waiter, &shown[at - 1]) < 0)
		at--;
	if (at == PYTHON_WAITERS_SHOWN)
		return;
	*n = MIN(*n + 1, (uint32_t)PYTHON_WAITERS_SHOWN);
	memmove(&shown[at + 1], &shown[at], (*n - 1 - at) * sizeof(*shown));
	shown[at] = *waiter;
}

static void python_process_fill(const struct python_figures *f, const struct python_traced *p,
				struct python_view *view)
{
	struct python_process *shown = &view->processes[view->processes_n++];

	*shown = p->shown;
	shown->exited = p->over;
	shown->known |= !p->over && is_known(f, shown->pid, UINT64_MAX);
	shown->waiters_first = view->waiters_n;
	for (uint32_t i = 0; i < p->waiters_n; i++)
		waiter_show(&view->waiters[view->waiters_n], &shown->waiters_n, &p->waiters[i]);
	shown->more_waiters = p->waiters_n - shown->waiters_n;
	shown->more_waits = shown->waits.count;
	for (uint32_t i = 0; i < shown->waiters_n; i++)
		shown->more_waits -= view->waiters[view->waiters_n + i].waits.count;
	view->waiters_n += shown->waiters_n;
}

/* The processes have other places now. The map has room for them: it had them before. */
static void python_index_again(struct python_figures *f)
{
	hashmap_clear(&f->by_tgid);
	for (uint32_t i = 0; i < f->processes_n; i++)
		if (!f->processes[i]->over)
			hashmap_put(&f->by_tgid, f->processes[i]->shown.pid, i);
}

static void forget_ended(struct python_figures *f)
{
	for (uint32_t i = f->processes_n; i-- > 0;) {
		if (!f->processes[i]->over)
			continue;
		f->series_used -= f->processes[i]->shown.has_series;
		f->waiters_n -= f->processes[i]->waiters_n;
		traced_users_give(f->users, TRACED_TABLE_WAITERS, f->processes[i]->user,
				  f->processes[i]->waiters_n);
		traced_users_give(f->users, TRACED_TABLE_PYTHON, f->processes[i]->user, 1);
		python_traced_free(f->processes[i]);
		f->processes[i] = f->processes[--f->processes_n];
	}
}

struct python_view *python_figures_window(struct python_figures *f)
{
	struct python_view *view;
	uint32_t waiters = 0;

	for (uint32_t i = 0; i < f->processes_n; i++)
		waiters += MIN(f->processes[i]->waiters_n, (uint32_t)PYTHON_WAITERS_SHOWN);
	view = python_view_new(f->processes_n, waiters);
	if (!view)
		return NULL;
	qsort(f->processes, f->processes_n, sizeof(f->processes[0]), traced_by_pid);
	for (uint32_t i = 0; i < f->processes_n; i++)
		python_process_fill(f, f->processes[i], view);
	view->unknown = f->unknown;
	view->unknown_version = f->unknown_version;
	view->waits = f->waits;
	memcpy(view->collections, f->collections, sizeof(view->collections));
	if (!f->keep)
		forget_ended(f);
	python_index_again(f);
	return view;
}
