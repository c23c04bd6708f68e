// SPDX-License-Identifier: Apache-2.0
/* What of a process in which CUPTI measures is judged, and in which order. */
#include "test.h"

#include <string.h>

#include "pipeline/analysis_late.h"

#define S (uint64_t)NSEC_PER_SEC

enum { PID = 100, OTHER = 200 };

struct scene {
	struct analysis *analysis;
	struct measured *measured;
	struct gpu_works *works;
	struct gpu_times *times;
	struct analysis_late late;
};

static int give(const struct analysis_event *event, void *userdata)
{
	return analysis_add(userdata, event);
}

static void scene_begin(struct scene *s)
{
	const struct measured_config config = { 0 };
	const struct analysis_options options = { 0 };
	const struct gpu_time row = { .pid = PID };

	*s = (struct scene){ 0 };
	assert_int_equal(measured_new(&config, &s->measured), 0);
	assert_int_equal(analysis_new(&options, &s->analysis), 0);
	s->times = gpu_times_new(&row, 1);
	s->works = gpu_works_new(1, s->times);
	analysis_late_init(&s->late, s->measured, ANALYSIS_LATE_AGENT, give, s->analysis);
}

static void scene_end(struct scene *s)
{
	analysis_late_done(&s->late);
	analysis_free(s->analysis);
	measured_free(s->measured);
	gpu_works_free(s->works);
	gpu_times_unref(s->times);
}

static void measure(struct scene *s, uint64_t begin_s, uint64_t end_s)
{
	s->works->n = 1;
	s->works->list[0] = (struct gpu_work){ .pid = PID };
	s->works->list[0].record.slice = (struct cupti_slice){ .kind = CUPTI_SLICE,
							       .start_ns = begin_s * S,
							       .end_ns = end_s * S };
	measured_take(s->measured, s->works, end_s * S);
}

static int add(struct scene *s, uint32_t pid, enum analysis_kind kind, unsigned flags, uint64_t begin_s,
	       uint64_t end_s)
{
	const struct analysis_event event = { .kind = (uint8_t)kind,
					      .flags = (uint16_t)flags,
					      .pid = pid,
					      .rank = -1,
					      .begin_ns = begin_s * S,
					      .end_ns = end_s * S };

	return flags & ANALYSIS_TRUE ? analysis_late_work(&s->late, &event) :
				       analysis_late_add(&s->late, &event);
}

static uint64_t judged(const struct scene *s)
{
	return analysis_counts(s->analysis)->events;
}

static bool knows_true_times(const struct scene *s)
{
	return analysis_seen(s->analysis) >> EVIDENCE_TRUE_TIMES & 1;
}

static void only_what_may_be_measured_waits(_unused_ void **state)
{
	struct scene s;

	scene_begin(&s);
	add(&s, PID, ANALYSIS_SYNC, 0, 10, 11); /* it is not known to be measured yet */
	assert_int_equal(judged(&s), 1);
	measure(&s, 11, 12);
	add(&s, PID, ANALYSIS_SYNC, 0, 11, 12);
	add(&s, OTHER, ANALYSIS_SYNC, 0, 11, 12);
	assert_int_equal(judged(&s), 2);
	analysis_late_tick(&s.late, 15 * S);
	assert_int_equal(judged(&s), 2);
	analysis_late_tick(&s.late, 12 * S + MEASURED_LATE_NS);
	assert_int_equal(judged(&s), 3);
	scene_end(&s);
}

/* Estimates are of what was not measured: one part before, one behind; one that was measured is none. */
static void measured_times_and_estimates_of_the_others(_unused_ void **state)
{
	struct scene s;

	scene_begin(&s);
	measure(&s, 11, 12);
	add(&s, PID, ANALYSIS_WORK, ANALYSIS_ESTIMATED, 11, 12);
	add(&s, PID, ANALYSIS_WORK, ANALYSIS_ESTIMATED, 11, 12);
	add(&s, PID, ANALYSIS_WORK, ANALYSIS_ESTIMATED, 10, 13);
	assert_int_equal(add(&s, PID, ANALYSIS_WORK, ANALYSIS_TRUE, 11, 12), 0);
	analysis_late_tick(&s.late, UINT64_MAX);
	assert_int_equal(judged(&s), 3);
	assert_true(knows_true_times(&s));
	assert_int_equal(analysis_counts(s.analysis)->late, 0);
	scene_end(&s);
}

static void works_come_in_their_order_among_calls(_unused_ void **state)
{
	struct scene s;

	scene_begin(&s);
	measure(&s, 100, 101);
	/* Windows end at 110 and 120: what comes too late would be counted. */
	add(&s, PID, ANALYSIS_SYNC, 0, 100, 101);
	add(&s, PID, ANALYSIS_SYNC, 0, 118, 119);
	add(&s, PID, ANALYSIS_WORK, ANALYSIS_TRUE, 118, 119);
	add(&s, PID, ANALYSIS_WORK, ANALYSIS_TRUE, 101, 102);
	add(&s, PID, ANALYSIS_WORK, ANALYSIS_TRUE, 100, 101);
	analysis_late_tick(&s.late, 119 * S + MEASURED_LATE_NS);
	assert_int_equal(judged(&s), 5);
	assert_int_equal(analysis_counts(s.analysis)->late, 0);
	scene_end(&s);
}

/* Then estimates are judged, and not what is measured of the same time, too. */
static void where_more_comes_than_can_wait(_unused_ void **state)
{
	struct scene s;

	scene_begin(&s);
	measure(&s, 10, 11);
	for (uint32_t i = 0; i < ANALYSIS_LATE_AGENT; i++)
		add(&s, PID, ANALYSIS_SYNC, 0, 20, 21);
	assert_int_equal(judged(&s), 0);
	add(&s, PID, ANALYSIS_WORK, ANALYSIS_ESTIMATED, 22, 23);
	assert_int_equal(judged(&s), 1);
	assert_true(add(&s, PID, ANALYSIS_WORK, ANALYSIS_TRUE, 20, 21) < 0);
	assert_int_equal(add(&s, PID, ANALYSIS_WORK, ANALYSIS_TRUE, 22, 23), 0);
	for (uint32_t i = 0; i < ANALYSIS_LATE_AGENT; i++)
		add(&s, PID, ANALYSIS_WORK, ANALYSIS_TRUE, 22, 23);
	assert_true(add(&s, PID, ANALYSIS_WORK, ANALYSIS_TRUE, 22, 23) < 0);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_may_be_measured_waits),
		cmocka_unit_test(measured_times_and_estimates_of_the_others),
		cmocka_unit_test(works_come_in_their_order_among_calls),
		cmocka_unit_test(where_more_comes_than_can_wait),
	};

	return cmocka_run_group_tests_name("analysis_late", tests, NULL, NULL);
}
