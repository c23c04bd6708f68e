// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

#define SECOND NSEC_PER_SEC
/* Two sources of owners; the first decides. */
#define BETTER SOURCE_DCGM
#define WORSE SOURCE_KUBE

static struct owner owner(enum workload_kind kind, const char *id, const char *pod)
{
	struct owner o = { .workload = kind };

	snprintf(o.id, sizeof(o.id), "%s", id);
	snprintf(o.pod, sizeof(o.pod), "%s", pod);
	strcpy(o.namespace, "team");
	strcpy(o.owner_kind, "Job");
	return o;
}

/* PID 7 is in the container "box" of the pod "uid-1". */
static void step(struct lab *lab)
{
	struct reading_entity *gpu = lab_gpu(lab, 0);

	lab_exists(lab, 7, 70, WORKLOAD_CONTAINER, "box");
	strcpy(lab->proc[7].identity.pod_uid, "uid-1");
	lab_process(lab, gpu, 7);
	lab_step(lab, SECOND);
}

static void a_workload_has_the_owner_that_was_said(void **state)
{
	struct lab *lab = *state;
	struct owner rows[] = { owner(WORKLOAD_POD, "uid-2", "other"),
				owner(WORKLOAD_CONTAINER, "box", "mine"), owner(WORKLOAD_JOB, "box", "job") };

	step(lab);
	assert_null(lab_workload(lab, "box")->owner);
	assert_int_equal(model_set_owners(lab->model, WORSE, rows, ARRAY_SIZE(rows)), 0);
	step(lab);
	assert_string_equal(lab_workload(lab, "box")->owner->pod, "mine");
	assert_string_equal(lab_workload(lab, "box")->owner->namespace, "team");
	assert_int_equal(lab_workload(lab, "box")->owner->source, WORSE);
	assert_true(lab->s->sources[WORSE].in_use);
	/* It takes the place of all of the one before; but a workload outlives the files of its pod. */
	assert_int_equal(model_set_owners(lab->model, WORSE, rows, 1), 0);
	step(lab);
	assert_string_equal(lab_workload(lab, "box")->owner->pod, "mine");
	assert_int_equal(model_set_owners(lab->model, WORSE, NULL, 0), 0);
	step(lab);
	assert_string_equal(lab_workload(lab, "box")->owner->pod, "mine");
	/* Its container's name, too, though its pod is still there. */
	strcpy(rows[1].container, "main");
	assert_int_equal(model_set_owners(lab->model, WORSE, rows, 2), 0);
	rows[1] = owner(WORKLOAD_POD, "uid-1", "mine");
	assert_int_equal(model_set_owners(lab->model, WORSE, rows, 2), 0);
	step(lab);
	assert_string_equal(lab_workload(lab, "box")->owner->container, "main");
	/* Until somebody knows better. */
	rows[1] = owner(WORKLOAD_CONTAINER, "box", "renamed");
	assert_int_equal(model_set_owners(lab->model, WORSE, rows, 2), 0);
	step(lab);
	assert_string_equal(lab_workload(lab, "box")->owner->pod, "renamed");
	assert_int_equal(lab->s->sources[WORSE].dropped, 0);
}

/* Known by its pod, on two devices: kept once. */
static void an_owner_by_the_pod_is_kept(void **state)
{
	struct lab *lab = *state;
	struct owner row = owner(WORKLOAD_POD, "uid-1", "mine");

	lab_process(lab, lab_gpu(lab, 1), 7);
	step(lab);
	assert_int_equal(model_set_owners(lab->model, WORSE, &row, 1), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(model_set_owners(lab->model, WORSE, NULL, 0), 0);
		step(lab);
		assert_string_equal(lab_workload(lab, "box")->owner->pod, "mine");
	}
}

static void known_before_the_workload_or_by_its_pod(void **state)
{
	struct lab *lab = *state;
	struct owner row = owner(WORKLOAD_POD, "uid-1", "mine");

	assert_int_equal(model_set_owners(lab->model, WORSE, &row, 1), 0);
	step(lab);
	assert_string_equal(lab_workload(lab, "box")->owner->pod, "mine");
}

static void of_two_sources_the_better_one_counts(void **state)
{
	struct lab *lab = *state;
	struct owner worse = owner(WORKLOAD_CONTAINER, "box", "worse"),
		     better = owner(WORKLOAD_CONTAINER, "box", "better");

	assert_int_equal(model_set_owners(lab->model, BETTER, &better, 1), 0);
	assert_int_equal(model_set_owners(lab->model, WORSE, &worse, 1), 0);
	step(lab);
	assert_string_equal(lab_workload(lab, "box")->owner->pod, "better");
	assert_int_equal(model_set_owners(lab->model, BETTER, NULL, 0), 0);
	step(lab);
	assert_string_equal(lab_workload(lab, "box")->owner->pod, "worse");
}

/* Names of one source, the run of another, or of the pod's row. */
static void a_run_is_found_in_any_row(void **state)
{
	struct lab *lab = *state;
	struct owner names = owner(WORKLOAD_CONTAINER, "box", "mine"), runs = names,
		     pod = owner(WORKLOAD_POD, "uid-1", "mine");
	const struct owner *found;

	strcpy(runs.run, "r-17");
	strcpy(pod.group, "sweep");
	assert_int_equal(model_set_owners(lab->model, BETTER, &names, 1), 0);
	assert_int_equal(model_set_owners(lab->model, WORSE, &pod, 1), 0);
	step(lab);
	found = owners_run(lab->s->owners, WORKLOAD_CONTAINER, "box", "uid-1");
	assert_string_equal(found->group, "sweep");
	assert_null(owners_run(lab->s->owners, WORKLOAD_CONTAINER, "box", ""));
	assert_int_equal(model_set_owners(lab->model, WORSE, &runs, 1), 0);
	step(lab);
	found = owners_run(lab->s->owners, WORKLOAD_CONTAINER, "box", "uid-1");
	assert_string_equal(found->run, "r-17");
	assert_null(owners_run(lab->s->owners, WORKLOAD_CONTAINER, "bow", ""));
	assert_null(owners_run(NULL, WORKLOAD_CONTAINER, "box", "uid-1"));
}

static void strings_end_and_are_utf_8(void **state)
{
	struct lab *lab = *state;
	struct owner row = owner(WORKLOAD_CONTAINER, "box", "mine");

	memset(row.container, 0xff, sizeof(row.container));
	strcpy(row.owner_name, "a\xc3");
	assert_int_equal(model_set_owners(lab->model, WORSE, &row, 1), 0);
	step(lab);
	assert_int_equal(strlen(lab_workload(lab, "box")->owner->container), sizeof(row.container) - 1);
	assert_int_equal(lab_workload(lab, "box")->owner->container[0], '?');
	assert_string_equal(lab_workload(lab, "box")->owner->owner_name, "a?");
}

static void what_does_not_fit_is_counted(void **state)
{
	struct lab *lab = *state;
	struct owner *rows = calloc(OWNERS_MAX + 5, sizeof(*rows));
	char id[32];

	assert_non_null(rows);
	for (unsigned i = 0; i < OWNERS_MAX + 5; i++) {
		snprintf(id, sizeof(id), "id-%u", i);
		rows[i] = owner(WORKLOAD_POD, id, "p");
	}
	rows[1] = rows[0]; /* the same twice */
	rows[2].id[0] = '\0'; /* of nothing */
	rows[3].workload = WORKLOAD_KINDS;
	assert_int_equal(model_set_owners(lab->model, WORSE, rows, OWNERS_MAX + 5), 0);
	step(lab);
	assert_int_equal(lab->s->sources[WORSE].dropped, 8);
	free(rows);
}

static void a_snapshot_keeps_what_it_refers_to(void **state)
{
	struct lab *lab = *state;
	struct owner row = owner(WORKLOAD_CONTAINER, "box", "mine");
	struct snapshot *old;

	assert_int_equal(model_set_owners(lab->model, WORSE, &row, 1), 0);
	step(lab);
	old = snapshot_ref(lab->s);
	assert_int_equal(model_set_owners(lab->model, WORSE, NULL, 0), 0);
	for (unsigned i = 0; i < 10; i++)
		step(lab);
	assert_string_equal(old->workloads[0].owner->pod, "mine");
	snapshot_unref(old);
}

/* A user may call a container like one of root's: root's files do not name it, and no name is waited for. */
static void a_users_container_has_no_owner(void **state)
{
	struct lab *lab = *state;
	struct owner rows[] = { owner(WORKLOAD_CONTAINER, "box", "mine"),
				owner(WORKLOAD_POD, "uid-1", "mine") };

	assert_int_equal(model_set_owners(lab->model, WORSE, rows, ARRAY_SIZE(rows)), 0);
	lab_exists(lab, 7, 70, WORKLOAD_CONTAINER, "user@1000.service/box");
	lab->proc[7].identity.user = 1000;
	lab_process(lab, lab_gpu(lab, 0), 7);
	lab_step(lab, SECOND);
	assert_null(lab_workload(lab, "user@1000.service/box")->owner);
	assert_int_equal(lab_workload(lab, "user@1000.service/box")->user, 1000);
	assert_false(model_wants_owners(lab->model));
}

int main(void)
{
#define CASE(name_) cmocka_unit_test_setup_teardown(name_, lab_setup, lab_teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_workload_has_the_owner_that_was_said),
		CASE(an_owner_by_the_pod_is_kept),
		CASE(known_before_the_workload_or_by_its_pod),
		CASE(of_two_sources_the_better_one_counts),
		CASE(a_run_is_found_in_any_row),
		CASE(strings_end_and_are_utf_8),
		CASE(what_does_not_fit_is_counted),
		CASE(a_snapshot_keeps_what_it_refers_to),
		CASE(a_users_container_has_no_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
