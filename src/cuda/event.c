// SPDX-License-Identifier: Apache-2.0
/*
 * CUDA events, captures and graphs.
 *
 * An event represents the work submitted to its stream before it was last recorded; a stream that waits for
 * it depends on that work. While a stream is captured nothing runs: launches become nodes, a stream that
 * waits for an event recorded in a captured one joins the capture. A graph's launch then starts as many
 * kernels as were captured; of graphs built node by node only the launch itself is known.
 */
#include "cuda/private.h"

static struct graph *capture_at(const struct process *p, uint32_t capture)
{
	return capture != 0 && capture != CAPTURE_LOST ? pool_at(&p->captures, capture - 1) : NULL;
}

static struct cuda_event *event_find(struct cuda *cuda, struct process *p, uint64_t handle)
{
	uint32_t index;

	return hashmap_get(&p->event_map, salted(cuda, handle), &index) ? pool_at(&p->events, index) : NULL;
}

/* A row for @handle in a pool and its map. */
static void *row_get(struct cuda *cuda, struct process *p, struct pool *pool, struct hashmap *map,
		     uint32_t size, uint64_t handle)
{
	uint32_t index;

	if (hashmap_get(map, salted(cuda, handle), &index))
		return pool_at(pool, index);
	index = pool_take(pool, size, cuda->limits.events);
	if (index != NONE && hashmap_put(map, salted(cuda, handle), index) == 0)
		return pool_at(pool, index);
	if (index != NONE)
		pool_give(pool, index);
	cuda->stats.overflow[CUDA_LIMIT_EVENTS]++;
	p->incomplete |= TRACED_INCOMPLETE_LIMIT;
	return NULL;
}

static void row_drop(struct cuda *cuda, struct pool *pool, struct hashmap *map, uint64_t handle)
{
	uint32_t index;

	if (!hashmap_get(map, salted(cuda, handle), &index))
		return;
	hashmap_del(map, salted(cuda, handle));
	pool_give(pool, index);
}

static void event_record(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	uint32_t index =
		stream_of(cuda, p, &call->header, call->stream, context_current(cuda, p, &call->header));
	struct cuda_event *recorded;
	struct stream *s;

	if (call->handle == 0 || index == NONE)
		return;
	recorded = row_get(cuda, p, &p->events, &p->event_map, sizeof(*recorded), call->handle);
	if (!recorded)
		return;
	s = stream_at(p, index);
	recorded->stream = index;
	recorded->generation = s->generation;
	recorded->capture = s->capture;
	if (s->capture) {
		recorded->generation = capture_at(p, s->capture) ? capture_at(p, s->capture)->generation : 0;
		return;
	}
	recorded->seq = s->last_item = ++p->seq;
}

/* Whether this dependency cannot prove the end of any pending work. */
bool dependency_is_stale(const struct process *p, const struct dependency *d)
{
	const struct stream *on = stream_at(p, d->stream);

	return on->generation != d->generation || (!on->pending && on->dependencies_n == 0);
}

/*
 * Dependencies are kept separately while there are free slots: an older one proves less, but for more of the
 * stream's own work. Without a free slot the newest replaces another one on the same stream.
 */
static bool dependency_add(const struct process *p, struct stream *s, struct dependency new)
{
	struct dependency *place = NULL;

	for (uint32_t i = 0; i < s->dependencies_n; i++) {
		struct dependency *d = &s->dependencies[i];
		bool same = d->stream == new.stream && d->generation == new.generation;

		if (same && d->upto == new.upto)
			return true;
		if (dependency_is_stale(p, d) || (same && !place))
			place = d;
	}
	if (s->dependencies_n < DEPENDENCIES_MAX)
		place = &s->dependencies[s->dependencies_n++];
	if (place)
		*place = new;
	return place;
}

static void wait_in_stream(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	uint32_t index =
		stream_of(cuda, p, &call->header, call->stream, context_current(cuda, p, &call->header));
	const struct cuda_event *recorded = event_find(cuda, p, call->handle);
	struct stream *s;

	if (!recorded || index == NONE || recorded->generation == 0)
		return;
	s = stream_at(p, index);
	if (recorded->capture) {
		const struct graph *capture = capture_at(p, recorded->capture);

		if (!s->capture && capture && capture->generation == recorded->generation)
			s->capture = recorded->capture;
		return;
	}
	s->last_item = ++p->seq;
	if (recorded->stream == index || stream_at(p, recorded->stream)->generation != recorded->generation)
		return;
	if (dependency_add(p, s,
			   (struct dependency){ recorded->stream, recorded->generation, recorded->seq,
						p->seq }))
		return;
	cuda->stats.overflow[CUDA_LIMIT_PENDING]++;
	p->incomplete |= TRACED_INCOMPLETE_LIMIT;
}

void event_call(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	switch (call->header.op) {
	case TRACE_OP_EVENT_RECORD:
		event_record(cuda, p, call);
		break;
	case TRACE_OP_EVENT_WAIT:
		wait_in_stream(cuda, p, call);
		break;
	default: /* created or destroyed: in both cases it is not recorded */
		row_drop(cuda, &p->events, &p->event_map, call->handle);
		break;
	}
}

/* ---- captures and graphs ---- */

void capture_leave(struct process *p, struct stream *s)
{
	uint32_t capture = s->capture;

	if (!capture)
		return;
	s->capture = 0;
	if (capture == CAPTURE_LOST)
		return;
	for (uint32_t i = 0; i < p->streams.n; i++)
		if (stream_at(p, i)->capture == capture)
			stream_at(p, i)->capture = 0;
	pool_give(&p->captures, capture - 1);
}

void capture_launch(struct process *p, const struct stream *s, uint64_t threads)
{
	struct graph *capture = capture_at(p, s->capture);

	if (!capture)
		return;
	capture->launches = add_saturated(capture->launches, 1);
	capture->threads = add_saturated(capture->threads, threads);
}

static void capture_begin(struct process *p, struct stream *s)
{
	uint32_t index;

	capture_leave(p, s);
	index = pool_take(&p->captures, sizeof(struct graph), CAPTURES_MAX);
	if (index == NONE) {
		s->capture = CAPTURE_LOST;
		p->incomplete |= TRACED_INCOMPLETE_LIMIT;
		return;
	}
	((struct graph *)pool_at(&p->captures, index))->generation = ++p->generation ? p->generation : 1;
	s->capture = index + 1;
}

static void capture_end(struct cuda *cuda, struct process *p, struct stream *s, const struct trace_call *call)
{
	const struct graph *capture = capture_at(p, s->capture);
	struct graph *graph = NULL;

	if (capture && call->handle != 0 && call->result == 0)
		graph = row_get(cuda, p, &p->graphs, &p->graph_map, sizeof(*graph), call->handle);
	if (graph) {
		graph->launches = capture->launches;
		graph->threads = capture->threads;
	}
	capture_leave(p, s);
}

static const struct graph *graph_find(struct cuda *cuda, struct process *p, uint64_t handle)
{
	uint32_t index;

	return hashmap_get(&p->graph_map, salted(cuda, handle), &index) ? pool_at(&p->graphs, index) : NULL;
}

static void graph_instantiate(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	const struct graph *graph = graph_find(cuda, p, call->addr);
	struct graph copy, *executable;

	if (!graph || call->handle == 0) {
		row_drop(cuda, &p->graphs, &p->graph_map, call->handle);
		return;
	}
	copy = *graph;
	executable = row_get(cuda, p, &p->graphs, &p->graph_map, sizeof(*executable), call->handle);
	if (executable)
		*executable = copy;
}

static void graph_launch(struct cuda *cuda, struct process *p, uint32_t index, const struct trace_call *call)
{
	const struct stream *s = stream_at(p, index);
	struct usage *usage = usage_of(p, s->context);
	const struct graph *graph = graph_find(cuda, p, call->handle);
	uint64_t launches = graph ? graph->launches : 1, threads = graph ? graph->threads : 0;

	if (s->capture)
		return; /* a node, unknown like those of a graph built explicitly */
	usage_count(usage, TRACED_GRAPH_LAUNCHES, 1);
	usage_count(usage, TRACED_THREADS, threads);
	usage->work = add_saturated(usage->work, launches);
	stream_work(p, index, call->header.time_ns, returned_ns(call), launches, threads);
	kernel_graph(cuda, p, index, &call->header, launches, threads);
}

void graph_call(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	uint32_t index;

	switch (call->header.op) {
	case TRACE_OP_GRAPH_INSTANTIATE:
		graph_instantiate(cuda, p, call);
		return;
	case TRACE_OP_GRAPH_DESTROY:
		row_drop(cuda, &p->graphs, &p->graph_map, call->handle);
		return;
	default:
		break;
	}
	index = stream_of(cuda, p, &call->header, call->stream, context_current(cuda, p, &call->header));
	if (index == NONE)
		return;
	if (call->header.op == TRACE_OP_GRAPH_LAUNCH)
		graph_launch(cuda, p, index, call);
	else if (call->header.op == TRACE_OP_CAPTURE_BEGIN)
		capture_begin(p, stream_at(p, index));
	else
		capture_end(cuda, p, stream_at(p, index), call);
}
