// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdbool.h>

#include "activity/event_sink.h"
#include "activity/span_sink.h"
#include "base/clock.h"
#include "base/macro.h"

enum { ROOM = 64 };

/* What a sink got: the time of each event or span, which counts up from 1; a loss is minus how many. */
struct heard {
	int64_t what[ROOM];
	uint32_t n, room; /* it holds so many; 0: ROOM */
	int64_t slow_ns; /* each takes so long */
	int error; /* what it returns for each */
	uint32_t turns, over, incomplete;
};

static int hear(struct heard *h, int64_t what)
{
	clock_advance(h->slow_ns);
	if (h->error)
		return h->error;
	if (h->n == (h->room ? h->room : ROOM))
		return -ENOBUFS;
	h->what[h->n++] = what;
	return 0;
}

static int heard_event(const struct trace_header *event, uint32_t size, void *userdata)
{
	assert_int_equal(size, sizeof(*event));
	return hear(userdata, (int64_t)event->time_ns);
}

static int heard_span(const struct span *span, void *userdata)
{
	return hear(userdata, (int64_t)span->start_ns);
}

static void heard_lost(uint64_t lost, void *userdata)
{
	struct heard *h = userdata;

	assert_true(h->n < ROOM);
	h->what[h->n++] = -(int64_t)lost;
}

static void heard_incomplete(_unused_ uint32_t tgid, _unused_ uint64_t incarnation, _unused_ unsigned bits,
			     void *userdata)
{
	((struct heard *)userdata)->incomplete++;
}

static void heard_over(_unused_ uint32_t tgid, _unused_ uint64_t incarnation, void *userdata)
{
	((struct heard *)userdata)->over++;
}

static void heard_turn(void *userdata)
{
	((struct heard *)userdata)->turns++;
}

static struct event_sink event_sink_of(struct heard *h, int64_t turn_ns)
{
	return (struct event_sink){
		.sink = { .name = "test", .userdata = h, .turn_ns = turn_ns },
		.event = heard_event,
		.lost = heard_lost,
		.incomplete = heard_incomplete,
		.process_over = heard_over,
		.turn = heard_turn,
	};
}

static struct span_sink span_sink_of(struct heard *h, int64_t turn_ns)
{
	return (struct span_sink){
		.sink = { .name = "test", .userdata = h, .turn_ns = turn_ns },
		.span = heard_span,
		.lost = heard_lost,
		.process_over = heard_over,
	};
}

static void send_events(struct event_sinks *list, uint64_t from, uint64_t to)
{
	for (uint64_t time = from; time <= to; time++) {
		struct trace_header event = { .time_ns = time };

		event_sinks_event(list, &event, sizeof(event));
	}
}

static void send_spans(struct span_sinks *list, uint64_t from, uint64_t to)
{
	for (uint64_t time = from; time <= to; time++)
		span_sinks_span(list, &(struct span){ .start_ns = time });
}

/* @from to @to, each once and in order. */
static void assert_heard(const struct heard *h, uint32_t at, int64_t from, int64_t to)
{
	assert_true(h->n >= at + (uint32_t)(to - from + 1));
	for (int64_t what = from; what <= to; what++)
		assert_int_equal(h->what[at++], what);
}

static int freeze(_unused_ void **state)
{
	clock_freeze(true);
	return 0;
}

static int thaw(_unused_ void **state)
{
	clock_freeze(false);
	return 0;
}

static void each_gets_every_event_once_in_order(_unused_ void **state)
{
	struct heard heard[SINKS_MAX] = { 0 };
	struct event_sink sinks[SINKS_MAX], more;
	struct event_sinks list = { 0 };

	for (unsigned i = 0; i < SINKS_MAX; i++) {
		sinks[i] = event_sink_of(&heard[i], 0);
		if (i == 1)
			sinks[i].event = NULL; /* hears of ends and losses only */
		assert_int_equal(event_sinks_add(&list, &sinks[i]), 0);
	}
	more = event_sink_of(&heard[0], 0);
	assert_int_equal(event_sinks_add(&list, &more), -ENOSPC);
	event_sinks_turn(&list);
	send_events(&list, 1, 20);
	event_sinks_lost(&list, 3);
	event_sinks_incomplete(&list, 1, 1, 1);
	send_events(&list, 24, 30);
	event_sinks_process_over(&list, 1, 1);
	for (unsigned i = 0; i < SINKS_MAX; i++) {
		bool events = i != 1;

		assert_int_equal(heard[i].n, events ? 28 : 1);
		assert_int_equal(heard[i].what[events ? 20 : 0], -3);
		if (events) {
			assert_heard(&heard[i], 0, 1, 20);
			assert_heard(&heard[i], 21, 24, 30);
		}
		assert_int_equal(heard[i].turns, 1);
		assert_int_equal(heard[i].incomplete, 1);
		assert_int_equal(heard[i].over, 1);
		assert_int_equal(sinks[i].sink.taken, events ? 27 : 0);
		assert_int_equal(sinks[i].sink.lost, 0);
	}
	assert_int_equal(event_sinks_not_taken(&list), 0);
}

static void sinks_come_and_go(_unused_ void **state)
{
	struct heard heard[3] = { 0 };
	struct event_sink sinks[3];
	struct event_sinks list = { 0 };

	for (unsigned i = 0; i < 3; i++)
		sinks[i] = event_sink_of(&heard[i], 0);
	sinks[0].event = NULL;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(event_sinks_add(&list, &sinks[i]), 0);
	assert_int_equal(event_sinks_add(&list, &sinks[1]), -EEXIST);
	send_events(&list, 1, 1);
	event_sinks_remove(&list, &sinks[0]);
	send_events(&list, 2, 2);
	event_sinks_remove(&list, &sinks[1]);
	event_sinks_remove(&list, &sinks[1]);
	send_events(&list, 3, 3);
	event_sinks_turn(&list);
	assert_int_equal(heard[0].turns, 0);
	assert_int_equal(heard[1].n, 2);
	assert_int_equal(heard[2].n, 3);
	assert_int_equal(heard[2].turns, 1);
}

/* What it has no room for is counted, and the others get all. */
static void a_full_sink_loses_its_own_only(_unused_ void **state)
{
	struct heard full = { .room = 5 }, failing = { .error = -EIO }, other = { 0 };
	struct event_sink sinks[] = { event_sink_of(&full, 0), event_sink_of(&failing, 0),
				      event_sink_of(&other, 0) };
	struct event_sinks list = { 0 };

	for (unsigned i = 0; i < ARRAY_SIZE(sinks); i++)
		assert_int_equal(event_sinks_add(&list, &sinks[i]), 0);
	event_sinks_turn(&list);
	send_events(&list, 1, 20);
	assert_int_equal(full.n, 5);
	assert_heard(&full, 0, 1, 5);
	assert_int_equal(sinks[0].sink.lost, 15);
	assert_int_equal(sinks[0].sink.refused, 15);
	assert_int_equal(sinks[1].sink.lost, 20);
	assert_int_equal(sinks[1].sink.taken, 0);
	assert_int_equal(other.n, 20);
	assert_heard(&other, 0, 1, 20);
	assert_int_equal(event_sinks_not_taken(&list), 35);
	full.n = 0; /* it has made room */
	send_events(&list, 21, 22);
	assert_heard(&full, 0, 21, 22);
}

/* 3 events of 400 ns in 1000 ns; then 200 of them are owed, which leaves room for 2. */
static void a_slow_sink_blocks_nobody(_unused_ void **state)
{
	struct heard slow = { .slow_ns = 400 }, other = { 0 };
	struct event_sink sinks[] = { event_sink_of(&slow, 1000), event_sink_of(&other, 0) };
	struct event_sinks list = { 0 };
	int64_t begin_ns;

	for (unsigned i = 0; i < ARRAY_SIZE(sinks); i++)
		assert_int_equal(event_sinks_add(&list, &sinks[i]), 0);
	event_sinks_turn(&list);
	begin_ns = clock_mono_ns();
	send_events(&list, 1, 20);
	assert_int_equal(clock_mono_ns() - begin_ns, 1200);
	assert_heard(&slow, 0, 1, 3);
	assert_int_equal(slow.n, 3);
	assert_int_equal(sinks[0].sink.lost, 17);
	event_sinks_turn(&list);
	assert_int_equal(slow.what[3], -17); /* before what comes next */
	send_events(&list, 21, 40);
	assert_heard(&slow, 4, 21, 22);
	assert_int_equal(slow.n, 6);
	assert_int_equal(sinks[0].sink.taken, 5);
	assert_int_equal(sinks[0].sink.lost, 35);
	assert_int_equal(sinks[0].sink.refused, 0); /* that it was late is told */
	assert_int_equal(other.n, 40);
	assert_heard(&other, 0, 1, 40);
	assert_int_equal(sinks[1].sink.lost, 0);
}

/* One call of ten turns' time: none for that long, so that its share stays what it may be. */
static void a_call_that_hangs_is_paid_for(_unused_ void **state)
{
	struct heard slow = { .slow_ns = 10000 };
	struct event_sink sink = event_sink_of(&slow, 1000);
	struct event_sinks list = { 0 };

	assert_int_equal(event_sinks_add(&list, &sink), 0);
	for (uint64_t turn = 0; turn < 30; turn++) {
		event_sinks_turn(&list);
		send_events(&list, turn + 1, turn + 1);
	}
	assert_int_equal(sink.sink.taken, 3);
	assert_int_equal(sink.sink.lost, 27);
}

static void spans_are_bounded_alike(_unused_ void **state)
{
	struct heard slow = { .slow_ns = 400 }, full = { .room = 5 }, all = { 0 };
	struct span_sink sinks[] = { span_sink_of(&slow, 1000), span_sink_of(&full, 0),
				     span_sink_of(&all, 0) };
	struct span_sinks list = { 0 };

	for (unsigned i = 0; i < ARRAY_SIZE(sinks); i++)
		assert_int_equal(span_sinks_add(&list, &sinks[i]), 0);
	assert_int_equal(span_sinks_add(&list, &sinks[0]), -EEXIST);
	span_sinks_turn(&list);
	send_spans(&list, 1, 10);
	span_sinks_turn(&list);
	send_spans(&list, 11, 20);
	span_sinks_process_over(&list, 1, 1);
	assert_heard(&slow, 0, 1, 3);
	assert_int_equal(slow.what[3], -7);
	assert_heard(&slow, 4, 11, 12);
	assert_int_equal(slow.n, 6);
	assert_int_equal(sinks[0].sink.lost, 15);
	assert_heard(&full, 0, 1, 5);
	assert_int_equal(sinks[1].sink.lost, 15);
	assert_int_equal(all.n, 20);
	assert_heard(&all, 0, 1, 20);
	assert_int_equal(all.over, 1);
	assert_int_equal(span_sinks_not_taken(&list), 30);
	span_sinks_remove(&list, &sinks[0]);
	span_sinks_remove(&list, &sinks[0]);
	send_spans(&list, 21, 21);
	assert_int_equal(slow.n, 6);
	assert_int_equal(all.n, 21);
}

/* The frozen clock says that each event took two seconds; the thread has computed for none. */
static void a_thread_without_a_processor_costs_no_events(_unused_ void **state)
{
	struct heard waits = { .slow_ns = 2 * NSEC_PER_SEC }, computes = waits, slow = { 0 };
	struct event_sink sinks[] = { event_sink_of(&waits, NSEC_PER_SEC),
				      event_sink_of(&computes, NSEC_PER_SEC), event_sink_of(&slow, 1) };
	struct event_sinks list = { 0 };

	sinks[1].sink.computes = sinks[2].sink.computes = true;
	for (size_t i = 0; i < ARRAY_SIZE(sinks); i++)
		assert_int_equal(event_sinks_add(&list, &sinks[i]), 0);
	event_sinks_turn(&list);
	send_events(&list, 1, 10);
	event_sinks_turn(&list);
	send_events(&list, 11, 11);
	assert_heard(&computes, 0, 1, 11);
	assert_int_equal(sinks[1].sink.lost, 0);
	assert_true(sinks[0].sink.lost > 0);
	/* Its own time is longer than its limit. */
	clock_freeze(false);
	send_events(&list, 12, 12);
	send_events(&list, 13, 13);
	clock_freeze(true);
	assert_true(sinks[2].sink.lost > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_gets_every_event_once_in_order),
		cmocka_unit_test(sinks_come_and_go),
		cmocka_unit_test(a_full_sink_loses_its_own_only),
		cmocka_unit_test(a_slow_sink_blocks_nobody),
		cmocka_unit_test(a_call_that_hangs_is_paid_for),
		cmocka_unit_test(spans_are_bounded_alike),
		cmocka_unit_test(a_thread_without_a_processor_costs_no_events),
	};

	return cmocka_run_group_tests_name("sinks", tests, freeze, thaw);
}
