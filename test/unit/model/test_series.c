// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "lab.h"

enum { SERIES = 3 };

static int setup(void **state)
{
	*state = lab_new(
		&(struct model_limits){ .processes = 100, .series = SERIES, .exited = 10, .workloads = 10 });
	return 0;
}

/* PIDs 1 to n, each busy for so many seconds of the second that passes. */
static void step(struct lab *lab, unsigned n, const double *busy)
{
	struct reading_entity *gpu = lab_gpu(lab, 0);

	lab_set(gpu, SLOT_MEMORY_TOTAL, 100e9);
	for (unsigned i = 0; i < n; i++) {
		struct reading_process *p = lab_process(lab, gpu, i + 1);

		lab_exists(lab, i + 1, i + 1, WORKLOAD_NONE, "");
		lab_set_process(p, PROCESS_BUSY, busy[i]);
		lab_set_process(p, PROCESS_MEMORY, 0);
	}
	lab_step(lab, NSEC_PER_SEC);
}

static unsigned with_series(const struct lab *lab)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < lab->s->processes_n; i++)
		n += lab->s->processes[i].has_series;
	return n;
}

static void first_come_first_served_while_there_are_free_ones(void **state)
{
	struct lab *lab = *state;

	step(lab, 5, (double[]){ 0, 0, 0, 0, 0 });
	assert_int_equal(with_series(lab), SERIES);
	for (uint32_t pid = 1; pid <= 5; pid++)
		assert_int_equal(lab_find(lab, pid)->has_series, pid <= SERIES);
	assert_near(lab->s->agent[AGENT_DROPPED_SERIES], 2, 0);
}

static void a_much_busier_process_takes_over(void **state)
{
	struct lab *lab = *state;
	double before;

	step(lab, 4, (double[]){ 0.5, 0.5, 0, 0.5 });
	assert_false(lab_find(lab, 4)->has_series);
	for (unsigned i = 0; i < 30; i++)
		step(lab, 4, (double[]){ 0.5, 0.5, 0, 0.5 });
	assert_true(lab_find(lab, 4)->has_series);
	assert_false(lab_find(lab, 3)->has_series);
	assert_int_equal(with_series(lab), SERIES);
	/* What it did before went to "other" and stays there. */
	before = lab->s->entities[0].process_other[PROCESS_BUSY];
	assert_true(before > 0);
	assert_near(lab_find(lab, 4)->series[PROCESS_BUSY], lab_find(lab, 4)->v[PROCESS_BUSY] - before, 1e-9);
}

static void equals_do_not_take_turns(void **state)
{
	struct lab *lab = *state;
	double dropped;

	for (unsigned i = 0; i < 5; i++)
		step(lab, 5, (double[]){ 0.5, 0.5, 0.5, 0.5, 0.5 });
	dropped = lab->s->agent[AGENT_DROPPED_SERIES];
	for (unsigned i = 0; i < 300; i++)
		step(lab, 5, (double[]){ 0.5, 0.5, 0.5, i % 7 ? 0.55 : 0.5, 0.5 });
	assert_near(lab->s->agent[AGENT_DROPPED_SERIES], dropped, 0);
}

/*
 * Half as much again is not enough between two that do next to nothing, nor a tenth between two that are
 * busy.
 */
static void a_little_more_is_not_enough(void **state)
{
	struct lab *lab = *state;
	double dropped;

	step(lab, 4, (double[]){ 0, 0, 0, 0.05 });
	dropped = lab->s->agent[AGENT_DROPPED_SERIES];
	for (unsigned i = 0; i < 300; i++)
		step(lab, 4, (double[]){ 0, 0, 0, 0.05 });
	for (unsigned i = 0; i < 300; i++)
		step(lab, 4, (double[]){ 0.75, 0.75, 0.75, 0.95 });
	assert_near(lab->s->agent[AGENT_DROPPED_SERIES], dropped, 0);
}

static void who_gets_it_back_goes_on_from_what_it_had(void **state)
{
	struct lab *lab = *state;
	double had, seen;

	for (unsigned i = 0; i < 5; i++)
		step(lab, 4, (double[]){ 0.9, 0.9, 0.9, 0 });
	had = lab_find(lab, 3)->series[PROCESS_BUSY];
	assert_near(had, 4.5, 1e-9);
	while (lab_find(lab, 3)->has_series)
		step(lab, 4, (double[]){ 0.9, 0.9, 0, 0.9 });
	assert_near(lab_find(lab, 3)->series[PROCESS_BUSY], had, 1e-9);
	while (!lab_find(lab, 3)->has_series)
		step(lab, 4, (double[]){ 0.9, 0.9, 0.9, 0 });
	seen = lab_find(lab, 3)->series[PROCESS_BUSY];
	assert_true(seen >= had);
	step(lab, 4, (double[]){ 0.9, 0.9, 0.5, 0 });
	assert_near(lab_find(lab, 3)->series[PROCESS_BUSY], seen + 0.5, 1e-9);
}

static void an_exit_frees_one(void **state)
{
	struct lab *lab = *state;
	struct reading_entity *gpu;

	step(lab, 5, (double[]){ 0.5, 0.5, 0.5, 0, 0.2 });
	gpu = lab_gpu(lab, 0);
	for (uint32_t pid = 2; pid <= 5; pid++)
		lab_set_process(lab_process(lab, gpu, pid), PROCESS_BUSY, pid == 5 ? 0.2 : 0);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(with_series(lab), SERIES);
	assert_true(lab_find(lab, 5)->has_series); /* the busier of the two that waited */
	assert_false(lab_find(lab, 4)->has_series);
}

static void the_bound_may_change(void **state)
{
	struct model_limits limits = { .processes = 100, .series = 1, .exited = 10, .workloads = 10 };
	struct lab *lab = *state;

	for (unsigned i = 0; i < 10; i++)
		step(lab, 5, (double[]){ 0.1, 0.9, 0.1, 0.1, 0.1 });
	model_set_limits(lab->model, &limits);
	lab_wait(lab, 1);
	assert_int_equal(with_series(lab), 1);
	assert_true(lab_find(lab, 2)->has_series);
	limits.series = 0;
	model_set_limits(lab->model, &limits);
	step(lab, 5, (double[]){ 0.1, 0.9, 0.1, 0.1, 0.1 });
	assert_int_equal(with_series(lab), 0);
	limits.series = 50;
	model_set_limits(lab->model, &limits);
	lab_wait(lab, 1);
	assert_int_equal(with_series(lab), 5);
}

int main(void)
{
#define CASE(name_) cmocka_unit_test_setup_teardown(name_, setup, lab_teardown)
	const struct CMUnitTest tests[] = {
		CASE(first_come_first_served_while_there_are_free_ones),
		CASE(a_much_busier_process_takes_over),
		CASE(equals_do_not_take_turns),
		CASE(a_little_more_is_not_enough),
		CASE(who_gets_it_back_goes_on_from_what_it_had),
		CASE(an_exit_frees_one),
		CASE(the_bound_may_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
