// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "fixture.h"
#include "view/groups.h"
#include "view/traced.h"

static struct snapshot *s;
static struct group *groups;
static uint32_t n;

static int begin(void **state)
{
	(void)state;
	s = fixture_small();
	return s ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	free(groups);
	groups = NULL;
	fixture_free(s);
	return 0;
}

static void make(enum group_by by)
{
	free(groups);
	groups = NULL;
	assert_int_equal(groups_make(s, by, &groups, &n), 0);
}

static void nobody_is_lost(void **state)
{
	(void)state;
	for (enum group_by by = GROUP_NONE + 1; by < GROUPS_BY; by++) {
		uint32_t processes = 0;

		make(by);
		for (uint32_t i = 0; i < n; i++)
			processes += groups[i].processes;
		assert_int_equal(processes, s->processes_n);
	}
}

static void a_process_on_two_gpus_is_one(void **state)
{
	(void)state;
	s->processes[1].id.pid = s->processes[0].id.pid;
	s->processes[1].entity = 1;
	s->processes[1].workload = s->processes[0].workload;
	make(GROUP_CONTAINER);
	assert_int_equal(groups[0].processes, 1);
	assert_int_equal(groups[0].gpus_n, 2);
	assert_int_equal(groups[0].gpus[0], 0);
	assert_int_equal(groups[0].gpus[1], 1);
	assert_true(groups[0].v[GROUP_MEMORY] ==
		    s->processes[0].v[PROCESS_MEMORY] + s->processes[1].v[PROCESS_MEMORY]);
}

/* A sum that lacks a part is none. */
static void what_one_lacks_has_no_sum(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < s->processes_n; i++) {
		s->processes[i].uid = 7;
		s->processes[i].p[PROCESS_MEMORY] = PRESENCE_PRESENT;
	}
	make(GROUP_USER);
	assert_int_equal(n, 1);
	assert_true(groups[0].known[GROUP_MEMORY]);
	s->processes[2].p[PROCESS_MEMORY] = PRESENCE_UNSUPPORTED;
	make(GROUP_USER);
	assert_false(groups[0].known[GROUP_MEMORY]);
}

/* Of a GPU without new data there is no load now; what a process holds and has done stays. */
static void old_figures_are_no_load(void **state)
{
	(void)state;
	make(GROUP_CONTAINER);
	assert_true(groups[0].known[GROUP_UTILIZATION] && !groups[0].stale);
	s->entities[0].stale = true;
	make(GROUP_CONTAINER);
	assert_true(groups[0].stale);
	assert_false(groups[0].known[GROUP_UTILIZATION]);
	assert_true(groups[0].known[GROUP_MEMORY]);
}

static void a_sum_of_estimates_is_one(void **state)
{
	(void)state;
	make(GROUP_CONTAINER);
	assert_false(groups[0].estimated[GROUP_BUSY]);
	s->workloads[0].p[PROCESS_BUSY] |= PRESENCE_ESTIMATED;
	make(GROUP_CONTAINER);
	assert_true(groups[0].estimated[GROUP_BUSY]);
	assert_false(groups[0].estimated[GROUP_MEMORY]);
}

static void containers_of_a_pod_are_one_pod(void **state)
{
	(void)state;
	/* Another container of the pod, on another GPU. */
	s->workloads[1] = s->workloads[0];
	memset(s->workloads[1].id, 'f', 64);
	s->allocated_n = 1;
	make(GROUP_CONTAINER);
	assert_int_equal(n, 3); /* and those that are in none */
	make(GROUP_POD);
	assert_int_equal(n, 3); /* and the pod whose processes have ended */
	assert_int_equal(groups[0].processes, 2);
	assert_string_equal(group_names(s, &groups[0], GROUP_POD).pod, "train-0");
	assert_true(groups[2].none);
	assert_string_equal(group_names(s, &groups[2], GROUP_POD).pod, "");
}

/* What those that have ended did stays their pod's, which may have none that runs now. */
static void ended_processes_count(void **state)
{
	(void)state;
	make(GROUP_POD);
	assert_int_equal(groups[0].exited, 2);
	assert_true(groups[0].v[GROUP_BUSY] == s->workloads[0].v[PROCESS_BUSY]);
	assert_int_equal(groups[1].processes, 0);
	assert_int_equal(groups[1].exited, 2);
	assert_true(groups[1].v[GROUP_BUSY] == s->workloads[3].v[PROCESS_BUSY]);
	assert_true(groups[1].known[GROUP_MEMORY] && groups[1].v[GROUP_MEMORY] == 0);
	assert_string_equal(group_names(s, &groups[1], GROUP_POD).pod, "infer-6d5f8c7b9-x2x7k");
}

/* Nothing is counted twice, and nothing of a claimed job is a workload's. */
static void claimed_jobs_are_their_processes(void **state)
{
	(void)state;
	make(GROUP_JOB);
	assert_true(groups[0].v[GROUP_BUSY] == s->workloads[1].v[PROCESS_BUSY]);
	assert_string_equal(group_names(s, &groups[0], GROUP_JOB).job_name, s->jobs[0].name);
	assert_false(group_names(s, &groups[0], GROUP_JOB).claimed);
	assert_string_equal(group_names(s, &groups[1], GROUP_JOB).job, "2022[3]");
	assert_true(group_names(s, &groups[1], GROUP_JOB).claimed);
	assert_true(groups[1].v[GROUP_BUSY] == s->processes[2].v[PROCESS_BUSY]);
	assert_null(groups[1].workload);
}

/* A process that only claims a job is in no group with the job's, nor with another user's that claims it. */
static void claimants_are_not_of_the_job(void **state)
{
	(void)state;
	strcpy(s->jobs[1].id, s->jobs[0].id);
	s->processes[0].workload = READING_NONE;
	s->processes[0].job = 1;
	s->processes[0].uid = 4001;
	s->processes[2].uid = 4002;
	make(GROUP_JOB);
	for (uint32_t i = 0; i < n; i++) {
		const struct group_names names = group_names(s, &groups[i], GROUP_JOB);

		if (strcmp(names.job, "4711") != 0)
			continue;
		assert_int_equal(groups[i].processes, 1);
		if (names.claimed) {
			assert_int_equal(names.uid, groups[i].any->uid);
			assert_true(groups[i].any->uid == 4001 || groups[i].any->uid == 4002);
			assert_null(groups[i].workload);
		} else {
			assert_int_equal(names.uid, s->workloads[1].uid);
			assert_int_equal(groups[i].any->job, 0);
			assert_true(groups[i].v[GROUP_MEMORY] == s->processes[1].v[PROCESS_MEMORY]);
		}
	}
	assert_int_equal(n, 5); /* two who claim, the job, one that was given a GPU, and the rest */
}

static void without_processes_there_are_none(void **state)
{
	(void)state;
	s->processes_n = s->allocated_n = s->workloads_n = 0;
	make(GROUP_POD);
	assert_int_equal(n, 0);
}

static void what_is_given_and_not_used_is_a_group(void **state)
{
	(void)state;
	make(GROUP_POD);
	assert_int_equal(n, 4);
	/* The one that both uses and was given is one. */
	assert_int_equal(groups[0].allocations, 1);
	assert_true(groups[0].idle_known && groups[0].idle_seconds == 300);
	assert_null(groups[2].any);
	assert_false(groups[2].none);
	assert_string_equal(group_names(s, &groups[2], GROUP_POD).pod, "notebook-\"7\"");
	assert_int_equal(groups[2].processes, 0);
	assert_true(groups[2].idle_estimated && groups[2].idle_seconds == 7200.5);
	assert_true(groups[2].known[GROUP_MEMORY] && groups[2].v[GROUP_MEMORY] == 0);
	assert_true(groups[3].none);
	make(GROUP_JOB);
	assert_int_equal(n, 4);
	assert_string_equal(group_names(s, &groups[0], GROUP_JOB).job, "4711");
	assert_string_equal(group_names(s, &groups[2], GROUP_JOB).job, "4712");
	assert_int_equal(groups[2].allocations_claimed, 1);
	assert_false(groups[2].idle_known);
	assert_int_equal(groups_left_out(s), 2);
}

/* Two devices of one pod whose ID is not known, and which has a process. */
static void names_join_where_ids_are_not_known(void **state)
{
	(void)state;
	s->allocated[0].id[0] = s->allocated[0].pod_uid[0] = '\0';
	s->allocated[1] = s->allocated[0];
	s->allocated[1].entity = 1;
	for (enum group_by by = GROUP_CONTAINER; by <= GROUP_POD; by++) {
		make(by);
		assert_int_equal(groups[0].allocations, 2);
		assert_int_equal(groups[0].processes, 1);
		assert_int_equal(groups[0].gpus_n, 2);
	}
	/* Another container of it is another container. */
	strcpy(s->allocated[1].container, "log");
	make(GROUP_POD);
	assert_int_equal(groups[0].allocations, 2);
	make(GROUP_CONTAINER);
	assert_int_equal(groups[0].allocations, 1);
}

/* What cannot be listed may be there. */
static void where_nothing_is_listed_nothing_is_none(void **state)
{
	(void)state;
	s->entities[0].id.process_list = PRESENCE_NO_PERMISSION;
	s->processes_n = 0;
	s->workloads_n = 0;
	make(GROUP_POD);
	assert_int_equal(n, 2);
	assert_false(groups[0].known[GROUP_MEMORY]);
}

/* Each process is in the group that has its memory. */
static void each_process_is_in_a_group(void **state)
{
	uint32_t of[64];

	(void)state;
	assert_true(s->processes_n <= ARRAY_SIZE(of));
	for (enum group_by by = GROUP_NONE + 1; by < GROUPS_BY; by++) {
		make(by);
		assert_int_equal(groups_of_processes(s, by, groups, n, of), 0);
		for (uint32_t k = 0; k < n; k++) {
			double memory = 0;

			for (uint32_t i = 0; i < s->processes_n; i++)
				if (of[i] == k)
					memory += s->processes[i].v[PROCESS_MEMORY];
			if (groups[k].known[GROUP_MEMORY])
				assert_true(fabs(memory - groups[k].v[GROUP_MEMORY]) < 1);
		}
		for (uint32_t i = 0; i < s->processes_n; i++)
			assert_true(of[i] < n && groups[of[i]].any);
	}
}

/* Where one of them is not traced nobody knows what all have called. */
static void calls_are_added_up(void **state)
{
	double launches = 0;

	(void)state;
	fixture_free(s);
	s = fixture_traced();
	assert_non_null(s);
	for (uint32_t i = 0; i < s->processes_n; i++) {
		const struct traced_device *traced = traced_device_of(s, &s->processes[i]);

		s->processes[i].uid = traced ? 7 : 8;
		launches += traced ? traced->v[TRACED_LAUNCHES] : 0;
	}
	make(GROUP_USER);
	assert_int_equal(n, 2);
	for (uint32_t k = 0; k < n; k++) {
		bool traced = groups[k].any->uid == 7;

		assert_int_equal(groups[k].calls_known[GROUP_LAUNCHES], traced);
		assert_true(!traced || groups[k].calls[GROUP_LAUNCHES] == launches);
	}
	assert_true(launches > 0);
	for (uint32_t i = 0; i < s->processes_n; i++)
		s->processes[i].uid = 7;
	make(GROUP_USER);
	assert_int_equal(n, 1);
	assert_false(groups[0].calls_known[GROUP_LAUNCHES]);
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_process_is_in_a_group),
		CASE(calls_are_added_up),
		CASE(nobody_is_lost),
		CASE(a_process_on_two_gpus_is_one),
		CASE(what_one_lacks_has_no_sum),
		CASE(old_figures_are_no_load),
		CASE(a_sum_of_estimates_is_one),
		CASE(containers_of_a_pod_are_one_pod),
		CASE(ended_processes_count),
		CASE(claimed_jobs_are_their_processes),
		CASE(claimants_are_not_of_the_job),
		CASE(without_processes_there_are_none),
		CASE(what_is_given_and_not_used_is_a_group),
		CASE(names_join_where_ids_are_not_known),
		CASE(where_nothing_is_listed_nothing_is_none),
	};

	return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
