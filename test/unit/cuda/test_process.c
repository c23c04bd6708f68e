// SPDX-License-Identifier: Apache-2.0
/* Incarnations, series, totals; events that nobody should send. */
#include <math.h>

#include "base/clock.h"
#include "cuda/private.h"
#include "scene.h"

static const struct traced_total *total(const struct scene *s, const char *uuid)
{
	for (uint32_t i = 0; i < s->view->totals_n; i++)
		if (STRV_EQ(s->view->totals[i].uuid, uuid))
			return &s->view->totals[i];
	return NULL;
}

static void who_it_is(void **state)
{
	struct scene *s = *state;
	const struct traced_process *p;

	launch(s, 0);
	window(s);
	p = &s->view->processes[0];
	assert_int_equal(p->id.pid, PID);
	assert_string_equal(p->comm, "train");
	assert_int_equal(p->id.start_ticks, 500);
	assert_int_equal(p->first_real_ns, clock_real_ns());
	assert_int_equal(p->incomplete, 0);
	assert_int_equal(p->devices_n, 1);
	assert_true(p->has_series);
	assert_false(p->exited);
}

static void shown_once_more(void **state)
{
	struct scene *s = *state;

	launch(s, 0);
	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, 100);
	window(s);
	launch(s, 0);
	scene_end(s, TRACE_EVENT_EXIT);
	s->now_us += 5;
	window(s);
	assert_int_equal(s->view->processes_n, 1);
	assert_true(s->view->processes[0].exited);
	assert_value(s, UUID0, TRACED_LAUNCHES, 2);
	assert_value(s, UUID0, TRACED_LIVE_DEVICE, 0);
	assert_value(s, UUID0, TRACED_PEAK, 100);
	s->now_us += 5;
	window(s);
	assert_int_equal(s->view->processes_n, 0);
	assert_true(total(s, UUID0)->v[TRACED_LAUNCHES] == 2);
	assert_true(total(s, UUID0)->other[TRACED_LAUNCHES] == 0);
}

/* What lasted less than a tick is told of when it is over. */
static void marked_when_it_is_over(void **state)
{
	struct scene *s = *state;

	launch(s, 0);
	scene_end(s, TRACE_EVENT_EXIT);
	cuda_mark(s->cuda, PID, 2, TRACED_INCOMPLETE_QUIET); /* another one */
	cuda_mark(s->cuda, PID, 1, TRACED_INCOMPLETE_LATE);
	s->now_us += 5;
	window(s);
	assert_true(s->view->processes[0].exited);
	assert_int_equal(s->view->processes[0].incomplete, TRACED_INCOMPLETE_LATE);
}

/*
 * Numbers that were not read, or of a batch's first part, are too low; those of a call that failed are not
 * missed.
 */
static void what_was_not_read(void **state)
{
	static const uint16_t flags[] = { TRACE_FLAG_UNREAD, TRACE_FLAG_BATCH_CUT };
	struct scene *s = *state;

	s->result = 1;
	CALL(s, COPY, .header.flags = TRACE_FLAG_UNREAD, .kind = TRACE_COPY_HOST_TO_DEVICE);
	CALL(s, COPY, .size = 10, .kind = TRACE_COPY_HOST_TO_DEVICE);
	window(s);
	assert_int_equal(s->view->processes[0].incomplete, 0);
	assert_int_equal(shown(s, PID, UUID0)->p[TRACED_COPY_HOST_TO_DEVICE], PRESENCE_PRESENT);
	for (uint32_t i = 0; i < ARRAY_SIZE(flags); i++) {
		s->tgid = PID + 1 + i;
		scene_process(s, s->tgid, s->tgid);
		CALL(s, COPY, .header.flags = flags[i], .size = 10, .kind = TRACE_COPY_HOST_TO_DEVICE);
		s->now_us++;
		window(s);
		assert_int_equal(s->view->processes[1 + i].incomplete, TRACED_INCOMPLETE_LIMIT);
		assert_int_equal(shown(s, s->tgid, UUID0)->p[TRACED_COPY_HOST_TO_DEVICE],
				 PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	}
	assert_int_equal(total(s, UUID0)->p[TRACED_COPY_HOST_TO_DEVICE],
			 PRESENCE_PRESENT | PRESENCE_ESTIMATED);
}

/* Launches alone lack return probes: what is not theirs is whole. */
static void launches_without_results(void **state)
{
	const uint8_t estimated = PRESENCE_PRESENT | PRESENCE_ESTIMATED;
	struct scene *s = *state;
	const struct traced_device *d;

	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, 1 << 20);
	s->flags |= TRACE_FLAG_NO_RESULT;
	launch(s, 0);
	CALL(s, GRAPH_LAUNCH, .handle = 7);
	s->flags &= (uint16_t)~TRACE_FLAG_NO_RESULT;
	window(s);
	assert_int_equal(s->view->processes[0].incomplete, TRACED_INCOMPLETE_LAUNCH_RETURNS);
	d = shown(s, PID, UUID0);
	assert_int_equal(d->p[TRACED_LAUNCHES], estimated);
	assert_int_equal(d->p[TRACED_ERRORS], estimated);
	assert_int_equal(d->p[TRACED_ALLOCATIONS], PRESENCE_PRESENT);
	assert_int_equal(d->p[TRACED_LIVE_DEVICE], PRESENCE_PRESENT);
}

/* How calls went is not known, of a device only where it is known of none of its processes. */
static void without_results(void **state)
{
	static const enum traced_metric rows[] = { TRACED_ERRORS, TRACED_ALLOCATION_FAILURES,
						   TRACED_SYNC_WAIT };
	struct scene *s = *state;

	s->flags |= TRACE_FLAG_NO_RESULT;
	CALL(s, INIT);
	launch(s, 0);
	window(s);
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(shown(s, PID, UUID0)->p[rows[i]], PRESENCE_ABSENT);
		assert_int_equal(total(s, UUID0)->p[rows[i]], PRESENCE_ABSENT);
	}
	s->flags = TRACE_FLAG_RUNTIME;
	s->tgid = PID + 1;
	scene_process(s, s->tgid, 5);
	launch(s, 0);
	window(s);
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(total(s, UUID0)->p[rows[i]], PRESENCE_PRESENT | PRESENCE_ESTIMATED);
}

static void exec_and_reuse(void **state)
{
	struct scene *s = *state;

	launch(s, 0);
	scene_end(s, TRACE_EVENT_EXEC);
	s->now_us += 10;
	scene_process(s, PID, 2);
	launch(s, 0);
	launch(s, 0);
	window(s);
	assert_int_equal(s->view->processes_n, 2);
	assert_true(s->view->processes[0].exited);
	assert_false(s->view->processes[1].exited);
	/* The end of the next one was lost; its PID's next owner tells. */
	s->now_us += 10;
	scene_process(s, PID, 3);
	launch(s, 0);
	window(s);
	assert_int_equal(s->view->processes_n, 2);
	cuda_process_over(s->cuda, PID, 2); /* long over */
	cuda_process_over(s->cuda, 4711, 1);
	s->now_us += 10;
	window(s);
	assert_int_equal(s->view->processes_n, 1);
	assert_false(s->view->processes[0].exited);
	cuda_process_over(s->cuda, PID, 3);
	cuda_process_over(s->cuda, PID, 3);
	s->now_us += 10;
	window(s);
	assert_true(s->view->processes[0].exited);
	s->now_us += 10;
	window(s);
	assert_true(total(s, UUID0)->v[TRACED_LAUNCHES] == 4);
}

static void first_event_lost(void **state)
{
	struct scene *s = *state;

	s->tgid = 7;
	launch(s, 0);
	window(s);
	assert_int_equal(s->view->processes[0].id.pid, 7); /* sorted */
	assert_int_equal(s->view->processes[0].incomplete, TRACED_INCOMPLETE_LOST);
	assert_int_equal(shown(s, 7, UUID0)->p[TRACED_LAUNCHES], PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	scene_process(s, 7, 70); /* it was only late */
	s->now_us++;
	window(s);
	assert_int_equal(s->view->processes_n, 2);
	assert_string_equal(s->view->processes[0].comm, "train");
	assert_int_equal(s->view->processes[0].incomplete, 0);
	s->tgid = 8;
	launch(s, 0);
	cuda_lost(s->cuda, 1);
	scene_process(s, 8, 80);
	window(s);
	assert_int_equal(s->view->processes[1].incomplete, TRACED_INCOMPLETE_LOST);
}

static void late_events(void **state)
{
	struct scene *s = *state;
	struct cuda_stats stats;

	s->now_us = 100;
	scene_end(s, TRACE_EVENT_EXIT);
	s->now_us = 90;
	launch(s, 0);
	s->now_us = 110;
	window(s);
	assert_int_equal(s->view->processes_n, 1);
	cuda_stats(s->cuda, &stats);
	assert_int_equal(stats.late_events, 1);
}

static void lost_events(void **state)
{
	struct scene *s = *state;

	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, 100);
	cuda_lost(s->cuda, 0);
	window(s);
	assert_int_equal(s->view->processes[0].incomplete, 0);
	cuda_lost(s->cuda, 3);
	s->now_us++;
	window(s);
	assert_int_equal(s->view->processes[0].incomplete, TRACED_INCOMPLETE_LOST);
	assert_int_equal(shown(s, PID, UUID0)->p[TRACED_LIVE_DEVICE], PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	assert_int_equal(shown(s, PID, UUID0)->p[TRACED_ALLOCATIONS], PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	assert_int_equal(total(s, UUID0)->p[TRACED_ALLOCATIONS], PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	cuda_mark(s->cuda, PID, 1, TRACED_INCOMPLETE_QUIET);
	s->now_us++;
	window(s);
	assert_int_equal(shown(s, PID, UUID0)->p[TRACED_LIVE_DEVICE], PRESENCE_ABSENT);
	assert_int_equal(total(s, UUID0)->p[TRACED_LIVE_DEVICE], PRESENCE_ABSENT);
}

/* What the processes of a device did is its total: in their series, or in "other". */
static void every_increment_in_one_series(void **state)
{
	struct cuda_limits limits = { .series = 3, .processes = 40 };
	struct scene *s = scene_new(&limits);
	struct cuda_stats stats;
	double expected = 0, gone = 0;

	(void)state;
	srandom(3);
	for (uint32_t round = 0; round < 300; round++) {
		double living = 0;

		s->tgid = PID + (uint32_t)(random() % 10);
		s->tid = s->tgid;
		if (random() % 5 == 0)
			scene_end(s, TRACE_EVENT_EXIT);
		s->now_us++;
		if (random() % 3 == 0)
			scene_process(s, s->tgid, 1000 + round);
		launch(s, 0);
		expected++;
		window(s);
		for (uint32_t i = 0; i < s->view->devices_n; i++) {
			const struct traced_device *d = &s->view->devices[i];
			const struct traced_process *p = &s->view->processes[d->process];

			/* A series ends with its process, and lives on in the total alone. */
			if (p->has_series)
				*(p->exited ? &gone : &living) += d->v[TRACED_LAUNCHES];
		}
		assert_true(total(s, UUID0)->v[TRACED_LAUNCHES] == expected);
		assert_true(living + gone + total(s, UUID0)->other[TRACED_LAUNCHES] == expected);
	}
	cuda_stats(s->cuda, &stats);
	assert_int_equal(stats.overflow[CUDA_LIMIT_PROCESSES], 0);
	for (uint32_t i = 0; i < 100; i++)
		scene_process(s, 5000 + i, i + 1);
	cuda_stats(s->cuda, &stats);
	assert_true(stats.overflow[CUDA_LIMIT_PROCESSES] >= 60);
	scene_free(s);
}

/* Whatever comes: unknown types and operations, too short, numbers at the end of their range. */
static void hostile_events(void **state)
{
	struct scene *s = *state;
	struct cuda_stats stats;
	union {
		struct trace_header header;
		struct trace_launch launch;
		struct trace_call call;
		struct trace_process process;
		struct trace_name name;
	} event;

	memset(&event, 0xff, sizeof(event));
	event.header.tgid = PID;
	for (unsigned type = 0; type < 256; type++)
		for (uint32_t size = 0; size <= sizeof(event); size += 8) {
			event.header.type = (uint8_t)type;
			cuda_event(s->cuda, &event.header, size);
		}
	cuda_stats(s->cuda, &stats);
	assert_true(stats.unknown_events > 200);
	event.header.type = TRACE_EVENT_CALL;
	for (unsigned op = 0; op < 256; op++)
		for (int result = 0; result < 2; result++)
			for (uint32_t kind = 0; kind < 12; kind++) {
				event.header.op = (uint8_t)op;
				event.call.result = result;
				event.call.kind = kind == 11 ? UINT32_MAX : kind;
				cuda_event(s->cuda, &event.header, sizeof(event));
			}
	s->now_us = 1000;
	window(s);
	for (uint32_t i = 0; i < s->view->devices_n; i++) {
		const struct traced_device *d = &s->view->devices[i];

		assert_true(d->v[TRACED_ACTIVE_RATIO] <= 1);
		assert_true(d->v[TRACED_SPAN] <= 1e-3 + 1e-9);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(who_it_is),
		CASE(shown_once_more),
		CASE(marked_when_it_is_over),
		CASE(what_was_not_read),
		CASE(without_results),
		CASE(launches_without_results),
		CASE(exec_and_reuse),
		CASE(first_event_lost),
		CASE(late_events),
		CASE(lost_events),
		cmocka_unit_test(every_increment_in_one_series),
		CASE(hostile_events),
	};

	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
