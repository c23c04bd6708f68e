// SPDX-License-Identifier: Apache-2.0
/* Stragglers: streams of collectives in which a rank is late, and some in which it nearly is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stream.h"

enum { RANKS = 8, COLLECTIVES = 600 };

struct job {
	uint64_t step_ns, jitter_ns, late_ns;
	int late; /* -1: none */
	unsigned every; /* of so many collectives it is late at one */
	unsigned flags;
	int missing; /* rank of which nothing is seen */
	unsigned stepping_pid; /* says a step each 10 s; 0: nobody does */
	int true_late; /* the device's times are told, too, by which this rank is late; 0: they are not */
};

static void collective(struct stream *s, uint32_t name, int rank, uint64_t sequence, unsigned flags,
		       uint64_t at)
{
	stream_put(s,
		   (struct analysis_event){ .kind = ANALYSIS_COLLECTIVE,
					    .flags = (uint16_t)flags,
					    .name = name,
					    .pid = 100 + (uint32_t)rank,
					    .communicator = 0xabc,
					    .sequence = sequence,
					    .rank = rank,
					    .ranks = RANKS },
		   at, at + 10 * US);
}

static struct stream run(const struct job *job)
{
	struct stream s = stream_begin(0);
	uint32_t name = stream_text(&s, "ncclAllReduce");
	uint64_t begin_ns = s.now_ns;

	for (uint64_t i = 0; i < COLLECTIVES; i++) {
		uint64_t begins = begin_ns + (i + 1) * job->step_ns;

		if (job->stepping_pid && i % 100 == 0)
			stream_put(&s,
				   (struct analysis_event){ .kind = ANALYSIS_STEP, .pid = job->stepping_pid },
				   begins, begins);
		for (int rank = 0; rank < RANKS; rank++) {
			uint64_t at = begin_ns + (i + 1) * job->step_ns +
				      (uint64_t)(stream_random(&s) * (double)job->jitter_ns);

			if (rank == job->late && i % job->every == 0)
				at += job->late_ns;
			if (rank == job->missing)
				continue;
			collective(&s, name, rank, i + 1, job->flags, at);
			if (job->true_late)
				collective(&s, name, rank, i + 1, ANALYSIS_TRUE,
					   begins + (rank == job->true_late ? job->late_ns : 0));
		}
	}
	analysis_finish(s.analysis);
	return s;
}

static void a_late_rank_is_found(void **state)
{
	struct stream s = run(&(struct job){ 100 * MS, 2 * MS, 20 * MS, 5, 1, 0, -1, 0, 0 });
	const struct analysis_finding *finding = stream_finding(&s, FINDING_STRAGGLER);

	(void)state;
	assert_non_null(finding);
	assert_int_equal(stream_findings(&s, FINDING_STRAGGLER), 1);
	assert_true(finding->active);
	assert_int_equal(finding->pid, 105);
	assert_int_equal(finding->communicator, 0xabc);
	assert_string_equal(analysis_text_get(s.analysis, finding->subject), "rank 5");
	assert_true(fabs(finding_get(finding, "lateness") - 0.020) < 0.003);
	assert_true(fabs(finding_get(finding, "step") - 0.100) < 0.003);
	assert_true(finding_get(finding, "last_share") > 0.95);
	/* By itself it takes 100 ms, the others 80. */
	assert_true(fabs(finding_get(finding, "relative_score") - 0.80) < 0.03);
	assert_true(finding_get(finding, "individual_score") > 0.95);
	assert_true(finding->without);
	stream_end(&s);
	s = run(&(struct job){ 100 * MS, 2 * MS, 20 * MS, 5, 1, ANALYSIS_TRUE, -1, 0, 0 });
	assert_int_equal(stream_finding(&s, FINDING_STRAGGLER)->without, 0);
	stream_end(&s);
}

/* Calls are on time or not; the device's own times say more. */
static void times_of_devices_come_first(void **state)
{
	struct stream s = run(&(struct job){ 100 * MS, 2 * MS, 20 * MS, 5, 1, 0, -1, 0, 3 });

	(void)state;
	assert_int_equal(stream_findings(&s, FINDING_STRAGGLER), 1);
	assert_int_equal(stream_finding(&s, FINDING_STRAGGLER)->pid, 103);
	assert_int_equal(stream_finding(&s, FINDING_STRAGGLER)->without, 0);
	stream_end(&s);
}

static void finds_none(struct job job)
{
	struct stream s = run(&job);

	assert_null(stream_finding(&s, FINDING_STRAGGLER));
	stream_end(&s);
}

static void who_is_last_by_chance_is_none(void **state)
{
	(void)state;
	finds_none((struct job){ 100 * MS, 20 * MS, 0, -1, 1, 0, -1, 0, 0 });
}

/* Always the last, by less than 5 % of a step; by more, at two of five. */
static void what_nearly_is_one_is_none(void **state)
{
	(void)state;
	finds_none((struct job){ 100 * MS, 1 * MS, 4 * MS, 5, 1, 0, -1, 0, 0 });
	finds_none((struct job){ 100 * MS, 30 * MS, 40 * MS, 5, 3, 0, -1, 0, 0 });
}

/* A rank of which nothing is recorded keeps nobody from being judged. */
static void of_the_ranks_that_are_seen(void **state)
{
	struct stream s = run(&(struct job){ 100 * MS, 2 * MS, 20 * MS, 5, 1, 0, 2, 0, 0 });

	(void)state;
	assert_non_null(stream_finding(&s, FINDING_STRAGGLER));
	assert_int_equal(stream_finding(&s, FINDING_STRAGGLER)->pid, 105);
	stream_end(&s);
}

/* 5 % of its own step of 10 s is more than it is late; another program's steps do not matter. */
static void whose_steps_count(void **state)
{
	const struct analysis_finding *finding;
	struct stream s = run(&(struct job){ 100 * MS, 2 * MS, 20 * MS, 5, 1, 0, -1, 999, 0 });

	(void)state;
	finding = stream_finding(&s, FINDING_STRAGGLER);
	assert_true(finding && finding->active);
	stream_end(&s);
	s = run(&(struct job){ 100 * MS, 2 * MS, 20 * MS, 5, 1, 0, -1, 105, 0 });
	finding = stream_finding(&s, FINDING_STRAGGLER);
	/* As long as no step is known, a collective's is told. */
	assert_false(finding && finding->active);
	stream_end(&s);
}

/* Of programs that have ended: others have their places. */
static void communicators_are_forgotten(void **state)
{
	struct stream s = stream_begin(0);

	(void)state;
	for (uint64_t i = 0; i < 200; i++) {
		for (int rank = 0; rank < 2; rank++) {
			const struct analysis_event event = { .kind = ANALYSIS_COLLECTIVE,
							      .pid = 100,
							      .communicator = 1 + i,
							      .sequence = 1,
							      .rank = rank,
							      .ranks = 2 };

			stream_put(&s, event, s.now_ns, s.now_ns);
		}
		s.now_ns += 10 * (uint64_t)NSEC_PER_SEC;
	}
	assert_int_equal(analysis_counts(s.analysis)->beyond, 0);
	stream_end(&s);
}

/* A rank becomes slower: it was better once. */
static void its_own_past_is_a_score(void **state)
{
	struct stream s = stream_begin(0);
	uint32_t name = stream_text(&s, "ncclAllReduce");
	uint64_t at = s.now_ns;

	(void)state;
	for (uint64_t i = 0; i < 2 * COLLECTIVES; i++) {
		bool slow = i >= COLLECTIVES;

		for (int rank = 0; rank < 2; rank++)
			stream_put(&s,
				   (struct analysis_event){ .kind = ANALYSIS_COLLECTIVE,
							    .name = name,
							    .pid = 100 + (uint32_t)rank,
							    .communicator = 1,
							    .sequence = i + 1,
							    .rank = rank,
							    .ranks = 2 },
				   at + (slow && rank == 1 ? 200 * MS : 100 * MS),
				   at + (slow && rank == 1 ? 200 * MS : 100 * MS) + US);
		at += slow ? 200 * MS : 100 * MS;
	}
	analysis_finish(s.analysis);
	assert_non_null(stream_finding(&s, FINDING_STRAGGLER));
	assert_true(fabs(finding_get(stream_finding(&s, FINDING_STRAGGLER), "individual_score") - 0.5) <
		    0.05);
	assert_true(fabs(finding_get(stream_finding(&s, FINDING_STRAGGLER), "relative_score") - 0.5) < 0.05);
	stream_end(&s);
}

/* Whatever a program says its communicators are. */
static void communicators_have_a_limit(void **state)
{
	struct stream s = stream_begin(0);

	(void)state;
	for (uint64_t i = 1; i < 1000; i++) {
		const struct analysis_event event = { .kind = ANALYSIS_COLLECTIVE,
						      .pid = 1,
						      .communicator = i,
						      .sequence = UINT64_MAX - i,
						      .rank = i % 2 ? 0 : INT32_MAX,
						      .ranks = i % 3 ? 3000 : UINT32_MAX,
						      .begin_ns = s.now_ns,
						      .end_ns = s.now_ns };

		analysis_add(s.analysis, &event);
	}
	/* Of 666 events of ranks that can be, all but one find no room; 743 none among hangs. */
	assert_int_equal(analysis_counts(s.analysis)->beyond, 665 + 743);
	stream_end(&s);
}

static int compare(const void *one, const void *two)
{
	double a = *(const double *)one, b = *(const double *)two;

	return (a > b) - (a < b);
}

static double median(double *values, unsigned n)
{
	qsort(values, n, sizeof(*values), compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/*
 * NVIDIA's scores, computed here from the times themselves: relative: the least median of all ranks by
 * this rank's; individual: the least median that this rank ever had by its newest. Each step ranks work by
 * themselves for a time of chance, of which rank 5 takes ever more, or ever less; windows are of 100
 * collectives.
 */
static void scores_are_what_is_defined(void **state)
{
	(void)state;
	for (unsigned trial = 0; trial < 10; trial++) {
		struct stream s = stream_begin(20000 * MS);
		uint32_t name = stream_text(&s, "ncclAllReduce");
		double own[RANKS][100], best[RANKS], now[RANKS], least = INFINITY, scale[RANKS];
		uint64_t released = s.now_ns;
		const struct analysis_finding *finding;

		for (int rank = 0; rank < RANKS; rank++) {
			best[rank] = INFINITY;
			scale[rank] = 0.01 + 0.02 * stream_random(&s);
		}
		for (unsigned i = 0; i < 500; i++) {
			uint64_t all = released;

			for (int rank = 0; rank < RANKS; rank++) {
				double seconds = (scale[rank] + (rank == 5 ? (trial % 2 ? 0.08 - 0.0001 * i :
											  0.03 + 0.0001 * i) :
									     0)) *
						 (1 + 0.1 * stream_random(&s));
				uint64_t at = released + (uint64_t)(seconds * (double)NSEC_PER_SEC);

				own[rank][i % 100] = (double)(at - released) / (double)NSEC_PER_SEC;
				collective(&s, name, rank, i + 1, 0, at);
				all = MAX(all, at);
			}
			released = all;
			if (i % 100 != 99)
				continue;
			/* The window ends: of the first collective nobody knows what was before. */
			analysis_finish(s.analysis);
			for (int rank = 0; rank < RANKS && i > 99; rank++) {
				double sorted[100];

				memcpy(sorted, own[rank], sizeof(sorted));
				now[rank] = median(sorted, 100);
				if (i < 499)
					best[rank] = MIN(best[rank], now[rank]);
			}
		}
		for (int rank = 0; rank < RANKS; rank++)
			least = MIN(least, now[rank]);
		finding = stream_finding(&s, FINDING_STRAGGLER);
		assert_non_null(finding);
		assert_true(fabs(finding_get(finding, "relative_score") - least / now[5]) < 1e-6);
		assert_true(fabs(finding_get(finding, "individual_score") - MIN(best[5] / now[5], 1.0)) <
			    1e-6);
		stream_end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scores_are_what_is_defined),
		cmocka_unit_test(a_late_rank_is_found),
		cmocka_unit_test(who_is_last_by_chance_is_none),
		cmocka_unit_test(what_nearly_is_one_is_none),
		cmocka_unit_test(of_the_ranks_that_are_seen),
		cmocka_unit_test(whose_steps_count),
		cmocka_unit_test(communicators_are_forgotten),
		cmocka_unit_test(its_own_past_is_a_score),
		cmocka_unit_test(communicators_have_a_limit),
		cmocka_unit_test(times_of_devices_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
