// SPDX-License-Identifier: Apache-2.0
/* The interface: texts, windows, limits, what is absent. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analysis/stream.h"

static const struct analysis_event blocking = {
	.kind = ANALYSIS_COPY, .copy = ANALYSIS_COPY_TO_DEVICE, .flags = ANALYSIS_BLOCKS, .bytes = 4096
};

static void copies(struct stream *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		stream_add(s, blocking, MS);
}

static void texts(void **state)
{
	struct stream s = stream_begin(0);
	uint32_t one = stream_text(&s, "one");
	char text[ANALYSIS_TEXT_MAX * 2];

	(void)state;
	assert_int_equal(stream_text(&s, ""), 0);
	assert_int_equal(stream_text(&s, "one"), one);
	assert_string_equal(analysis_text_get(s.analysis, one), "one");
	assert_string_equal(analysis_text_get(s.analysis, UINT32_MAX), "");
	assert_string_equal(analysis_text_get(s.analysis, stream_text(&s, "a\nb\xff")), "a?b?");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(strlen(analysis_text_get(s.analysis, stream_text(&s, text))), ANALYSIS_TEXT_MAX);
	stream_end(&s);
}

static void texts_are_bounded(void **state)
{
	struct stream s = stream_begin(0);
	uint32_t number, n = 0;
	char text[32];
	int r;

	(void)state;
	do {
		snprintf(text, sizeof(text), "text %u", n++);
		r = analysis_text(s.analysis, text, &number);
	} while (r == 0);
	assert_int_equal(r, -ENOBUFS);
	assert_in_range(n, ANALYSIS_TEXTS_MAX - 8, ANALYSIS_TEXTS_MAX);
	assert_int_equal(analysis_text(s.analysis, "text 7", &number), 0);
	stream_end(&s);
}

static void impossible_events(void **state)
{
	struct stream s = stream_begin(0);
	const struct analysis_event bad[] = {
		{ .kind = ANALYSIS_KINDS },
		{ .kind = ANALYSIS_CALL, .begin_ns = 2, .end_ns = 1 },
		{ .kind = ANALYSIS_CALL, .begin_ns = 2, .end_ns = UINT64_MAX },
		{ .kind = ANALYSIS_COUNTER, .counter = ANALYSIS_COUNTERS },
		{ .kind = ANALYSIS_COUNTER, .value = 1.0 / 0.0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(analysis_add(s.analysis, &bad[i]), -EINVAL);
	assert_int_equal(analysis_counts(s.analysis)->events, 0);
	analysis_finish(s.analysis);
	stream_end(&s);
}

static void lasts_as_long_as_it_is_said(void **state)
{
	struct stream s = stream_begin(1000 * MS);
	uint64_t begin_ns = s.now_ns;
	const struct analysis_finding *finding;

	(void)state;
	copies(&s, 2500);
	assert_int_equal(stream_findings(&s, FINDING_COPY_BOUND), 1);
	finding = stream_finding(&s, FINDING_COPY_BOUND);
	assert_true(finding->active);
	assert_int_equal(finding->begin_ns, begin_ns);
	assert_int_equal(finding->end_ns, begin_ns + 2000 * MS);
	assert_int_equal(finding->pid, 100);
	assert_string_equal(analysis_text_get(s.analysis, finding->device), "GPU 0");

	analysis_tick(s.analysis, s.now_ns + 600 * MS);
	assert_true(stream_finding(&s, FINDING_COPY_BOUND)->active); /* half of the third window was copies */
	analysis_tick(s.analysis, s.now_ns + 9000 * MS);
	finding = stream_finding(&s, FINDING_COPY_BOUND);
	assert_false(finding->active);
	assert_int_equal(finding->end_ns, begin_ns + 3000 * MS);

	s.now_ns += 10000 * MS;
	copies(&s, 2100);
	assert_int_equal(stream_findings(&s, FINDING_COPY_BOUND), 2);
	stream_end(&s);
}

static void the_last_window_counts(void **state)
{
	struct stream s = stream_begin(1000 * MS);

	(void)state;
	copies(&s, 300);
	assert_null(stream_finding(&s, FINDING_COPY_BOUND));
	analysis_finish(s.analysis);
	assert_non_null(stream_finding(&s, FINDING_COPY_BOUND));
	stream_end(&s);
}

static void absent_evidence(void **state)
{
	struct stream s = stream_begin(0);

	(void)state;
	assert_int_equal(analysis_seen(s.analysis), 0);
	assert_int_equal(analysis_missing(s.analysis, FINDING_COPY_BOUND), 1U << EVIDENCE_COPIES);
	assert_string_equal(analysis_evidence_words(EVIDENCE_COPIES), "copies");
	copies(&s, 1);
	assert_int_equal(analysis_seen(s.analysis), 1U << EVIDENCE_COPIES | 1U << EVIDENCE_CALLS);
	assert_int_equal(analysis_missing(s.analysis, FINDING_COPY_BOUND), 0);
	stream_counter(&s, ANALYSIS_COUNTER_MEMORY_USED, 1);
	assert_true(analysis_seen(s.analysis) >> EVIDENCE_MEMORY & 1);
	assert_false(analysis_seen(s.analysis) >> EVIDENCE_UTILIZATION & 1);
	stream_end(&s);
}

/* As where the return probes of launches were given up. */
static void launches_without_times(void **state)
{
	struct stream s = stream_begin(0);
	struct analysis_event launch = { .kind = ANALYSIS_LAUNCH, .pid = 1, .tid = 1 };

	(void)state;
	stream_add(&s, launch, 0);
	assert_int_equal(analysis_missing(s.analysis, FINDING_LAUNCH_BOUND), 1U << EVIDENCE_LAUNCH_TIMES);
	stream_add(&s, launch, 1);
	assert_int_equal(analysis_missing(s.analysis, FINDING_LAUNCH_BOUND), 0);
	stream_end(&s);
}

static void processes_are_bounded(void **state)
{
	struct stream s = stream_begin(1000 * MS);
	struct analysis_event event = blocking;

	(void)state;
	for (uint32_t i = 1; i <= ANALYSIS_PROCESSES_MAX + 10; i++) {
		event.pid = i;
		event.begin_ns = event.end_ns = s.now_ns;
		assert_int_equal(analysis_add(s.analysis, &event),
				 i <= ANALYSIS_PROCESSES_MAX ? 0 : -ENOBUFS);
	}
	assert_int_equal(analysis_counts(s.analysis)->beyond, 10);
	/* Those that end make room, at the end of the window. */
	event.kind = ANALYSIS_EXIT;
	event.pid = 1;
	assert_int_equal(analysis_add(s.analysis, &event), 0);
	analysis_tick(s.analysis, s.now_ns + 1500 * MS);
	event = blocking;
	event.pid = ANALYSIS_PROCESSES_MAX + 5;
	event.begin_ns = event.end_ns = s.now_ns + 1500 * MS;
	assert_int_equal(analysis_add(s.analysis, &event), 0);
	stream_end(&s);
}

static void every_rule_says_what_it_is(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FINDING_RULES; i++) {
		assert_true(strlen(analysis_rules[i].name) > 0);
		assert_true(strlen(analysis_rules[i].title) > 0);
		assert_true(strlen(analysis_rules[i].remedy) > 0);
		assert_true(analysis_rules[i].needs != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(texts_are_bounded),
		cmocka_unit_test(impossible_events),
		cmocka_unit_test(lasts_as_long_as_it_is_said),
		cmocka_unit_test(the_last_window_counts),
		cmocka_unit_test(absent_evidence),
		cmocka_unit_test(launches_without_times),
		cmocka_unit_test(processes_are_bounded),
		cmocka_unit_test(every_rule_says_what_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
