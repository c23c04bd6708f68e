// SPDX-License-Identifier: Apache-2.0
/* What follows from another finding is listed under it; what only comes at the same time is not. */
#include <math.h>

#include "analysis/private.h"
#include "analysis/stream.h"

enum { SECOND_NS = 1000000000 };

/* A finding of the stream's process, device and communicator 9, of this and the last ten seconds. */
static struct analysis_finding finding_of(const struct stream *s, enum analysis_rule rule, uint32_t kinds)
{
	return (struct analysis_finding){ .rule = rule,
					  .node = s->node,
					  .pid = s->pid,
					  .device = s->device,
					  .subject = 1,
					  .communicator = 9,
					  .kinds = kinds,
					  .begin_ns = s->now_ns - UINT64_C(10) * SECOND_NS,
					  .end_ns = s->now_ns };
}

static struct stream begin(void)
{
	struct stream s = stream_begin(0);

	s.now_ns += UINT64_C(1000) * SECOND_NS;
	stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_SYNC, .communicator = 9 }, US);
	return s;
}

/* Whether the second is a symptom of the first. */
static bool is_symptom(struct stream *s, struct analysis_finding cause, struct analysis_finding symptom)
{
	uint32_t n;
	const struct analysis_finding *list;

	finding_report(s->analysis, &cause);
	finding_report(s->analysis, &symptom);
	findings_explain(s->analysis);
	list = analysis_findings(s->analysis, &n);
	assert_true(n >= 2);
	assert_int_equal(list[n - 2].cause, 0);
	return list[n - 1].cause == list[n - 2].number;
}

static uint32_t bits(enum analysis_kind a, enum analysis_kind b)
{
	return UINT32_C(1) << a | UINT32_C(1) << b;
}

struct pair {
	enum analysis_rule cause, symptom;
	enum analysis_kind of, by; /* kinds of the two */
};

static void each_is_listed(void **state)
{
	static const struct pair pairs[] = {
		{ FINDING_COLLECTIVE_MISMATCH, FINDING_HANG, 0, 0 },
		{ FINDING_HANG, FINDING_STRAGGLER, 0, 0 },
		{ FINDING_HANG, FINDING_LATENCY_OUTLIERS, 0, ANALYSIS_COLLECTIVE },
		{ FINDING_CLOCKS_THROTTLED, FINDING_LATENCY_OUTLIERS, 0, ANALYSIS_WORK },
		{ FINDING_CLOCKS_THROTTLED, FINDING_LATENCY_SHIFT, 0, ANALYSIS_SYNC },
		{ FINDING_CLOCKS_THROTTLED, FINDING_STEP_SLOWER, 0, ANALYSIS_SYNC },
		{ FINDING_CLOCKS_THROTTLED, FINDING_STRAGGLER, 0, 0 },
		{ FINDING_PCIE_DEGRADED, FINDING_COPY_BOUND, 0, 0 },
		{ FINDING_PCIE_DEGRADED, FINDING_LATENCY_IN_CONTEXT, 0, ANALYSIS_COPY },
		{ FINDING_NCCL_SLOW_PATH, FINDING_LATENCY_OUTLIERS, 0, ANALYSIS_COLLECTIVE },
		{ FINDING_STRAGGLER, FINDING_UNEVEN_RANKS, 0, 0 },
		{ FINDING_STRAGGLER, FINDING_STEP_SLOWER, 0, ANALYSIS_COLLECTIVE },
		{ FINDING_ALLOCATOR_THRASH, FINDING_LATENCY_OUTLIERS, 0, ANALYSIS_FREE },
		{ FINDING_COPY_BOUND, FINDING_STEP_SLOWER, 0, ANALYSIS_COPY },
		{ FINDING_DATA_STARVATION, FINDING_STEP_SLOWER, 0, ANALYSIS_DATA },
		{ FINDING_LATENCY_OUTLIERS, FINDING_LATENCY_IN_CONTEXT, ANALYSIS_OPERATOR,
		  ANALYSIS_OPERATOR },
		{ FINDING_LATENCY_OUTLIERS, FINDING_STEP_SLOWER, ANALYSIS_OPERATOR, ANALYSIS_CALL },
		{ FINDING_LATENCY_SHIFT, FINDING_STEP_SLOWER, ANALYSIS_COLLECTIVE, ANALYSIS_COLLECTIVE },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct stream s = begin();
		struct analysis_finding cause = finding_of(&s, pairs[i].cause, UINT32_C(1) << pairs[i].of);
		struct analysis_finding symptom =
			finding_of(&s, pairs[i].symptom, UINT32_C(1) << pairs[i].by);

		if (!is_symptom(&s, cause, symptom))
			fail_msg("%s does not explain %s", analysis_rules[pairs[i].cause].name,
				 analysis_rules[pairs[i].symptom].name);
		stream_end(&s);
	}
}

/* Each differs in one thing from throttled clocks that explain slow kernels. */
static void what_is_not_explained(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 7; i++) {
		struct stream s = begin();
		struct analysis_finding cause = finding_of(&s, FINDING_CLOCKS_THROTTLED, 0);
		struct analysis_finding symptom =
			finding_of(&s, FINDING_LATENCY_OUTLIERS, 1U << ANALYSIS_WORK);

		cause.pid = 0;
		symptom.kinds = i == 1 ? 1U << ANALYSIS_OPERATOR : /* the CPU's */
				i == 2 ? bits(ANALYSIS_WORK, ANALYSIS_OPERATOR) : /* in part */
					 symptom.kinds;
		symptom.device = i == 3 ? stream_text(&s, "GPU 7") : symptom.device;
		symptom.node = i == 4 ? stream_text(&s, "elsewhere") : symptom.node;
		symptom.begin_ns -= i == 5 ? UINT64_C(60) * SECOND_NS : 0; /* long before the clocks */
		cause.begin_ns -= i == 6 ? UINT64_C(900) * SECOND_NS : 0; /* they have been so for long */
		assert_int_equal(is_symptom(&s, cause, symptom), i == 0);
		stream_end(&s);
	}
}

/* Its cause has ended, and it has not. */
static void outlasts_its_cause(void **state)
{
	struct stream s = begin();
	struct analysis_finding cause = finding_of(&s, FINDING_CLOCKS_THROTTLED, 0);
	struct analysis_finding symptom = finding_of(&s, FINDING_LATENCY_OUTLIERS, 1U << ANALYSIS_WORK);
	uint32_t n;

	(void)state;
	assert_true(is_symptom(&s, cause, symptom));
	for (unsigned window = 1; window <= 6; window++) {
		s.now_ns += UINT64_C(10) * SECOND_NS;
		symptom.end_ns = s.now_ns;
		analysis_tick(s.analysis, s.now_ns);
		finding_report(s.analysis, &symptom);
		findings_explain(s.analysis);
		assert_int_equal(analysis_findings(s.analysis, &n)[1].cause != 0, window <= 2);
	}
	assert_int_equal(n, 2);
	stream_end(&s);
}

/* A step that is slower for a slow kernel, which throttled clocks explain: both are under the clocks. */
static void chains_have_one_root(void **state)
{
	struct stream s = begin();
	struct analysis_finding kernel = finding_of(&s, FINDING_LATENCY_OUTLIERS, 1U << ANALYSIS_WORK),
				step = finding_of(&s, FINDING_STEP_SLOWER, 1U << ANALYSIS_COLLECTIVE),
				clocks = finding_of(&s, FINDING_CLOCKS_THROTTLED, 0);
	const struct analysis_finding *list;
	uint32_t n;

	(void)state;
	step.device = 0; /* a process of several */
	assert_true(is_symptom(&s, kernel, step));
	finding_report(s.analysis, &clocks); /* told last */
	findings_explain(s.analysis);
	list = analysis_findings(s.analysis, &n);
	assert_int_equal(n, 3);
	assert_int_equal(list[2].cause, 0);
	assert_int_equal(list[0].cause, list[2].number);
	assert_int_equal(list[1].cause, list[2].number);
	stream_end(&s);
}

/* Two that could each explain the other: one of them does. */
static void no_circles(void **state)
{
	struct stream s = begin();
	struct analysis_finding one = finding_of(&s, FINDING_LATENCY_IN_CONTEXT, 1U << ANALYSIS_WORK),
				other = finding_of(&s, FINDING_LATENCY_OUTLIERS, 1U << ANALYSIS_SYNC);
	const struct analysis_finding *list;
	uint32_t n;

	(void)state;
	finding_report(s.analysis, &one);
	finding_report(s.analysis, &other);
	for (unsigned i = 0; i < 3; i++)
		findings_explain(s.analysis);
	list = analysis_findings(s.analysis, &n);
	assert_int_equal(n, 2);
	assert_int_equal((list[0].cause != 0) + (list[1].cause != 0), 1);
	stream_end(&s);
}

/* Of a stream: a GPU whose clocks are throttled, and its kernels and a program's own call become slower. */
static void of_a_stream(void **state)
{
	struct stream s = stream_begin(0);
	const uint32_t kernel = stream_text(&s, "gemm"), own = stream_text(&s, "aten::mm");
	const struct analysis_finding *clocks;
	uint32_t n, explained = 0;
	const struct analysis_finding *list;

	(void)state;
	for (unsigned i = 0; i < 9000; i++) {
		bool slow = i >= 6000;
		double by = exp(0.05 * stream_normal(&s));

		if (slow && i % 100 == 0)
			stream_put(&s,
				   (struct analysis_event){ .kind = ANALYSIS_THROTTLE,
							    .device = s.device,
							    .name = stream_text(&s, "hw_thermal_slowdown") },
				   s.now_ns - 1000 * MS, s.now_ns);
		stream_add(&s,
			   (struct analysis_event){
				   .kind = ANALYSIS_WORK, .flags = ANALYSIS_TRUE, .name = kernel },
			   (uint64_t)((slow ? 9e6 : 5e6) * by));
		stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_OPERATOR, .name = own },
			   (uint64_t)((slow ? 9e6 : 5e6) * by));
	}
	analysis_finish(s.analysis);
	clocks = stream_finding(&s, FINDING_CLOCKS_THROTTLED);
	assert_non_null(clocks);
	assert_int_equal(clocks->cause, 0);
	list = analysis_findings(s.analysis, &n);
	for (uint32_t i = 0; i < n; i++) {
		if (list[i].rule != FINDING_LATENCY_OUTLIERS)
			continue;
		assert_int_equal(list[i].cause, list[i].subject == kernel ? clocks->number : 0);
		explained += list[i].cause != 0;
	}
	assert_int_equal(explained, 1);
	stream_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_listed),     cmocka_unit_test(what_is_not_explained),
		cmocka_unit_test(outlasts_its_cause), cmocka_unit_test(chains_have_one_root),
		cmocka_unit_test(no_circles),         cmocka_unit_test(of_a_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
