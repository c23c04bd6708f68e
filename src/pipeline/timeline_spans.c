// SPDX-License-Identifier: Apache-2.0
/* The estimated work of streams in a timeline, and the arrows to it from launches. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "pipeline/timeline_private.h"

enum { GPU_NAME = 64, TRACK_NAME = GPU_NAME + 32 };

/* Launches into a stream that its next span covers: they and it have one number. 0: not known. */
uint64_t timeline_flow(struct trace_timeline *t, uint32_t process, uint32_t stream_id, bool ends)
{
	uint64_t key = timeline_key_in(process, stream_id);
	uint32_t flow;

	if (hashmap_get(&t->flow_by, key, &flow)) {
		if (ends)
			hashmap_del(&t->flow_by, key);
		return flow;
	}
	if (t->flow_by.count >= FLOWS_MAX)
		hashmap_clear(&t->flow_by);
	if (ends || t->flows == UINT32_MAX || hashmap_put(&t->flow_by, key, (uint32_t)t->flows + 1) < 0)
		return 0;
	return ++t->flows;
}

static void stream_name(const struct trace_timeline *t, const struct span *span, char name[static TRACK_NAME])
{
	char gpu[GPU_NAME];

	trace_timeline_gpu_name(t, span->device, gpu, sizeof(gpu));
	if (span->flags & SPAN_MERGED)
		snprintf(name, TRACK_NAME, "%s streams (more)", gpu);
	else if (span->stream == 0)
		snprintf(name, TRACK_NAME, "%s default stream", gpu);
	else
		snprintf(name, TRACK_NAME, "%s stream 0x%" PRIx64, gpu, span->stream);
}

/* NULL: no room. */
static struct timeline_lane *stream_of(struct trace_timeline *t, const struct span *span, uint32_t process)
{
	char name[TRACK_NAME];

	stream_name(t, span, name);
	return timeline_lane(t, process, &t->stream_by,
			     (uint64_t)span->stream_id << 32 | (span->flags & SPAN_MERGED), name);
}

static void put_span(struct trace_timeline *t, struct timeline_event *event, const struct span *span)
{
	uint32_t device;

	if (span->kind == SPAN_KERNELS) {
		timeline_put_arg(t, event, "launches", TIMELINE_UNSIGNED, span->launches);
		timeline_put_arg(t, event, "threads", TIMELINE_UNSIGNED, span->threads);
	}
	if (trace_timeline_gpu_index(t, span->device, &device))
		timeline_put_arg(t, event, "device", TIMELINE_UNSIGNED, device);
	timeline_put_arg(t, event, "copies", TIMELINE_UNSIGNED, span->copies);
	timeline_put_arg(t, event, "bytes", TIMELINE_UNSIGNED, span->bytes);
	timeline_put_arg(t, event, "at_most_ns", TIMELINE_UNSIGNED, span->end_ns - span->start_ns);
	if (span->flags & SPAN_NO_WAIT)
		timeline_put_text_arg(t, event, "end", "of its stream: nothing waited for it");
	if (span->flags & SPAN_INCOMPLETE)
		timeline_put_text_arg(t, event, "incomplete", "something of the process was missed");
}

/* Waits and copies that a thread waits for are its calls. */
int timeline_span(const struct span *span, void *userdata)
{
	struct trace_timeline *t = userdata;
	struct timeline_event event = { .type = TIMELINE_SLICE, .category = TIMELINE_GPU };
	const char *name = span->kind == SPAN_KERNELS ? "kernels (estimate)" : "copies (estimate)";
	struct timeline_lane *stream;
	uint32_t process;

	if (span->kind == SPAN_SYNC || span->tid != 0 || (t->pid && span->tgid != t->pid))
		return 0;
	stream = timeline_process_of(t, span->tgid, &process) ? stream_of(t, span, process) : NULL;
	if (!stream || !trace_timeline_key(t, name, &event.name))
		return -ENOBUFS;
	event.begin_ns = span->start_ns;
	event.end_ns = span->likely_end_ns;
	if (!(span->flags & SPAN_MERGED))
		event.flow = timeline_flow(t, process, span->stream_id, true);
	put_span(t, &event, span);
	timeline_add_to_lane(t, stream, &event);
	return 0;
}
