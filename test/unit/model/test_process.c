// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "lab.h"

#define SECOND NSEC_PER_SEC

/* One GPU and one process on it that was busy for so long and holds so much. */
static struct reading_process *busy(struct lab *lab, uint32_t pid, double seconds, double bytes)
{
	struct reading_entity *gpu = lab->reading->entities_n ? &lab->reading->entities[0] : lab_gpu(lab, 0);
	struct reading_process *p = lab_process(lab, gpu, pid);

	lab_set_process(p, PROCESS_BUSY, seconds);
	lab_set_process(p, PROCESS_MEMORY, bytes);
	return p;
}

static void a_process_is_identified_and_its_work_added_up(void **state)
{
	struct lab *lab = *state;
	const struct process *p;

	lab_exists(lab, 7, 1234, WORKLOAD_CONTAINER, "c0ffee");
	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, SECOND);
	busy(lab, 7, 0.25, 3e9);
	lab_step(lab, SECOND);
	p = lab_find(lab, 7);
	assert_non_null(p);
	assert_string_equal(p->comm, "proc7");
	assert_int_equal(p->id.start_ticks, 1234);
	assert_int_equal(p->uid, 1000);
	assert_true(p->has_series);
	assert_int_equal(p->entity, 0);
	assert_near(p->v[PROCESS_BUSY], 0.75, 0);
	assert_near(p->series[PROCESS_BUSY], 0.75, 0);
	assert_near(p->v[PROCESS_MEMORY], 3e9, 0);
	assert_near(p->v[PROCESS_MEMORY_PEAK], 3e9, 0);
	assert_near(p->v[PROCESS_MEMORY_BYTE_SECONDS], 2e9, 1); /* the trapezoid of one second */
	assert_int_equal(p->p[PROCESS_MEMORY_BYTE_SECONDS], PRESENCE_PRESENT);
	assert_int_equal(lab->s->entities[0].processes_live, 1);
	assert_near(lab->s->entities[0].process_total[PROCESS_BUSY], 0.75, 0);
	assert_near(lab->s->entities[0].process_other[PROCESS_BUSY], 0, 0);
	assert_string_equal(lab->s->workloads[p->workload].id, "c0ffee");
	assert_near(lab->s->workloads[p->workload].v[PROCESS_BUSY], 0.75, 0);
	assert_near(lab->s->workloads[p->workload].v[PROCESS_MEMORY], 3e9, 0);
}

static void nothing_starts_below_zero(void **state)
{
	struct lab *lab = *state;

	lab_process(lab, lab_gpu(lab, 0), 7)->p[PROCESS_BUSY] = PRESENCE_UNSUPPORTED;
	lab_step(lab, SECOND);
	assert_int_equal(lab_find(lab, 7)->p[PROCESS_BUSY], PRESENCE_UNSUPPORTED);
	assert_near(lab_find(lab, 7)->v[PROCESS_BUSY], 0, 0);
	busy(lab, 7, 0, 0);
	lab_step(lab, SECOND);
	assert_int_equal(lab_find(lab, 7)->p[PROCESS_BUSY], PRESENCE_PRESENT);
	assert_near(lab_find(lab, 7)->v[PROCESS_BUSY], 0, 0);
}

static void one_on_two_gpus_is_two(void **state)
{
	struct lab *lab = *state;
	struct reading_entity *a = lab_gpu(lab, 0), *b = lab_gpu(lab, 1);

	lab_set_process(lab_process(lab, b, 7), PROCESS_BUSY, 0.75);
	lab_set_process(lab_process(lab, a, 7), PROCESS_BUSY, 0.25);
	lab_set_process(lab_process(lab, a, 5), PROCESS_BUSY, 0.5);
	lab_step(lab, SECOND);
	assert_int_equal(lab->s->processes_n, 3);
	assert_int_equal(lab->s->processes[0].id.pid, 5);
	assert_int_equal(lab->s->processes[1].id.pid, 7);
	assert_near(lab->s->processes[1].v[PROCESS_BUSY], 0.25, 0);
	assert_int_equal(lab->s->processes[2].entity, 1);
	assert_near(lab->s->processes[2].v[PROCESS_BUSY], 0.75, 0);
}

static void an_exit_is_recorded_and_stays_in_the_totals(void **state)
{
	struct lab *lab = *state;
	const struct process *p;

	lab_exists(lab, 7, 1, WORKLOAD_JOB, "42");
	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, SECOND);
	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	assert_null(lab_find(lab, 7));
	p = lab_exited(lab, 7);
	assert_non_null(p);
	assert_true(p->exited);
	assert_false(p->has_series);
	assert_int_equal(p->exit_seq, 1);
	assert_near(p->v[PROCESS_BUSY], 0.5, 0);
	assert_near(p->series[PROCESS_BUSY], 0.5, 0);
	assert_string_equal(lab->s->workloads[p->workload].id, "42");
	assert_near(lab->s->entities[0].process_total[PROCESS_BUSY], 0.5, 0);
	assert_near(lab_workload(lab, "42")->v[PROCESS_BUSY], 0.5, 0);
	assert_int_equal(lab_workload(lab, "42")->live, 0);
	assert_int_equal(lab_workload(lab, "42")->exited, 1);
	assert_false(presence_is(lab_workload(lab, "42")->p[PROCESS_MEMORY]));
	assert_near(lab_workload(lab, "42")->v[PROCESS_MEMORY_PEAK], 1e9, 0);
}

static void a_list_that_could_not_be_read_ends_nobody(void **state)
{
	struct lab *lab = *state;

	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, SECOND);
	lab_gpu(lab, 0)->process_list = PRESENCE_FAILED;
	lab_step(lab, SECOND);
	assert_non_null(lab_find(lab, 7));
	lab_gpu(lab, 0)->lost = 1;
	lab_step(lab, SECOND);
	assert_non_null(lab_find(lab, 7));
	/* A reading that could not hold all of them. */
	lab_gpu(lab, 0);
	lab->reading->processes_dropped = 1;
	lab_step(lab, SECOND);
	assert_non_null(lab_find(lab, 7));
	assert_near(lab->s->agent[AGENT_DROPPED_PROCESSES], 1, 0);
	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	assert_null(lab_find(lab, 7));
}

/*
 * What it holds and does is not known of one that the newest reading does not tell of; what it has done is.
 */
static void gauges_of_one_that_was_not_read_are_absent(void **state)
{
	struct lab *lab = *state;

	for (unsigned how = 0; how < 4; how++) {
		struct reading_process *p = busy(lab, 7, 0.5, 1e9);
		struct reading_entity *gpu = NULL;

		lab_exists(lab, 7, 1, WORKLOAD_JOB, "42");
		lab_set_process(p, PROCESS_UTILIZATION, 0.5);
		lab_step(lab, SECOND);
		assert_near(lab_find(lab, 7)->v[PROCESS_UTILIZATION], 0.5, 0);
		assert_int_equal(lab_find(lab, 7)->p[PROCESS_UTILIZATION], PRESENCE_PRESENT);
		assert_int_equal(lab_find(lab, 7)->p[PROCESS_MEMORY], PRESENCE_PRESENT);
		if (how < 3)
			gpu = lab_gpu(lab, 0);
		if (how == 0)
			gpu->lost = 1;
		else if (how == 1)
			gpu->process_list = PRESENCE_FAILED;
		else if (how == 2)
			lab->reading->processes_dropped = 1;
		lab_step(lab, SECOND);
		assert_int_equal(lab_find(lab, 7)->p[PROCESS_UTILIZATION], PRESENCE_ABSENT);
		assert_int_equal(lab_find(lab, 7)->p[PROCESS_MEMORY], PRESENCE_ABSENT);
		assert_int_equal(lab_workload(lab, "42")->p[PROCESS_MEMORY], PRESENCE_ABSENT);
		assert_int_equal(lab_find(lab, 7)->p[PROCESS_BUSY], PRESENCE_PRESENT);
		assert_int_equal(lab_find(lab, 7)->p[PROCESS_MEMORY_PEAK], PRESENCE_PRESENT);
	}
}

static void while_the_driver_is_silent_proc_tells_who_is_gone(void **state)
{
	struct lab *lab = *state;

	lab_exists(lab, 7, 1, WORKLOAD_NONE, "");
	lab_exists(lab, 8, 1, WORKLOAD_NONE, "");
	lab_exists(lab, 9, 1, WORKLOAD_NONE, "");
	busy(lab, 7, 0.5, 1e9);
	busy(lab, 8, 0.5, 1e9);
	busy(lab, 9, 0.5, 1e9);
	lab_step(lab, SECOND);
	lab->proc[7].exists = false;
	lab_exists(lab, 9, 555, WORKLOAD_NONE, ""); /* another process now */
	lab_wait(lab, 9 * SECOND);
	assert_non_null(lab_find(lab, 7));
	lab_wait(lab, 2 * SECOND);
	assert_null(lab_find(lab, 7));
	assert_non_null(lab_find(lab, 8));
	assert_null(lab_find(lab, 9));
	assert_non_null(lab_exited(lab, 7));
	assert_near(lab->s->entities[0].process_total[PROCESS_BUSY], 1.5, 0);
}

static void one_nobody_knows_ends_with_its_gpu(void **state)
{
	struct lab *lab = *state;

	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, SECOND);
	lab_wait(lab, 120 * SECOND);
	assert_non_null(lab_find(lab, 7)); /* the GPU may still be there */
	lab->reading->state = READING_NO_DRIVER;
	lab_step(lab, SECOND);
	lab_wait(lab, 20 * SECOND);
	assert_null(lab_find(lab, 7));
}

static void a_pid_given_to_another_is_noticed(void **state)
{
	struct lab *lab = *state;

	lab_exists(lab, 7, 1, WORKLOAD_UNIT, "old.service");
	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, SECOND);
	lab_exists(lab, 7, 2, WORKLOAD_UNIT, "new.service");
	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, 5 * SECOND); /* after a gap it is looked at at once */
	assert_int_equal(lab_find(lab, 7)->id.start_ticks, 2);
	assert_near(lab_find(lab, 7)->v[PROCESS_BUSY], 0.5, 0);
	assert_int_equal(lab_exited(lab, 7)->id.start_ticks, 1);
	assert_near(lab_workload(lab, "new.service")->v[PROCESS_BUSY], 0.5, 0);
	assert_near(lab_workload(lab, "old.service")->v[PROCESS_BUSY], 0.5, 0);
	/* Without a gap within ten seconds. */
	lab_exists(lab, 7, 3, WORKLOAD_NONE, "");
	for (unsigned i = 0; i < 10; i++) {
		busy(lab, 7, 0.5, 1e9);
		lab_step(lab, SECOND);
	}
	assert_int_equal(lab_find(lab, 7)->id.start_ticks, 3);
}

static void a_process_is_not_looked_at_each_time(void **state)
{
	struct lab *lab = *state;
	unsigned looks;

	lab_exists(lab, 7, 1, WORKLOAD_NONE, "");
	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, SECOND);
	looks = lab->looks;
	for (unsigned i = 0; i < 20; i++) {
		busy(lab, 7, 0.5, 1e9);
		lab_step(lab, SECOND);
	}
	assert_int_equal(lab->looks - looks, 2);
}

static void one_that_comes_back_goes_on_where_it_was(void **state)
{
	struct lab *lab = *state;

	lab_exists(lab, 7, 1, WORKLOAD_POD, "pod");
	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, SECOND);
	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	assert_int_equal(lab->s->exited_n, 1);
	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, SECOND);
	assert_near(lab_find(lab, 7)->v[PROCESS_BUSY], 1.0, 0);
	assert_near(lab_find(lab, 7)->series[PROCESS_BUSY], 1.0, 0);
	assert_int_equal(lab->s->exited_n, 0);
	assert_int_equal(lab_workload(lab, "pod")->live, 1);
	assert_int_equal(lab_workload(lab, "pod")->exited, 0);
	assert_near(lab_workload(lab, "pod")->v[PROCESS_BUSY], 1.0, 0);
}

static void what_it_did_before_it_exited_is_credited(void **state)
{
	struct lab *lab = *state;
	struct reading_process *p;

	lab_exists(lab, 7, 1, WORKLOAD_JOB, "42");
	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, SECOND);
	lab->proc[7].exists = false;
	p = busy(lab, 7, 0.25, 0);
	p->types = 0; /* in no list any more, only among the utilisation samples */
	p->p[PROCESS_MEMORY] = PRESENCE_ABSENT;
	lab_step(lab, SECOND);
	assert_null(lab_find(lab, 7));
	assert_near(lab_exited(lab, 7)->v[PROCESS_BUSY], 0.75, 0);
	assert_near(lab_exited(lab, 7)->v[PROCESS_MEMORY], 1e9, 0);
	/* And a straggler: to the record, its job and the total, for its series is gone. */
	p = busy(lab, 7, 0.125, 0);
	p->types = 0;
	lab_step(lab, SECOND);
	assert_null(lab_find(lab, 7));
	assert_int_equal(lab->s->exited_n, 1);
	assert_near(lab_exited(lab, 7)->v[PROCESS_BUSY], 0.875, 0);
	assert_near(lab_exited(lab, 7)->series[PROCESS_BUSY], 0.75, 0);
	assert_near(lab_workload(lab, "42")->v[PROCESS_BUSY], 0.875, 0);
	assert_near(lab->s->entities[0].process_other[PROCESS_BUSY], 0.125, 0);
	assert_near(lab->s->entities[0].process_total[PROCESS_BUSY], 0.875, 0);
}

static void one_only_seen_by_its_samples_counts_too(void **state)
{
	struct lab *lab = *state;

	lab_exists(lab, 7, 1, WORKLOAD_NONE, "");
	for (unsigned i = 0; i < 3; i++) {
		busy(lab, 7, 0.25, 0)->types = 0;
		lab_step(lab, SECOND);
		assert_near(lab_find(lab, 7)->v[PROCESS_BUSY], 0.25 * (i + 1), 0);
	}
	assert_int_equal(lab->s->exited_n, 0);
	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	assert_null(lab_find(lab, 7));
	assert_near(lab_exited(lab, 7)->v[PROCESS_BUSY], 0.75, 0);
}

static void more_time_than_passed_is_rejected(void **state)
{
	struct lab *lab = *state;

	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, SECOND);
	busy(lab, 7, 50, 1e9);
	lab_step(lab, SECOND);
	assert_near(lab_find(lab, 7)->v[PROCESS_BUSY], 0.5, 0);
	assert_int_equal(lab->s->rejected_process[PROCESS_BUSY], 1);
}

static void one_that_came_during_a_gap_may_have_worked_all_of_it(void **state)
{
	struct lab *lab = *state;

	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	lab_wait(lab, 60 * SECOND);
	busy(lab, 7, 50, 1e9);
	busy(lab, 8, 500, 1e9);
	lab_step(lab, SECOND);
	assert_near(lab_find(lab, 7)->v[PROCESS_BUSY], 50, 0);
	assert_near(lab_find(lab, 8)->v[PROCESS_BUSY], 0, 0);
	assert_int_equal(lab->s->rejected_process[PROCESS_BUSY], 1);
	/* Without a gap, what the driver's buffer holds. */
	busy(lab, 9, 29, 1e9);
	busy(lab, 10, 40, 1e9);
	lab_step(lab, SECOND);
	assert_near(lab_find(lab, 9)->v[PROCESS_BUSY], 29, 0);
	assert_near(lab_find(lab, 10)->v[PROCESS_BUSY], 0, 0);
}

static void a_bridged_gap_is_an_estimate(void **state)
{
	struct lab *lab = *state;

	lab_exists(lab, 7, 1, WORKLOAD_NONE, "");
	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, SECOND);
	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, 60 * SECOND);
	assert_near(lab_find(lab, 7)->v[PROCESS_MEMORY_BYTE_SECONDS], 60e9, 1);
	assert_int_equal(lab_find(lab, 7)->p[PROCESS_MEMORY_BYTE_SECONDS],
			 PRESENCE_PRESENT | PRESENCE_ESTIMATED);
}

static void a_name_comes_from_proc_or_the_driver_and_is_utf8(void **state)
{
	struct lab *lab = *state;

	lab_exists(lab, 7, 1, WORKLOAD_NONE, "");
	strcpy(lab->proc[7].identity.comm, "bad\xff name");
	busy(lab, 7, 0.5, 1e9);
	snprintf(busy(lab, 8, 0.5, 1e9)->name, 64, "/usr/bin/python3.11");
	snprintf(busy(lab, 9, 0.5, 1e9)->name, 64, "plain");
	lab_step(lab, SECOND);
	assert_string_equal(lab_find(lab, 7)->comm, "bad? name");
	assert_string_equal(lab_find(lab, 8)->comm, "python3.11");
	assert_string_equal(lab_find(lab, 9)->comm, "plain");
}

static void the_driver_may_name_it_later(void **state)
{
	struct lab *lab = *state;

	busy(lab, 8, 0.5, 1e9);
	lab_step(lab, SECOND);
	assert_string_equal(lab_find(lab, 8)->comm, "");
	snprintf(busy(lab, 8, 0.5, 1e9)->name, 64, "/usr/bin/python3.11");
	lab_step(lab, SECOND);
	assert_string_equal(lab_find(lab, 8)->comm, "python3.11");
	/* One name is enough. */
	snprintf(busy(lab, 8, 0.5, 1e9)->name, 64, "another");
	lab_step(lab, SECOND);
	assert_string_equal(lab_find(lab, 8)->comm, "python3.11");
}

static void one_unknown_at_first_is_identified_later(void **state)
{
	struct lab *lab = *state;

	busy(lab, 7, 0.5, 1e9);
	lab_step(lab, SECOND);
	assert_int_equal(lab_find(lab, 7)->id.start_ticks, 0);
	lab_exists(lab, 7, 1, WORKLOAD_JOB, "42");
	for (unsigned i = 0; i < 11; i++) {
		busy(lab, 7, 0.5, 1e9);
		lab_step(lab, SECOND);
	}
	assert_int_equal(lab_find(lab, 7)->id.start_ticks, 1);
	assert_string_equal(lab_find(lab, 7)->comm, "proc7");
	assert_int_equal(lab_workload(lab, "42")->live, 1);
}

static void beyond_the_limit_the_work_goes_to_other(_unused_ void **state)
{
	struct model_limits limits = { .processes = 2, .series = 10, .exited = 10, .workloads = 10 };
	struct lab *lab = lab_new(&limits);

	for (uint32_t pid = 1; pid <= 4; pid++)
		busy(lab, pid, 0.25, 1e9);
	lab_step(lab, SECOND);
	assert_int_equal(lab->s->processes_n, 2);
	assert_near(lab->s->entities[0].process_other[PROCESS_BUSY], 0.5, 0);
	assert_near(lab->s->entities[0].process_total[PROCESS_BUSY], 1.0, 0);
	assert_near(lab->s->agent[AGENT_DROPPED_PROCESSES], 2, 0);
	lab_free(lab);
}

static void exit_records_are_bounded_in_number_and_age(_unused_ void **state)
{
	struct model_limits limits = { .processes = 100, .series = 100, .exited = 20, .workloads = 10 };
	struct lab *lab = lab_new(&limits);

	for (uint32_t pid = 1; pid <= 30; pid++)
		busy(lab, pid, 0.01, 1);
	lab_step(lab, SECOND);
	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	assert_int_equal(lab->s->exited_n, 20);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(lab->s->exited[i].exit_seq, 11 + i);
	assert_near(lab->s->agent[AGENT_DROPPED_EXITED], 10, 0);
	assert_near(lab->s->entities[0].process_total[PROCESS_BUSY], 0.3, 1e-9);
	/* Old ones make room silently: everybody has had the time to fetch them. */
	busy(lab, 50, 0.01, 1);
	lab_step(lab, 1000 * SECOND);
	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	assert_int_equal(lab->s->exited_n, 20);
	assert_near(lab->s->agent[AGENT_DROPPED_EXITED], 10, 0);
	lab_wait(lab, 3601 * SECOND);
	assert_int_equal(lab->s->exited_n, 0);
	limits.exited = 0;
	model_set_limits(lab->model, &limits);
	busy(lab, 51, 0.01, 1);
	lab_step(lab, SECOND);
	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	assert_int_equal(lab->s->exited_n, 0);
	lab_free(lab);
}

static void twice_in_a_reading_counts_once(void **state)
{
	struct lab *lab = *state;

	busy(lab, 7, 0.5, 1e9);
	busy(lab, 7, 0.5, 1e9);
	busy(lab, 0, 0.5, 1e9); /* no PID at all */
	lab_step(lab, SECOND);
	assert_int_equal(lab->s->processes_n, 1);
	assert_near(lab->s->entities[0].process_total[PROCESS_BUSY], 0.5, 0);
}

int main(void)
{
#define CASE(name_) cmocka_unit_test_setup_teardown(name_, lab_setup, lab_teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_process_is_identified_and_its_work_added_up),
		CASE(nothing_starts_below_zero),
		CASE(one_on_two_gpus_is_two),
		CASE(an_exit_is_recorded_and_stays_in_the_totals),
		CASE(a_list_that_could_not_be_read_ends_nobody),
		CASE(gauges_of_one_that_was_not_read_are_absent),
		CASE(while_the_driver_is_silent_proc_tells_who_is_gone),
		CASE(one_nobody_knows_ends_with_its_gpu),
		CASE(a_pid_given_to_another_is_noticed),
		CASE(a_process_is_not_looked_at_each_time),
		CASE(one_that_comes_back_goes_on_where_it_was),
		CASE(what_it_did_before_it_exited_is_credited),
		CASE(one_only_seen_by_its_samples_counts_too),
		CASE(more_time_than_passed_is_rejected),
		CASE(one_that_came_during_a_gap_may_have_worked_all_of_it),
		CASE(a_bridged_gap_is_an_estimate),
		CASE(a_name_comes_from_proc_or_the_driver_and_is_utf8),
		CASE(the_driver_may_name_it_later),
		CASE(one_unknown_at_first_is_identified_later),
		cmocka_unit_test(beyond_the_limit_the_work_goes_to_other),
		cmocka_unit_test(exit_records_are_bounded_in_number_and_age),
		CASE(twice_in_a_reading_counts_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
