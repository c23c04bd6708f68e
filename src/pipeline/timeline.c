// SPDX-License-Identifier: Apache-2.0
#include "pipeline/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pipeline/timeline_private.h"
#include "proc/proc.h"

static void timeline_lost(uint64_t events, void *userdata)
{
	struct trace_timeline *t = userdata;
	char text[64];

	snprintf(text, sizeof(text), "%" PRIu64 " events lost", events);
	trace_timeline_say(t, text);
	t->missing.lost += events;
}

static void timeline_incomplete(uint32_t tgid, _unused_ uint64_t incarnation, unsigned bits, void *userdata)
{
	struct trace_timeline *t = userdata;
	uint32_t process;

	if (t->pid && tgid != t->pid)
		return;
	if (!bits || !timeline_process_of(t, tgid, &process))
		return;
	bits &= ~timeline_process_at(t, process)->incomplete;
	timeline_process_at(t, process)->incomplete |= bits;
	for (unsigned bit = 0; traced_incomplete_name(bit); bit++)
		if (bits >> bit & 1)
			timeline_mark(t, timeline_process_at(t, process)->track, traced_incomplete_name(bit),
				      (uint64_t)clock_mono_ns());
}

struct event_sink *trace_timeline_sink(struct trace_timeline *t)
{
	return &t->sink;
}

struct span_sink *trace_timeline_spans(struct trace_timeline *t)
{
	return &t->spans;
}

struct work_sink *trace_timeline_works(struct trace_timeline *t)
{
	return t->measured ? &t->work_sink : NULL;
}

void trace_timeline_set_stacks(struct trace_timeline *t, const struct stack_sums *stacks)
{
	t->stacks = stacks;
}

bool trace_timeline_wants_names(const struct trace_timeline *t)
{
	return t->stacks_unnamed;
}

void trace_timeline_set_blas(struct trace_timeline *t, const struct blas *blas)
{
	t->blas = blas;
}

/* Launches that still wait for a name go without. */
static void forget_tracks(struct trace_timeline *t)
{
	struct hashmap *maps[] = { &t->process_by, &t->stack_by,  &t->ended_by,
				   &t->thread_by,  &t->stream_by, &t->flow_by,
				   &t->counter_by, &t->key_by,    &t->communicator_by };

	timeline_add_waiting(t, true);
	timeline_add_held(t, true);
	timeline_forget(t->timeline);
	for (unsigned i = 0; i < ARRAY_SIZE(maps); i++)
		hashmap_clear(maps[i]);
	row_list_clear(&t->processes);
	row_list_clear(&t->lanes);
	memset(t->names, 0, sizeof(t->names));
	t->marks = TIMELINE_NONE;
	timeline_gpus_forget(t);
	timeline_works_forget(t);
}

/* What had no room since it was last said. */
static void say_dropped(struct trace_timeline *t)
{
	uint64_t dropped = trace_timeline_missing(t).dropped;
	char text[64];

	if (dropped == t->dropped_said)
		return;
	snprintf(text, sizeof(text), "%" PRIu64 " events did not fit", dropped - t->dropped_said);
	t->dropped_said = dropped;
	trace_timeline_say(t, text);
}

void trace_timeline_begin(struct trace_timeline *t)
{
	trace_timeline_collect(t);
	t->offsets = (struct clock_offsets){ 0 };
	timeline_gpus_say_again(t);
}

void trace_timeline_collect(struct trace_timeline *t)
{
	timeline_clocks(t);
	timeline_add_waiting(t, false);
	timeline_add_held(t, false);
	say_dropped(t);
	timeline_flush(t->timeline);
	timeline_stacks_again(t);
	if (timeline_fill(t->timeline) > FORGET_AT)
		forget_tracks(t);
}

int trace_timeline_finish(struct trace_timeline *t)
{
	uint64_t late = sink_turn(&t->sink.sink);

	if (late > 0)
		timeline_lost(late, t);
	timeline_add_waiting(t, true);
	timeline_add_held(t, true);
	trace_timeline_gpus_end(t);
	say_dropped(t);
	return timeline_flush(t->timeline);
}

struct trace_timeline_missing trace_timeline_missing(const struct trace_timeline *t)
{
	struct trace_timeline_missing missing = t->missing;

	missing.dropped += t->sink.sink.refused + t->spans.sink.refused + t->work_sink.sink.lost;
	return missing;
}

int trace_timeline_new(const struct trace_timeline_config *config, struct trace_timeline **ret_timeline)
{
	_cleanup_(trace_timeline_freep) struct trace_timeline *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	*t = (struct trace_timeline){
		.sink = { .sink = { .name = "timeline", .userdata = t },
			  .event = timeline_event,
			  .lost = timeline_lost,
			  .incomplete = timeline_incomplete,
			  .process_over = timeline_over },
		.spans = { .sink = { .name = "timeline", .userdata = t }, .span = timeline_span },
		.work_sink = { .sink = { .name = "timeline", .userdata = t },
			       .work = timeline_work,
			       .measured = timeline_measured },
		.measured = config->pipeline ? pipeline_measured(config->pipeline) : NULL,
		.pipeline = config->pipeline,
		.blas = config->blas,
		.stacks = config->stacks,
		.pid = config->pid,
		.sees_all = proc_sees_all(),
		.xid = config->xid,
		.xid_userdata = config->xid_userdata,
		.marks = TIMELINE_NONE,
		.begun_ns = clock_mono_ns(),
		.processes = { .size = sizeof(struct timeline_process), .max = TIMELINE_TRACKS_MAX },
		.lanes = { .size = sizeof(struct timeline_lane), .max = TIMELINE_TRACKS_MAX },
	};
	t->waiting = calloc(WAITING_MAX, sizeof(*t->waiting));
	t->gpus = calloc(GPUS_MAX, trace_timeline_gpu_size);
	if (!t->waiting || !t->gpus)
		return -ENOMEM;
	r = t->measured ? timeline_works_new(t) : 0;
	if (r < 0)
		return r;
	r = timeline_new(config->format, &config->ops, config->userdata, &t->timeline);
	if (r < 0)
		return r;
	*ret_timeline = TAKE_PTR(t);
	return 0;
}

void trace_timeline_free(struct trace_timeline *t)
{
	if (!t)
		return;
	timeline_free(t->timeline);
	hashmap_done(&t->process_by);
	hashmap_done(&t->stack_by);
	hashmap_done(&t->ended_by);
	hashmap_done(&t->thread_by);
	hashmap_done(&t->stream_by);
	hashmap_done(&t->communicator_by);
	hashmap_done(&t->flow_by);
	hashmap_done(&t->counter_by);
	hashmap_done(&t->key_by);
	hashmap_done(&t->xid_by);
	timeline_works_free(t);
	free(t->waiting);
	free(t->held);
	row_list_done(&t->lanes);
	row_list_done(&t->processes);
	free(t->gpus);
	free(t);
}
