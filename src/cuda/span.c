// SPDX-License-Identifier: Apache-2.0
/* Finished spans, as the sinks get them: whole, where usage_span() gives figures what lies in the window. */
#include "cuda/private.h"

static struct span span_of(const struct cuda *cuda, const struct process *p, uint32_t context)
{
	unsigned flags =
		(p->incomplete ? SPAN_INCOMPLETE : 0) | (p->visible_estimated ? SPAN_DEVICE_GUESSED : 0);

	return (struct span){
		.tgid = p->tgid,
		.incarnation = p->incarnation,
		.device = cuda->uuids[usage_of(p, context)->device],
		.context = p->contexts[context].handle,
		.flags = (uint8_t)flags,
	};
}

static void span_in_stream(const struct process *p, uint32_t stream, struct span *span)
{
	span->stream = stream_at(p, stream)->handle;
	span->stream_id = stream_at(p, stream)->generation;
	if (stream + 1 == p->misc)
		span->flags |= SPAN_MERGED;
}

void span_of_stream(struct cuda *cuda, const struct process *p, uint32_t stream, uint64_t end_ns,
		    uint64_t likely_ns, enum span_flag how)
{
	const struct stream *s = stream_at(p, stream);
	struct span span = span_of(cuda, p, s->context);

	span_in_stream(p, stream, &span);
	span.kind = s->launches > 0 ? SPAN_KERNELS : SPAN_COPY;
	span.flags |= SPAN_END_BOUND | how;
	span.start_ns = s->first_ns;
	span.end_ns = MAX(end_ns, s->first_ns);
	span.likely_end_ns = CLAMP(likely_ns, s->first_ns, span.end_ns);
	span.launches = s->launches;
	span.threads = s->threads;
	span.copies = s->copies;
	span.bytes = s->bytes;
	span_sinks_span(&cuda->span_sinks, &span);
}

void span_of_call(struct cuda *cuda, const struct process *p, enum span_kind kind, uint32_t context,
		  uint32_t stream, const struct trace_call *call)
{
	struct span span = span_of(cuda, p, context);

	if (stream != NONE)
		span_in_stream(p, stream, &span);
	span.kind = (uint8_t)kind;
	span.tid = call->header.tid;
	span.start_ns = call->header.time_ns;
	span.end_ns = span.likely_end_ns = returned_ns(call);
	if (call->header.flags & TRACE_FLAG_NO_RESULT)
		span.flags |= SPAN_END_BOUND; /* it had returned when the thread's next call was made */
	if (kind == SPAN_COPY) {
		span.copies = 1;
		span.bytes = call->size;
	}
	span_sinks_span(&cuda->span_sinks, &span);
}
