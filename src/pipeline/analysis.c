// SPDX-License-Identifier: Apache-2.0
#include "pipeline/analysis.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/saturated.h"
#include "nccl/nccl.h"
#include "pipeline/analysis_call.h"
#include "pipeline/analysis_job.h"
#include "pipeline/analysis_late.h"
#include "pipeline/analysis_processes.h"
#include "pipeline/analysis_stacks.h"
#include "pipeline/findings.h"
#include "proc/proc.h"

#define SNAPSHOT_NS \
	(5 * (uint64_t)NSEC_PER_SEC) /* two that are farther apart say nothing of the time between */
#define QUIET_NS (15 * (uint64_t)NSEC_PER_SEC) /* half of the time after which a communicator hangs */
#define TURN_NS (10 * NSEC_PER_MSEC) /* of each drain of the ring */
enum {
	SUSPECTS_MAX = 64, /* threads whose state is read, in a second */
	SUSPECT_SECONDS = 3, /* in state D: for less, anything may wait for a disk */
};

static const struct {
	enum gpu_metric metric;
	enum analysis_counter counter;
} counters[] = {
#define COUNTER(metric_, counter_) { GPU_##metric_, ANALYSIS_COUNTER_##counter_ },
#include "pipeline/analysis_counters.def"
#undef COUNTER
};

struct suspect {
	struct analysis_thread thread;
	uint32_t seconds; /* in state D, one after the other */
};

struct live_analysis {
	struct event_sink sink;
	struct span_sink spans;
	struct work_sink works;
	const struct pipeline *pipeline;
	struct analysis *analysis;
	uint32_t names[TRACE_CALLS_MAX]; /* texts by call, plus one */
	uint32_t active[FINDING_RULES]; /* findings a second ago */
	uint64_t node_seq, node_ns;
	uint64_t xid; /* number of the newest report */
	bool xids_begun;
	struct analysis_processes processes;
	struct analysis_stacks stacks;
	struct analysis_job job;
	struct analysis_late late;
	struct suspect suspects[SUSPECTS_MAX];
	uint32_t suspects_n;
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
	event->communicator = c->id; /* a handle may be another process's, too */
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

/* Without the name, which the program chooses, and texts are kept. */
static bool of_range(const struct trace_name *name, struct analysis_event *event)
{
	return name->header.op == TRACE_OP_TORCH_RANGE && !(name->header.flags & TRACE_FLAG_UNREAD) &&
	       analysis_of_range(name->name, event);
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
	};
	bool wanted = false;

	if (header->call >= probe_calls() || !analysis_job_has(&l->job, header->tgid))
		return 0;
	if (header->type == TRACE_EVENT_CALL)
		wanted = of_call(l, (const struct trace_call *)header, &event);
	else if (header->type == TRACE_EVENT_LAUNCH)
		wanted = of_launch(l, (const struct trace_launch *)header, &event);
	else if (header->type == TRACE_EVENT_NAME)
		wanted = of_range((const struct trace_name *)header, &event);
	if (!wanted)
		return 0;
	event.user = analysis_user(&l->stacks, header->tgid);
	event.stack = analysis_stack_of(&l->stacks, l->analysis, header, event.user);
	return analysis_late_add(&l->late, &event);
}

static void live_over(uint32_t tgid, _unused_ uint64_t incarnation, void *userdata)
{
	struct live_analysis *l = userdata;
	const struct analysis_event event = { .kind = ANALYSIS_EXIT,
					      .pid = tgid,
					      .rank = -1,
					      .begin_ns = (uint64_t)clock_mono_ns(),
					      .end_ns = (uint64_t)clock_mono_ns() };

	analysis_late_add(&l->late, &event);
	analysis_stacks_over(&l->stacks, tgid);
	analysis_job_over(&l->job, tgid);
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

	return span->kind == SPAN_SYNC || span->tid != 0 || !analysis_job_has(&l->job, span->tgid) ?
		       0 :
		       analysis_late_add(&l->late, &event);
}

/* Without the kernel's name, which the program chooses, and texts are kept. */
static int live_work(const struct measured_work *work, void *userdata)
{
	struct live_analysis *l = userdata;
	const struct analysis_event event = {
		.kind = ANALYSIS_WORK,
		.flags = ANALYSIS_TRUE,
		.pid = work->tgid,
		.rank = -1,
		.device = work->uuid[0] ? text_in(l, work->uuid) : 0,
		.stream = (uint64_t)work->work->context << 32 | work->work->stream,
		.bytes = work->work->bytes,
		.begin_ns = work->work->start_ns,
		.end_ns = work->work->end_ns,
	};

	return analysis_job_has(&l->job, work->tgid) ? analysis_late_work(&l->late, &event) : 0;
}

/* ---- the node ---- */

static void take_figures(struct live_analysis *l, const struct entity *e, uint64_t now_ns)
{
	struct analysis_event event = { .kind = ANALYSIS_COUNTER,
					.rank = -1,
					.device = analysis_device_of(l->analysis, e),
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

/*
 * Since the snapshot before, if that was just then; of no length where a reason does not hold, which says
 * that it is known. An idle GPU is not throttled.
 */
static void take_reasons(struct live_analysis *l, const struct entity *e, uint64_t now_ns)
{
	uint64_t since_ns = l->node_ns + SNAPSHOT_NS > now_ns ? l->node_ns : now_ns;
	struct analysis_event event = { .kind = ANALYSIS_THROTTLE,
					.rank = -1,
					.device = analysis_device_of(l->analysis, e),
					.end_ns = now_ns };

	for (unsigned i = GPU_EVENT_REASON_GPU_IDLE + 1; event.device && i <= GPU_EVENT_REASON_RELIABILITY;
	     i++) {
		if (!presence_is(e->id.p[gpu_metrics[i].slot]))
			continue;
		event.begin_ns = e->id.v[gpu_metrics[i].slot] != 0 ? since_ns : now_ns;
		event.name = text_in(l, gpu_metrics[i].value);
		analysis_add(l->analysis, &event);
	}
}

/* Those before the first snapshot are not told. */
static void take_xids(struct live_analysis *l, const struct snapshot *node, uint64_t now_ns)
{
	for (uint32_t i = 0; i < node->xid_events_n; i++) {
		const struct xid_event *xid = &node->xid_events[i];
		struct analysis_event event = { .kind = ANALYSIS_XID,
						.rank = -1,
						.count = xid->code,
						.begin_ns = now_ns,
						.end_ns = now_ns };

		if (xid->number <= l->xid)
			continue;
		l->xid = xid->number;
		if (!l->xids_begun || xid->entity >= node->entities_n)
			continue;
		event.device = analysis_device_of(l->analysis, &node->entities[xid->entity]);
		analysis_add(l->analysis, &event);
	}
	l->xids_begun = true;
}

static void take_node(struct live_analysis *l, const struct snapshot *node, uint64_t now_ns)
{
	if (!node || node->seq == l->node_seq)
		return;
	l->node_seq = node->seq;
	analysis_job_node(&l->job, node);
	for (uint32_t i = 0; i < node->entities_n; i++)
		if (node->entities[i].present && !node->entities[i].stale) {
			take_figures(l, &node->entities[i], now_ns);
			take_reasons(l, &node->entities[i], now_ns);
		}
	take_xids(l, node, now_ns);
	analysis_take_processes(&l->processes, l->analysis, node, now_ns);
	l->node_ns = now_ns;
}

/* ---- who keeps others waiting ---- */

static uint32_t seconds_of(const struct live_analysis *l, const struct analysis_thread *thread)
{
	for (uint32_t i = 0; i < l->suspects_n; i++)
		if (l->suspects[i].thread.pid == thread->pid && l->suspects[i].thread.tid == thread->tid)
			return l->suspects[i].seconds;
	return 0;
}

static void look_at_suspect(struct live_analysis *l, struct suspect *suspect, uint64_t now_ns)
{
	const struct analysis_event blocked = { .kind = ANALYSIS_BLOCKED,
						.pid = suspect->thread.pid,
						.tid = suspect->thread.tid,
						.rank = -1,
						.begin_ns = now_ns,
						.end_ns = now_ns };

	if (proc_thread_state("/proc", suspect->thread.pid, suspect->thread.tid) != 'D')
		return;
	suspect->seconds = seconds_of(l, &suspect->thread) + 1;
	if (suspect->seconds >= SUSPECT_SECONDS)
		analysis_add(l->analysis, &blocked);
}

static void look_at_suspects(struct live_analysis *l, uint64_t now_ns)
{
	struct analysis_thread threads[SUSPECTS_MAX];
	struct suspect suspects[SUSPECTS_MAX] = { 0 };
	uint32_t n =
		l->processes.sees_all ? analysis_suspects(l->analysis, QUIET_NS, threads, SUSPECTS_MAX) : 0;

	for (uint32_t i = 0; i < n; i++) {
		suspects[i].thread = threads[i];
		look_at_suspect(l, &suspects[i], now_ns);
	}
	memcpy(l->suspects, suspects, sizeof(suspects));
	l->suspects_n = n;
}

static struct findings *findings_now(const struct live_analysis *l)
{
	struct findings *findings = findings_of(l->analysis, clock_real_ns() - clock_mono_ns());

	analysis_job_filter(&l->job, findings);
	return findings;
}

struct findings *live_analysis_finish(struct live_analysis *l)
{
	analysis_late_tick(&l->late, UINT64_MAX);
	analysis_stacks_name(&l->stacks, l->analysis);
	analysis_finish(l->analysis);
	return findings_now(l);
}

struct findings *live_analysis_tick(struct live_analysis *l, const struct snapshot *node, uint64_t now_ns,
				    const char **ret_new)
{
	struct findings *findings;

	take_node(l, node, now_ns);
	analysis_late_tick(&l->late, now_ns);
	analysis_stacks_name(&l->stacks, l->analysis);
	look_at_suspects(l, now_ns);
	analysis_tick(l->analysis, now_ns);
	findings = findings_now(l);
	*ret_new = NULL;
	for (uint32_t i = 0; findings && i < findings->rules_n; i++) {
		const struct finding_rule *rule = &findings->rules[i];
		bool more = rule->active > l->active[i];

		/* A second one is told a second later. */
		if (more && *ret_new)
			continue;
		if (more)
			*ret_new = rule->name;
		l->active[i] = rule->active;
	}
	return findings;
}

/* ---- start and end ---- */

void live_analysis_limit(struct live_analysis *l)
{
	struct sink *sinks[] = { &l->sink.sink, &l->spans.sink, &l->works.sink };

	for (size_t i = 0; i < ARRAY_SIZE(sinks); i++) {
		sinks[i]->turn_ns = TURN_NS;
		sinks[i]->computes = true;
	}
}

void live_analysis_set_job(struct live_analysis *l, const char *job)
{
	l->job.id = job;
	l->job.proc_root = "/proc";
}

void live_analysis_set_stacks(struct live_analysis *l, struct stack_sums *stacks)
{
	l->stacks.sums = stacks;
}

struct event_sink *live_analysis_sink(struct live_analysis *l)
{
	return &l->sink;
}

struct span_sink *live_analysis_spans(struct live_analysis *l)
{
	return &l->spans;
}

static int give_late(const struct analysis_event *event, void *userdata)
{
	return analysis_add(((struct live_analysis *)userdata)->analysis, event);
}

struct work_sink *live_analysis_works(struct live_analysis *l)
{
	return &l->works;
}

int live_analysis_new(const struct pipeline *pipeline, uint32_t late_max, struct live_analysis **ret_analysis)
{
	static const struct analysis_options options = { 0 };
	_cleanup_(live_analysis_freep) struct live_analysis *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->pipeline = pipeline;
	l->processes.proc_root = "/proc";
	l->processes.sees_all = proc_sees_all();
	l->sink = (struct event_sink){ .sink = { .name = "analysis", .userdata = l },
				       .event = live_event,
				       .process_over = live_over };
	l->spans = (struct span_sink){ .sink = { .name = "analysis", .userdata = l }, .span = live_span };
	l->works = (struct work_sink){ .sink = { .name = "analysis", .userdata = l }, .work = live_work };
	if (analysis_new(&options, &l->analysis) < 0)
		return -ENOMEM;
	analysis_late_init(&l->late, pipeline ? pipeline_measured(pipeline) : NULL, late_max, give_late, l);
	*ret_analysis = TAKE_PTR(l);
	return 0;
}

void live_analysis_free(struct live_analysis *l)
{
	if (!l)
		return;
	analysis_late_done(&l->late);
	analysis_free(l->analysis);
	analysis_stacks_done(&l->stacks);
	analysis_job_done(&l->job);
	free(l);
}
