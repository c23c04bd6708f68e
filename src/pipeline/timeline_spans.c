// SPDX-License-Identifier: Apache-2.0
/* The estimated work of streams in a timeline, and the arrows to it from launches. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Without the time that was measured. */
static void add_rest(struct trace_timeline *t, struct held_span *held)
{
	struct timeline_lane *lane = &((struct timeline_lane *)t->lanes.list)[held->lane];
	struct time_part rest[MEASURED_RESTS];
	uint32_t n = measured_rest(t->measured, held->tgid,
				   (struct time_part){ held->event.begin_ns, held->event.end_ns }, rest);

	for (uint32_t i = 0; i < n; i++) {
		held->event.begin_ns = rest[i].begin_ns;
		held->event.end_ns = rest[i].end_ns;
		timeline_add_to_lane(t, lane, &held->event);
		held->event.flow = 0; /* the arrow is to the first */
	}
}

static void add_oldest(struct trace_timeline *t)
{
	add_rest(t, &t->held[t->held_at]);
	t->held_at = (t->held_at + 1) % HELD_MAX;
	t->held_n--;
}

void timeline_add_held(struct trace_timeline *t, bool all)
{
	uint64_t now_ns = (uint64_t)clock_mono_ns();

	while (t->held_n > 0 && (all || t->held[t->held_at].until_ns <= now_ns))
		add_oldest(t);
}

/* Where there is no room the oldest is drawn by what is known so far. */
static void hold(struct trace_timeline *t, const struct timeline_event *event, uint32_t tgid, uint32_t lane)
{
	if (!t->held)
		t->held = calloc(HELD_MAX, sizeof(*t->held));
	if (!t->held) {
		t->missing.dropped++;
		return;
	}
	if (t->held_n == HELD_MAX)
		add_oldest(t);
	t->held[(t->held_at + t->held_n++) % HELD_MAX] = (struct held_span){
		.event = *event,
		.tgid = tgid,
		.lane = lane,
		.until_ns = (uint64_t)clock_mono_ns() + MEASURED_LATE_NS,
	};
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
	if (t->measured && measured_has(t->measured, span->tgid))
		hold(t, &event, span->tgid, (uint32_t)(stream - (struct timeline_lane *)t->lanes.list));
	else
		timeline_add_to_lane(t, stream, &event);
	return 0;
}
