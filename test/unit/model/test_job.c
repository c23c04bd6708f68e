// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "lab.h"

#define SECOND NSEC_PER_SEC

static void list(struct lab *lab, unsigned gpu, uint32_t pid)
{
	while (lab->reading->entities_n <= gpu)
		lab_gpu(lab, lab->reading->entities_n);
	lab_set_process(lab_process(lab, &lab->reading->entities[gpu], pid), PROCESS_BUSY, 0.25);
}

static void step(struct lab *lab, uint32_t pid)
{
	list(lab, 0, pid);
	lab_step(lab, SECOND);
}

/* Exists from now on, in this job's cgroup. */
static void in_job(struct lab *lab, uint32_t pid, enum job_manager manager, const char *id, const char *step)
{
	struct process_identity *identity = &lab->proc[pid].identity;

	lab_exists(lab, pid, pid, WORKLOAD_JOB, id);
	identity->job_manager = manager;
	snprintf(identity->job_id, sizeof(identity->job_id), "%s", id);
	snprintf(identity->job_step, sizeof(identity->job_step), "%s", step);
}

static const struct job *job_of(const struct lab *lab, const struct process *p)
{
	assert_non_null(p);
	return p->job == JOB_NONE ? NULL : &lab->s->jobs[p->job];
}

static const struct job_claim slurm = {
	.job = { .manager = JOB_MANAGER_SLURM,
		 .id = "42",
		 .step = "1",
		 .name = "train",
		 .user = "alice",
		 .run = "r1" },
	.rank = { 3, 1, 8 },
};

static void a_cgroup_says_the_job_and_the_environment_its_name(void **state)
{
	struct lab *lab = *state;
	struct model_unread unread;
	struct process_id id;
	const struct job *job;
	uint32_t at = 0;

	in_job(lab, 7, JOB_MANAGER_SLURM, "42", "0");
	step(lab, 7);
	job = job_of(lab, lab_find(lab, 7));
	assert_string_equal(job->id, "42");
	assert_string_equal(job->step, "0");
	assert_string_equal(job->name, "");
	assert_false(job->claimed);
	assert_true(model_next_unread(lab->model, &at, &unread));
	id = unread.id;
	assert_int_equal(id.pid, 7);
	assert_int_equal(unread.manager, JOB_MANAGER_SLURM);
	model_mark_read(lab->model, id, true);
	assert_false(model_next_unread(lab->model, &at, &unread));
	model_mark_read(lab->model, id, false);
	assert_true(model_next_unread(lab->model, &at, &unread));
	model_set_job(lab->model, id, &slurm);
	step(lab, 7);
	job = job_of(lab, lab_find(lab, 7));
	assert_string_equal(job->name, "train");
	assert_string_equal(job->user, "alice");
	assert_string_equal(job->run, "r1");
	assert_string_equal(job->step, "0"); /* the cgroup's */
	assert_false(job->claimed);
	assert_int_equal(lab_find(lab, 7)->rank.rank, 3);
	assert_int_equal(lab_find(lab, 7)->rank.world, 8);
	assert_string_equal(lab->s->jobs[lab_workload(lab, "42")->job].name, "train");
	/* It has ended: what it was stays known. */
	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	assert_string_equal(job_of(lab, lab_exited(lab, 7))->name, "train");
	assert_string_equal(lab->s->jobs[lab_workload(lab, "42")->job].name, "train");
}

static void another_jobs_environment_is_not_believed(void **state)
{
	struct lab *lab = *state;
	const struct job *job;

	in_job(lab, 7, JOB_MANAGER_SLURM, "17", "0");
	step(lab, 7);
	model_set_job(lab->model, lab->proc[7].identity.id, &slurm);
	step(lab, 7);
	job = job_of(lab, lab_find(lab, 7));
	assert_string_equal(job->id, "17");
	assert_string_equal(job->name, "");
	assert_string_equal(job->user, "");
	assert_string_equal(job->run, "r1"); /* which only the environment tells */
	assert_int_equal(lab_workload(lab, "17")->job, JOB_NONE);
}

static void without_a_cgroup_a_job_is_claimed(void **state)
{
	struct lab *lab = *state;

	lab_exists(lab, 7, 70, WORKLOAD_UNIT, "session-3.scope");
	step(lab, 7);
	assert_null(job_of(lab, lab_find(lab, 7)));
	model_set_job(lab->model, lab->proc[7].identity.id, &slurm);
	step(lab, 7);
	assert_string_equal(job_of(lab, lab_find(lab, 7))->id, "42");
	assert_true(job_of(lab, lab_find(lab, 7))->claimed);
	assert_int_equal(lab_workload(lab, "session-3.scope")->kind, WORKLOAD_UNIT);
}

static void a_slot_of_htcondor_gets_its_job(void **state)
{
	static const struct job_claim condor = {
		.job = { .manager = JOB_MANAGER_HTCONDOR, .id = "7.0", .user = "bob" },
	};
	struct lab *lab = *state;

	in_job(lab, 7, JOB_MANAGER_HTCONDOR, "slot1_2@n", "");
	step(lab, 7);
	assert_string_equal(job_of(lab, lab_find(lab, 7))->id, "slot1_2@n");
	model_set_job(lab->model, lab->proc[7].identity.id, &condor);
	step(lab, 7);
	assert_string_equal(job_of(lab, lab_find(lab, 7))->id, "7.0");
	assert_true(job_of(lab, lab_find(lab, 7))->claimed);
	/* The slot's next job is another one: the workload is not named after this. */
	assert_int_equal(lab_workload(lab, "slot1_2@n")->job, JOB_NONE);
}

static void a_process_keeps_its_first_workload(void **state)
{
	struct lab *lab = *state;

	lab_exists(lab, 7, 70, WORKLOAD_CONTAINER, "first");
	step(lab, 7);
	/* Its cgroup is another one when a second device lists it, and after it has used none for a while. */
	lab_exists(lab, 7, 70, WORKLOAD_CONTAINER, "second");
	list(lab, 0, 7);
	list(lab, 1, 7);
	lab_step(lab, SECOND);
	assert_null(lab_workload(lab, "second"));
	lab_gpu(lab, 0);
	lab_gpu(lab, 1);
	lab_step(lab, SECOND);
	assert_non_null(lab_exited(lab, 7));
	step(lab, 7);
	assert_null(lab_workload(lab, "second"));
	assert_int_equal(lab_find(lab, 7)->workload, lab_workload(lab, "first") - lab->s->workloads);
	assert_int_equal(lab_workload(lab, "first")->live, 1);
}

/* The owner of its first process: that is no claim. A slot of HTCondor has one user's job after another's. */
static void a_job_is_its_first_process_owners(void **state)
{
	struct lab *lab = *state;

	in_job(lab, 7, JOB_MANAGER_SLURM, "42", "0");
	lab->proc[7].identity.uid = 1007;
	in_job(lab, 8, JOB_MANAGER_SLURM, "42", "0");
	lab->proc[8].identity.uid = 0;
	in_job(lab, 9, JOB_MANAGER_HTCONDOR, "slot1@n", "");
	lab->proc[9].identity.uid = 1009;
	step(lab, 7);
	assert_int_equal(lab_workload(lab, "42")->uid, 1007);
	list(lab, 0, 7);
	list(lab, 0, 8);
	list(lab, 0, 9);
	lab_step(lab, SECOND);
	assert_int_equal(lab_workload(lab, "42")->live, 2);
	assert_int_equal(lab_workload(lab, "42")->uid, 1007);
	assert_int_equal(lab_workload(lab, "slot1@n")->uid, UINT32_MAX);
}

static void another_process_of_the_same_pid_is_another(void **state)
{
	struct lab *lab = *state;
	struct process_id before;

	in_job(lab, 7, JOB_MANAGER_SLURM, "42", "0");
	step(lab, 7);
	before = lab->proc[7].identity.id;
	model_set_job(lab->model, before, &slurm);
	lab_exists(lab, 7, 99, WORKLOAD_CONTAINER, "other");
	lab_wait(lab, 20 * SECOND);
	step(lab, 7);
	assert_int_equal(lab_find(lab, 7)->id.start_ticks, 99);
	assert_null(job_of(lab, lab_find(lab, 7)));
	assert_int_equal(lab_find(lab, 7)->workload, lab_workload(lab, "other") - lab->s->workloads);
	/* An answer about the first one comes too late. */
	model_set_job(lab->model, before, &slurm);
	step(lab, 7);
	assert_null(job_of(lab, lab_find(lab, 7)));
}

static void a_process_is_asked_about_once_on_all_devices(void **state)
{
	struct lab *lab = *state;
	struct model_unread unread;
	unsigned asked = 0;
	uint32_t at = 0;

	lab_exists(lab, 7, 70, WORKLOAD_NONE, "");
	list(lab, 0, 7);
	list(lab, 1, 7);
	lab_step(lab, SECOND);
	while (model_next_unread(lab->model, &at, &unread) && asked < 5) {
		model_mark_read(lab->model, unread.id, true);
		asked++;
	}
	assert_int_equal(asked, 1);
	model_set_job(lab->model, unread.id, &slurm);
	list(lab, 0, 7);
	list(lab, 1, 7);
	list(lab, 2, 7);
	lab_step(lab, SECOND);
	assert_false(model_next_unread(lab->model, &at, &unread));
	for (uint32_t i = 0; i < lab->s->processes_n; i++)
		assert_string_equal(job_of(lab, &lab->s->processes[i])->name, "train");
	assert_int_equal(lab->s->processes_n, 3);
}

enum { MANY = 300 };

static void jobs_are_bounded_and_their_places_used_again(void **state)
{
	struct lab *lab =
		lab_new(&(struct model_limits){ .processes = 16, .series = 4, .exited = 4, .workloads = 8 });

	(void)state;
	for (uint32_t pid = 1; pid < MANY; pid++) {
		char id[16];

		snprintf(id, sizeof(id), "%u", pid);
		in_job(lab, pid, JOB_MANAGER_SLURM, id, "0");
		step(lab, pid);
		assert_string_equal(job_of(lab, lab_find(lab, pid))->id, id);
		assert_true(lab->s->jobs_n <= 8);
	}
	lab_free(lab);
}

/* A user's processes that each tell of another run, and then jobs of cgroups. */
static void what_processes_say_leaves_room_for_cgroups(void **state)
{
	struct lab *lab =
		lab_new(&(struct model_limits){ .processes = 64, .series = 4, .exited = 4, .workloads = 16 });
	struct model_unread unread;
	uint32_t at = 0;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		for (uint32_t pid = 1; pid <= 20; pid++) {
			lab_exists(lab, pid, pid, WORKLOAD_NONE, "");
			list(lab, 0, pid);
		}
		if (i == 0)
			lab_step(lab, SECOND);
		while (i == 0 && model_next_unread(lab->model, &at, &unread)) {
			struct job_claim claim = { .job.manager = JOB_MANAGER_SLURM };

			snprintf(claim.job.id, sizeof(claim.job.id), "9%u", (unsigned)unread.id.pid);
			model_set_job(lab->model, unread.id, &claim);
		}
	}
	for (uint32_t pid = 30; pid < 38; pid++) {
		char id[16];

		snprintf(id, sizeof(id), "%u", (unsigned)pid);
		in_job(lab, pid, JOB_MANAGER_SLURM, id, "0");
		list(lab, 0, pid);
	}
	lab_step(lab, SECOND);
	for (uint32_t pid = 30; pid < 38; pid++)
		assert_int_equal(atoi(job_of(lab, lab_find(lab, pid))->id), pid);
	/* One more name finds no place: what its cgroup says stays. */
	model_set_job(lab->model, lab_find(lab, 30)->id,
		      &(struct job_claim){ .job = { .manager = JOB_MANAGER_SLURM, .id = "30", .name = "x" },
					   .rank = { 3, 1, 8 } });
	list(lab, 0, 30);
	lab_step(lab, SECOND);
	assert_string_equal(job_of(lab, lab_find(lab, 30))->id, "30");
	assert_false(job_of(lab, lab_find(lab, 30))->claimed);
	assert_int_equal(lab_find(lab, 30)->rank.world, 8);
	lab_free(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_cgroup_says_the_job_and_the_environment_its_name, lab_setup,
						lab_teardown),
		cmocka_unit_test_setup_teardown(another_jobs_environment_is_not_believed, lab_setup,
						lab_teardown),
		cmocka_unit_test_setup_teardown(without_a_cgroup_a_job_is_claimed, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(a_slot_of_htcondor_gets_its_job, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(a_job_is_its_first_process_owners, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(a_process_keeps_its_first_workload, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(another_process_of_the_same_pid_is_another, lab_setup,
						lab_teardown),
		cmocka_unit_test_setup_teardown(a_process_is_asked_about_once_on_all_devices, lab_setup,
						lab_teardown),
		cmocka_unit_test(jobs_are_bounded_and_their_places_used_again),
		cmocka_unit_test(what_processes_say_leaves_room_for_cgroups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
