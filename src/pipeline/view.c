// SPDX-License-Identifier: Apache-2.0
/*
 * Makes a view of the traced processes: src/cuda's figures by process and device, and the engine's sums by
 * call, joined by process.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "pipeline/private.h"
#include "proc/proc.h"

/* ---- sizes ---- */

struct view_room {
	struct cuda *cuda;
	uint32_t processes, calls, errors;
};

static uint32_t codes_of(const struct trace_sum *sum)
{
	uint32_t n = 0;

	while (n < TRACE_ERROR_CODES_MAX && sum->codes[n].count > 0)
		n++;
	return n;
}

/* The engine's bits of incompleteness have the same values in src/cuda and the views. */
#define SAME(id_)                                                                   \
	_Static_assert((unsigned)TRACE_INCOMPLETE_##id_ == TRACED_INCOMPLETE_##id_, \
		       "model/incomplete.def and trace/engine.h must agree")
SAME(LOST);
SAME(QUIET);
SAME(GIVEN_UP);
SAME(LATE);
SAME(NO_RETURNS);
SAME(SITES);
SAME(UNTRUSTED);
SAME(UNCOUNTED);

/* Counts, and passes the bits of incompleteness to src/cuda before it closes its window. */
static int count_room(const struct trace_process_sum *process, void *userdata)
{
	struct view_room *room = userdata;

	if (process->incomplete)
		cuda_mark(room->cuda, process->tgid, process->incarnation, process->incomplete);
	room->processes++;
	room->calls += process->sums_n;
	for (uint32_t i = 0; i < process->sums_n; i++)
		room->errors += codes_of(&process->sums[i]);
	return 0;
}

/* ---- filling ---- */

/* NULL if the code's library has no descriptions. */
static const char *error_words(const struct probe *probe, int32_t code)
{
	if (code == TRACE_RESULT_NULL && probe_spec(probe).result == TRACE_RESULT_POINTER)
		return "no result";
	return probe_libraries[probe->library].errors == LIBRARY_ERRORS_CUDA ? cuda_error_words(code) : NULL;
}

static void add_codes(struct trace_view *view, struct traced_call *call, const struct trace_sum *sum)
{
	uint32_t n = codes_of(sum);

	call->errors_first = view->errors_n;
	call->errors_n = n;
	for (uint32_t i = 0; i < n; i++)
		view->errors[view->errors_n++] =
			(struct traced_error){ sum->codes[i].code, sum->codes[i].count,
					       error_words(&probes[sum->call], sum->codes[i].code) };
}

void pipeline_fill_call(struct trace_view *view, struct traced_call *call, const struct trace_sum *sum)
{
	const struct probe *probe = &probes[sum->call];

	*call = (struct traced_call){
		.process = UINT32_MAX,
		.api = probe->symbol,
		.count = sum->count,
		.timed = trace_sum_below(sum, UINT64_MAX),
		.errors = sum->errors,
		.bytes = sum->bytes,
		.nested = sum->nested,
		.seconds = (double)sum->total_ns / 1e9,
		.p50_ns = trace_sum_quantile(sum, 0.50),
		.p95_ns = trace_sum_quantile(sum, 0.95),
		.p99_ns = trace_sum_quantile(sum, 0.99),
	};
	add_codes(view, call, sum);
}

/* Finds src/cuda's entry of the process, or adds one if src/cuda has none (limit reached, event lost). */
static uint32_t find_process(struct trace_view *view, uint32_t known, const struct trace_process_sum *process)
{
	const struct process_id id = { .pid = process->tgid,
				       .start_ticks = process_ticks(process->start_boot_ns) };
	struct traced_process *made;

	for (uint32_t i = trace_view_find(view, known, process->tgid);
	     i < known && view->processes[i].id.pid == process->tgid; i++)
		if (view->processes[i].exited == process->ended && view->processes[i].calls_n == 0 &&
		    process_id_may_equal(view->processes[i].id, id))
			return i;
	made = &view->processes[view->processes_n];
	*made = (struct traced_process){
		.id = id,
		.first_real_ns = clock_real_ns() - (clock_mono_ns() - (int64_t)process->incarnation),
		.exited = process->ended,
	};
	snprintf(made->comm, sizeof(made->comm), "%.*s", TRACE_COMM, process->comm);
	utf8_sanitize(made->comm);
	return view->processes_n++;
}

struct filling {
	struct trace_view *view;
	uint32_t known; /* number of processes from src/cuda */
	struct view_room room;
};

/* Bounds are checked only for safety; count_room() has counted the same rows. */
static int fill_process(const struct trace_process_sum *process, void *userdata)
{
	struct filling *f = userdata;
	struct trace_view *view = f->view;
	struct traced_process *p;
	uint32_t index;

	if (f->room.processes == 0 || process->sums_n > f->room.calls - view->calls_n)
		return -ENOSPC;
	f->room.processes--;
	index = find_process(view, f->known, process);
	p = &view->processes[index];
	p->incomplete |= process->incomplete;
	p->overhead = process->overhead;
	p->calls_first = view->calls_n;
	for (uint32_t i = 0; i < process->sums_n; i++) {
		const struct trace_sum *sum = &process->sums[i];

		/* So far only a call that has not returned. */
		if ((sum->count == 0 && sum->nested == 0) || sum->call >= probes_n)
			continue;
		pipeline_fill_call(view, &view->calls[view->calls_n], sum);
		view->calls[view->calls_n++].process = index;
	}
	p->calls_n = view->calls_n - p->calls_first;
	return 0;
}

static int by_api(const void *a, const void *b)
{
	return strcmp(((const struct traced_call *)a)->api, ((const struct traced_call *)b)->api);
}

static void fill_totals(struct trace_view *view, const struct trace_sum *const *totals, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct traced_call *call = &view->all_calls[view->all_calls_n];

		if (!totals[i] || totals[i]->count == 0 || i >= probes_n)
			continue;
		pipeline_fill_call(view, call, totals[i]);
		for (unsigned b = 0; b < TRACED_LE; b++)
			call->le[b] = trace_sum_below(totals[i], (uint64_t)(traced_le[b] * 1e9 + 0.5));
		view->all_calls_n++;
	}
	qsort(view->all_calls, view->all_calls_n, sizeof(view->all_calls[0]), by_api);
}

/* ---- order ---- */

struct place {
	uint32_t pid, index;
};

static int by_pid(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Sorts by PID, since added processes come after src/cuda's. */
static int sort_processes(struct trace_view *view)
{
	_cleanup_free_ struct place *places = calloc(view->processes_n, sizeof(*places));
	_cleanup_free_ uint32_t *new_index = calloc(view->processes_n, sizeof(*new_index));
	_cleanup_free_ struct traced_process *sorted = calloc(view->processes_n, sizeof(*sorted));

	if (!places || !new_index || !sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < view->processes_n; i++)
		places[i] = (struct place){ view->processes[i].id.pid, i };
	qsort(places, view->processes_n, sizeof(*places), by_pid);
	for (uint32_t i = 0; i < view->processes_n; i++) {
		sorted[i] = view->processes[places[i].index];
		new_index[places[i].index] = i;
	}
	memcpy(view->processes, sorted, view->processes_n * sizeof(*sorted));
	for (uint32_t i = 0; i < view->devices_n; i++)
		view->devices[i].process = new_index[view->devices[i].process];
	for (uint32_t i = 0; i < view->calls_n; i++)
		view->calls[i].process = new_index[view->calls[i].process];
	for (uint32_t i = 0; i < view->kernels_n; i++)
		view->kernels[i].process = new_index[view->kernels[i].process];
	return 0;
}

/* ---- the agent's own rows ---- */

static void set_agent(struct trace_view *view, enum agent_metric metric, double value)
{
	view->agent[metric] = value;
	view->agent_p[metric] = PRESENCE_PRESENT;
}

uint64_t pipeline_overflows(const struct pipeline *pipeline, const struct event_sinks *events)
{
	struct cuda_stats c;

	cuda_stats(pipeline->cuda, &c);
	return c.overflow_processes + c.overflow_streams + c.overflow_contexts + c.overflow_threads +
	       c.overflow_allocations + c.overflow_pending + c.overflow_events + c.overflow_kernels +
	       c.overflow_names + event_sinks_not_taken(events) +
	       span_sinks_not_taken(cuda_span_sinks(pipeline->cuda));
}

static double threads_of(const __u64 tables[TRACE_TABLES])
{
	return (double)(tables[TRACE_TABLE_THREADS] + tables[TRACE_TABLE_LAYERS]);
}

static void set_tables(struct trace_view *view, const struct trace_engine_status *s)
{
	set_agent(view, AGENT_TRACE_LOST_THREADS, threads_of(s->lost));
	set_agent(view, AGENT_TRACE_LOST_PROCESSES, (double)(s->lost[TRACE_TABLE_PROCS] + s->lost_processes));
	set_agent(view, AGENT_TRACE_LOST_CALLS, (double)s->lost[TRACE_TABLE_STATS]);
	set_agent(view, AGENT_TRACE_LOST_CODES, (double)s->lost[TRACE_TABLE_ERRORS]);
	set_agent(view, AGENT_TRACE_REFUSED_THREADS, threads_of(s->refused));
	set_agent(view, AGENT_TRACE_REFUSED_PROCESSES, (double)s->refused[TRACE_TABLE_PROCS]);
	set_agent(view, AGENT_TRACE_REFUSED_CALLS, (double)s->refused[TRACE_TABLE_STATS]);
	set_agent(view, AGENT_TRACE_REFUSED_CODES, (double)s->refused[TRACE_TABLE_ERRORS]);
}

static void fill_agent(struct trace_view *view, const struct pipeline *pipeline,
		       const struct event_sinks *events, const struct trace_engine_status *s,
		       uint64_t left_out)
{
	struct cuda_stats c;

	cuda_stats(pipeline->cuda, &c);
	set_agent(view, AGENT_SOURCE_UP_TRACE, 1);
	set_agent(view, AGENT_TRACE_PROCESSES, (double)MAX(s->targets.processes, (uint64_t)s->processes));
	set_agent(view, AGENT_TRACE_FILES, s->files);
	set_agent(view, AGENT_TRACE_USER_SITES, s->targets.user_sites);
	set_agent(view, AGENT_TRACE_UNREAD_UNTRUSTED, (double)s->targets.unread[TARGET_UNTRUSTED]);
	set_agent(view, AGENT_TRACE_UNREAD_SHARE, (double)s->targets.unread[TARGET_BEYOND_SHARE]);
	set_agent(view, AGENT_TRACE_UNREAD_BARRED, (double)s->targets.unread[TARGET_BARRED]);
	set_agent(view, AGENT_TRACE_READERS_HUNG,
		  (double)(s->targets.readers.files.hung + s->targets.readers.sites.hung));
	set_agent(view, AGENT_TRACE_READERS_CRASHED,
		  (double)(s->targets.readers.files.crashes + s->targets.readers.sites.crashes));
	set_agent(view, AGENT_TRACE_READERS_STUCK,
		  s->targets.readers.files.stuck + s->targets.readers.sites.stuck);
	set_agent(view, AGENT_TRACE_SITES_ATTACHED, s->sites_attached);
	set_agent(view, AGENT_TRACE_SITES_REFUSED, s->sites_refused);
	set_agent(view, AGENT_TRACE_SITES_GIVEN_UP, s->sites_given_up);
	set_agent(view, AGENT_TRACE_EVENTS_PRODUCED, (double)s->produced);
	set_agent(view, AGENT_TRACE_EVENTS_RECEIVED, (double)s->received);
	set_agent(view, AGENT_TRACE_EVENTS_DROPPED, (double)s->dropped);
	set_agent(view, AGENT_TRACE_HITS, (double)(s->hits + s->return_hits));
	set_agent(view, AGENT_TRACE_PROBE_SECONDS, s->probe_seconds);
	set_tables(view, s);
	set_agent(view, AGENT_TRACE_ABANDONED, (double)s->abandoned);
	set_agent(view, AGENT_TRACE_OVERFLOWS, (double)(pipeline_overflows(pipeline, events) + left_out));
	if (pipeline->symbols && pipeline->config.name_kernels) {
		set_agent(view, AGENT_TRACE_KERNEL_ANSWERS, (double)c.answers);
		set_agent(view, AGENT_TRACE_KERNEL_ANSWERS_LATE, (double)c.late_answers);
	}
	set_agent(view, AGENT_TRACE_UNKNOWN_FREES, (double)c.unknown_frees);
	set_agent(view, AGENT_TRACE_QUIET, s->processes_quiet);
	pipeline_symbols_view(pipeline, view);
}

static void describe_missing(struct trace_view *view, const struct trace_engine_status *s)
{
	const char *const missing[] = {
		proc_sees_all() ? NULL : TRACE_SEES_OWN_ONLY,
		s->targets.by_records || !s->targets.why_no_records[0] ? NULL : s->targets.why_no_records,
		s->no_returns,
	};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(missing) && n < sizeof(view->why); i++)
		if (missing[i])
			n += (size_t)snprintf(view->why + n, sizeof(view->why) - n, "%s%s", n > 0 ? "; " : "",
					      missing[i]);
}

static uint32_t totals_used(const struct trace_sum *const *totals, uint32_t n, uint32_t *ret_codes)
{
	uint32_t used = 0;

	*ret_codes = 0;
	for (uint32_t i = 0; i < n; i++)
		if (totals[i]) {
			used++;
			*ret_codes += codes_of(totals[i]);
		}
	return used;
}

int pipeline_view(struct pipeline *pipeline, struct trace_engine *engine, uint64_t left_out,
		  struct trace_view **ret_view)
{
	const struct trace_sum *const *totals;
	struct cuda_figures figures;
	struct filling filling = { .room.cuda = pipeline->cuda };
	struct trace_engine_status status;
	struct trace_view *view;
	uint32_t totals_n, codes_n, used;
	int r = trace_engine_each(engine, count_room, &filling.room);

	if (r == 0)
		r = cuda_window(pipeline->cuda, clock_mono_ns(), &figures);
	if (r < 0)
		return r;
	trace_engine_status(engine, &status);
	trace_engine_totals(engine, &totals, &totals_n);
	used = totals_used(totals, totals_n, &codes_n);
	r = trace_view_new(figures.processes_n + filling.room.processes, figures.devices_n,
			   filling.room.calls, used, filling.room.errors + codes_n, figures.totals_n,
			   figures.kernels_n, &view);
	if (r < 0)
		return r;
	view->processes_n = figures.processes_n;
	view->devices_n = figures.devices_n;
	view->totals_n = figures.totals_n;
	cuda_fill(pipeline->cuda, view);
	filling.view = view;
	filling.known = view->processes_n;
	trace_engine_each(engine, fill_process, &filling);
	fill_totals(view, totals, totals_n);
	r = filling.known < view->processes_n ? sort_processes(view) : 0;
	if (r < 0) {
		trace_view_unref(view);
		return r;
	}
	fill_agent(view, pipeline, trace_engine_sinks(engine), &status, left_out);
	describe_missing(view, &status);
	view->enabled = true;
	view->boot_ns = clock_boot_ns();
	snprintf(view->backend, sizeof(view->backend), "%s", status.backend);
	*ret_view = view;
	return 0;
}

int pipeline_view_off(const char *why, bool wanted, struct trace_view **ret_view)
{
	struct trace_view *view;
	int r = trace_view_new(0, 0, 0, 0, 0, 0, 0, &view);

	if (r < 0)
		return r;
	if (wanted)
		set_agent(view, AGENT_SOURCE_UP_TRACE, 0);
	snprintf(view->why, sizeof(view->why), "%s", why);
	view->boot_ns = clock_boot_ns();
	*ret_view = view;
	return 0;
}
