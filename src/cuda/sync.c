// SPDX-License-Identifier: Apache-2.0
/*
 * Which work a wait (or a query that succeeds) proves to be finished. The rules are those of the CUDA
 * programming guide on streams:
 *
 *   a stream     its own work; what it has waited for through events; of a blocking stream, also the
 *                legacy stream's work from before its own newest; of the legacy stream, also all earlier
 *                work of the context's blocking streams
 *   an event     the same for the work submitted to its stream before the event was last recorded
 *   a context    all streams of it
 *   a copy that waits, to or from the host: its stream's earlier work
 *
 * A wait certainly covers only work whose call had returned before the wait was entered. The streams that a
 * wait reaches are marked first, then finished, so that walking them changes nothing.
 */
#include "cuda/private.h"

enum { VISITS_MAX = 4096, DEPTH_MAX = 64, SMALL_COPY = 64 << 10 };

struct wait {
	struct cuda *cuda;
	struct process *p;
	uint32_t head; /* visited streams, plus one */
	uint32_t visits;
};

static void stream_visit(struct wait *w, uint32_t index, uint64_t upto, bool is_item, unsigned depth);

/* The legacy stream has waited for the blocking streams of its context before its item @upto. */
static void visit_blocking(struct wait *w, uint16_t context, uint64_t upto, unsigned depth)
{
	uint32_t next;

	for (uint32_t at = w->p->pending; at; at = next) {
		const struct stream *s = stream_at(w->p, at - 1);

		next = s->next;
		if (s->context == context && !s->non_blocking && !s->legacy && s->last_seq <= upto)
			stream_visit(w, at - 1, upto, true, depth);
	}
}

/* The newest item of a stream up to @upto, as far as it is known. */
static uint64_t newest_before(const struct stream *s, uint64_t upto)
{
	if (s->last_item <= upto)
		return s->last_item;
	return s->last_seq <= upto ? s->last_seq : 0;
}

/* The stream's work up to @upto has ended; @is_item: that position is work of the stream, or the wait. */
static void stream_visit(struct wait *w, uint32_t index, uint64_t upto, bool is_item, unsigned depth)
{
	struct stream *s = stream_at(w->p, index);
	uint32_t legacy = w->p->contexts[s->context].legacy;

	if (depth > DEPTH_MAX || w->visits++ > VISITS_MAX)
		return;
	if (s->visit == w->cuda->visit) {
		if (s->visit_upto >= upto)
			return;
	} else {
		s->visit = w->cuda->visit;
		s->visit_next = w->head;
		w->head = index + 1;
	}
	s->visit_upto = upto;
	for (uint32_t i = 0; i < s->dependencies_n;) {
		const struct dependency *d = &s->dependencies[i];

		if (dependency_is_stale(w->p, d)) {
			s->dependencies[i] = s->dependencies[--s->dependencies_n];
			continue;
		}
		if (d->at <= upto)
			stream_visit(w, d->stream, d->upto, true, depth + 1);
		i++;
	}
	if (s->legacy)
		visit_blocking(w, s->context, is_item ? upto : newest_before(s, upto), depth + 1);
	else if (!s->non_blocking && legacy != NONE)
		stream_visit(w, legacy, MIN(upto, s->last_item), false, depth + 1);
}

static void finish_visited(struct wait *w, uint64_t entered_ns, uint64_t end_ns)
{
	uint32_t next;

	for (uint32_t at = w->head; at; at = next) {
		const struct stream *s = stream_at(w->p, at - 1);

		next = s->visit_next;
		if (s->pending && s->last_seq <= s->visit_upto && s->last_return_ns <= entered_ns)
			stream_finish(w->cuda, w->p, at - 1, entered_ns, end_ns);
	}
}

static void work_over(struct cuda *cuda, struct process *p, uint32_t stream, uint64_t upto,
		      const struct trace_call *call)
{
	struct wait w = { .cuda = cuda, .p = p };

	if (!p->pending)
		return;
	cuda->visit++;
	stream_visit(&w, stream, upto, true, 0);
	finish_visited(&w, call->header.time_ns, returned_ns(call));
}

/* An unknown context is taken for the only other one on the same device, if there is only one. */
static bool is_of(const struct process *p, uint32_t context, uint32_t other)
{
	if (context == other)
		return true;
	return (context == CONTEXT_UNKNOWN || other == CONTEXT_UNKNOWN) && p->contexts_n == 2 &&
	       p->contexts[0].usage == p->contexts[1].usage;
}

static void over_context(struct cuda *cuda, struct process *p, uint32_t context,
			 const struct trace_call *call)
{
	uint32_t next;

	for (uint32_t at = p->pending; at; at = next) {
		const struct stream *s = stream_at(p, at - 1);

		next = s->next;
		if (is_of(p, context, s->context) && s->last_return_ns <= call->header.time_ns)
			stream_finish(cuda, p, at - 1, call->header.time_ns, returned_ns(call));
	}
}

/* Returns the context whose work was waited for; *ret_stream: of a wait for one stream, else NONE. */
static uint32_t wait_for(struct cuda *cuda, struct process *p, const struct trace_call *call,
			 uint32_t *ret_stream)
{
	uint32_t context = context_current(cuda, p, &call->header), index;
	const struct cuda_event *recorded;
	struct stream *s;

	*ret_stream = NONE;
	switch (call->header.op) {
	case TRACE_OP_SYNC_STREAM:
	case TRACE_OP_QUERY_STREAM:
		index = stream_of(cuda, p, &call->header, call->stream, context);
		if (index == NONE)
			return context;
		s = stream_at(p, index);
		context = s->context;
		/* a captured stream cannot be waited for: the end of the capture was not seen */
		capture_leave(p, s);
		work_over(cuda, p, index, p->seq, call);
		*ret_stream = index;
		return context;
	case TRACE_OP_SYNC_EVENT:
	case TRACE_OP_QUERY_EVENT:
		if (!hashmap_get(&p->event_map, salted(cuda, call->handle), &index))
			return context;
		recorded = pool_at(&p->events, index);
		if (recorded->generation == 0 || recorded->capture ||
		    stream_at(p, recorded->stream)->generation != recorded->generation)
			return context;
		context = stream_at(p, recorded->stream)->context;
		work_over(cuda, p, recorded->stream, recorded->seq, call);
		return context;
	default:
		if (call->handle != 0 && hashmap_get(&p->context_map, salted(cuda, call->handle), &index))
			context = index;
		over_context(cuda, p, context, call);
		return context;
	}
}

static bool is_query(const struct trace_call *call)
{
	return call->header.op == TRACE_OP_QUERY_STREAM || call->header.op == TRACE_OP_QUERY_EVENT;
}

/* The spans of the work that it waited for come before its own. */
static struct usage *wait_done(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	uint32_t stream, context = wait_for(cuda, p, call, &stream);

	if (spans_wanted(cuda) && !is_query(call))
		span_of_call(cuda, p, SPAN_SYNC, context, stream, call);
	return usage_of(p, context);
}

void sync_call(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	struct usage *usage;
	struct thread *t;

	if (call->header.flags & TRACE_FLAG_NO_RESULT) {
		t = is_query(call) ? NULL : thread_get(cuda, p, call->header.tid);
		if (!t)
			return; /* the answer of the query is not known */
		t->waiting = true;
		t->wait = *call;
		return;
	}
	usage = wait_done(cuda, p, call);
	if (is_query(call))
		return;
	usage_count(usage, TRACED_SYNCS, 1);
	usage_count(usage, TRACED_SYNC_WAIT, call->duration_ns);
}

void sync_deferred(struct cuda *cuda, struct process *p, struct thread *thread, uint64_t time_ns)
{
	struct trace_call call = thread->wait;

	thread->waiting = false;
	if (time_ns < call.header.time_ns)
		return;
	call.duration_ns = time_ns - call.header.time_ns;
	/* `thread` may have moved from here on. */
	usage_count(wait_done(cuda, p, &call), TRACED_SYNCS, 1);
}

/*
 * A copy that waits has waited for its stream, if it is to or from the host: a small one to the device may be
 * on its way still, one between two places of the device, or of a kind that the driver finds out, need not
 * have waited at all.
 */
void sync_copy(struct cuda *cuda, struct process *p, uint32_t stream, const struct trace_call *call)
{
	if (call->header.flags & TRACE_FLAG_NO_RESULT)
		return;
	if (call->kind == TRACE_COPY_DEVICE_TO_HOST ||
	    (call->kind == TRACE_COPY_HOST_TO_DEVICE && call->size > SMALL_COPY))
		work_over(cuda, p, stream, p->seq, call);
}
