// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "lab.h"

enum { WORKLOADS = 3 };

static int setup(void **state)
{
	*state = lab_new(&(struct model_limits){
		.processes = 100, .series = 100, .exited = 100, .workloads = WORKLOADS });
	return 0;
}

static void run(struct lab *lab, uint32_t pid, const char *id)
{
	struct reading_entity *gpu = lab->reading->entities_n ? &lab->reading->entities[0] : lab_gpu(lab, 0);

	lab_exists(lab, pid, pid, WORKLOAD_CONTAINER, id);
	lab_set_process(lab_process(lab, gpu, pid), PROCESS_BUSY, 0.5);
}

/* All time that workloads have, evicted ones in "other". */
static double sum(const struct lab *lab)
{
	double total = 0;

	for (uint32_t i = 0; i < lab->s->workloads_n; i++)
		total += lab->s->workloads[i].v[PROCESS_BUSY];
	return total;
}

static void processes_of_one_workload_add_up(void **state)
{
	struct lab *lab = *state;

	run(lab, 1, "a");
	run(lab, 2, "a");
	run(lab, 3, "b");
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab->s->workloads_n, 2);
	assert_int_equal(lab_workload(lab, "a")->live, 2);
	assert_near(lab_workload(lab, "a")->v[PROCESS_BUSY], 1.0, 0);
	assert_int_equal(lab_workload(lab, "a")->kind, WORKLOAD_CONTAINER);
	assert_near(lab_workload(lab, "b")->v[PROCESS_BUSY], 0.5, 0);
}

static void the_longest_idle_makes_room_and_loses_nothing(void **state)
{
	struct lab *lab = *state;

	run(lab, 1, "a");
	run(lab, 2, "b");
	lab_step(lab, NSEC_PER_SEC);
	run(lab, 2, "b"); /* a is idle from here on */
	lab_step(lab, NSEC_PER_SEC);
	run(lab, 3, "c");
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab_exited(lab, 1)->workload, lab_workload(lab, "a") - lab->s->workloads);
	run(lab, 3, "c");
	run(lab, 4, "d");
	lab_step(lab, NSEC_PER_SEC);
	assert_null(lab_workload(lab, "a"));
	assert_non_null(lab_workload(lab, "b"));
	assert_non_null(lab_workload(lab, "d"));
	assert_int_equal(lab_workload(lab, "other")->kind, WORKLOAD_NONE);
	assert_near(lab_workload(lab, "other")->v[PROCESS_BUSY], 0.5, 0);
	assert_int_equal(lab_workload(lab, "other")->exited, 1);
	assert_int_equal(lab_exited(lab, 1)->workload, READING_NONE);
	assert_near(sum(lab), lab->s->entities[0].process_total[PROCESS_BUSY], 1e-9);
	assert_near(lab->s->agent[AGENT_DROPPED_WORKLOADS], 1, 0);
}

static void when_all_are_at_work_a_new_one_goes_to_other(void **state)
{
	struct lab *lab = *state;

	for (unsigned round = 0; round < 2; round++) {
		for (uint32_t pid = 1; pid <= 5; pid++) {
			char id[8];

			snprintf(id, sizeof(id), "w%u", (unsigned)pid);
			run(lab, pid, id);
		}
		lab_step(lab, NSEC_PER_SEC);
	}
	assert_int_equal(lab->s->workloads_n, WORKLOADS + 1);
	assert_int_equal(lab_workload(lab, "other")->live, 2);
	assert_near(lab_workload(lab, "other")->v[PROCESS_BUSY], 2.0, 0);
	assert_near(sum(lab), 5.0, 1e-9);
	/* They end there, too. */
	lab_gpu(lab, 0);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab_workload(lab, "other")->live, 0);
	assert_int_equal(lab_workload(lab, "other")->exited, 2);
}

static void places_are_used_again(void **state)
{
	struct lab *lab = *state;

	for (unsigned i = 0; i < 200; i++) {
		char id[16];

		snprintf(id, sizeof(id), "job%u", i);
		run(lab, 1 + i % 2, id);
		/* another process: one process stays in its first workload */
		lab_exists(lab, 1 + i % 2, 1000 + i, WORKLOAD_CONTAINER, id);
		lab_step(lab, NSEC_PER_SEC);
	}
	assert_int_equal(lab->s->workloads_n, WORKLOADS + 1);
	assert_near(sum(lab), 100.0, 1e-6);
	assert_non_null(lab_workload(lab, "job199"));
}

static void kinds_and_devices_are_told_apart(void **state)
{
	struct lab *lab = *state;
	struct reading_entity *a = lab_gpu(lab, 0), *b = lab_gpu(lab, 1);

	lab_exists(lab, 1, 1, WORKLOAD_CONTAINER, "x");
	lab_exists(lab, 2, 2, WORKLOAD_UNIT, "x");
	lab_set_process(lab_process(lab, a, 1), PROCESS_BUSY, 0.5);
	lab_set_process(lab_process(lab, a, 2), PROCESS_BUSY, 0.25);
	lab_set_process(lab_process(lab, b, 1), PROCESS_BUSY, 0.125);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab->s->workloads_n, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct process *p = &lab->s->processes[i];
		const struct workload *w = &lab->s->workloads[p->workload];

		assert_int_equal(w->entity, p->entity);
		assert_near(w->v[PROCESS_BUSY], p->v[PROCESS_BUSY], 0);
	}
}

static void those_of_a_forgotten_device_go_with_it(_unused_ void **state)
{
	struct lab *lab = lab_new(NULL);

	lab_exists(lab, 1, 1, WORKLOAD_JOB, "first");
	lab_set_process(lab_process(lab, lab_gpu(lab, 0), 1), PROCESS_BUSY, 0.5);
	lab_step(lab, NSEC_PER_SEC);
	lab_exists(lab, 2, 2, WORKLOAD_JOB, "second");
	for (unsigned i = 1; i <= READING_ENTITIES_MAX; i++)
		lab_gpu(lab, i);
	lab_set_process(lab_process(lab, &lab->reading->entities[5], 2), PROCESS_BUSY, 0.5);
	lab_step(lab, NSEC_PER_SEC);
	assert_null(lab_workload(lab, "first"));
	assert_non_null(lab_workload(lab, "second"));
	assert_null(lab_find(lab, 1));
	assert_null(lab_exited(lab, 1));
	lab_free(lab);
}

/* ---- users' own cgroups ---- */

enum { LIMIT = 16, OWN = LIMIT / 8, USERS = LIMIT / 2 };

static int setup_users(void **state)
{
	*state = lab_new(
		&(struct model_limits){ .processes = 100, .series = 100, .exited = 100, .workloads = LIMIT });
	return 0;
}

/* A process of its own workload, "USER-PID". */
static void run_user(struct lab *lab, uint32_t pid, uint32_t user)
{
	char id[32];

	snprintf(id, sizeof(id), "%u-%u", (unsigned)user, (unsigned)pid);
	run(lab, pid, id);
	lab->proc[pid].identity.user = user;
}

static unsigned workloads_of(const struct lab *lab, uint32_t user)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < lab->s->workloads_n; i++)
		n += lab->s->workloads[i].kind != WORKLOAD_NONE && lab->s->workloads[i].user == user;
	return n;
}

static void users_leave_places_to_others(void **state)
{
	struct lab *lab = *state;
	unsigned users = 0;

	for (uint32_t pid = 1; pid <= 40; pid++)
		run_user(lab, pid, 1000 + pid / 8);
	lab_step(lab, NSEC_PER_SEC);
	for (uint32_t user = 1000; user <= 1005; user++) {
		assert_in_range(workloads_of(lab, user), 0, OWN);
		users += workloads_of(lab, user);
	}
	assert_int_equal(users, USERS);
	assert_int_equal(lab_workload(lab, "other")->live, 40 - USERS);
	assert_near(lab->s->agent[AGENT_DROPPED_USER_WORKLOADS], 40 - USERS, 0);
	for (uint32_t pid = 1; pid <= 40; pid++)
		run_user(lab, pid, 1000 + pid / 8);
	for (uint32_t pid = 50; pid < 50 + USERS; pid++)
		run_user(lab, pid, 0);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(workloads_of(lab, 0), USERS);
	assert_near(lab->s->agent[AGENT_DROPPED_WORKLOADS], 0, 0);
	assert_near(sum(lab), lab->s->entities[0].process_total[PROCESS_BUSY], 1e-9);
}

static void a_user_displaces_its_own_that_have_ended(void **state)
{
	struct lab *lab = *state;

	run_user(lab, 1, 0);
	run_user(lab, 2, 1001);
	lab_step(lab, NSEC_PER_SEC);
	for (uint32_t pid = 10; pid < 60; pid++) {
		run_user(lab, pid, 1000);
		lab_step(lab, NSEC_PER_SEC);
	}
	assert_int_equal(workloads_of(lab, 1000), OWN);
	assert_non_null(lab_workload(lab, "1000-59"));
	assert_non_null(lab_workload(lab, "0-1"));
	assert_non_null(lab_workload(lab, "1001-2"));
	assert_near(lab_workload(lab, "other")->v[PROCESS_BUSY], 0.5 * (50 - OWN), 1e-9);
	assert_near(sum(lab), lab->s->entities[0].process_total[PROCESS_BUSY], 1e-9);
}

static void one_without_a_place_gets_one_when_there_is(void **state)
{
	struct lab *lab = *state;

	for (uint32_t pid = 1; pid <= OWN + 1; pid++)
		run_user(lab, pid, 1000);
	lab_step(lab, NSEC_PER_SEC);
	assert_null(lab_workload(lab, "1000-3"));
	/* No place yet: it is not looked at more closely, and counted once. */
	for (unsigned i = 0; i < 5; i++) {
		for (uint32_t pid = 1; pid <= OWN + 1; pid++)
			run_user(lab, pid, 1000);
		lab_step(lab, 11 * NSEC_PER_SEC);
	}
	assert_null(lab_workload(lab, "1000-3"));
	assert_near(lab->s->agent[AGENT_DROPPED_USER_WORKLOADS], 1, 0);
	/* The first ends. */
	for (unsigned i = 0; i < 2; i++) {
		run_user(lab, 2, 1000);
		run_user(lab, 3, 1000);
		lab_step(lab, 11 * NSEC_PER_SEC);
	}
	assert_null(lab_workload(lab, "1000-1"));
	assert_int_equal(lab_workload(lab, "1000-3")->live, 1);
	assert_int_equal(lab_workload(lab, "other")->live, 0);
	assert_int_equal(lab_find(lab, 3)->workload, lab_workload(lab, "1000-3") - lab->s->workloads);
	assert_int_equal(lab_workload(lab, "other")->exited, 1);
	assert_near(sum(lab), lab->s->entities[0].process_total[PROCESS_BUSY], 1e-9);
	/* It leaves the place that it has. */
	run_user(lab, 2, 1000);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab_workload(lab, "1000-3")->live, 0);
	assert_int_equal(lab_workload(lab, "1000-3")->exited, 1);
}

/* Two processes of one workload without a place: when one has it, the other one has it, too. */
static void a_place_is_for_all_of_a_workload(void **state)
{
	struct lab *lab = *state;

	for (uint32_t pid = 1; pid <= OWN; pid++)
		run_user(lab, pid, 1000);
	lab_step(lab, NSEC_PER_SEC);
	for (unsigned i = 0; i < 3; i++) {
		if (i == 0)
			run_user(lab, 1, 1000);
		run_user(lab, 2, 1000);
		for (uint32_t pid = 8; pid <= 9; pid++) {
			run(lab, pid, "both");
			lab->proc[pid].identity.user = 1000;
		}
		lab_step(lab, 11 * NSEC_PER_SEC);
	}
	assert_int_equal(lab_workload(lab, "both")->live, 2);
	assert_int_equal(lab_workload(lab, "other")->live, 0);
}

/* It had stopped using the device, and begins again when there is a place. */
static void one_that_returns_gets_a_place(void **state)
{
	struct lab *lab = *state;

	for (uint32_t pid = 1; pid <= OWN + 1; pid++)
		run_user(lab, pid, 1000);
	lab_step(lab, NSEC_PER_SEC);
	lab_gpu(lab, 0);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab_workload(lab, "other")->exited, 1);
	run_user(lab, OWN + 1, 1000);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab_workload(lab, "1000-3")->live, 1);
	assert_int_equal(lab_workload(lab, "other")->live, 0);
	assert_near(sum(lab), lab->s->entities[0].process_total[PROCESS_BUSY], 1e-9);
}

int main(void)
{
#define USERS_CASE(name_) cmocka_unit_test_setup_teardown(name_, setup_users, lab_teardown)
#define CASE(name_) cmocka_unit_test_setup_teardown(name_, setup, lab_teardown)
	const struct CMUnitTest tests[] = {
		CASE(processes_of_one_workload_add_up),
		CASE(the_longest_idle_makes_room_and_loses_nothing),
		CASE(when_all_are_at_work_a_new_one_goes_to_other),
		CASE(places_are_used_again),
		CASE(kinds_and_devices_are_told_apart),
		cmocka_unit_test(those_of_a_forgotten_device_go_with_it),
		USERS_CASE(users_leave_places_to_others),
		USERS_CASE(a_user_displaces_its_own_that_have_ended),
		USERS_CASE(one_without_a_place_gets_one_when_there_is),
		USERS_CASE(a_place_is_for_all_of_a_workload),
		USERS_CASE(one_that_returns_gets_a_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
