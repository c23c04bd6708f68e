// SPDX-License-Identifier: Apache-2.0
/* Where steps begin, what they spend their time with, and whether they become slower. */
#include <math.h>

#include "analysis/stream.h"

#define NEAR(a_, b_, by_) assert_true(fabs((a_) - (b_)) <= (by_))

/* A step of training: data, 20 launches, gradients in 3 collectives, a wait. About 31 ms. */
struct step {
	uint64_t data_ns, sync_ns;
	bool marked, collectives, work;
};

static const struct step usual = { .data_ns = 5 * MS, .sync_ns = 20 * MS, .collectives = true, .work = true };

static void add(struct stream *s, enum analysis_kind kind, const char *name, uint64_t bytes, uint64_t ns)
{
	stream_add(s,
		   (struct analysis_event){ .kind = (uint8_t)kind,
					    .name = stream_text(s, name),
					    .bytes = bytes,
					    .communicator = 9 },
		   ns);
}

static void step(struct stream *s, const struct step *step)
{
	uint64_t work_ns;

	if (step->marked)
		add(s, ANALYSIS_STEP, "Optimizer.step#Adam.step", 0, 0);
	add(s, ANALYSIS_DATA, "enumerate(DataLoader)", 0, step->data_ns);
	work_ns = s->now_ns;
	for (unsigned i = 0; i < 20; i++) {
		add(s, ANALYSIS_LAUNCH, i % 2 ? "gemm" : "relu", 0, 100 * US);
		s->now_ns += 200 * US;
	}
	for (unsigned i = 0; step->collectives && i < 3; i++)
		add(s, ANALYSIS_COLLECTIVE, "ncclAllReduce", 1000 + i, 50 * US);
	add(s, ANALYSIS_SYNC, "cudaStreamSynchronize", 0, step->sync_ns);
	if (step->work)
		stream_put(
			s,
			(struct analysis_event){ .kind = ANALYSIS_WORK, .pid = s->pid, .device = s->device },
			work_ns, s->now_ns);
}

static const struct analysis_steps *only_steps(const struct stream *s)
{
	uint32_t n;
	const struct analysis_steps *steps = analysis_steps(s->analysis, &n);

	assert_int_equal(n, 1);
	return steps;
}

static void finds_steps_by_collectives(void **state)
{
	struct stream s = stream_begin(1000 * MS);
	const struct analysis_steps *steps;

	(void)state;
	for (unsigned i = 0; i < 200; i++)
		step(&s, &usual);
	steps = only_steps(&s);
	assert_int_equal(steps->source, ANALYSIS_STEPS_FOUND);
	assert_int_equal(steps->calls, 3);
	assert_in_range(steps->steps, 150, 199);
	NEAR(steps->median, 0.03115, 1e-9);
	stream_end(&s);
}

/* Each moment is of one part; idle is what the device did not work in. */
static void divides_steps(void **state)
{
	struct stream s = stream_begin(1000 * MS);
	const struct analysis_steps *steps;
	double sum = 0, n;

	(void)state;
	for (unsigned i = 0; i < 200; i++)
		step(&s, &usual);
	steps = only_steps(&s);
	n = (double)steps->steps;
	for (unsigned i = 0; i < ANALYSIS_STEP_PARTS; i++)
		sum += steps->part[i];
	NEAR(sum, steps->seconds, 1e-6);
	NEAR(steps->part[ANALYSIS_STEP_DATA] / n, 0.005, 1e-9);
	NEAR(steps->part[ANALYSIS_STEP_SYNC] / n, 0.020, 1e-9);
	NEAR(steps->part[ANALYSIS_STEP_LAUNCH] / n, 0.002, 1e-9);
	NEAR(steps->part[ANALYSIS_STEP_COLLECTIVES] / n, 0.00015, 1e-9);
	NEAR(steps->part[ANALYSIS_STEP_OTHER] / n, 0.004, 1e-9);
	assert_true(steps->work_known);
	NEAR(steps->idle[ANALYSIS_STEP_DATA] / n, 0.005, 1e-9);
	NEAR(steps->idle[ANALYSIS_STEP_SYNC] / n, 0, 1e-9);
	assert_true(steps->resolution == 0);
	stream_end(&s);
}

static void finds_steps_without_collectives(void **state)
{
	struct stream s = stream_begin(1000 * MS);
	struct step alone = usual;

	(void)state;
	alone.collectives = alone.work = false;
	for (unsigned i = 0; i < 200; i++)
		step(&s, &alone);
	assert_int_equal(only_steps(&s)->source, ANALYSIS_STEPS_FOUND);
	NEAR(only_steps(&s)->median, 0.031, 1e-9);
	assert_false(only_steps(&s)->work_known);
	stream_end(&s);
}

static void believes_marks(void **state)
{
	struct stream s = stream_begin(1000 * MS);
	struct step marked = usual;

	(void)state;
	marked.marked = true;
	for (unsigned i = 0; i < 10; i++)
		step(&s, &marked);
	assert_int_equal(only_steps(&s)->source, ANALYSIS_STEPS_MARKED);
	assert_int_equal(only_steps(&s)->steps, 8); /* the ninth is divided when the tenth has ended */
	stream_end(&s);
}

static void no_steps(void **state)
{
	struct stream s = stream_begin(1000 * MS);
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	uint32_t n;

	(void)state;
	for (unsigned i = 0; i < 5000; i++)
		add(&s, ANALYSIS_LAUNCH, names[(unsigned)(stream_random(&s) * 8)], 0, 10 * US);
	analysis_steps(s.analysis, &n);
	assert_int_equal(n, 0);
	stream_end(&s);
}

/* Launch after launch is no step; wait after wait is one, whatever is between. */
static void the_same_call_again_and_again(void **state)
{
	struct stream s = stream_begin(1000 * MS);
	uint32_t n;

	(void)state;
	for (unsigned i = 0; i < 5000; i++)
		add(&s, ANALYSIS_LAUNCH, "a", 0, 10 * US);
	analysis_steps(s.analysis, &n);
	assert_int_equal(n, 0);
	for (unsigned i = 0; i < 500; i++) {
		add(&s, ANALYSIS_LAUNCH, "a", 0, 10 * US);
		add(&s, ANALYSIS_SYNC, "cudaStreamSynchronize", 0, 10 * US);
	}
	assert_int_equal(only_steps(&s)->calls, 1);
	stream_end(&s);
}

/* A wait for the device while that works at a collective is a wait for others. */
static void waits_for_others(void **state)
{
	struct stream s = stream_begin(1000 * MS);
	struct step marked = usual;
	double n;

	(void)state;
	marked.marked = true;
	for (unsigned i = 0; i < 50; i++) {
		uint64_t end_ns;

		step(&s, &marked);
		end_ns = s.now_ns;
		stream_put(&s,
			   (struct analysis_event){ .kind = ANALYSIS_COLLECTIVE,
						    .flags = ANALYSIS_TRUE,
						    .pid = s.pid,
						    .device = s.device },
			   end_ns - 8 * MS, end_ns);
	}
	n = (double)only_steps(&s)->steps;
	NEAR(only_steps(&s)->part[ANALYSIS_STEP_COLLECTIVES] / n, 0.00815, 1e-9);
	NEAR(only_steps(&s)->part[ANALYSIS_STEP_SYNC] / n, 0.012, 1e-9);
	stream_end(&s);
}

/* Far more calls than intervals are kept: coarser, and said, but no part is lost. */
static void many_calls(void **state)
{
	struct stream s = stream_begin(1000 * MS);
	const struct analysis_steps *steps;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		add(&s, ANALYSIS_STEP, "step", 0, 0);
		for (unsigned k = 0; k < 10000; k++) {
			add(&s, ANALYSIS_LAUNCH, "k", 0, 5 * US);
			s.now_ns += k % 100 ? 3 * US : 500 * US;
		}
	}
	steps = only_steps(&s);
	assert_true(steps->resolution > 0 && steps->resolution < 10e-6);
	NEAR(steps->part[ANALYSIS_STEP_OTHER] / (double)steps->steps, 0.05, 1e-6);
	stream_end(&s);
}

static void becomes_slower(void **state)
{
	struct stream s = stream_begin(1000 * MS);
	struct step slow = usual;
	const struct analysis_finding *finding;

	(void)state;
	slow.data_ns = 12 * MS;
	for (unsigned i = 0; i < 300; i++)
		step(&s, &usual);
	assert_null(stream_finding(&s, FINDING_STEP_SLOWER));
	for (unsigned i = 0; i < 100; i++)
		step(&s, &slow);
	finding = stream_finding(&s, FINDING_STEP_SLOWER);
	assert_non_null(finding);
	assert_string_equal(analysis_text_get(s.analysis, finding->subject), "data loading");
	NEAR(finding_get(finding, "before"), 0.03115, 1e-4);
	NEAR(finding_get(finding, "now"), 0.03815, 1e-3);
	assert_true(finding->active);
	/* As it was: the finding ends, and is the only one. */
	for (unsigned i = 0; i < 200; i++)
		step(&s, &usual);
	assert_false(stream_finding(&s, FINDING_STEP_SLOWER)->active);
	assert_int_equal(stream_findings(&s, FINDING_STEP_SLOWER), 1);
	stream_end(&s);
}

static void nearly_slower(void **state)
{
	struct stream s = stream_begin(1000 * MS);
	struct step slower = usual;

	(void)state;
	for (unsigned i = 0; i < 600; i++) {
		/* 6 % from the middle on, and a checkpoint every 100 steps */
		slower.data_ns = (i < 300 ? 5 * MS : 7 * MS) + (uint64_t)(stream_random(&s) * (double)MS);
		step(&s, &slower);
		if (i % 100 == 99)
			s.now_ns += 500 * MS;
	}
	assert_null(stream_finding(&s, FINDING_STEP_SLOWER));
	stream_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_steps_by_collectives),
		cmocka_unit_test(divides_steps),
		cmocka_unit_test(finds_steps_without_collectives),
		cmocka_unit_test(believes_marks),
		cmocka_unit_test(no_steps),
		cmocka_unit_test(the_same_call_again_and_again),
		cmocka_unit_test(waits_for_others),
		cmocka_unit_test(many_calls),
		cmocka_unit_test(becomes_slower),
		cmocka_unit_test(nearly_slower),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
