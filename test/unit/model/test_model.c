// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "lab.h"

#define SECOND NSEC_PER_SEC

static void before_the_first_reading_nothing_is_fresh(void **state)
{
	struct lab *lab = *state;

	lab_wait(lab, SECOND);
	assert_false(lab->s->fresh);
	assert_true(lab->s->not_fresh_reason[0] != '\0');
	assert_int_equal(lab->s->entities_n, 0);
	assert_int_equal(lab->s->seq, 1);
}

static void a_good_reading_is_fresh_for_a_while(void **state)
{
	struct lab *lab = *state;

	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	assert_true(lab->s->fresh);
	assert_string_equal(lab->s->not_fresh_reason, "");
	assert_string_equal(lab->s->not_fresh_cause, "");
	assert_near(lab->s->agent[AGENT_SOURCE_UP_NVML], 1, 0);
	assert_near(lab->s->agent[AGENT_TICKS], 1, 0);
	lab_wait(lab, 3 * SECOND);
	assert_true(lab->s->fresh);
	model_set_outage(lab->model, SOURCE_NVML, "hung in nvmlDeviceGetPowerUsage for 4 s", "hung");
	lab_wait(lab, SECOND);
	assert_false(lab->s->fresh);
	assert_string_equal(lab->s->not_fresh_reason, "hung in nvmlDeviceGetPowerUsage for 4 s");
	assert_string_equal(lab->s->not_fresh_cause, "hung");
	assert_near(lab->s->agent[AGENT_SOURCE_UP_NVML], 0, 0);
	model_set_outage(lab->model, SOURCE_NVML, NULL, NULL);
	lab_wait(lab, SECOND);
	assert_non_null(strstr(lab->s->not_fresh_reason, "5.0 s old"));
	assert_non_null(strstr(lab->s->not_fresh_cause, "collection is old"));
}

static void a_node_without_gpus_is_fresh(void **state)
{
	struct lab *lab = *state;

	lab_step(lab, SECOND); /* a driver that lists none */
	assert_true(lab->s->fresh);
	lab->reading->state = READING_NO_LIBRARY;
	lab_step(lab, SECOND);
	assert_true(lab->s->fresh);
	lab->reading->state = READING_NO_DRIVER;
	lab_step(lab, SECOND);
	assert_true(lab->s->fresh);
	model_set_outage(lab->model, SOURCE_NVML, "there is a GPU on the bus", "no driver");
	lab_wait(lab, 0);
	assert_false(lab->s->fresh);
	assert_string_equal(lab->s->not_fresh_reason, "there is a GPU on the bus");
}

static void a_driver_that_went_away_is_not(void **state)
{
	struct lab *lab = *state;

	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	lab->reading->state = READING_NO_DRIVER;
	snprintf(lab->reading->error, sizeof(lab->reading->error), "not loaded; modprobe nvidia");
	lab_step(lab, SECOND);
	assert_false(lab->s->fresh);
	assert_string_equal(lab->s->not_fresh_reason, "not loaded; modprobe nvidia");
	assert_string_equal(snapshot_driver(lab->s)->error, "not loaded; modprobe nvidia");
	lab->reading->state = READING_RELEASED;
	lab_step(lab, SECOND);
	assert_false(lab->s->fresh);
	assert_non_null(strstr(lab->s->not_fresh_reason, "resume"));
	lab->reading->state = READING_FAILED;
	lab_step(lab, SECOND);
	assert_false(lab->s->fresh);
	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	assert_true(lab->s->fresh);
	assert_string_equal(snapshot_driver(lab->s)->error, "");
}

static void the_driver_is_described(void **state)
{
	struct lab *lab = *state;

	lab_gpu(lab, 0);
	lab->reading->simulated = 1;
	lab->reading->cuda_version = 13000;
	lab->reading->topology_n = 1;
	lab->reading->topology[0][0] = 7;
	snprintf(lab->reading->library, sizeof(lab->reading->library), "/usr/lib/libnvidia-ml.so.1");
	lab_step(lab, SECOND);
	assert_true(lab->s->simulated);
	assert_int_equal(snapshot_driver(lab->s)->cuda_version, 13000);
	assert_string_equal(snapshot_driver(lab->s)->driver_version, "570.1");
	assert_string_equal(snapshot_driver(lab->s)->library, "/usr/lib/libnvidia-ml.so.1");
	assert_int_equal(lab->s->topology[0][0], 7);
	assert_int_equal(lab->s->period_ns, SECOND);
	assert_int_equal(lab->s->boot_ns, clock_boot_ns());
}

static void a_driver_taken_back_is_not_released(void **state)
{
	struct lab *lab = *state;

	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	for (unsigned i = 0; i < 5; i++) {
		lab->reading->state = READING_RELEASED;
		snprintf(lab->reading->error, sizeof(lab->reading->error), "let go of; resume takes it back");
		lab_step(lab, SECOND);
		assert_int_equal(snapshot_driver(lab->s)->state, READING_RELEASED);
		assert_non_null(strstr(lab->s->not_fresh_cause, "resume"));
	}
	lab_wait(lab, 4 * SECOND); /* no reading says so any more */
	assert_int_equal(snapshot_driver(lab->s)->state, READING_OK);
	assert_false(lab->s->fresh);
	assert_string_equal(snapshot_driver(lab->s)->error, "");
	assert_null(strstr(lab->s->not_fresh_cause, "resume"));
	model_set_outage(lab->model, SOURCE_NVML, "the library crashed 3 s ago", "the library crashed");
	lab_wait(lab, 0);
	assert_string_equal(lab->s->not_fresh_cause, "the library crashed");
	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	assert_true(lab->s->fresh);
}

static void simulated_numbers_stay_simulated(void **state)
{
	struct lab *lab = *state;

	lab_gpu(lab, 0);
	lab->reading->simulated = 1;
	lab_step(lab, SECOND);
	for (unsigned trouble = READING_OK + 1; trouble < READING_STATES; trouble++) {
		lab->reading->state = (enum reading_state)trouble;
		lab_step(lab, SECOND);
		assert_true(lab->s->simulated);
	}
	lab_gpu(lab, 0);
	lab_step(lab, SECOND);
	assert_false(lab->s->simulated);
	lab->reading->simulated = 1;
	lab->reading->state = READING_FAILED;
	lab_step(lab, SECOND);
	assert_true(lab->s->simulated); /* what it says of itself is on show */
	lab_step(lab, SECOND);
	assert_false(lab->s->simulated);
}

static void the_agents_own_figures(void **state)
{
	struct lab *lab = *state;

	lab_wait(lab, 0);
	assert_int_equal(lab->s->agent_p[AGENT_CHILD_STARTS], PRESENCE_PRESENT);
	assert_int_equal(lab->s->agent_p[AGENT_RESIDENT_BYTES], PRESENCE_ABSENT);
	model_agent_set(lab->model, AGENT_RESIDENT_BYTES, 5e6);
	model_agent_add(lab->model, AGENT_CHILD_STARTS, 2);
	model_agent_add(lab->model, AGENT_CHILD_STARTS, 1);
	lab_wait(lab, 0);
	assert_near(lab->s->agent[AGENT_RESIDENT_BYTES], 5e6, 0);
	assert_int_equal(lab->s->agent_p[AGENT_RESIDENT_BYTES], PRESENCE_PRESENT);
	assert_near(lab->s->agent[AGENT_CHILD_STARTS], 3, 0);
}

static void what_did_not_fit_is_counted(void **state)
{
	struct lab *lab = *state;

	lab->reading->entities_dropped = 2;
	lab->reading->events_dropped = 3;
	lab->reading->rejected[GPU_POWER] = 4;
	lab->reading->rejected_process[PROCESS_MEMORY] = 5;
	lab_step(lab, SECOND);
	lab_step(lab, SECOND);
	assert_near(lab->s->agent[AGENT_DROPPED_ENTITIES], 2, 0);
	assert_near(lab->s->agent[AGENT_DROPPED_EVENTS], 3, 0);
	assert_int_equal(lab->s->rejected[GPU_POWER], 4);
	assert_int_equal(lab->s->rejected_process[PROCESS_MEMORY], 5);
}

static void fill(struct lab *lab, unsigned round)
{
	for (unsigned gpu = 0; gpu < 8; gpu++) {
		struct reading_entity *e = lab_gpu(lab, gpu);

		lab_set(e, SLOT_BUSY_GPU, 0.5);
		for (unsigned i = 0; i < 8; i++) {
			/*
			 * Every tenth reading one of each GPU's processes ends and another takes its place.
			 */
			uint32_t pid = 1 + gpu * 40 + (i == 0 ? (round / 10) % 30 : 30 + i);

			lab_set_process(lab_process(lab, e, pid), PROCESS_BUSY, 0.1);
		}
	}
}

/* The first rounds fill the rings and caches; from then on the heap stays as it is. */
static void a_node_that_does_not_grow_takes_no_more_memory(void **state)
{
	struct lab *lab = *state;
	size_t before = 0;

	for (unsigned round = 0; round < 6000; round++) {
		if (round == 4500)
			before = mallinfo2().uordblks;
		fill(lab, round);
		lab_step(lab, SECOND);
	}
	if (before != 0) /* a sanitizer's heap tells nothing */
		assert_int_equal(mallinfo2().uordblks, before);
	assert_int_equal(lab->s->processes_n, 64);
}

int main(void)
{
#define CASE(name_) cmocka_unit_test_setup_teardown(name_, lab_setup, lab_teardown)
	const struct CMUnitTest tests[] = {
		CASE(before_the_first_reading_nothing_is_fresh),
		CASE(a_good_reading_is_fresh_for_a_while),
		CASE(a_node_without_gpus_is_fresh),
		CASE(a_driver_that_went_away_is_not),
		CASE(the_driver_is_described),
		CASE(a_driver_taken_back_is_not_released),
		CASE(simulated_numbers_stay_simulated),
		CASE(the_agents_own_figures),
		CASE(what_did_not_fit_is_counted),
		CASE(a_node_that_does_not_grow_takes_no_more_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
