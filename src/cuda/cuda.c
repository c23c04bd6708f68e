// SPDX-License-Identifier: Apache-2.0
#include "cuda/private.h"

#include <errno.h>
#include <sys/random.h>

#include "base/clock.h"

enum {
	NOT_READY = 600,
	INVALIDATED = 901
}; /* CUDA_ERROR_NOT_READY and ..._STREAM_CAPTURE_INVALIDATED; the runtime's are the same */

static const struct cuda_limits defaults = {
	.processes = 16384,
	.series = 128,
	.streams = 1024,
	.contexts = 64,
	.threads = 1024,
	.allocations = 1 << 20,
	.events = 4096,
	.kernels = 4096,
	.kernel_series = 64,
};

static uint32_t limit_or(uint32_t wanted, uint32_t standard, uint32_t least, uint32_t most)
{
	return wanted == 0 ? standard : CLAMP(wanted, least, most);
}

/* Limits the limits to what indexes can represent. */
static void take_limits(struct cuda_limits *limits, const struct cuda_limits *wanted)
{
	limits->operators = wanted->operators;
	limits->series = wanted->series;
	limits->kernel_series = MIN(wanted->kernel_series, (uint32_t)KERNELS_MAX);
	limits->kernels = limit_or(wanted->kernels, defaults.kernels, 1, KERNELS_MAX);
	limits->processes = limit_or(wanted->processes, defaults.processes, 1, 1 << 20);
	limits->contexts = limit_or(wanted->contexts, defaults.contexts, 1, 1024);
	limits->streams = limit_or(wanted->streams, defaults.streams, 2, 1 << 20);
	limits->threads = limit_or(wanted->threads, defaults.threads, 1, 1 << 20);
	limits->events = limit_or(wanted->events, defaults.events, 1, 1 << 20);
	limits->allocations = limit_or(wanted->allocations, defaults.allocations, 1, 1 << 20);
}

int cuda_new(const struct cuda_limits *limits, const struct cuda_ops *ops, void *userdata,
	     struct cuda **ret_cuda)
{
	_cleanup_(cuda_freep) struct cuda *cuda = calloc(1, sizeof(*cuda));

	if (!cuda)
		return -ENOMEM;
	take_limits(&cuda->limits, limits ? limits : &defaults);
	cuda->series.limit = cuda->limits.series;
	if (ops)
		cuda->ops = *ops;
	cuda->userdata = userdata;
	cuda->window = 1;
	cuda->window_start_ns = clock_mono_ns();
	cuda->last = NONE;
	cuda->environment = malloc(ENVIRONMENT_MAX);
	cuda->best = calloc(cuda->limits.kernel_series + (size_t)1, sizeof(struct series_claim *));
	if (cuda->limits.operators)
		cuda->operators = calloc(TRACE_CALLS_MAX, sizeof(*cuda->operators));
	if (!cuda->environment || !cuda->best || (cuda->limits.operators && !cuda->operators))
		return -ENOMEM;
	/* Without it keys can be guessed, which slows down a hostile program's own events. */
	if (getrandom(&cuda->salt, sizeof(cuda->salt), GRND_NONBLOCK) < 0)
		cuda->salt = (uint64_t)clock_real_ns();
	device_uuid(cuda, "");
	if (cuda->uuids_n != 1)
		return -ENOMEM;
	*ret_cuda = TAKE_PTR(cuda);
	return 0;
}

void cuda_free(struct cuda *cuda)
{
	if (!cuda)
		return;
	for (uint32_t i = 0; i < cuda->processes_n; i++)
		process_free(cuda, cuda->processes[i]);
	for (uint32_t i = 0; i < cuda->uuids_n; i++)
		free(cuda->totals[i].spans);
	ledger_done(cuda);
	hashmap_done(&cuda->process_map);
	hashmap_done(&cuda->questions);
	free(cuda->best);
	free(cuda->processes);
	free(cuda->shown);
	free(cuda->devices);
	free(cuda->device_uuids);
	free(cuda->uuids);
	free(cuda->totals);
	free(cuda->environment);
	free(cuda->operators);
	free(cuda);
}

struct span_sinks *cuda_span_sinks(struct cuda *cuda)
{
	return &cuda->span_sinks;
}

/* ---- copies and sets ---- */

/*
 * The driver's 2D copies have the types of both memories instead of a kind: CU_MEMORYTYPE_HOST 1, _DEVICE 2,
 * _ARRAY 3, _UNIFIED 4.
 */
static uint32_t copy_kind(const struct trace_call *call)
{
	bool from_host = call->handle == 1, to_host = call->addr == 1;

	if (call->kind >= TRACE_COPIES)
		return TRACE_COPY_DEFAULT;
	if ((call->header.flags & TRACE_FLAG_RUNTIME) || call->kind != TRACE_COPY_HOST_TO_HOST)
		return call->kind;
	if (call->handle < 1 || call->handle > 3 || call->addr < 1 || call->addr > 3)
		return TRACE_COPY_DEFAULT;
	if (from_host)
		return to_host ? TRACE_COPY_HOST_TO_HOST : TRACE_COPY_HOST_TO_DEVICE;
	return to_host ? TRACE_COPY_DEVICE_TO_HOST : TRACE_COPY_DEVICE_TO_DEVICE;
}

static void copy_call(struct cuda *cuda, struct process *p, const struct trace_call *event)
{
	struct trace_call call = *event;
	uint32_t stream =
		stream_of(cuda, p, &call.header, call.stream, context_current(cuda, p, &call.header));
	bool waits = (call.header.flags & TRACE_FLAG_WAITS) && call.header.op == TRACE_OP_COPY;
	struct usage *usage;

	if (stream == NONE || stream_at(p, stream)->capture)
		return; /* out of slots, or a node of a graph */
	usage = usage_of(p, stream_at(p, stream)->context);
	call.kind = copy_kind(&call);
	if (call.header.op == TRACE_OP_COPY)
		usage_count(usage, TRACED_COPY_HOST_TO_HOST + call.kind, call.size);
	else
		usage_count(usage, TRACED_SET_BYTES, call.size);
	if (waits)
		sync_copy(cuda, p, stream, &call);
	if (waits && call.kind <= TRACE_COPY_DEVICE_TO_HOST) {
		if (spans_wanted(cuda))
			span_of_call(cuda, p, SPAN_COPY, stream_at(p, stream)->context, stream, &call);
		usage_span(cuda, usage, call.header.time_ns, returned_ns(&call), 0, 0);
	} else {
		stream_work(p, stream, call.header.time_ns, returned_ns(&call), 0, 0);
		stream_copies(p, stream, 1, call.size);
	}
}

/* ---- events ---- */

static void on_failed_call(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	struct usage *usage = usage_of(p, context_current(cuda, p, &call->header));

	if (call->result == NOT_READY &&
	    (call->header.op == TRACE_OP_QUERY_STREAM || call->header.op == TRACE_OP_QUERY_EVENT))
		return;
	usage_count(usage, TRACED_ERRORS, 1);
	if (call->header.op == TRACE_OP_ALLOC)
		usage_count(usage, TRACED_ALLOCATION_FAILURES, 1);
	/* The only failure with an effect: an invalidated capture has ended. */
	if (call->header.op == TRACE_OP_CAPTURE_END && call->result == INVALIDATED)
		graph_call(cuda, p, call);
}

typedef void (*handler)(struct cuda *cuda, struct process *p, const struct trace_call *call);

static const handler handlers[TRACE_OPS] = {
	[TRACE_OP_GRAPH_INSTANTIATE] = graph_call,
	[TRACE_OP_GRAPH_LAUNCH] = graph_call,
	[TRACE_OP_GRAPH_DESTROY] = graph_call,
	[TRACE_OP_CAPTURE_BEGIN] = graph_call,
	[TRACE_OP_CAPTURE_END] = graph_call,
	[TRACE_OP_ALLOC] = ledger_call,
	[TRACE_OP_FREE] = ledger_call,
	[TRACE_OP_MAP] = ledger_call,
	[TRACE_OP_UNMAP] = ledger_call,
	[TRACE_OP_COPY] = copy_call,
	[TRACE_OP_SET] = copy_call,
	[TRACE_OP_SYNC_STREAM] = sync_call,
	[TRACE_OP_SYNC_EVENT] = sync_call,
	[TRACE_OP_SYNC_CONTEXT] = sync_call,
	[TRACE_OP_SYNC_DEVICE] = sync_call,
	[TRACE_OP_QUERY_STREAM] = sync_call,
	[TRACE_OP_QUERY_EVENT] = sync_call,
	[TRACE_OP_EVENT_CREATE] = event_call,
	[TRACE_OP_EVENT_DESTROY] = event_call,
	[TRACE_OP_EVENT_RECORD] = event_call,
	[TRACE_OP_EVENT_WAIT] = event_call,
	[TRACE_OP_STREAM_CREATE] = stream_call,
	[TRACE_OP_STREAM_DESTROY] = stream_call,
	[TRACE_OP_CONTEXT_CREATE] = context_call,
	[TRACE_OP_CONTEXT_RETAIN] = context_call,
	[TRACE_OP_CONTEXT_RELEASE] = context_call,
	[TRACE_OP_CONTEXT_RESET] = context_call,
	[TRACE_OP_CONTEXT_DESTROY] = context_call,
	[TRACE_OP_CONTEXT_SET] = context_call,
	[TRACE_OP_CONTEXT_PUSH] = context_call,
	[TRACE_OP_CONTEXT_POP] = context_call,
	[TRACE_OP_DEVICE_SET] = context_call,
	[TRACE_OP_DEVICE_RESET] = context_call,
	[TRACE_OP_MODULE_LOAD] = handle_call,
	[TRACE_OP_MODULE_UNLOAD] = handle_call,
	[TRACE_OP_FUNCTION_ALIAS] = handle_call,
	[TRACE_OP_FUNCTION_REGISTER] = handle_call,
};

/* Launches may lack their return probes alone: what does not depend on them is whole. */
static unsigned without_return(const struct process *p, const struct trace_header *header)
{
	bool launch = header->op == TRACE_OP_LAUNCH || header->op == TRACE_OP_GRAPH_LAUNCH;

	if (launch && !(p->incomplete & TRACED_INCOMPLETE_NO_RETURNS))
		return TRACED_INCOMPLETE_LAUNCH_RETURNS;
	return TRACED_INCOMPLETE_NO_RETURNS;
}

/* The process of a call; updates what every kind of call shows. */
static struct process *calling_process(struct cuda *cuda, const struct trace_header *header, bool succeeded)
{
	struct process *p = process_get(cuda, header);
	struct thread *t;

	if (!p)
		return NULL;
	if (!p->looked)
		device_resolve(cuda, p);
	p->initialised |= succeeded;
	p->runtime |= (header->flags & TRACE_FLAG_RUNTIME) != 0;
	/* A registration, which cannot fail, has no return probe by design. */
	if ((header->flags & TRACE_FLAG_NO_RESULT) && header->op != TRACE_OP_FUNCTION_REGISTER)
		p->incomplete |= without_return(p, header);
	if (p->incomplete & TRACED_INCOMPLETE_NO_RETURNS) {
		t = thread_find(cuda, p, header->tid);
		if (t && t->waiting)
			sync_deferred(cuda, p, t, header->time_ns);
	}
	return p;
}

/* The call's effects exceed what its event contains. */
static void note_unread(struct process *p, const struct trace_header *header)
{
	if (!(header->flags & (TRACE_FLAG_UNREAD | TRACE_FLAG_BATCH_CUT)))
		return;
	p->unread = true;
	p->incomplete |= TRACED_INCOMPLETE_LIMIT;
}

static void on_call(struct cuda *cuda, const struct trace_call *call)
{
	bool known = !(call->header.flags & TRACE_FLAG_NO_RESULT);
	struct process *p = calling_process(cuda, &call->header, known && call->result == 0);

	if (!p)
		return;
	if (known && call->result != 0) {
		on_failed_call(cuda, p, call);
		return;
	}
	note_unread(p, &call->header);
	operator_call(cuda, p, call);
	if (call->header.op < TRACE_OPS && handlers[call->header.op])
		handlers[call->header.op](cuda, p, call);
}

static uint64_t dim_volume(const uint32_t of[3])
{
	return multiply_saturated((uint64_t)of[0] * of[1], of[2]);
}

static void on_launch(struct cuda *cuda, const struct trace_launch *launch)
{
	bool known = !(launch->header.flags & TRACE_FLAG_NO_RESULT);
	struct process *p = calling_process(cuda, &launch->header, known && launch->result == 0);
	uint64_t threads = multiply_saturated(dim_volume(launch->grid), dim_volume(launch->block));
	struct trace_call error = { .header = launch->header, .result = launch->result };
	struct usage *usage;
	uint32_t stream;

	if (!p)
		return;
	if (known && launch->result != 0) {
		on_failed_call(cuda, p, &error);
		return;
	}
	note_unread(p, &launch->header);
	stream = stream_of(cuda, p, &launch->header, launch->stream,
			   context_current(cuda, p, &launch->header));
	if (stream == NONE)
		return;
	if (stream_at(p, stream)->capture) {
		capture_launch(p, stream_at(p, stream), threads);
		return;
	}
	usage = usage_of(p, stream_at(p, stream)->context);
	usage_count(usage, TRACED_LAUNCHES, 1);
	usage_count(usage, TRACED_THREADS, threads);
	usage->work = add_saturated(usage->work, 1);
	stream_work(p, stream, launch->header.time_ns,
		    add_saturated(launch->header.time_ns, launch->duration_ns), 1, threads);
	stream_gap(cuda, p, stream, launch);
	kernel_launched(cuda, p, stream, launch, threads);
}

bool cuda_launch_stream(struct cuda *cuda, const struct trace_launch *launch, uint32_t *ret_stream_id)
{
	struct process *p = process_find(cuda, launch->header.tgid);
	uint32_t stream;

	if (!p || (launch->result != 0 && !(launch->header.flags & TRACE_FLAG_NO_RESULT)))
		return false;
	stream = stream_of(cuda, p, &launch->header, launch->stream,
			   context_current(cuda, p, &launch->header));
	if (stream == NONE || stream + 1 == p->misc || stream_at(p, stream)->capture)
		return false;
	*ret_stream_id = stream_at(p, stream)->generation;
	return true;
}

/* Names of objects that a call has created, so the call succeeded; or variables, of a call that begins. */
static void on_name(struct cuda *cuda, const struct trace_name *event, uint32_t size)
{
	bool variable = event->header.op == TRACE_OP_INIT;
	struct process *p =
		variable ? process_get(cuda, &event->header) : calling_process(cuda, &event->header, true);

	if (p && variable)
		device_variable(cuda, p, event, size);
	else if (p)
		handle_name(cuda, p, event, size);
}

static void on_process_end(struct cuda *cuda, const struct trace_header *header)
{
	struct process *p = process_find(cuda, header->tgid);

	if (p)
		process_over(cuda, p, header->time_ns);
}

void cuda_event(struct cuda *cuda, const struct trace_header *event, uint32_t size)
{
	static const uint32_t sizes[TRACE_EVENTS] = {
		[TRACE_EVENT_LAUNCH] = sizeof(struct trace_launch),
		[TRACE_EVENT_CALL] = sizeof(struct trace_call),
		[TRACE_EVENT_PROCESS] = sizeof(struct trace_process),
		[TRACE_EVENT_EXEC] = sizeof(struct trace_header),
		[TRACE_EVENT_EXIT] = sizeof(struct trace_header),
		[TRACE_EVENT_NAME] = sizeof(struct trace_name),
		[TRACE_EVENT_STAT] = sizeof(struct trace_header),
	};

	cuda->stats.events++;
	if (size < sizeof(*event) || event->type >= TRACE_EVENTS || sizes[event->type] == 0 ||
	    size < sizes[event->type] || event->tgid == 0) {
		cuda->stats.unknown_events++;
		return;
	}
	switch (event->type) {
	case TRACE_EVENT_LAUNCH:
		on_launch(cuda, (const struct trace_launch *)event);
		break;
	case TRACE_EVENT_CALL:
		on_call(cuda, (const struct trace_call *)event);
		break;
	case TRACE_EVENT_PROCESS:
		process_first(cuda, (const struct trace_process *)event);
		break;
	case TRACE_EVENT_NAME:
		on_name(cuda, (const struct trace_name *)event, size);
		break;
	case TRACE_EVENT_EXEC:
	case TRACE_EVENT_EXIT:
		on_process_end(cuda, event);
		break;
	default: /* for the sums, which are updated elsewhere */
		break;
	}
}

void cuda_stats(const struct cuda *cuda, struct cuda_stats *ret_stats)
{
	*ret_stats = cuda->stats;
	for (uint32_t i = 0; i < cuda->processes_n; i++) {
		const struct process *p = cuda->processes[i];

		ret_stats->streams += p->streams.used - (p->misc > 0);
		ret_stats->processes_without_device += !p->over && p->usages[0].touched;
	}
}
