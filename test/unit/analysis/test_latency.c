// SPDX-License-Identifier: Apache-2.0
/* Operations that take longer than they do usually; and those that only vary. */
#include <math.h>
#include <stdio.h>

#include "analysis/stream.h"

/* A call of a median latency, spread by 5 %. */
static void call(struct stream *s, uint32_t name, double us)
{
	double ns = us * 1e3 * exp(0.05 * stream_normal(s));

	stream_add(
		s,
		(struct analysis_event){ .kind = ANALYSIS_OPERATOR, .name = name, .bytes = 1000, .stack = 5 },
		(uint64_t)ns);
	s->now_ns += 100 * US;
}

/* One call in four takes the slow path: usual. */
static void usual_calls(struct stream *s, uint32_t name, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		call(s, name, i % 4 == 0 ? 120 : 20);
}

static void finds_what_is_slow(void **state)
{
	struct stream s = stream_begin(100 * MS);
	uint32_t name = stream_text(&s, "aten::mm");
	const struct analysis_finding *finding;

	(void)state;
	usual_calls(&s, name, 6000);
	assert_null(stream_finding(&s, FINDING_LATENCY_OUTLIERS));
	for (unsigned i = 0; i < 30; i++)
		call(&s, name, i % 5 == 0 ? 400 : 20);
	finding = stream_finding(&s, FINDING_LATENCY_OUTLIERS);
	assert_non_null(finding);
	assert_int_equal(finding->subject, name);
	assert_int_equal(finding->stack, 5);
	assert_true(finding->confidence > 0.8);
	assert_true(finding_get(finding, "modes") == 2);
	assert_true(fabs(finding_get(finding, "usual") - 20e-6) < 2e-6);
	assert_true(finding_get(finding, "slowest") > 300e-6);
	assert_true(finding_get(finding, "size_at_least") == 512);
	stream_end(&s);
}

/* Between the modes is unusual, too. */
static void finds_what_is_between(void **state)
{
	struct stream s = stream_begin(100 * MS);
	uint32_t name = stream_text(&s, "aten::mm");

	(void)state;
	usual_calls(&s, name, 6000);
	for (unsigned i = 0; i < 30; i++)
		call(&s, name, i % 5 == 0 ? 50 : 20);
	assert_non_null(stream_finding(&s, FINDING_LATENCY_OUTLIERS));
	stream_end(&s);
}

/* Outliers that stand alone are no alert, nor are calls that are fast. */
static void nearly(void **state)
{
	struct stream s = stream_begin(100 * MS);
	uint32_t name = stream_text(&s, "aten::mm");

	(void)state;
	usual_calls(&s, name, 6000);
	for (unsigned i = 0; i < 1000; i++)
		call(&s, name, i % 25 == 0 ? 400 : i % 4 == 0 ? 120 : 20);
	for (unsigned i = 0; i < 30; i++)
		call(&s, name, 5);
	assert_null(stream_finding(&s, FINDING_LATENCY_OUTLIERS));
	stream_end(&s);
}

/* Few calls: judged by median and deviation, and less sure. */
static void few_calls(void **state)
{
	struct stream s = stream_begin(100 * MS);
	uint32_t name = stream_text(&s, "aten::mm");

	(void)state;
	for (unsigned i = 0; i < 100 + 60; i++)
		call(&s, name, 20);
	assert_null(stream_finding(&s, FINDING_LATENCY_OUTLIERS));
	for (unsigned i = 0; i < 10; i++)
		call(&s, name, i % 2 ? 80 : 20);
	assert_non_null(stream_finding(&s, FINDING_LATENCY_OUTLIERS));
	assert_true(stream_finding(&s, FINDING_LATENCY_OUTLIERS)->confidence < 0.8);
	assert_true(isnan(finding_get(stream_finding(&s, FINDING_LATENCY_OUTLIERS), "modes")));
	stream_end(&s);
}

/* What is flagged before the first fit may be a mode that had not come before: it is learnt. */
static void a_mode_that_comes_late(void **state)
{
	struct stream s = stream_begin(100 * MS);
	uint32_t name = stream_text(&s, "aten::mm");

	(void)state;
	for (unsigned i = 0; i < 100 + 60; i++)
		call(&s, name, 20);
	for (unsigned i = 0; i < 6000; i++)
		call(&s, name, i % 3 == 0 ? 120 : 20);
	assert_int_equal(stream_findings(&s, FINDING_LATENCY_OUTLIERS), 1);
	assert_false(stream_finding(&s, FINDING_LATENCY_OUTLIERS)->active);
	stream_end(&s);
}

/* Estimates, and what has no name, are not judged. */
static void what_is_no_operation(void **state)
{
	struct stream s = stream_begin(100 * MS);
	uint32_t name = stream_text(&s, "kernels");

	(void)state;
	for (unsigned i = 0; i < 3000; i++)
		for (int estimate = 0; estimate <= 1; estimate++) {
			struct analysis_event event = { .kind = ANALYSIS_WORK };

			event.flags = estimate ? ANALYSIS_ESTIMATED : ANALYSIS_TRUE;
			event.name = estimate ? name : 0;
			stream_add(&s, event, i > 2900 && i % 2 ? 900 * US : 20 * US + i % 7 * US);
		}
	assert_int_equal(stream_findings(&s, FINDING_LATENCY_OUTLIERS), 0);
	stream_end(&s);
}

/* A GPU whose clock changes: the work takes its time by it. */
static void work(struct stream *s, double us, double clock)
{
	stream_counter(s, ANALYSIS_COUNTER_CLOCK_SM, 2e9 * clock);
	stream_counter(s, ANALYSIS_COUNTER_CLOCK_SM_MAX, 2e9);
	call(s, stream_text(s, "aten::mm"), us);
}

static void what_the_clock_does_not_explain(void **state)
{
	struct stream s = stream_begin(100 * MS);

	(void)state;
	for (unsigned i = 0; i < 6000; i++)
		work(&s, i / 40 % 2 ? 200 : 100, i / 40 % 2 ? 0.5 : 1);
	for (unsigned i = 0; i < 40; i++)
		work(&s, 200, 0.5);
	assert_null(stream_finding(&s, FINDING_LATENCY_IN_CONTEXT));
	for (unsigned i = 0; i < 40; i++)
		work(&s, i % 4 ? 100 : 200, 1);
	assert_non_null(stream_finding(&s, FINDING_LATENCY_IN_CONTEXT));
	assert_null(stream_finding(&s, FINDING_LATENCY_OUTLIERS));
	stream_end(&s);
}

static void the_mix_shifts(void **state)
{
	struct stream s = stream_begin(100 * MS);
	uint32_t name = stream_text(&s, "aten::mm");
	const struct analysis_finding *finding;

	(void)state;
	for (unsigned i = 0; i < 20000; i++)
		call(&s, name, stream_random(&s) < 0.25 ? 120 : 20);
	assert_null(stream_finding(&s, FINDING_LATENCY_SHIFT));
	for (unsigned i = 0; i < 200; i++)
		call(&s, name, stream_random(&s) < 0.75 ? 120 : 20);
	finding = stream_finding(&s, FINDING_LATENCY_SHIFT);
	assert_non_null(finding);
	assert_true(fabs(finding_get(finding, "weight_before") -
			 (finding_get(finding, "mode") > 60e-6 ? 0.25 : 0.75)) < 0.05);
	assert_null(stream_finding(&s, FINDING_LATENCY_OUTLIERS));
	/* The new mix is learnt, and is usual then. */
	for (unsigned i = 0; i < 20000; i++)
		call(&s, name, stream_random(&s) < 0.75 ? 120 : 20);
	assert_int_equal(stream_findings(&s, FINDING_LATENCY_SHIFT), 1);
	stream_end(&s);
}

/* More operations than models: those that are there still judge. */
static void models_are_bounded(void **state)
{
	struct stream s = stream_begin(100 * MS);
	uint32_t first = stream_text(&s, "first");
	char name[16];

	(void)state;
	usual_calls(&s, first, 3000);
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "%u", i);
		call(&s, stream_text(&s, name), 20);
	}
	for (unsigned i = 0; i < 10; i++)
		call(&s, first, i % 2 ? 400 : 20);
	assert_non_null(stream_finding(&s, FINDING_LATENCY_OUTLIERS));
	/* The process's end frees them: its successor is another. */
	stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_EXIT }, 0);
	for (unsigned i = 0; i < 100 + 10; i++)
		call(&s, first, 5000);
	assert_int_equal(stream_findings(&s, FINDING_LATENCY_OUTLIERS), 1);
	stream_end(&s);
}

/* One that makes up names leaves room for others, and what had none is counted. */
static void a_process_has_a_share_of_the_models(void **state)
{
	struct stream s = stream_begin(100 * MS);
	uint32_t first = stream_text(&s, "first");
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "%u", i);
		call(&s, stream_text(&s, name), 20);
	}
	assert_true(analysis_counts(s.analysis)->unmodelled > 0);
	s.pid = 101;
	usual_calls(&s, first, 3000);
	for (unsigned i = 0; i < 10; i++)
		call(&s, first, i % 2 ? 400 : 20);
	assert_non_null(stream_finding(&s, FINDING_LATENCY_OUTLIERS));
	stream_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_is_slow),
		cmocka_unit_test(finds_what_is_between),
		cmocka_unit_test(nearly),
		cmocka_unit_test(few_calls),
		cmocka_unit_test(what_the_clock_does_not_explain),
		cmocka_unit_test(the_mix_shifts),
		cmocka_unit_test(models_are_bounded),
		cmocka_unit_test(a_mode_that_comes_late),
		cmocka_unit_test(what_is_no_operation),
		cmocka_unit_test(a_process_has_a_share_of_the_models),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
