// SPDX-License-Identifier: Apache-2.0
/*
 * Streams, and the work pending in them.
 *
 * Of its pending work a stream stores the begin of the first item, the return of the newest item's call, and
 * the numbers of kernels and threads. That is sufficient: a wait either covers all of it, or leaves items
 * that were started before the wait returned, so the time with work pending does not end there. No single
 * launches are stored, and a program that never waits costs no memory.
 *
 * A handle is a stream until it is destroyed; the next one of that handle is another stream, with another
 * generation.
 */
#include "cuda/private.h"

#include "base/clock.h"

#define AT_ONCE_NS 20000 /* a shorter wait had nothing to wait for: the call itself takes some us */

static void unlink_pending(struct process *p, struct stream *s)
{
	if (!s->pending)
		return;
	if (s->previous)
		stream_at(p, s->previous - 1)->next = s->next;
	else
		p->pending = s->next;
	if (s->next)
		stream_at(p, s->next - 1)->previous = s->previous;
	s->pending = false;
	s->previous = s->next = 0;
}

static void link_pending(struct process *p, uint32_t index)
{
	struct stream *s = stream_at(p, index);

	s->pending = true;
	s->previous = 0;
	s->next = p->pending;
	if (p->pending)
		stream_at(p, p->pending - 1)->previous = index + 1;
	p->pending = index + 1;
}

static void stream_forget(struct cuda *cuda, struct process *p, uint32_t index, enum cuda_stream_end why)
{
	struct stream *s = stream_at(p, index);

	cuda->stats.streams_ended[why]++;
	unlink_pending(p, s);
	capture_leave(p, s);
	pool_give(&p->streams, index);
}

void stream_gap(struct cuda *cuda, struct process *p, uint32_t stream, const struct trace_launch *launch)
{
	struct stream *s = stream_at(p, stream);
	uint64_t begin = launch->header.time_ns, before = s->launch_end_ns;
	struct launch_gaps *gaps = &cuda->totals[usage_of(p, s->context)->device].gaps;

	s->launch_end_ns = MAX(before, add_saturated(begin, launch->duration_ns));
	/*
	 * Of streams beyond the limit, and of threads that launch into one stream at once, there is no
	 * order.
	 */
	if (stream + 1 == p->misc || before == 0 || begin < before)
		return;
	gaps->count[latency_bound((unsigned)latency_bucket(begin - before))]++;
	gaps->ns = add_saturated(gaps->ns, begin - before);
}

/* ---- making and finding them ---- */

/*
 * Frees slots: of destroyed streams only the sum of their work is stored, and idle per-thread streams can be
 * created again.
 */
static void make_room(struct cuda *cuda, struct process *p)
{
	uint32_t before = p->streams.used;

	if (p->full > 0 && p->full++ < cuda->limits.streams)
		return; /* searching all of them is too expensive for each event */
	for (uint32_t i = 0; i < p->streams.n; i++) {
		struct stream *s = stream_at(p, i);

		if (s->generation == 0 || i + 1 == p->misc)
			continue;
		if (s->dead) {
			if (p->misc) {
				stream_work(p, p->misc - 1, s->first_ns, s->last_return_ns, s->launches,
					    s->threads);
				stream_copies(p, p->misc - 1, s->copies, s->bytes);
			}
			stream_forget(cuda, p, i, CUDA_STREAM_DESTROYED);
		} else if (s->own && !s->pending && !s->capture) {
			hashmap_del(&p->own_stream_map, salted(cuda, (uint64_t)s->tid << 32 | s->context));
			stream_forget(cuda, p, i, CUDA_STREAM_ROOM);
		}
	}
	p->full = p->streams.used == before;
}

static uint32_t stream_take(struct cuda *cuda, struct process *p, uint32_t context)
{
	uint32_t index = pool_take(&p->streams, sizeof(struct stream), cuda->limits.streams);
	struct stream *s;

	if (index == NONE) {
		make_room(cuda, p);
		index = pool_take(&p->streams, sizeof(struct stream), cuda->limits.streams);
	}
	if (index == NONE)
		return NONE;
	s = stream_at(p, index);
	s->generation = ++p->generation ? p->generation : ++p->generation;
	s->context = (uint16_t)context;
	return index;
}

/*
 * The first stream of a process collects the work of streams beyond the limit; its device is unknown, since
 * they may be on several.
 */
static uint32_t stream_misc(struct cuda *cuda, struct process *p)
{
	if (!p->misc) {
		uint32_t index = stream_take(cuda, p, CONTEXT_UNKNOWN);

		if (index != NONE) {
			stream_at(p, index)->non_blocking = true;
			p->misc = index + 1;
		}
	}
	return p->misc - 1; /* NONE where there is none */
}

static uint32_t stream_new(struct cuda *cuda, struct process *p, uint32_t context, struct hashmap *map,
			   uint64_t key)
{
	uint32_t fallback = stream_misc(cuda, p), index = stream_take(cuda, p, context);

	if (index != NONE && (!map || hashmap_put(map, salted(cuda, key), index) == 0))
		return index;
	if (index != NONE)
		pool_give(&p->streams, index);
	cuda->stats.overflow[CUDA_LIMIT_STREAMS]++;
	p->incomplete |= TRACED_INCOMPLETE_LIMIT;
	return fallback;
}

static uint32_t stream_legacy(struct cuda *cuda, struct process *p, uint32_t context)
{
	uint32_t index = p->contexts[context].legacy;

	if (index != NONE)
		return index;
	index = stream_new(cuda, p, context, NULL, 0);
	if (index == NONE || index + 1 == p->misc)
		return index;
	stream_at(p, index)->legacy = true;
	p->contexts[context].legacy = index;
	return index;
}

static uint32_t stream_own(struct cuda *cuda, struct process *p, uint32_t context, uint32_t tid)
{
	uint64_t key = (uint64_t)tid << 32 | context;
	uint32_t index;

	if (hashmap_get(&p->own_stream_map, salted(cuda, key), &index))
		return index;
	index = stream_new(cuda, p, context, &p->own_stream_map, key);
	if (index != NONE && index + 1 != p->misc) {
		stream_at(p, index)->own = true;
		stream_at(p, index)->tid = tid;
	}
	return index;
}

uint32_t stream_of(struct cuda *cuda, struct process *p, const struct trace_header *header, uint64_t handle,
		   uint32_t context)
{
	bool per_thread = handle == 2 || (handle == 0 && (header->flags & TRACE_FLAG_PER_THREAD));
	struct stream *s;
	uint32_t index;

	if (per_thread)
		return stream_own(cuda, p, context, header->tid);
	if (handle <= 1)
		return stream_legacy(cuda, p, context);
	if (!hashmap_get(&p->stream_map, salted(cuda, handle), &index)) {
		index = stream_new(cuda, p, context, &p->stream_map, handle);
		if (index != NONE && index + 1 != p->misc) {
			/* Created before tracing began: whether the legacy stream waits for it is unknown. */
			stream_at(p, index)->non_blocking = true;
			stream_at(p, index)->handle = handle;
		}
		return index;
	}
	s = stream_at(p, index);
	if (s->context == CONTEXT_UNKNOWN && index + 1 != p->misc)
		s->context = (uint16_t)context;
	return index;
}

static void stream_destroy(struct cuda *cuda, struct process *p, uint64_t handle)
{
	struct stream *s;
	uint32_t index;

	if (handle <= 2 || !hashmap_get(&p->stream_map, salted(cuda, handle), &index))
		return;
	hashmap_del(&p->stream_map, salted(cuda, handle));
	s = stream_at(p, index);
	s->dead = true;
	p->full = 0;
	if (!s->pending)
		stream_forget(cuda, p, index, CUDA_STREAM_DESTROYED);
}

void stream_call(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	uint32_t context, index;

	stream_destroy(cuda, p, call->stream); /* also one of that handle whose end was not seen */
	if (call->header.op != TRACE_OP_STREAM_CREATE || call->stream <= 2)
		return;
	context = context_current(cuda, p, &call->header);
	index = stream_new(cuda, p, context, &p->stream_map, call->stream);
	if (index == NONE || index + 1 == p->misc)
		return;
	stream_at(p, index)->handle = call->stream;
	stream_at(p, index)->non_blocking = call->kind & 1;
}

/* ---- work ---- */

void stream_work(struct process *p, uint32_t stream, uint64_t time_ns, uint64_t return_ns, uint64_t launches,
		 uint64_t threads)
{
	struct stream *s = stream_at(p, stream);

	if (!s->pending) {
		link_pending(p, stream);
		s->first_ns = time_ns;
		s->last_return_ns = return_ns;
		s->launches = s->threads = s->copies = s->bytes = 0;
		s->epoch = p->seq + 1;
	}
	s->first_ns = MIN(s->first_ns, time_ns);
	s->last_return_ns = MAX(s->last_return_ns, return_ns);
	s->launches = add_saturated(s->launches, launches);
	s->threads = add_saturated(s->threads, threads);
	s->last_seq = s->last_item = ++p->seq;
}

void stream_copies(struct process *p, uint32_t stream, uint64_t copies, uint64_t bytes)
{
	struct stream *s = stream_at(p, stream);

	s->copies = add_saturated(s->copies, copies);
	s->bytes = add_saturated(s->bytes, bytes);
}

/*
 * Upper bound of the cores used by the pending work of a stream: its mean number of threads, at most the
 * device's cores.
 */
double usage_cores(const struct cuda *cuda, const struct usage *usage, const struct stream *s)
{
	double cores = cuda->totals[usage->device].device_cores;

	return s->launches ? MIN((double)s->threads / (double)s->launches, cores) : 0;
}

void usage_span(struct cuda *cuda, struct usage *usage, uint64_t start, uint64_t end, uint64_t likely_end,
		double cores)
{
	start = MAX(start, (uint64_t)cuda->window_start_ns);
	if (end <= start)
		return; /* work that ended before this window was counted in the last one */
	if (!usage->spans)
		usage->spans = calloc(1, sizeof(*usage->spans));
	if (!usage->spans)
		return;
	usage->touched = true;
	likely_end = CLAMP(likely_end, start, end);
	span_add(usage->spans, (struct span_block){
				       .start = start,
				       .end = end,
				       .covered = end - start,
				       .core_ns = cores * (double)(end - start),
				       .likely_ns = (double)(likely_end - start),
			       });
}

static void stream_end(struct cuda *cuda, struct process *p, uint32_t stream, uint64_t sync_ns,
		       uint64_t end_ns, enum span_flag how)
{
	struct stream *s = stream_at(p, stream);
	struct usage *usage = usage_of(p, s->context);
	uint64_t likely = s->last_return_ns;

	if (!s->pending)
		return;
	if (end_ns > sync_ns && end_ns - sync_ns > AT_ONCE_NS)
		likely = end_ns;
	if (spans_wanted(cuda))
		span_of_stream(cuda, p, stream, end_ns, likely, how);
	if (s->launches == 0)
		likely = 0; /* copies alone: NVML counts kernels */
	usage_span(cuda, usage, s->first_ns, end_ns, likely, usage_cores(cuda, usage, s));
	unlink_pending(p, s);
	s->launches = s->threads = 0;
	if (s->dead)
		stream_forget(cuda, p, stream, CUDA_STREAM_DESTROYED);
}

void stream_finish(struct cuda *cuda, struct process *p, uint32_t stream, uint64_t sync_ns, uint64_t end_ns)
{
	stream_end(cuda, p, stream, sync_ns, end_ns, 0);
}

void streams_drop(struct cuda *cuda, struct process *p, uint32_t context, uint64_t end_ns)
{
	for (uint32_t i = 0; i < p->streams.n; i++) {
		struct stream *s = stream_at(p, i);

		if (s->generation == 0 || (context != NONE && s->context != context))
			continue;
		stream_end(cuda, p, i, end_ns, end_ns, SPAN_NO_WAIT);
		if (s->generation == 0 || i + 1 == p->misc)
			continue;
		if (s->legacy)
			p->contexts[s->context].legacy = NONE;
		else if (s->own)
			hashmap_del(&p->own_stream_map, salted(cuda, (uint64_t)s->tid << 32 | s->context));
		else if (s->handle)
			hashmap_del(&p->stream_map, salted(cuda, s->handle));
		stream_forget(cuda, p, i, context == NONE ? CUDA_STREAM_PROCESS : CUDA_STREAM_CONTEXT);
	}
}
