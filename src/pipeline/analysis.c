// SPDX-License-Identifier: Apache-2.0
#include "pipeline/analysis.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/saturated.h"
#include "nccl/nccl.h"
#include "pipeline/analysis_call.h"
#include "pipeline/findings.h"

static const struct {
	enum gpu_metric metric;
	enum analysis_counter counter;
} counters[] = {
#define COUNTER(metric_, counter_) { GPU_##metric_, ANALYSIS_COUNTER_##counter_ },
#include "pipeline/analysis_counters.def"
#undef COUNTER
};

struct live_analysis {
	struct event_sink sink;
	struct span_sink spans;
	const struct pipeline *pipeline;
	struct analysis *analysis;
	uint32_t names[TRACE_CALLS_MAX]; /* texts by call, plus one */
	uint32_t active[FINDING_RULES]; /* findings a second ago */
	uint64_t node_seq;
};

/* 0: it has no room. */
static uint32_t text_in(struct live_analysis *l, const char *text)
{
	uint32_t number;

	return analysis_text(l->analysis, text, &number) < 0 ? 0 : number;
}

static uint32_t call_name(struct live_analysis *l, uint16_t call)
{
	if (!l->names[call])
		l->names[call] = text_in(l, probe_at(call)->symbol) + 1;
	return l->names[call] - 1;
}

/* ---- events ---- */

static void fill_communicator(const struct live_analysis *l, const struct trace_call *call,
			      struct analysis_event *event)
{
	const struct nccl_communicator *c =
		l->pipeline ? pipeline_communicator(l->pipeline, call->header.tgid, call->addr) : NULL;

	if (!c)
		return;
	event->communicator = c->id ? c->id : c->handle;
	event->rank = c->rank;
	event->ranks = c->ranks;
	event->sequence = !c->late && nccl_is_collective(&call->header) ? c->sequence : 0;
}

static bool of_call(struct live_analysis *l, const struct trace_call *call, struct analysis_event *event)
{
	const struct analysis_call from = {
		.probe = probe_at(call->header.call),
		.address = call->addr,
		.bytes = call->size,
		.stream = call->stream,
		.kind = call->kind,
		.result = call->result,
	};

	event->end_ns = add_saturated(call->header.time_ns, call->duration_ns);
	if (call->header.op == TRACE_OP_PYTHON_GIL || call->header.op == TRACE_OP_PYTHON_GC) {
		event->kind = call->header.op == TRACE_OP_PYTHON_GIL ? ANALYSIS_GIL : ANALYSIS_GC;
		return true;
	}
	if (!analysis_of_call(&from, event))
		return false;
	event->name = call_name(l, call->header.call);
	if (event->kind == ANALYSIS_COLLECTIVE)
		fill_communicator(l, call, event);
	return true;
}

static bool of_launch(struct live_analysis *l, const struct trace_launch *launch,
		      struct analysis_event *event)
{
	event->kind = ANALYSIS_LAUNCH;
	event->end_ns = add_saturated(launch->header.time_ns, launch->duration_ns);
	event->name = call_name(l, launch->header.call);
	event->stream = launch->stream;
	event->result = launch->result;
	event->threads = 1;
	for (unsigned i = 0; i < 3; i++)
		event->threads =
			multiply_saturated(event->threads, (uint64_t)launch->grid[i] * launch->block[i]);
	return true;
}

/* A step of an optimizer, or of a loop over batches. */
static bool of_range(struct live_analysis *l, const struct trace_name *name, struct analysis_event *event)
{
	static const char step[] = "Optimizer.step#";

	if (name->header.op != TRACE_OP_TORCH_RANGE || name->header.flags & TRACE_FLAG_UNREAD ||
	    strncmp(name->name, step, strlen(step)) != 0)
		return false;
	event->kind = ANALYSIS_STEP;
	event->name = text_in(l, name->name);
	return true;
}

static int live_event(const struct trace_header *header, _unused_ uint32_t size, void *userdata)
{
	struct live_analysis *l = userdata;
	struct analysis_event event = {
		.pid = header->tgid,
		.tid = header->tid,
		.rank = -1,
		.begin_ns = header->time_ns,
		.end_ns = header->time_ns,
		.stack = header->stack,
	};
	bool wanted = false;

	if (header->call >= probe_calls())
		return 0;
	if (header->type == TRACE_EVENT_CALL)
		wanted = of_call(l, (const struct trace_call *)header, &event);
	else if (header->type == TRACE_EVENT_LAUNCH)
		wanted = of_launch(l, (const struct trace_launch *)header, &event);
	else if (header->type == TRACE_EVENT_NAME)
		wanted = of_range(l, (const struct trace_name *)header, &event);
	return wanted ? analysis_add(l->analysis, &event) : 0;
}

static void live_over(uint32_t tgid, _unused_ uint64_t incarnation, void *userdata)
{
	struct live_analysis *l = userdata;
	const struct analysis_event event = { .kind = ANALYSIS_EXIT,
					      .pid = tgid,
					      .rank = -1,
					      .begin_ns = (uint64_t)clock_mono_ns(),
					      .end_ns = (uint64_t)clock_mono_ns() };

	analysis_add(l->analysis, &event);
}

static int live_span(const struct span *span, void *userdata)
{
	struct live_analysis *l = userdata;
	const struct analysis_event event = {
		.kind = ANALYSIS_WORK,
		.flags = ANALYSIS_ESTIMATED,
		.pid = span->tgid,
		.rank = -1,
		.device = span->device[0] ? text_in(l, span->device) : 0,
		.stream = span->stream_id,
		.bytes = span->bytes,
		.threads = span->threads,
		.begin_ns = span->start_ns,
		.end_ns = MAX(span->likely_end_ns, span->start_ns),
	};

	return span->kind == SPAN_SYNC || span->tid != 0 ? 0 : analysis_add(l->analysis, &event);
}

/* ---- the node ---- */

static void take_figures(struct live_analysis *l, const struct entity *e, uint64_t now_ns)
{
	bool instance = e->id.parent != READING_NONE;
	struct analysis_event event = { .kind = ANALYSIS_COUNTER,
					.rank = -1,
					.device = text_in(l, instance ? e->id.mig_uuid : e->id.uuid),
					.begin_ns = now_ns,
					.end_ns = now_ns };

	for (size_t i = 0; event.device && i < ARRAY_SIZE(counters); i++) {
		unsigned slot = gpu_metrics[counters[i].metric].slot;

		if (!presence_is(e->id.p[slot]))
			continue;
		event.counter = (uint8_t)counters[i].counter;
		event.value = e->id.v[slot];
		analysis_add(l->analysis, &event);
	}
}

static void take_node(struct live_analysis *l, const struct snapshot *node, uint64_t now_ns)
{
	if (!node || node->seq == l->node_seq)
		return;
	l->node_seq = node->seq;
	for (uint32_t i = 0; i < node->entities_n; i++)
		if (node->entities[i].present && !node->entities[i].stale)
			take_figures(l, &node->entities[i], now_ns);
}

struct findings *live_analysis_tick(struct live_analysis *l, const struct snapshot *node, uint64_t now_ns,
				    const char **ret_new)
{
	struct findings *findings;

	take_node(l, node, now_ns);
	analysis_tick(l->analysis, now_ns);
	findings = findings_of(l->analysis, clock_real_ns() - clock_mono_ns());
	*ret_new = NULL;
	for (uint32_t i = 0; findings && i < findings->rules_n; i++) {
		if (findings->rules[i].active > l->active[i])
			*ret_new = findings->rules[i].name;
		l->active[i] = findings->rules[i].active;
	}
	return findings;
}

/* ---- start and end ---- */

struct event_sink *live_analysis_sink(struct live_analysis *l)
{
	return &l->sink;
}

struct span_sink *live_analysis_spans(struct live_analysis *l)
{
	return &l->spans;
}

int live_analysis_new(const struct pipeline *pipeline, struct live_analysis **ret_analysis)
{
	static const struct analysis_options options = { 0 };
	_cleanup_(live_analysis_freep) struct live_analysis *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->pipeline = pipeline;
	l->sink = (struct event_sink){ .sink = { .name = "analysis", .userdata = l },
				       .event = live_event,
				       .process_over = live_over };
	l->spans = (struct span_sink){ .sink = { .name = "analysis", .userdata = l }, .span = live_span };
	if (analysis_new(&options, &l->analysis) < 0)
		return -ENOMEM;
	*ret_analysis = TAKE_PTR(l);
	return 0;
}

void live_analysis_free(struct live_analysis *l)
{
	if (l)
		analysis_free(l->analysis);
	free(l);
}
