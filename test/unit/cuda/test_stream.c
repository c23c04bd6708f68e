// SPDX-License-Identifier: Apache-2.0
#include "scene.h"

enum { A = 0x1000, B = 0x2000, MARK = 0x77, GRAPH = 0x88, EXECUTABLE = 0x99 };

static int setup(void **state)
{
	struct scene *s = scene_new(NULL);

	CALL(s, DEVICE_SET, .kind = 0);
	*state = s;
	return 0;
}

static void create(struct scene *s, uint64_t stream, bool non_blocking)
{
	CALL(s, STREAM_CREATE, .stream = stream, .kind = non_blocking);
}

static void a_wait_covers_its_stream_alone(void **state)
{
	struct scene *s = *state;

	create(s, A, true);
	create(s, B, true);
	launch(s, A);
	sync_stream(s, A, 100);
	assert_false(pending(s, UUID0));
	launch(s, A);
	launch(s, B);
	sync_stream(s, A, 100);
	assert_true(pending(s, UUID0));
	sync_stream(s, B, 100);
	assert_false(pending(s, UUID0));
	assert_value(s, UUID0, TRACED_LAUNCHES, 3);
	assert_value(s, UUID0, TRACED_SYNCS, 3);
	assert_value(s, UUID0, TRACED_SYNC_WAIT, 300e-6);
}

static void the_legacy_stream_waits_for_blocking_ones(void **state)
{
	struct scene *s = *state;

	create(s, A, false);
	launch(s, A);
	launch(s, 0);
	sync_stream(s, 0, 100);
	assert_false(pending(s, UUID0));
	launch(s, A);
	sync_stream(s, 1, 100);
	assert_false(pending(s, UUID0));
	create(s, B, true);
	launch(s, B);
	launch(s, 0);
	sync_stream(s, 0, 100);
	assert_true(pending(s, UUID0));
}

static void blocking_streams_wait_for_earlier_legacy_work(void **state)
{
	struct scene *s = *state;

	create(s, A, false);
	create(s, B, false);
	launch(s, B);
	launch(s, 0);
	launch(s, A);
	sync_stream(s, A, 100); /* A waited for the legacy stream, which waited for B */
	assert_false(pending(s, UUID0));
	launch(s, A);
	launch(s, 0);
	sync_stream(s, A, 100);
	assert_true(pending(s, UUID0));
	sync_stream(s, 0, 100);
	assert_false(pending(s, UUID0));
	create(s, 0x3000, true);
	launch(s, 0);
	launch(s, 0x3000);
	sync_stream(s, 0x3000, 100); /* does not wait for the legacy stream */
	assert_true(pending(s, UUID0));
}

static void default_streams_of_threads(void **state)
{
	struct scene *s = *state;

	s->flags |= TRACE_FLAG_PER_THREAD;
	launch(s, 0);
	s->tid = 2;
	launch(s, 0);
	sync_stream(s, 0, 100);
	assert_true(pending(s, UUID0)); /* the other thread's */
	s->flags = TRACE_FLAG_RUNTIME;
	s->tid = TID;
	sync_stream(s, 2, 100); /* CU_STREAM_PER_THREAD */
	assert_false(pending(s, UUID0));
}

static void contexts_and_devices(void **state)
{
	struct scene *s = *state;

	create(s, A, true);
	launch(s, A);
	launch(s, 0);
	CALL(s, DEVICE_SET, .kind = 1);
	launch(s, 0);
	sync_context(s, 100);
	assert_true(pending(s, UUID0));
	assert_false(pending(s, UUID1));
	CALL(s, DEVICE_SET, .kind = 0);
	CALL(s, SYNC_DEVICE, .stream = 0);
	assert_false(pending(s, UUID0));
}

static void an_event_covers_what_was_before_it(void **state)
{
	struct scene *s = *state;

	create(s, A, true);
	launch(s, A);
	CALL(s, EVENT_RECORD, .handle = MARK, .stream = A);
	sync_mark(s, MARK, 100);
	assert_false(pending(s, UUID0));
	launch(s, A);
	CALL(s, EVENT_RECORD, .handle = MARK, .stream = A);
	launch(s, A);
	sync_mark(s, MARK, 100);
	assert_true(pending(s, UUID0));
	CALL(s, EVENT_RECORD, .handle = MARK, .stream = A);
	CALL(s, EVENT_CREATE, .handle = MARK); /* another one of that handle */
	sync_mark(s, MARK, 100);
	assert_true(pending(s, UUID0));
	CALL(s, EVENT_RECORD, .handle = MARK, .stream = A);
	CALL(s, EVENT_DESTROY, .handle = MARK);
	sync_mark(s, MARK, 100);
	assert_true(pending(s, UUID0));
}

static void streams_wait_for_events(void **state)
{
	struct scene *s = *state;

	create(s, A, true);
	create(s, B, true);
	launch(s, A);
	CALL(s, EVENT_RECORD, .handle = MARK, .stream = A);
	sync_stream(s, B, 100);
	assert_true(pending(s, UUID0));
	CALL(s, EVENT_WAIT, .handle = MARK, .stream = B);
	sync_stream(s, B, 100);
	assert_false(pending(s, UUID0));
	/* What was recorded before the wait, not what came after it. */
	launch(s, A);
	CALL(s, EVENT_RECORD, .handle = MARK, .stream = A);
	CALL(s, EVENT_WAIT, .handle = MARK, .stream = B);
	launch(s, B);
	launch(s, A);
	sync_stream(s, B, 100);
	assert_true(pending(s, UUID0));
}

static void chains_of_waits(void **state)
{
	struct scene *s = *state;
	struct cuda_stats stats;

	for (uint64_t i = 0; i < 100; i++)
		create(s, A + i, true);
	launch(s, A);
	for (uint64_t i = 0; i < 50; i++) {
		CALL(s, EVENT_RECORD, .handle = i, .stream = A + i);
		CALL(s, EVENT_RECORD, .handle = MARK, .stream = A + i);
		CALL(s, EVENT_WAIT, .handle = MARK, .stream = A + i + 1);
	}
	sync_stream(s, A + 50, 100);
	assert_false(pending(s, UUID0));
	/* More streams than one can depend on: said, and what is not known to be over stays. */
	for (uint64_t i = 1; i < 50; i++) {
		launch(s, A + i);
		CALL(s, EVENT_RECORD, .handle = MARK, .stream = A + i);
		CALL(s, EVENT_WAIT, .handle = MARK, .stream = A);
	}
	sync_stream(s, A, 100);
	assert_true(pending(s, UUID0));
	cuda_stats(s->cuda, &stats);
	assert_true(stats.overflow[CUDA_LIMIT_PENDING] > 0);
}

static void destroyed_and_reused(void **state)
{
	struct scene *s = *state;

	create(s, A, true);
	launch(s, A);
	CALL(s, STREAM_DESTROY, .stream = A);
	assert_true(pending(s, UUID0));
	create(s, A, true);
	launch(s, A);
	sync_stream(s, A, 100);
	assert_true(pending(s, UUID0)); /* of the first one */
	sync_context(s, 100);
	assert_false(pending(s, UUID0));
	launch(s, A);
	sync_stream(s, A, 100);
	assert_false(pending(s, UUID0));
}

static void only_what_had_returned(void **state)
{
	struct scene *s = *state;

	create(s, A, true);
	/* Thread 2 launches while thread 1 waits, and returns first. */
	s->now_us = 100;
	launch(s, A);
	s->now_us = 110;
	s->tid = 2;
	launch(s, A);
	s->now_us = 105;
	s->tid = TID;
	sync_stream(s, A, 50);
	assert_true(pending(s, UUID0));
	sync_stream(s, A, 50);
	assert_false(pending(s, UUID0));
}

static void failures_change_nothing(void **state)
{
	struct scene *s = *state;

	create(s, A, true);
	s->result = 1;
	launch(s, A);
	assert_false(pending(s, UUID0));
	launch(s, A);
	s->result = 700;
	sync_stream(s, A, 100);
	assert_true(pending(s, UUID0));
	s->result = 600;
	CALL(s, QUERY_STREAM, .stream = A);
	assert_true(pending(s, UUID0));
	assert_value(s, UUID0, TRACED_ERRORS, 2); /* "not ready" is none */
	CALL(s, QUERY_STREAM, .stream = A);
	assert_false(pending(s, UUID0));
	assert_value(s, UUID0, TRACED_SYNCS, 0);
}

static void copies(void **state)
{
	struct scene *s = *state;
	const struct trace_header waits = { .flags = TRACE_FLAG_WAITS };

	launch(s, 0);
	CALL(s, COPY, .header = waits, .kind = TRACE_COPY_DEVICE_TO_DEVICE, .size = 1 << 20);
	assert_true(pending(s, UUID0));
	CALL(s, COPY, .header = waits, .kind = TRACE_COPY_HOST_TO_DEVICE, .size = 1 << 10);
	assert_true(pending(s, UUID0));
	CALL(s, COPY, .header = waits, .kind = TRACE_COPY_DEVICE_TO_HOST, .size = 1 << 10);
	assert_false(pending(s, UUID0));
	CALL(s, COPY, .kind = TRACE_COPY_DEVICE_TO_HOST, .size = 1 << 10);
	assert_true(pending(s, UUID0));
	CALL(s, COPY, .header = waits, .kind = TRACE_COPY_HOST_TO_DEVICE, .size = 1 << 20);
	assert_false(pending(s, UUID0));
	CALL(s, SET, .size = 5);
	assert_true(pending(s, UUID0));
	assert_value(s, UUID0, TRACED_COPY_DEVICE_TO_HOST, 2 << 10);
	assert_value(s, UUID0, TRACED_COPY_HOST_TO_DEVICE, (1 << 10) + (1 << 20));
	assert_value(s, UUID0, TRACED_SET_BYTES, 5);
	assert_value(s, UUID0, TRACED_LAUNCHES, 1);
	/* The driver's 2D copies tell memory types. */
	s->flags = 0;
	CALL(s, COPY, .handle = 1, .addr = 2, .size = 7);
	CALL(s, COPY, .handle = 4, .addr = 2, .size = 8);
	CALL(s, COPY, .kind = 99, .size = 9);
	window(s);
	assert_value(s, UUID0, TRACED_COPY_HOST_TO_DEVICE, (1 << 10) + (1 << 20) + 7);
	assert_value(s, UUID0, TRACED_COPY_DEFAULT, 17);
}

static void graphs(void **state)
{
	struct scene *s = *state;

	create(s, A, true);
	create(s, B, true);
	CALL(s, CAPTURE_BEGIN, .stream = A);
	launch_threads(s, A, 4, 32);
	CALL(s, EVENT_RECORD, .handle = MARK, .stream = A);
	CALL(s, EVENT_WAIT, .handle = MARK, .stream = B);
	launch_threads(s, B, 1, 32); /* joined */
	CALL(s, COPY, .stream = A, .size = 100);
	CALL(s, CAPTURE_END, .stream = A, .handle = GRAPH);
	assert_false(pending(s, UUID0));
	CALL(s, GRAPH_INSTANTIATE, .addr = GRAPH, .handle = EXECUTABLE);
	CALL(s, GRAPH_DESTROY, .handle = GRAPH);
	CALL(s, GRAPH_LAUNCH, .handle = EXECUTABLE, .stream = A);
	assert_true(pending(s, UUID0));
	sync_stream(s, A, 10);
	CALL(s, GRAPH_LAUNCH, .handle = 0x12345, .stream = A); /* never seen made */
	/* Another capture: an event of the first one joins nothing; a graph in it is a node. */
	CALL(s, CAPTURE_BEGIN, .stream = A);
	CALL(s, EVENT_WAIT, .handle = MARK, .stream = B);
	launch_threads(s, B, 1, 1);
	CALL(s, GRAPH_LAUNCH, .handle = EXECUTABLE, .stream = A);
	CALL(s, CAPTURE_END, .stream = A, .handle = GRAPH);
	window(s);
	assert_value(s, UUID0, TRACED_GRAPH_LAUNCHES, 2);
	assert_value(s, UUID0, TRACED_LAUNCHES, 1);
	assert_value(s, UUID0, TRACED_THREADS, 5 * 32 + 1);
	assert_value(s, UUID0, TRACED_COPY_HOST_TO_HOST, 0);
}

static void captures_that_end_badly(void **state)
{
	struct scene *s = *state;

	create(s, A, true);
	CALL(s, CAPTURE_BEGIN, .stream = A);
	s->result = 901;
	CALL(s, CAPTURE_END, .stream = A);
	launch(s, A);
	CALL(s, CAPTURE_BEGIN, .stream = A);
	launch(s, A);
	sync_stream(s, A, 1); /* succeeds: it is not captured any more */
	launch(s, A);
	for (uint64_t i = 0; i < 200; i++) {
		create(s, B + i, true);
		CALL(s, CAPTURE_BEGIN, .stream = B + i);
		launch(s, B + i);
	}
	window(s);
	assert_value(s, UUID0, TRACED_LAUNCHES, 2);
}

/* Grids whose volume wraps in 32 bits, and beyond 64. */
static void volumes(void **state)
{
	struct scene *s = *state;
	struct trace_launch wide = {
		.header = { .tgid = PID,
			    .tid = TID,
			    .type = TRACE_EVENT_LAUNCH,
			    .op = TRACE_OP_LAUNCH,
			    .flags = TRACE_FLAG_RUNTIME },
		.grid = { 1 << 16, 1 << 16, 1 << 6 },
		.block = { 1 << 5, 1 << 5, 1 },
	};

	launch_threads(s, 0, 1u << 31, 1024);
	window(s);
	assert_value(s, UUID0, TRACED_THREADS, 0x1p41);
	wide.header.time_ns = scene_ns(s, s->now_us);
	cuda_event(s->cuda, &wide.header, sizeof(wide));
	cuda_event(s->cuda, &wide.header, sizeof(wide) - 8); /* cut short: no launch */
	window(s);
	assert_value(s, UUID0, TRACED_THREADS, 0x1p41 + 0x1p48);
	assert_value(s, UUID0, TRACED_LAUNCHES, 2);
	for (int i = 0; i < 3; i++)
		launch_threads(s, 0, UINT32_MAX, UINT32_MAX);
	window(s);
	assert_value(s, UUID0, TRACED_THREADS, 0x1p64);
}

static void without_return_probes(void **state)
{
	struct scene *s = *state;
	const struct traced_device *d;

	s->flags |= TRACE_FLAG_NO_RESULT;
	s->duration_us = 0;
	launch(s, 0);
	sync_stream(s, 0, 0);
	assert_true(pending(s, UUID0)); /* when the wait was over is not known yet */
	launch(s, 0); /* it was over before this */
	sync_stream(s, 0, 0);
	s->duration_us = 0;
	CALL(s, DEVICE_SET, .kind = 0);
	assert_false(pending(s, UUID0));
	d = shown(s, PID, UUID0);
	assert_int_equal(d->p[TRACED_LAUNCHES], PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	assert_int_equal(d->p[TRACED_ERRORS], PRESENCE_ABSENT);
	assert_int_equal(d->p[TRACED_LIVE_DEVICE], PRESENCE_ABSENT);
	assert_int_equal(d->p[TRACED_PEAK], PRESENCE_ABSENT);
}

static void more_streams_than_allowed(void **state)
{
	struct cuda_limits limits = { .streams = 8 };
	struct scene *s = scene_new(&limits);
	struct cuda_stats stats;

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		create(s, A + i, true);
		launch(s, A + i);
	}
	window(s);
	assert_true(value(s, UUID0, TRACED_LAUNCHES) + value(s, "", TRACED_LAUNCHES) == 100);
	cuda_stats(s->cuda, &stats);
	assert_true(stats.overflow[CUDA_LIMIT_STREAMS] > 50);
	assert_true(s->view->processes[0].incomplete & TRACED_INCOMPLETE_LIMIT);
	/* Destroyed ones make room, also those with work pending. */
	for (uint64_t i = 0; i < 100; i++)
		CALL(s, STREAM_DESTROY, .stream = A + i);
	cuda_stats(s->cuda, &stats);
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t before = stats.overflow[CUDA_LIMIT_STREAMS];

		create(s, B + i, true);
		launch(s, B + i);
		CALL(s, STREAM_DESTROY, .stream = B + i);
		cuda_stats(s->cuda, &stats);
		assert_int_equal(stats.overflow[CUDA_LIMIT_STREAMS], before);
	}
	scene_free(s);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, scene_teardown)

/* From return to entry, in each stream alone. */
static void times_between_launches(void **state)
{
	static const uint64_t gaps_us[] = { 1, 2, 4, 5, 1000, 30000000 };
	const struct traced_gaps *gaps;
	struct scene *s = *state;

	launch(s, 1);
	for (size_t i = 0; i < ARRAY_SIZE(gaps_us); i++) {
		s->now_us += gaps_us[i];
		launch(s, 1);
	}
	launch(s, 2);
	/* By another thread, before the last one has returned: there is no gap. */
	s->tid = TID + 1;
	s->now_us -= 2 * DURATION_US + 1;
	launch(s, 1);
	s->now_us += 2 * DURATION_US;
	window(s);
	gaps = &device_total(s, UUID0)->gaps;
	assert_int_equal(gaps->count, ARRAY_SIZE(gaps_us));
	assert_near(gaps->seconds, 30.001012, 1e-9);
	/* up to 0.95, 3.8, 15.3 us ... */
	assert_int_equal(gaps->within[0], 0);
	assert_int_equal(gaps->within[1], 2);
	assert_int_equal(gaps->within[2], 4);
	assert_int_equal(gaps->within[5], 4);
	assert_int_equal(gaps->within[6], 5); /* 1 ms: 3.9 ms, not 0.98 */
	assert_int_equal(gaps->within[TRACED_LE_SHOWN - 1], 5);
	assert_int_equal(gaps->within[TRACED_LE_SHOWN], 6); /* 30 s */
	assert_int_equal(gaps->within[TRACED_LE - 1], 6);
}

/* Why streams end is counted, and how many there are. */
static void ends_of_streams(void **state)
{
	struct scene *s = *state;
	struct cuda_stats stats;

	CALL(s, STREAM_CREATE, .stream = 0x10);
	CALL(s, STREAM_CREATE, .stream = 0x20);
	launch(s, 0x20);
	cuda_stats(s->cuda, &stats);
	assert_int_equal(stats.streams, 2);
	CALL(s, STREAM_DESTROY, .stream = 0x10);
	CALL(s, STREAM_DESTROY, .stream = 0x20);
	cuda_stats(s->cuda, &stats);
	assert_int_equal(stats.streams_ended[CUDA_STREAM_DESTROYED], 1); /* the other has work left */
	launch(s, 0);
	scene_end(s, TRACE_EVENT_EXIT);
	cuda_stats(s->cuda, &stats);
	assert_int_equal(stats.streams, 0);
	assert_int_equal(stats.streams_ended[CUDA_STREAM_DESTROYED], 2);
	assert_int_equal(stats.streams_ended[CUDA_STREAM_PROCESS], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_wait_covers_its_stream_alone),
		CASE(the_legacy_stream_waits_for_blocking_ones),
		CASE(blocking_streams_wait_for_earlier_legacy_work),
		CASE(default_streams_of_threads),
		CASE(contexts_and_devices),
		CASE(an_event_covers_what_was_before_it),
		CASE(streams_wait_for_events),
		CASE(chains_of_waits),
		CASE(destroyed_and_reused),
		CASE(only_what_had_returned),
		CASE(failures_change_nothing),
		CASE(copies),
		CASE(graphs),
		CASE(captures_that_end_badly),
		CASE(volumes),
		CASE(without_return_probes),
		CASE(times_between_launches),
		CASE(ends_of_streams),
		cmocka_unit_test(more_streams_than_allowed),
	};

	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
