// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "pipeline/private.h"
#include "pipeline/timeline.h"

static int take_event(_unused_ const struct trace_header *event, _unused_ uint32_t size, void *userdata)
{
	++*(unsigned *)userdata;
	return 0;
}

static int take_span(_unused_ const struct span *span, void *userdata)
{
	++*(unsigned *)userdata;
	return 0;
}

/* The figures are one sink of the engine's events; another gets the same ones, and spans come of them. */
static void figures_are_one_of_several(_unused_ void **state)
{
	struct trace_process first = {
		.header = { .type = TRACE_EVENT_PROCESS, .tgid = 7, .tid = 7, .time_ns = 1000 },
		.incarnation = 1,
	};
	struct trace_launch launch = {
		.header = { .type = TRACE_EVENT_LAUNCH, .op = TRACE_OP_LAUNCH, .tgid = 7, .tid = 7 },
		.grid = { 1, 1, 1 },
		.block = { 1, 1, 1 },
	};
	const struct pipeline_config config = { 0 };
	struct event_sinks events = { 0 };
	unsigned events_n = 0, spans_n = 0;
	struct event_sink sink = { .sink = { .name = "test", .userdata = &events_n }, .event = take_event };
	struct span_sink span_sink = { .sink = { .name = "test", .userdata = &spans_n }, .span = take_span };
	struct pipeline *pipeline;
	struct cuda_stats stats;
	int unnamed;

	assert_int_equal(pipeline_new(NULL, &config, &pipeline, &unnamed), 0);
	assert_int_equal(event_sinks_add(&events, pipeline_event_sink(pipeline)), 0);
	assert_int_equal(event_sinks_add(&events, &sink), 0);
	assert_int_equal(span_sinks_add(pipeline_span_sinks(pipeline), &span_sink), 0);
	launch.header.time_ns = (uint64_t)clock_mono_ns();
	event_sinks_turn(&events);
	event_sinks_event(&events, &first.header, sizeof(first));
	event_sinks_event(&events, &launch.header, sizeof(launch));
	event_sinks_process_over(&events, 7, 1);
	cuda_stats(pipeline->cuda, &stats);
	assert_int_equal(stats.events, 2);
	assert_int_equal(events_n, 2);
	assert_int_equal(spans_n, 1);
	assert_int_equal(span_sink.sink.taken, 1);
	pipeline_free(pipeline);
}

static int refuse_event(_unused_ const struct trace_header *event, _unused_ uint32_t size,
			_unused_ void *userdata)
{
	return -ENOBUFS;
}

static void what_sinks_lose_is_shown(_unused_ void **state)
{
	struct event_sink full = { .event = refuse_event };
	struct span_sink span_sink = { .span = take_span };
	const struct trace_header event = { .type = TRACE_EVENT_EXIT, .tgid = 7, .time_ns = 1 };
	const struct pipeline_config config = { 0 };
	struct event_sinks events = { 0 };
	struct pipeline *pipeline;
	int unnamed;

	assert_int_equal(pipeline_new(NULL, &config, &pipeline, &unnamed), 0);
	assert_int_equal(event_sinks_add(&events, pipeline_event_sink(pipeline)), 0);
	event_sinks_event(&events, &event, sizeof(event));
	assert_int_equal(pipeline_not_taken(pipeline, &events), 0);
	assert_int_equal(event_sinks_add(&events, &full), 0);
	assert_int_equal(span_sinks_add(pipeline_span_sinks(pipeline), &span_sink), 0);
	for (int i = 0; i < 3; i++)
		event_sinks_event(&events, &event, sizeof(event));
	span_sink.sink.lost = 4;
	assert_int_equal(pipeline_not_taken(pipeline, &events), 7);
	pipeline_free(pipeline);
}

static int keep_block(struct timeline_block *block, void *userdata)
{
	strbuf_add(userdata, block->data, block->n);
	return 0;
}

/* How often a timeline says it, and forgets what was written. */
static unsigned said(struct strbuf *written, const char *text)
{
	unsigned n = 0;

	strbuf_add(written, "", 1);
	for (const char *at = written->data; (at = strstr(at, text)) != NULL; at++)
		n++;
	strbuf_reset(written);
	return n;
}

static void what_a_timeline_lacks_is_said(_unused_ void **state)
{
	struct strbuf written;
	struct trace_timeline_config config = { .format = TIMELINE_CHROME,
						.ops.write = keep_block,
						.userdata = &written };
	struct trace_timeline *timeline;
	struct sink *calls, *spans;

	strbuf_init(&written, 1 << 20);
	assert_int_equal(trace_timeline_new(&config, &timeline), 0);
	calls = &trace_timeline_sink(timeline)->sink;
	spans = &trace_timeline_spans(timeline)->sink;
	trace_timeline_begin(timeline);
	assert_int_equal(said(&written, "did not fit"), 0);
	calls->lost = calls->refused = 2;
	spans->lost = spans->refused = 1;
	trace_timeline_collect(timeline);
	assert_int_equal(said(&written, "3 events did not fit"), 1);
	trace_timeline_collect(timeline);
	assert_int_equal(said(&written, "did not fit"), 0);
	/* Those of the last turn, of which the sink has not been told. */
	calls->lost += 4;
	calls->unreported = 4;
	calls->refused++;
	calls->lost++;
	assert_int_equal(trace_timeline_finish(timeline), 0);
	assert_int_equal(trace_timeline_missing(timeline).dropped, 4);
	assert_int_equal(trace_timeline_missing(timeline).lost, 4);
	assert_non_null(strstr(written.data, "1 events did not fit"));
	assert_int_equal(said(&written, "4 events lost"), 1);
	trace_timeline_free(timeline);
	strbuf_done(&written);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_one_of_several),
		cmocka_unit_test(what_sinks_lose_is_shown),
		cmocka_unit_test(what_a_timeline_lacks_is_said),
	};

	return cmocka_run_group_tests_name("sinks", tests, NULL, NULL);
}
