// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

#define SECOND NSEC_PER_SEC

static struct device_ref device_of(const char *text)
{
	struct device_ref ref = { 0 };

	assert_int_equal(device_ref_parse(text, &ref, NULL), 0);
	return ref;
}

static struct allocation of_pod(const char *pod, const char *container, const char *device)
{
	struct allocation a = { .workload = WORKLOAD_NONE, .device = device_of(device) };

	strcpy(a.namespace, "team");
	snprintf(a.pod, sizeof(a.pod), "%s", pod);
	snprintf(a.container, sizeof(a.container), "%s", container);
	strcpy(a.resource, "nvidia.com/gpu");
	return a;
}

static struct allocation of_id(enum workload_kind kind, const char *id, const char *device)
{
	struct allocation a = { .workload = kind, .device = device_of(device) };

	snprintf(a.id, sizeof(a.id), "%s", id);
	strcpy(a.resource, "NVIDIA_VISIBLE_DEVICES");
	return a;
}

static struct owner owner_of(enum workload_kind kind, const char *id, const char *pod, const char *container)
{
	struct owner o = { .workload = kind };

	snprintf(o.id, sizeof(o.id), "%s", id);
	strcpy(o.namespace, "team");
	snprintf(o.pod, sizeof(o.pod), "%s", pod);
	snprintf(o.container, sizeof(o.container), "%s", container);
	return o;
}

static void set(struct lab *lab, enum source_id source, const struct allocation *rows, uint32_t n)
{
	model_set_source_period(lab->model, source, 60 * SECOND);
	assert_int_equal(model_set_allocations(lab->model, source, rows, n), 0);
}
#define SET(lab_, source_, ...)                                            \
	set((lab_), (source_), (const struct allocation[]){ __VA_ARGS__ }, \
	    sizeof((const struct allocation[]){ __VA_ARGS__ }) / sizeof(struct allocation))

/* A reading with two GPUs, and as many seconds as given later. */
static void step(struct lab *lab, double seconds)
{
	lab_gpu(lab, 0);
	lab_gpu(lab, 1);
	lab_step(lab, (int64_t)(seconds * SECOND));
}

/* The same; PID 7, which is in the container "box", works for so many seconds on GPU 0. */
static void step_busy(struct lab *lab, double busy)
{
	struct reading_entity *gpu = lab_gpu(lab, 0);
	struct reading_process *p = lab_process(lab, gpu, 7);

	lab_gpu(lab, 1);
	lab_exists(lab, 7, 70, WORKLOAD_CONTAINER, "box");
	if (busy >= 0) {
		lab_set_process(p, PROCESS_BUSY, busy);
		lab_set_process(p, PROCESS_UTILIZATION, busy);
	} else {
		p->p[PROCESS_BUSY] = p->p[PROCESS_UTILIZATION] = PRESENCE_UNSUPPORTED;
	}
	lab_step(lab, SECOND);
}

/* The one of this pod, or with this ID, on this GPU. */
static const struct allocated *find(const struct lab *lab, const char *name, unsigned gpu)
{
	for (uint32_t i = 0; i < lab->s->allocated_n; i++) {
		const struct allocated *a = &lab->s->allocated[i];

		if ((STRV_EQ(a->pod, name) || STRV_EQ(a->id, name)) &&
		    lab->s->entities[a->entity].id.index == gpu)
			return a;
	}
	return NULL;
}

static void rows_that_tell_nothing_are_counted(void **state)
{
	struct lab *lab = *state;
	const struct allocation rows[] = { of_pod("a", "main", "GPU-0000"), of_pod("b", "main", "none"),
					   of_pod("", "main", "0") };

	set(lab, SOURCE_KUBELET, rows, ARRAY_SIZE(rows));
	step(lab, 1);
	assert_int_equal(lab->s->sources[SOURCE_KUBELET].dropped, 2);
	assert_true(lab->s->sources[SOURCE_KUBELET].in_use);
	assert_int_equal(lab->s->allocated_n, 1);
	/* The same once more tells nothing new. */
	set(lab, SOURCE_KUBELET, rows, ARRAY_SIZE(rows));
	step(lab, 1);
	assert_int_equal(lab->s->sources[SOURCE_KUBELET].dropped, 2);
}

static void there_is_a_bound(void **state)
{
	struct lab *lab = *state;
	struct allocation *rows = calloc(ALLOCATIONS_MAX + 5, sizeof(*rows));

	assert_non_null(rows);
	for (unsigned i = 0; i < ALLOCATIONS_MAX + 5; i++)
		rows[i] = of_pod("a", "main", "0");
	set(lab, SOURCE_KUBELET, rows, ALLOCATIONS_MAX + 5);
	step(lab, 1);
	assert_int_equal(lab->s->sources[SOURCE_KUBELET].dropped, 5);
	assert_int_equal(lab->s->allocated_n, 1);
	free(rows);
}

static void devices_are_found_by_every_name(void **state)
{
	static const struct {
		const char *text;
		int gpu; /* -1: none, -2: both */
		uint32_t gi; /* of GPU 1 */
	} rows[] = {
		{ "GPU-0001", 1, UINT32_MAX },
		{ "GPU-", -1, 0 },
		{ "GPU-000", -1, 0 },
		{ "GPU-0009", -1, 0 },
		{ "0", 0, UINT32_MAX },
		{ "1", 1, UINT32_MAX },
		{ "2", -1, 0 },
		{ "nvidia4", 1, UINT32_MAX },
		{ "nvidia0", -1, 0 },
		{ "all", -2, UINT32_MAX },
		{ "1:0", 1, 9 },
		{ "1:1", 1, 7 },
		{ "1:2", -1, 0 },
		{ "nvidia4/gi7", 1, 7 },
		{ "MIG-9-0", 1, 9 },
		{ "MIG-GPU-0001/7/0", 1, 7 },
		{ "MIG-GPU-0001/7/1", -1, 0 },
	};
	struct lab *lab = *state;

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct reading_entity *gpu;
		struct allocation row = of_id(WORKLOAD_CONTAINER, "box", "0");

		if (device_ref_parse(rows[i].text, &row.device, NULL) < 0)
			continue;
		SET(lab, SOURCE_FILES, row);
		lab_gpu(lab, 0);
		gpu = lab_gpu(lab, 1);
		gpu->minor = 4;
		lab_mig(lab, gpu, 7, 0)->mig_number = 2;
		lab_mig(lab, gpu, 9, 0)->mig_number = 1;
		lab_step(lab, SECOND);
		if (lab->s->allocated_n != (rows[i].gpu == -2 ? 2 : rows[i].gpu >= 0))
			fail_msg("%s: %u devices", rows[i].text, lab->s->allocated_n);
		assert_int_equal(lab->s->agent[AGENT_ALLOCATIONS_UNRESOLVED], rows[i].gpu == -1);
		if (rows[i].gpu >= 0) {
			const struct reading_entity *id = &lab->s->entities[lab->s->allocated[0].entity].id;

			if ((int)id->index != rows[i].gpu || id->gi != rows[i].gi)
				fail_msg("%s: GPU %u, instance %u", rows[i].text, id->index, id->gi);
		}
	}
}

/* A device that is gone has no part in what the beginning of a UUID means. */
static void devices_that_are_gone_make_no_name_ambiguous(void **state)
{
	struct lab *lab = *state;

	SET(lab, SOURCE_KUBELET, of_pod("a", "main", "GPU-000"));
	step(lab, 1);
	assert_int_equal(lab->s->allocated_n, 0);
	assert_int_equal(lab->s->agent[AGENT_ALLOCATIONS_UNRESOLVED], 1);
	for (unsigned i = 0; i < 2; i++) {
		lab_gpu(lab, 1);
		lab_step(lab, SECOND);
	}
	assert_int_equal(lab->s->allocated_n, 1);
	assert_non_null(find(lab, "a", 1));
	/* All of them are. */
	lab_step(lab, SECOND);
	lab_step(lab, SECOND);
	assert_int_equal(lab->s->allocated_n, 0);
}

/* Neither the runtime's file nor kubelet tells it; a process's cgroup does. */
static void the_pod_is_that_of_the_workload(void **state)
{
	struct lab *lab = *state;
	const struct owner owner = owner_of(WORKLOAD_CONTAINER, "box", "train", "main");

	SET(lab, SOURCE_FILES, of_id(WORKLOAD_CONTAINER, "box", "0"));
	step(lab, 1);
	assert_string_equal(find(lab, "box", 0)->pod_uid, "");
	lab_exists(lab, 7, 70, WORKLOAD_CONTAINER, "box");
	strcpy(lab->proc[7].identity.pod_uid, "uid-1");
	lab_process(lab, lab_gpu(lab, 0), 7);
	lab_step(lab, SECOND);
	assert_string_equal(find(lab, "box", 0)->pod_uid, "uid-1");
	/* By names alone: the container's ID, too. */
	set(lab, SOURCE_FILES, NULL, 0);
	SET(lab, SOURCE_KUBELET, of_pod("train", "main", "0"), of_pod("serve", "main", "0"));
	assert_int_equal(model_set_owners(lab->model, SOURCE_FILES, &owner, 1), 0);
	lab_process(lab, lab_gpu(lab, 0), 7);
	lab_step(lab, SECOND);
	assert_string_equal(find(lab, "train", 0)->id, "box");
	assert_string_equal(find(lab, "train", 0)->pod_uid, "uid-1");
	assert_string_equal(find(lab, "serve", 0)->pod_uid, "");
}

static void two_sources_of_one_container_are_one(void **state)
{
	struct lab *lab = *state;
	const struct owner owners[] = { owner_of(WORKLOAD_CONTAINER, "box", "train", "main"),
					owner_of(WORKLOAD_POD, "uid-1", "train", "") };
	const struct allocated *a;

	/* Kubelet has no ID, the runtime no names; its image asks for all. */
	SET(lab, SOURCE_KUBELET, of_pod("train", "main", "0"));
	SET(lab, SOURCE_FILES, of_id(WORKLOAD_CONTAINER, "box", "all"));
	step(lab, 1);
	assert_int_equal(lab->s->allocated_n, 3);
	assert_int_equal(model_set_owners(lab->model, SOURCE_FILES, owners, ARRAY_SIZE(owners)), 0);
	step(lab, 1);
	assert_int_equal(lab->s->allocated_n, 1);
	a = find(lab, "train", 0);
	assert_non_null(a);
	assert_int_equal(a->source, SOURCE_KUBELET);
	assert_string_equal(a->resource, "nvidia.com/gpu");
	assert_string_equal(a->id, "box");
	assert_string_equal(a->pod_uid, "uid-1");
	assert_string_equal(a->container, "main");
	assert_near(a->seconds, 1, 1e-9);
	/* What is left of it when kubelet forgets it. */
	set(lab, SOURCE_KUBELET, NULL, 0);
	step(lab, 1);
	assert_int_equal(lab->s->allocated_n, 2);
	assert_int_equal(find(lab, "train", 0)->source, SOURCE_FILES);
	assert_near(find(lab, "train", 0)->seconds, 2, 1e-9);
	assert_near(find(lab, "train", 1)->seconds, 0, 1e-9);
}

/* What a process claims counts where nobody else says what the job was given. */
static void a_claim_is_no_more_than_one(void **state)
{
	struct allocation claim = of_id(WORKLOAD_JOB, "42", "1");
	struct lab *lab = *state;

	claim.claimed = true;
	set(lab, SOURCE_JOBS, &claim, 1);
	step(lab, 1);
	assert_true(find(lab, "42", 1)->claimed);
	/* Of a better source, or of one that counts less otherwise. */
	set(lab, SOURCE_KUBELET, &claim, 1);
	SET(lab, SOURCE_JOBS, of_id(WORKLOAD_JOB, "42", "0"));
	step(lab, 1);
	assert_null(find(lab, "42", 1));
	assert_false(find(lab, "42", 0)->claimed);
}

static void logical_slots_are_one_allocation(void **state)
{
	struct lab *lab = *state;
	struct allocation one = of_pod("a", "main", "0"), other = of_pod("b", "main", "0");

	one.slots = other.slots = 1;
	SET(lab, SOURCE_KUBELET, one, other, one);
	step(lab, 1);
	assert_int_equal(lab->s->allocated_n, 2);
	assert_int_equal(find(lab, "a", 0)->slots, 2);
	assert_int_equal(find(lab, "a", 0)->count, 1);
	assert_int_equal(find(lab, "b", 0)->slots, 1);
}

static void idle_is_time_without_work(void **state)
{
	struct lab *lab = *state;

	step(lab, 1);
	SET(lab, SOURCE_FILES, of_id(WORKLOAD_CONTAINER, "box", "0"), of_id(WORKLOAD_JOB, "12", "0"));
	step(lab, 1);
	step(lab, 1);
	/* Neither has a process. */
	assert_near(find(lab, "box", 0)->seconds, 1, 1e-9);
	assert_near(find(lab, "box", 0)->idle_seconds, 1, 1e-9);
	step_busy(lab, 0.5);
	step_busy(lab, 0.01);
	assert_near(find(lab, "box", 0)->seconds, 3, 1e-9);
	assert_near(find(lab, "box", 0)->idle_seconds, 1, 1e-9);
	assert_int_equal(find(lab, "box", 0)->processes, 1);
	assert_near(find(lab, "12", 0)->idle_seconds, 3, 1e-9);
	assert_int_equal(find(lab, "12", 0)->processes, 0);
	step_busy(lab, 0);
	assert_near(find(lab, "box", 0)->idle_seconds, 2, 1e-9);
	assert_int_equal(find(lab, "box", 0)->idle_p, PRESENCE_PRESENT);
	assert_int_equal(lab_workload(lab, "box")->allocated, find(lab, "box", 0) - lab->s->allocated + 1);
	/* It does not end with its process. */
	step(lab, 1);
	assert_near(find(lab, "box", 0)->idle_seconds, 3, 1e-9);
	assert_near(find(lab, "box", 0)->seconds, 5, 1e-9);
}

static void what_the_driver_does_not_tell_is_not_idle(void **state)
{
	struct lab *lab = *state;

	step(lab, 1);
	SET(lab, SOURCE_FILES, of_id(WORKLOAD_CONTAINER, "box", "0"), of_id(WORKLOAD_JOB, "12", "0"));
	step(lab, 1);
	step_busy(lab, -1);
	step_busy(lab, -1);
	assert_int_equal(find(lab, "box", 0)->idle_p, PRESENCE_ABSENT);
	/* The job has no process, and this one is not the job's. */
	assert_near(find(lab, "12", 0)->idle_seconds, 2, 1e-9);
	assert_int_equal(find(lab, "12", 0)->idle_p, PRESENCE_PRESENT);
	step(lab, 1);
	assert_near(find(lab, "box", 0)->idle_seconds, 1, 1e-9);
	assert_int_equal(find(lab, "box", 0)->idle_p, PRESENCE_PRESENT | PRESENCE_ESTIMATED);
}

/* One that /proc does not know may be anybody's. */
static void an_unknown_process_may_be_of_any(void **state)
{
	struct lab *lab = *state;

	step(lab, 1);
	SET(lab, SOURCE_FILES, of_id(WORKLOAD_CONTAINER, "box", "0"), of_id(WORKLOAD_CONTAINER, "bay", "1"));
	step(lab, 1);
	for (unsigned i = 0; i < 2; i++) {
		struct reading_entity *gpu = lab_gpu(lab, 0);

		lab_set_process(lab_process(lab, gpu, 9), PROCESS_BUSY, 0.5);
		lab_gpu(lab, 1);
		lab_step(lab, SECOND);
	}
	assert_int_equal(find(lab, "box", 0)->idle_p, PRESENCE_ABSENT);
	assert_near(find(lab, "bay", 1)->idle_seconds, 2, 1e-9);
	/* One of the machine itself is nobody's. */
	lab_exists(lab, 11, 70, WORKLOAD_NONE, "");
	lab_set_process(lab_process(lab, lab_gpu(lab, 0), 11), PROCESS_BUSY, 0.5);
	lab_gpu(lab, 1);
	lab_step(lab, SECOND);
	assert_near(find(lab, "box", 0)->idle_seconds, 1, 1e-9);
}

static void sums_outlive_tables_sources_and_absence(void **state)
{
	struct lab *lab = *state;
	struct allocation row = of_pod("a", "main", "GPU-0000");

	step(lab, 1);
	SET(lab, SOURCE_KUBELET, row);
	step(lab, 1);
	step(lab, 1);
	/* Another resource, more slots: another row of the same. */
	row.slots = 3;
	SET(lab, SOURCE_KUBELET, row, of_pod("b", "main", "1"));
	step(lab, 1);
	assert_near(find(lab, "a", 0)->seconds, 2, 1e-9);
	assert_int_equal(find(lab, "a", 0)->slots, 3);
	/* The device is away: given it still is, idle nobody knows. */
	SET(lab, SOURCE_KUBELET, row, of_pod("b", "main", "1"));
	for (unsigned i = 0; i < 4; i++) {
		lab_gpu(lab, 1);
		lab_step(lab, SECOND);
	}
	assert_near(find(lab, "a", 0)->seconds, 6, 1e-9);
	assert_near(find(lab, "a", 0)->idle_seconds, 2, 1e-9);
	/* The source is away: the times stand still until it is back. */
	model_set_source(lab->model, SOURCE_KUBELET, READING_FAILED, "gone");
	step(lab, 1);
	step(lab, 1);
	assert_true(find(lab, "a", 0)->stale);
	assert_near(find(lab, "a", 0)->seconds, 6, 1e-9);
	SET(lab, SOURCE_KUBELET, row, of_pod("b", "main", "1"));
	step(lab, 1);
	assert_false(find(lab, "a", 0)->stale);
	assert_near(find(lab, "a", 0)->seconds, 9, 1e-9);
	assert_near(find(lab, "a", 0)->idle_seconds, 4, 1e-9);
	/* What has ended is gone, and begins again at 0. */
	SET(lab, SOURCE_KUBELET, of_pod("b", "main", "1"));
	step(lab, 1);
	assert_null(find(lab, "a", 0));
	SET(lab, SOURCE_KUBELET, row);
	step(lab, 1);
	step(lab, 1);
	assert_near(find(lab, "a", 0)->seconds, 1, 1e-9);
}

/* A container that was started again has another ID, and is the one that was given the device. */
static void use_is_joined_by_names(void **state)
{
	struct lab *lab = *state;
	const struct owner owners[] = { owner_of(WORKLOAD_CONTAINER, "before", "train", "main"),
					owner_of(WORKLOAD_CONTAINER, "box", "train", "main"),
					owner_of(WORKLOAD_CONTAINER, "sidecar", "train", "log") };

	SET(lab, SOURCE_KUBELET, of_pod("train", "main", "0"));
	step(lab, 1);
	assert_int_equal(model_set_owners(lab->model, SOURCE_FILES, owners, ARRAY_SIZE(owners)), 0);
	step(lab, 1);
	/* Which of the two it is is not known until one has a process. */
	assert_string_equal(find(lab, "train", 0)->id, "");
	step_busy(lab, 0.3);
	assert_int_equal(lab_workload(lab, "box")->allocated, 1);
	assert_string_equal(find(lab, "train", 0)->id, "box");
	assert_near(find(lab, "train", 0)->idle_seconds, 1, 1e-9);
	assert_int_equal(find(lab, "train", 0)->processes, 1);
	lab_exists(lab, 7, 71, WORKLOAD_CONTAINER, "sidecar");
	lab_set_process(lab_process(lab, lab_gpu(lab, 1), 7), PROCESS_BUSY, 0.5);
	lab_step(lab, SECOND);
	assert_int_equal(lab_workload(lab, "sidecar")->allocated, 0);
}

static void an_instance_is_part_of_its_gpu(void **state)
{
	struct lab *lab = *state;

	SET(lab, SOURCE_FILES, of_id(WORKLOAD_CONTAINER, "box", "all"),
	    of_id(WORKLOAD_CONTAINER, "bay", "0:0"));
	lab_exists(lab, 7, 70, WORKLOAD_CONTAINER, "box");
	for (unsigned i = 0; i < 3; i++) {
		struct reading_entity *gpu = lab_gpu(lab, 0);
		struct reading_process *p;

		gpu->process_list = gpu->process_util = PRESENCE_ABSENT;
		p = lab_process(lab, lab_mig(lab, gpu, 7, 0), 7);
		p->p[PROCESS_BUSY] = PRESENCE_UNSUPPORTED;
		lab_step(lab, SECOND);
	}
	assert_int_equal(lab->s->allocated_n, 2);
	assert_int_equal(find(lab, "box", 0)->processes, 1);
	assert_int_equal(find(lab, "box", 0)->idle_p, PRESENCE_ABSENT);
	assert_int_equal(lab->s->entities[find(lab, "bay", 0)->entity].id.gi, 7);
	assert_near(find(lab, "bay", 0)->idle_seconds, 2, 1e-9);
	assert_int_equal(lab_workload(lab, "box")->allocated, find(lab, "box", 0) - lab->s->allocated + 1);
}

static void what_does_not_fit_is_one_row(void **state)
{
	const struct model_limits limits = { .processes = 64, .series = 8, .exited = 8, .workloads = 3 };
	struct lab *lab = lab_new(&limits);
	struct allocation rows[6];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		char name[8];

		snprintf(name, sizeof(name), "pod-%u", 5 - i);
		rows[i] = of_pod(name, "main", "0");
	}
	set(lab, SOURCE_KUBELET, rows, 2);
	step(lab, 1);
	set(lab, SOURCE_KUBELET, rows, 6);
	step(lab, 1);
	step(lab, 1);
	assert_int_equal(lab->s->allocated_n, 4);
	/* Those that were there stay. */
	assert_near(find(lab, "pod-5", 0)->seconds, 2, 1e-9);
	assert_non_null(find(lab, "pod-4", 0));
	assert_int_equal(find(lab, "other", 0)->count, 3);
	assert_near(find(lab, "other", 0)->seconds, 3, 1e-9);
	assert_false(presence_is(find(lab, "other", 0)->idle_p));
	assert_int_equal(lab->s->agent[AGENT_DROPPED_ALLOCATIONS], 3);
	set(lab, SOURCE_KUBELET, rows, 5);
	step(lab, 1);
	assert_int_equal(find(lab, "other", 0)->count, 2);
	assert_near(find(lab, "other", 0)->seconds, 5, 1e-9);
	assert_int_equal(lab->s->agent[AGENT_DROPPED_ALLOCATIONS], 3);
	lab_free(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_that_tell_nothing_are_counted, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(there_is_a_bound, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(devices_are_found_by_every_name, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(devices_that_are_gone_make_no_name_ambiguous, lab_setup,
						lab_teardown),
		cmocka_unit_test_setup_teardown(the_pod_is_that_of_the_workload, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(two_sources_of_one_container_are_one, lab_setup,
						lab_teardown),
		cmocka_unit_test_setup_teardown(a_claim_is_no_more_than_one, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(logical_slots_are_one_allocation, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(idle_is_time_without_work, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(what_the_driver_does_not_tell_is_not_idle, lab_setup,
						lab_teardown),
		cmocka_unit_test_setup_teardown(an_unknown_process_may_be_of_any, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(sums_outlive_tables_sources_and_absence, lab_setup,
						lab_teardown),
		cmocka_unit_test_setup_teardown(use_is_joined_by_names, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(an_instance_is_part_of_its_gpu, lab_setup, lab_teardown),
		cmocka_unit_test(what_does_not_fit_is_one_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
