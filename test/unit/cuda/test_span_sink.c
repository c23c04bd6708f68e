// SPDX-License-Identifier: Apache-2.0
#include "scene.h"

#include <errno.h>

#include "base/clock.h"

enum { A = 0x1000, B = 0x2000, MANY = 200, ROOM = 512 };

struct kept {
	struct span_sink sink;
	struct span spans[ROOM];
	char devices[ROOM][TRACED_UUID];
	uint32_t n, over;
};

static int kept_span(const struct span *span, void *userdata)
{
	struct kept *k = userdata;

	if (k->n == ROOM)
		return -ENOBUFS;
	strncpy(k->devices[k->n], span->device, TRACED_UUID - 1);
	k->spans[k->n++] = *span;
	return 0;
}

static void kept_over(uint32_t tgid, uint64_t incarnation, void *userdata)
{
	struct kept *k = userdata;

	assert_int_equal(tgid, PID);
	assert_int_equal(incarnation, 1);
	k->over++;
}

static struct kept *listen(struct scene *s)
{
	struct kept *k = calloc(1, sizeof(*k));

	assert_non_null(k);
	k->sink = (struct span_sink){
		.sink = { .name = "test", .userdata = k },
		.span = kept_span,
		.process_over = kept_over,
	};
	assert_int_equal(span_sinks_add(cuda_span_sinks(s->cuda), &k->sink), 0);
	CALL(s, DEVICE_SET, .kind = 0);
	return k;
}

#define assert_span(scene_, span_, kind_, from_us_, to_us_)                      \
	do {                                                                     \
		assert_int_equal((span_)->kind, kind_);                          \
		assert_int_equal((span_)->start_ns, scene_ns(scene_, from_us_)); \
		assert_int_equal((span_)->end_ns, scene_ns(scene_, to_us_));     \
		assert_true((span_)->likely_end_ns >= (span_)->start_ns &&       \
			    (span_)->likely_end_ns <= (span_)->end_ns);          \
	} while (0)

static void a_wait_ends_a_stream_and_is_a_span(void **state)
{
	struct scene *s = *state;
	struct kept *k = listen(s);
	uint64_t begin, waited;

	CALL(s, STREAM_CREATE, .stream = A, .kind = 1);
	begin = s->now_us;
	launch_threads(s, A, 2, 64);
	launch_threads(s, A, 2, 64);
	assert_int_equal(k->n, 0);
	waited = s->now_us;
	sync_stream(s, A, 100);
	assert_int_equal(k->n, 2);
	assert_span(s, &k->spans[0], SPAN_KERNELS, begin, waited + 100);
	assert_int_equal(k->spans[0].launches, 2);
	assert_int_equal(k->spans[0].threads, 256);
	assert_int_equal(k->spans[0].stream, A);
	assert_int_equal(k->spans[0].tgid, PID);
	assert_int_equal(k->spans[0].incarnation, 1);
	assert_int_equal(k->spans[0].flags, SPAN_END_BOUND);
	assert_int_equal(k->spans[0].likely_end_ns, k->spans[0].end_ns);
	assert_string_equal(k->devices[0], UUID0);
	assert_span(s, &k->spans[1], SPAN_SYNC, waited, waited + 100);
	assert_int_equal(k->spans[1].tid, TID);
	assert_int_equal(k->spans[1].stream_id, k->spans[0].stream_id);
	assert_int_equal(k->spans[1].flags, 0);
	free(k);
}

/* Figures keep 32 blocks of a window; a sink gets each span. */
static void none_is_merged(void **state)
{
	struct scene *s = *state;
	struct kept *k = listen(s);
	uint64_t covered = 0;

	for (int i = 0; i < MANY; i++) {
		launch(s, 0);
		sync_stream(s, 0, 100);
		s->now_us += 10;
	}
	assert_int_equal(k->n, 2 * MANY);
	for (uint32_t i = 0; i < k->n; i++) {
		assert_int_equal(k->spans[i].kind, i % 2 ? SPAN_SYNC : SPAN_KERNELS);
		assert_true(i < 2 || k->spans[i].start_ns >= k->spans[i - 2].end_ns);
		if (i % 2 == 0)
			covered += k->spans[i].end_ns - k->spans[i].start_ns;
	}
	window(s);
	assert_value(s, UUID0, TRACED_SPAN, (double)covered / NSEC_PER_SEC);
	free(k);
}

static void copies_are_spans(void **state)
{
	struct scene *s = *state;
	struct kept *k = listen(s);
	uint64_t begin = s->now_us;

	s->flags |= TRACE_FLAG_WAITS;
	CALL(s, COPY, .kind = TRACE_COPY_DEVICE_TO_HOST, .size = 1000);
	assert_int_equal(k->n, 1);
	assert_span(s, &k->spans[0], SPAN_COPY, begin, begin + DURATION_US);
	assert_int_equal(k->spans[0].bytes, 1000);
	assert_int_equal(k->spans[0].flags, 0);
	s->flags &= (uint16_t)~TRACE_FLAG_WAITS;
	begin = s->now_us;
	CALL(s, COPY, .kind = TRACE_COPY_HOST_TO_DEVICE, .size = 100);
	CALL(s, SET, .size = 50);
	sync_context(s, 100);
	assert_int_equal(k->n, 3);
	assert_span(s, &k->spans[1], SPAN_COPY, begin, begin + 2 * DURATION_US + 100);
	assert_int_equal(k->spans[1].copies, 2);
	assert_int_equal(k->spans[1].bytes, 150);
	assert_int_equal(k->spans[1].launches, 0);
	assert_int_equal(k->spans[1].flags, SPAN_END_BOUND);
	assert_int_equal(k->spans[2].kind, SPAN_SYNC);
	assert_int_equal(k->spans[2].stream_id, 0);
	free(k);
}

static void the_end_of_a_process_ends_its_spans(void **state)
{
	struct scene *s = *state;
	struct kept *k = listen(s);

	CALL(s, STREAM_CREATE, .stream = A, .kind = 1);
	CALL(s, STREAM_CREATE, .stream = B, .kind = 1);
	launch(s, A);
	launch(s, B);
	assert_int_equal(k->over, 0);
	scene_end(s, TRACE_EVENT_EXIT);
	assert_int_equal(k->n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(k->spans[i].kind, SPAN_KERNELS);
		assert_int_equal(k->spans[i].flags, SPAN_END_BOUND | SPAN_NO_WAIT);
	}
	assert_int_not_equal(k->spans[0].stream_id, k->spans[1].stream_id);
	assert_int_equal(k->over, 1);
	free(k);
}

static bool launched_into(struct scene *s, uint64_t handle, uint16_t flags, int32_t result,
			  uint32_t *ret_stream_id)
{
	const struct trace_launch launch = { .header = { .tgid = PID, .tid = TID, .flags = flags },
					     .stream = handle,
					     .result = result };

	return cuda_launch_stream(s->cuda, &launch, ret_stream_id);
}

/* The default stream has two handles, and a thread's own one two, too. */
static void launches_and_spans_name_streams_alike(void **state)
{
	struct scene *s = *state;
	struct kept *k = listen(s);
	uint32_t id, other;

	launch(s, 0);
	assert_true(launched_into(s, 0, 0, 0, &id));
	assert_true(launched_into(s, 1, 0, 0, &other));
	assert_int_equal(id, other);
	sync_stream(s, 0, 100);
	assert_int_equal(k->spans[0].stream_id, id);
	launch(s, 2);
	assert_true(launched_into(s, 2, 0, 0, &id));
	assert_int_not_equal(id, other);
	assert_true(launched_into(s, 0, TRACE_FLAG_PER_THREAD, 0, &other));
	assert_int_equal(id, other);
	assert_false(launched_into(s, 0, 0, 700, &id));
	free(k);
}

/* A stream of a handle that another had before is another track. */
static void a_handle_reused_is_another_stream(void **state)
{
	struct scene *s = *state;
	struct kept *k = listen(s);

	for (int i = 0; i < 2; i++) {
		CALL(s, STREAM_CREATE, .stream = A, .kind = 1);
		launch(s, A);
		sync_stream(s, A, 100);
		CALL(s, STREAM_DESTROY, .stream = A);
	}
	assert_int_equal(k->n, 4);
	assert_int_equal(k->spans[0].stream, k->spans[2].stream);
	assert_int_not_equal(k->spans[0].stream_id, k->spans[2].stream_id);
	free(k);
}

static void what_was_lost_is_marked(void **state)
{
	struct scene *s = *state;
	struct kept *k = listen(s);

	cuda_lost(s->cuda, 1);
	launch(s, 0);
	sync_stream(s, 0, 100);
	assert_int_equal(k->spans[0].flags, SPAN_END_BOUND | SPAN_INCOMPLETE);
	free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_wait_ends_a_stream_and_is_a_span, scene_setup,
						scene_teardown),
		cmocka_unit_test_setup_teardown(none_is_merged, scene_setup, scene_teardown),
		cmocka_unit_test_setup_teardown(copies_are_spans, scene_setup, scene_teardown),
		cmocka_unit_test_setup_teardown(the_end_of_a_process_ends_its_spans, scene_setup,
						scene_teardown),
		cmocka_unit_test_setup_teardown(launches_and_spans_name_streams_alike, scene_setup,
						scene_teardown),
		cmocka_unit_test_setup_teardown(a_handle_reused_is_another_stream, scene_setup,
						scene_teardown),
		cmocka_unit_test_setup_teardown(what_was_lost_is_marked, scene_setup, scene_teardown),
	};

	return cmocka_run_group_tests_name("span_sink", tests, NULL, NULL);
}
