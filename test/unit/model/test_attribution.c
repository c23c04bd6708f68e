// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "lab.h"

#include <string.h>

#include "base/clock.h"

#define SECOND NSEC_PER_SEC

static double energy;

/* A second in which the GPU is at work for so long and takes so much, and PIDs 7 and 8 work. */
static void step(struct lab *lab, double whole, double joules, double first, double second)
{
	struct reading_entity *gpu = lab_gpu(lab, 0);
	const double busy[] = { first, second };

	energy += joules;
	lab_set(gpu, SLOT_ENERGY, energy);
	lab_set(gpu, SLOT_BUSY_GPU, whole);
	lab_set(gpu, SLOT_MEMORY_USED, 1000);
	for (uint32_t i = 0; i < 2; i++) {
		struct reading_process *p;

		if (busy[i] < 0)
			continue;
		lab_exists(lab, 7 + i, 70, WORKLOAD_CONTAINER, i == 0 ? "a" : "b");
		p = lab_process(lab, gpu, 7 + i);
		lab_set_process(p, PROCESS_BUSY, busy[i]);
		lab_set_process(p, PROCESS_MEMORY, 400);
	}
	lab_step(lab, SECOND);
}

static double value(const struct lab *lab, enum gpu_slot slot)
{
	return lab_entity(lab, "GPU-0000")->id.v[slot];
}

static void energy_goes_with_busy_time(void **state)
{
	struct lab *lab = *state;

	energy = 5000;
	step(lab, 0, 0, 0, 0);
	/* A quarter and an eighth of the interval; the rest is nobody's. */
	step(lab, 0.5, 400, 0.25, 0.125);
	assert_near(lab_find(lab, 7)->v[PROCESS_ENERGY], 100, 1e-9);
	assert_near(lab_find(lab, 8)->v[PROCESS_ENERGY], 50, 1e-9);
	assert_int_equal(lab_find(lab, 7)->p[PROCESS_ENERGY], PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	assert_near(lab_workload(lab, "a")->v[PROCESS_ENERGY], 100, 1e-9);
	assert_near(value(lab, SLOT_ATTRIBUTION_ENERGY_PROCESSES), 150, 1e-9);
	assert_near(value(lab, SLOT_ATTRIBUTION_ENERGY_UNATTRIBUTED), 250, 1e-9);
	/* More than the interval: they share all of it, and no more. */
	step(lab, 1, 400, 0.75, 0.5);
	assert_near(lab_find(lab, 7)->v[PROCESS_ENERGY], 100 + 240, 1e-9);
	assert_near(value(lab, SLOT_ATTRIBUTION_ENERGY_UNATTRIBUTED), 250, 1e-9);
	/* What one had that has ended stays its workload's. */
	step(lab, 1, 100, -1, 1);
	assert_near(lab_workload(lab, "a")->v[PROCESS_ENERGY], 340, 1e-9);
	assert_near(lab_workload(lab, "b")->v[PROCESS_ENERGY], 50 + 160 + 100, 1e-9);
}

static void memory_is_told_apart(void **state)
{
	struct lab *lab = *state;

	step(lab, 0, 0, 0, -1);
	assert_near(value(lab, SLOT_ATTRIBUTION_MEMORY_PROCESSES), 400, 0);
	assert_near(value(lab, SLOT_ATTRIBUTION_MEMORY_UNATTRIBUTED), 600, 0);
	/* What cannot be listed is not known to be nobody's. */
	lab_set(lab_gpu(lab, 0), SLOT_MEMORY_USED, 1000);
	lab->reading->entities[0].process_list = PRESENCE_NO_PERMISSION;
	lab_step(lab, SECOND);
	assert_int_equal(lab_entity(lab, "GPU-0000")->id.p[SLOT_ATTRIBUTION_MEMORY_UNATTRIBUTED],
			 PRESENCE_NO_PERMISSION);
}

/* Either may be ahead for a moment; that is neither lost nor too much. */
static void a_sample_that_is_late_is_no_rest(void **state)
{
	struct lab *lab = *state;

	step(lab, 0, 0, 0, 0);
	for (unsigned i = 0; i < 10; i++) {
		step(lab, 1, 0, 0, -1);
		assert_near(value(lab, SLOT_ATTRIBUTION_BUSY_RESIDUAL), 1, 1e-9);
		step(lab, 0, 0, 1, -1);
		assert_near(value(lab, SLOT_ATTRIBUTION_BUSY_RESIDUAL), 0, 1e-9);
	}
	assert_near(value(lab, SLOT_ATTRIBUTION_BUSY_UNATTRIBUTED), 0, 1e-9);
	for (unsigned i = 0; i < 10; i++)
		step(lab, 1, 0, 0, -1);
	assert_near(value(lab, SLOT_ATTRIBUTION_BUSY_UNATTRIBUTED), 8, 1e-9);
	/* Two that work at once, as under MPS. */
	for (unsigned i = 0; i < 10; i++)
		step(lab, 1, 0, 1, 1);
	assert_near(value(lab, SLOT_ATTRIBUTION_BUSY_UNATTRIBUTED), 8, 1e-9);
	assert_near(value(lab, SLOT_ATTRIBUTION_BUSY_OVERATTRIBUTED), 6, 1e-9);
	assert_near(value(lab, SLOT_ATTRIBUTION_BUSY_RESIDUAL), -2, 1e-9);
}

/* What the counter grew by while it could not be read is of all that time, not of who is busy in the end. */
static void energy_of_a_gap_is_of_all_of_it(void **state)
{
	struct lab *lab = *state;

	energy = 5000;
	step(lab, 0, 0, 0, 0);
	for (int i = 0; i < 3; i++) {
		lab_gpu(lab, 0)->p[SLOT_ENERGY] = PRESENCE_FAILED;
		lab_step(lab, SECOND);
	}
	step(lab, 1, 400, 1, 0);
	assert_near(lab_find(lab, 7)->v[PROCESS_ENERGY], 100, 1e-9);
	assert_near(value(lab, SLOT_ATTRIBUTION_ENERGY_UNATTRIBUTED), 300, 1e-9);
}

/* Energy and work that are read every fourth second. */
static void energy_is_of_the_time_since_it_last_grew(void **state)
{
	struct lab *lab = *state;

	energy = 5000;
	step(lab, 0, 0, 0, 0);
	for (int i = 0; i < 3; i++)
		step(lab, 0, 0, 0, 0);
	step(lab, 2, 400, 2, 1);
	assert_near(lab_find(lab, 7)->v[PROCESS_ENERGY], 200, 1e-9);
	assert_near(lab_find(lab, 8)->v[PROCESS_ENERGY], 100, 1e-9);
	assert_near(value(lab, SLOT_ATTRIBUTION_ENERGY_UNATTRIBUTED), 100, 1e-9);
}

static void without_a_counter_of_energy_there_is_no_share(void **state)
{
	struct lab *lab = *state;

	for (unsigned i = 0; i < 2; i++) {
		struct reading_entity *gpu = lab_gpu(lab, 0);

		gpu->p[SLOT_ENERGY] = PRESENCE_UNSUPPORTED;
		lab_exists(lab, 7, 70, WORKLOAD_CONTAINER, "a");
		lab_set_process(lab_process(lab, gpu, 7), PROCESS_BUSY, 0.5);
		lab_step(lab, SECOND);
	}
	assert_int_equal(lab_find(lab, 7)->p[PROCESS_ENERGY], PRESENCE_UNSUPPORTED);
	assert_int_equal(lab_entity(lab, "GPU-0000")->id.p[SLOT_ATTRIBUTION_ENERGY_UNATTRIBUTED],
			 PRESENCE_UNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(energy_goes_with_busy_time, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(memory_is_told_apart, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(a_sample_that_is_late_is_no_rest, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(energy_of_a_gap_is_of_all_of_it, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(energy_is_of_the_time_since_it_last_grew, lab_setup,
						lab_teardown),
		cmocka_unit_test_setup_teardown(without_a_counter_of_energy_there_is_no_share, lab_setup,
						lab_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
