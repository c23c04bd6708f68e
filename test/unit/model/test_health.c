// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "lab.h"

#include <string.h>

#include "base/clock.h"

#define SECOND NSEC_PER_SEC
#define INSTANCE "MIG-1-0" /* as lab_mig() calls it */

static struct device_health row(const char *device, enum health health)
{
	struct device_health r = { .health = health };

	assert_int_equal(device_ref_parse(device, &r.device, NULL), 0);
	return r;
}

#define SAY(lab_, teller_, ...)                                                             \
	assert_int_equal(model_set_health((lab_)->model, (teller_),                         \
					  (const struct device_health[]){ __VA_ARGS__ },    \
					  sizeof((struct device_health[]){ __VA_ARGS__ }) / \
						  sizeof(struct device_health)),            \
			 0)

static uint8_t of(struct lab *lab, const char *uuid, enum health_kind kind)
{
	lab_gpu(lab, 0);
	lab_gpu(lab, 1);
	lab_step(lab, SECOND);
	return lab_entity(lab, uuid)->health[kind];
}

static void what_is_not_listed_any_more_is_bad(void **state)
{
	struct lab *lab = *state;

	assert_int_equal(of(lab, "GPU-0001", HEALTH_ALLOCATABLE), HEALTH_UNKNOWN);
	SAY(lab, HEALTH_KUBELET_LIST, row("GPU-0000", HEALTH_GOOD));
	assert_int_equal(of(lab, "GPU-0000", HEALTH_ALLOCATABLE), HEALTH_GOOD);
	/* Nobody says that kubelet may ever give it. */
	assert_int_equal(of(lab, "GPU-0001", HEALTH_ALLOCATABLE), HEALTH_UNKNOWN);
	SAY(lab, HEALTH_KUBELET_LIST, row("GPU-0001", HEALTH_GOOD));
	assert_int_equal(of(lab, "GPU-0000", HEALTH_ALLOCATABLE), HEALTH_BAD);
	assert_int_equal(of(lab, "GPU-0001", HEALTH_ALLOCATABLE), HEALTH_GOOD);
	/* Given, and not in the list: kubelet's process says so. */
	SAY(lab, HEALTH_KUBELET_LIST, row("GPU-0000", HEALTH_GOOD), row("GPU-0001", HEALTH_BAD));
	assert_int_equal(of(lab, "GPU-0000", HEALTH_ALLOCATABLE), HEALTH_GOOD);
	assert_int_equal(of(lab, "GPU-0001", HEALTH_ALLOCATABLE), HEALTH_BAD);
	assert_int_equal(of(lab, "GPU-0001", HEALTH_POD_STATUS), HEALTH_UNKNOWN);
	/* A kubelet that is silent says nothing. */
	assert_int_equal(model_set_health(lab->model, HEALTH_KUBELET_LIST, NULL, 0), 0);
	assert_int_equal(of(lab, "GPU-0000", HEALTH_ALLOCATABLE), HEALTH_UNKNOWN);
	assert_int_equal(of(lab, "GPU-0001", HEALTH_ALLOCATABLE), HEALTH_UNKNOWN);
}

static void of_the_pods_the_worst_counts(void **state)
{
	struct lab *lab = *state;

	SAY(lab, HEALTH_API_PODS, row("GPU-0000::1", HEALTH_BAD), row("GPU-0001", HEALTH_BAD));
	assert_int_equal(of(lab, "GPU-0000", HEALTH_POD_STATUS), HEALTH_BAD);
	assert_int_equal(of(lab, "GPU-0000", HEALTH_ALLOCATABLE), HEALTH_UNKNOWN);
	/* Kubelet knows it before the API. */
	SAY(lab, HEALTH_KUBELET_PODS, row("GPU-0000", HEALTH_GOOD), row("GPU-0001", HEALTH_UNKNOWN));
	assert_int_equal(of(lab, "GPU-0000", HEALTH_POD_STATUS), HEALTH_GOOD);
	assert_int_equal(of(lab, "GPU-0001", HEALTH_POD_STATUS), HEALTH_BAD);
	SAY(lab, HEALTH_KUBELET_PODS, row("GPU-0000::0", HEALTH_GOOD), row("GPU-0000::1", HEALTH_BAD),
	    row("GPU-0001", 77));
	assert_int_equal(of(lab, "GPU-0000", HEALTH_POD_STATUS), HEALTH_BAD);
	assert_int_equal(of(lab, "GPU-0001", HEALTH_POD_STATUS), HEALTH_BAD);
}

/* Its plugin offers the instances in its place. */
static void a_gpu_with_instances_is_not_missing(void **state)
{
	struct lab *lab = *state;
	struct reading_entity *gpu;

	SAY(lab, HEALTH_KUBELET_LIST, row("GPU-0000", HEALTH_GOOD));
	assert_int_equal(of(lab, "GPU-0000", HEALTH_ALLOCATABLE), HEALTH_GOOD);
	SAY(lab, HEALTH_KUBELET_LIST, row("GPU-0001", HEALTH_GOOD));
	gpu = lab_gpu(lab, 0);
	lab_mig(lab, gpu, 1, 0);
	lab_gpu(lab, 1);
	lab_step(lab, SECOND);
	assert_int_equal(lab_entity(lab, "GPU-0000")->health[HEALTH_ALLOCATABLE], HEALTH_UNKNOWN);
}

/* The MIG instance, or that there is none (now). */
static uint8_t of_instance(struct lab *lab, bool is_there)
{
	struct reading_entity *gpu = lab_gpu(lab, 0);

	if (is_there)
		lab_mig(lab, gpu, 1, 0);
	lab_step(lab, SECOND);
	for (uint32_t i = 0; i < lab->s->entities_n; i++)
		if (lab->s->entities[i].id.parent != READING_NONE)
			return lab->s->entities[i].health[HEALTH_ALLOCATABLE];
	fail_msg("no instance is shown");
	return HEALTH_UNKNOWN;
}

static void an_instance_that_was_taken_away_is_not_missing(void **state)
{
	struct lab *lab = *state;

	of_instance(lab, true);
	SAY(lab, HEALTH_KUBELET_LIST, row(INSTANCE, HEALTH_GOOD));
	assert_int_equal(of_instance(lab, true), HEALTH_GOOD);
	SAY(lab, HEALTH_KUBELET_LIST, row("GPU-0001", HEALTH_GOOD));
	assert_int_equal(of_instance(lab, true), HEALTH_BAD);
	assert_int_equal(of_instance(lab, false), HEALTH_UNKNOWN);
	/* It is made again, and not offered yet. */
	assert_int_equal(of_instance(lab, true), HEALTH_UNKNOWN);
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, lab_setup, lab_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_is_not_listed_any_more_is_bad),
		CASE(of_the_pods_the_worst_counts),
		CASE(a_gpu_with_instances_is_not_missing),
		CASE(an_instance_that_was_taken_away_is_not_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
