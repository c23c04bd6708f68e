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
#include "trace/arguments.h"

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
SAME(STACKS);
SAME(LAUNCH_RETURNS);
SAME(OPERATORS);
SAME(PYTHON);

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
	switch (probe_libraries[probe->library].errors) {
	case LIBRARY_ERRORS_CUDA:
		return cuda_error_words(code);
	case LIBRARY_ERRORS_CUBLAS:
		return blas_error_words(code);
	case LIBRARY_ERRORS_NCCL:
		return nccl_error_words(code);
	default:
		return NULL;
	}
}

static void add_codes(struct trace_view *view, struct traced_call *call, const struct trace_sum *sum)
{
	uint32_t n = codes_of(sum);

	call->errors_first = view->errors_n;
	call->errors_n = n;
	for (uint32_t i = 0; i < n; i++)
		view->errors[view->errors_n++] =
			(struct traced_error){ sum->codes[i].code, sum->codes[i].count,
					       error_words(probe_at(sum->call), sum->codes[i].code) };
}

static const char *layer_name(enum trace_layer layer)
{
	switch (layer) {
	case TRACE_LAYER_CUDA:
		return "cuda";
	case TRACE_LAYER_BLAS:
		return "blas";
	case TRACE_LAYER_NCCL:
		return "nccl";
	case TRACE_LAYER_PYTHON:
		return "python";
	default:
		return NULL;
	}
}

void pipeline_fill_call(struct trace_view *view, struct traced_call *call, const struct trace_sum *sum)
{
	const struct probe *probe = probe_at(sum->call);

	*call = (struct traced_call){
		.process = UINT32_MAX,
		.api = probe->symbol,
		.layer = layer_name(probe_libraries[probe->library].layer),
		.count = sum->count,
		.timed = trace_sum_timed(sum),
		.errors = sum->errors,
		.bytes = sum->bytes,
		.nested = sum->nested,
		.seconds = (double)sum->total_ns / 1e9,
		.p50_ns = trace_sum_quantile(sum, 0.50),
		.p95_ns = trace_sum_quantile(sum, 0.95),
		.p99_ns = trace_sum_quantile(sum, 0.99),
	};
	if (probe->user) {
		call->library = library_user()->at[probe->user - 1].library;
		call->has_series = probe->has_series;
	}
	add_codes(view, call, sum);
}

/* ---- arguments of functions that the user named ---- */

_Static_assert((int)TRACED_VALUES == (int)ARGUMENT_VALUES && (int)TRACED_TEXT == (int)ARGUMENT_TEXT,
	       "model/trace.h and trace/arguments.h must agree");

static void fill_argument(const struct argument_figures *from, const struct user_arg *arg,
			  struct traced_argument *to)
{
	*to = (struct traced_argument){
		.position = arg->position,
		.type = user_arg_type_name(arg->type),
		.is_text = arg->type == USER_ARG_STRING,
		.is_signed = argument_is_signed(arg->type),
		.count = from->count,
		.min = from->min,
		.max = from->max,
		.sum = from->sum,
		.values_n = from->values_n,
		.others = from->others,
		.unread = from->unread,
	};
	for (uint32_t i = 0; i < from->values_n; i++) {
		memcpy(to->values[i].text, from->values[i].text, sizeof(to->values[i].text));
		to->values[i].count = from->values[i].count;
	}
}

int pipeline_fill_arguments(struct trace_view *view, struct traced_call *call, uint16_t number,
			    const struct trace_engine *engine)
{
	const struct argument_figures *figures = trace_engine_arguments(engine, number);
	const struct user_probe *user;
	struct traced_argument *grown;

	if (!figures)
		return 0;
	user = &library_user()->at[probe_at(number)->user - 1];
	grown = reallocarray(view->arguments, view->arguments_n + user->args_n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	view->arguments = grown;
	call->arguments_first = view->arguments_n;
	call->arguments_n = user->args_n;
	for (unsigned i = 0; i < user->args_n; i++)
		fill_argument(&figures[i], &user->args[i], &view->arguments[view->arguments_n++]);
	return 0;
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
		if ((sum->count == 0 && sum->nested == 0) || sum->call >= probe_calls())
			continue;
		pipeline_fill_call(view, &view->calls[view->calls_n], sum);
		view->calls[view->calls_n++].process = index;
	}
	p->calls_n = view->calls_n - p->calls_first;
	return 0;
}

static int by_api(const void *a, const void *b)
{
	const struct traced_call *x = a, *y = b;

	if (!x->library != !y->library)
		return x->library ? 1 : -1;
	return strcmp(x->api, y->api);
}

_Static_assert((int)TRACE_BOUNDS == (int)TRACED_LE, "the kernel side's bounds are those of the model");

static int fill_totals(struct trace_view *view, const struct trace_engine *engine,
		       const struct trace_sum *const *totals, uint32_t n)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		struct traced_call *call = &view->all_calls[view->all_calls_n];

		if (!totals[i] || totals[i]->count == 0 || i >= probe_calls())
			continue;
		pipeline_fill_call(view, call, totals[i]);
		trace_sum_within(totals[i], call->within);
		view->all_calls_n++;
		r = pipeline_fill_arguments(view, call, (uint16_t)i, engine);
	}
	qsort(view->all_calls, view->all_calls_n, sizeof(view->all_calls[0]), by_api);
	return r;
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

uint64_t pipeline_not_taken(const struct pipeline *pipeline, const struct event_sinks *events)
{
	return event_sinks_not_taken(events) + span_sinks_not_taken(cuda_span_sinks(pipeline->cuda)) +
	       pipeline->works_dropped + (pipeline->measured ? measured_dropped(pipeline->measured) : 0);
}

static void set_overflows(struct trace_view *view, const struct pipeline *pipeline,
			  const struct cuda_stats *c, const struct event_sinks *events, uint64_t left_out)
{
	static const enum agent_metric limits[CUDA_LIMITS] = {
		[CUDA_LIMIT_PROCESSES] = AGENT_TRACE_OVERFLOWS_PROCESSES,
		[CUDA_LIMIT_STREAMS] = AGENT_TRACE_OVERFLOWS_STREAMS,
		[CUDA_LIMIT_CONTEXTS] = AGENT_TRACE_OVERFLOWS_CONTEXTS,
		[CUDA_LIMIT_THREADS] = AGENT_TRACE_OVERFLOWS_THREADS,
		[CUDA_LIMIT_ALLOCATIONS] = AGENT_TRACE_OVERFLOWS_ALLOCATIONS,
		[CUDA_LIMIT_PENDING] = AGENT_TRACE_OVERFLOWS_WAITS,
		[CUDA_LIMIT_EVENTS] = AGENT_TRACE_OVERFLOWS_EVENTS,
		[CUDA_LIMIT_KERNELS] = AGENT_TRACE_OVERFLOWS_KERNELS,
		[CUDA_LIMIT_NAMES] = AGENT_TRACE_OVERFLOWS_NAMES,
	};

	view_set_each(view, limits, CUDA_LIMITS, c->overflow);
	view_set(view, AGENT_TRACE_OVERFLOWS_CONSUMERS, (double)pipeline_not_taken(pipeline, events));
	view_set(view, AGENT_TRACE_OVERFLOWS_ENDED, (double)left_out);
}

static void set_events(struct trace_view *view, const struct trace_engine_status *s)
{
	static const enum agent_metric types[TRACE_EVENTS] = {
		[TRACE_EVENT_NONE] = AGENT_METRICS,
		[TRACE_EVENT_LAUNCH] = AGENT_TRACE_RECEIVED_LAUNCH,
		[TRACE_EVENT_CALL] = AGENT_TRACE_RECEIVED_CALL,
		[TRACE_EVENT_PROCESS] = AGENT_TRACE_RECEIVED_PROCESS,
		[TRACE_EVENT_EXEC] = AGENT_TRACE_RECEIVED_EXEC,
		[TRACE_EVENT_EXIT] = AGENT_TRACE_RECEIVED_EXIT,
		[TRACE_EVENT_NAME] = AGENT_TRACE_RECEIVED_NAME,
		[TRACE_EVENT_STAT] = AGENT_TRACE_RECEIVED_STAT,
		[TRACE_EVENT_CODE] = AGENT_TRACE_RECEIVED_CODE,
		[TRACE_EVENT_STACK] = AGENT_TRACE_RECEIVED_STACK,
		[TRACE_EVENT_NATIVE] = AGENT_TRACE_RECEIVED_NATIVE,
	};

	view_set(view, AGENT_TRACE_EVENTS_PRODUCED, (double)s->produced);
	view_set(view, AGENT_TRACE_EVENTS_RECEIVED, (double)s->received);
	view_set(view, AGENT_TRACE_EVENTS_DROPPED, (double)s->dropped);
	view_set_each(view, types, TRACE_EVENTS, s->received_by_type);
	view_set(view, AGENT_TRACE_RECEIVED_UNKNOWN, (double)s->unknown_events);
	view_set(view, AGENT_TRACE_RECEIVED_BAD, (double)s->bad_events);
}

static double operators_of(const __u64 tables[TRACE_TABLES])
{
	return (double)(tables[TRACE_TABLE_OPERATORS] + tables[TRACE_TABLE_NESTS]);
}

static double threads_of(const __u64 tables[TRACE_TABLES])
{
	return (double)(tables[TRACE_TABLE_THREADS] + tables[TRACE_TABLE_LAYERS]);
}

static void set_tables(struct trace_view *view, const struct trace_engine_status *s)
{
	view_set(view, AGENT_TRACE_LOST_THREADS, threads_of(s->lost));
	view_set(view, AGENT_TRACE_LOST_PROCESSES, (double)(s->lost[TRACE_TABLE_PROCS] + s->lost_processes));
	view_set(view, AGENT_TRACE_LOST_CALLS, (double)s->lost[TRACE_TABLE_STATS]);
	view_set(view, AGENT_TRACE_LOST_CODES, (double)s->lost[TRACE_TABLE_ERRORS]);
	view_set(view, AGENT_TRACE_LOST_OPERATORS, operators_of(s->lost));
	view_set(view, AGENT_TRACE_LOST_STACKS, (double)s->lost[TRACE_TABLE_WALKS]);
	view_set(view, AGENT_TRACE_LOST_PYTHON, (double)s->lost[TRACE_TABLE_PYTHON]);
	view_set(view, AGENT_TRACE_REFUSED_THREADS, threads_of(s->refused));
	view_set(view, AGENT_TRACE_REFUSED_PROCESSES, (double)s->refused[TRACE_TABLE_PROCS]);
	view_set(view, AGENT_TRACE_REFUSED_CALLS, (double)s->refused[TRACE_TABLE_STATS]);
	view_set(view, AGENT_TRACE_REFUSED_CODES, (double)s->refused[TRACE_TABLE_ERRORS]);
	view_set(view, AGENT_TRACE_REFUSED_OPERATORS, operators_of(s->refused));
	view_set(view, AGENT_TRACE_REFUSED_STACKS, (double)s->refused[TRACE_TABLE_WALKS]);
	view_set(view, AGENT_TRACE_REFUSED_PYTHON, (double)s->refused[TRACE_TABLE_PYTHON]);
}

static void set_cuda(struct trace_view *view, const struct cuda_stats *c)
{
	static const enum agent_metric ends[CUDA_STREAM_ENDS] = {
		[CUDA_STREAM_DESTROYED] = AGENT_TRACE_STREAMS_DESTROYED,
		[CUDA_STREAM_CONTEXT] = AGENT_TRACE_STREAMS_CONTEXT,
		[CUDA_STREAM_PROCESS] = AGENT_TRACE_STREAMS_PROCESS,
		[CUDA_STREAM_ROOM] = AGENT_TRACE_STREAMS_ROOM,
	};

	view_set(view, AGENT_TRACE_UNKNOWN_FREES, (double)c->unknown_frees);
	view_set(view, AGENT_TRACE_PROCESSES_WITHOUT_DEVICE, c->processes_without_device);
	view_set(view, AGENT_TRACE_STREAMS, (double)c->streams);
	view_set_each(view, ends, CUDA_STREAM_ENDS, c->streams_ended);
}

/* All that read what users choose: libraries and their sites, interpreters, what native frames need. */
static void set_readers(struct trace_view *view, const struct pipeline *pipeline,
			const struct trace_engine_status *s)
{
	static const enum agent_metric hung[] = { AGENT_TRACE_READERS_HUNG_FILES,
						  AGENT_TRACE_READERS_HUNG_SITES,
						  AGENT_TRACE_READERS_HUNG_PYTHON,
						  AGENT_TRACE_READERS_HUNG_UNWIND };
	static const enum agent_metric crashed[] = { AGENT_TRACE_READERS_CRASHED_FILES,
						     AGENT_TRACE_READERS_CRASHED_SITES,
						     AGENT_TRACE_READERS_CRASHED_PYTHON,
						     AGENT_TRACE_READERS_CRASHED_UNWIND };
	struct helper_stats readers[ARRAY_SIZE(hung)] = { s->targets.readers.files,
							  s->targets.readers.sites };
	unsigned stuck = 0;

	if (pipeline->finder)
		python_finder_stats(pipeline->finder, &readers[2]);
	if (pipeline->stacks)
		stack_sums_reader_stats(pipeline->stacks, &readers[3]);
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		view_set(view, hung[i], (double)readers[i].hung);
		view_set(view, crashed[i], (double)readers[i].crashes);
		stuck += readers[i].stuck;
	}
	view_set(view, AGENT_TRACE_READERS_STUCK, stuck);
}

static void fill_agent(struct trace_view *view, const struct pipeline *pipeline,
		       const struct event_sinks *events, const struct trace_engine_status *s,
		       uint64_t left_out)
{
	struct cuda_stats c;

	cuda_stats(pipeline->cuda, &c);
	view_set(view, AGENT_SOURCE_UP_TRACE, 1);
	view_set(view, AGENT_TRACE_PROCESSES, (double)MAX(s->targets.processes, (uint64_t)s->processes));
	view_set(view, AGENT_TRACE_FILES, s->files);
	view_set(view, AGENT_TRACE_USER_SITES, s->targets.user_sites);
	view_set(view, AGENT_TRACE_UNREAD_UNTRUSTED, (double)s->targets.unread[TARGET_UNTRUSTED]);
	view_set(view, AGENT_TRACE_UNREAD_SHARE, (double)s->targets.unread[TARGET_BEYOND_SHARE]);
	view_set(view, AGENT_TRACE_UNREAD_BARRED, (double)s->targets.unread[TARGET_BARRED]);
	set_readers(view, pipeline, s);
	view_set(view, AGENT_TRACE_SITES_ATTACHED, s->sites_attached);
	view_set(view, AGENT_TRACE_SITES_REFUSED, s->sites_refused);
	view_set(view, AGENT_TRACE_SITES_GIVEN_UP, s->sites_given_up);
	set_events(view, s);
	view_set(view, AGENT_TRACE_HITS, (double)(s->hits + s->return_hits));
	view_set(view, AGENT_TRACE_PROBE_SECONDS, s->probe_seconds);
	set_tables(view, s);
	view_set(view, AGENT_TRACE_ABANDONED, (double)s->abandoned);
	set_overflows(view, pipeline, &c, events, left_out);
	if (pipeline->symbols && pipeline->config.name_kernels) {
		view_set(view, AGENT_TRACE_KERNEL_ANSWERS, (double)c.answers);
		view_set(view, AGENT_TRACE_KERNEL_ANSWERS_LATE, (double)c.late_answers);
	}
	set_cuda(view, &c);
	view_set(view, AGENT_TRACE_QUIET, s->processes_quiet);
	pipeline_symbols_view(pipeline, view);
}

/* Without memory for them NCCL's figures are absent. */
static void fill_nccl(struct trace_view *view, struct nccl *nccl)
{
	view->nccl = nccl_window(nccl, (uint64_t)clock_mono_ns());
	for (uint32_t i = 0; view->nccl && i < view->nccl->processes_n; i++) {
		struct nccl_process *p = &view->nccl->processes[i];
		uint32_t at = trace_view_find(view, view->processes_n, p->pid);

		if (at < view->processes_n && view->processes[at].id.pid == p->pid)
			memcpy(p->comm, view->processes[at].comm, sizeof(p->comm));
	}
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

static void fill_stacks(struct trace_view *view, struct stack_sums *stacks)
{
	stack_sums_window(stacks, view);
	view->stacks_error =
		stack_sums_view(stacks, PIPELINE_STACK_ROWS, PIPELINE_STACK_BYTES, &view->stacks);
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
	r = fill_totals(view, engine, totals, totals_n);
	if (r == 0)
		r = pipeline_fill_operators(pipeline, engine, view);
	if (r == 0 && filling.known < view->processes_n)
		r = sort_processes(view);
	if (r < 0) {
		trace_view_unref(view);
		return r;
	}
	if (pipeline->nccl)
		fill_nccl(view, pipeline->nccl);
	if (pipeline->blas)
		pipeline_fill_blas(pipeline, view);
	if (pipeline->python)
		pipeline_fill_python(pipeline, engine, view);
	if (pipeline->torch)
		pipeline_fill_torch(pipeline, view);
	if (pipeline->stacks)
		fill_stacks(view, pipeline->stacks);
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
		view_set(view, AGENT_SOURCE_UP_TRACE, 0);
	snprintf(view->why, sizeof(view->why), "%s", why);
	view->boot_ns = clock_boot_ns();
	*ret_view = view;
	return 0;
}
