// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "lab.h"

static double value(const struct lab *lab, unsigned entity, unsigned slot)
{
	assert_true(presence_is(lab->s->entities[entity].id.p[slot]));
	return lab->s->entities[entity].id.v[slot];
}

static uint8_t presence(const struct lab *lab, unsigned entity, unsigned slot)
{
	return lab->s->entities[entity].id.p[slot];
}

/* One reading of one GPU with one value. */
static double step_with(struct lab *lab, unsigned slot, double reading)
{
	lab_set(lab_gpu(lab, 0), slot, reading);
	assert_int_equal(lab_step(lab, NSEC_PER_SEC), 0);
	return value(lab, 0, slot);
}

static void a_gauge_is_its_reading(void **state)
{
	struct lab *lab = *state;

	assert_near(step_with(lab, SLOT_POWER, 300), 300, 0);
	assert_near(step_with(lab, SLOT_POWER, 200), 200, 0);
	lab_gpu(lab, 0)->p[SLOT_POWER] = PRESENCE_UNSUPPORTED;
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(presence(lab, 0, SLOT_POWER), PRESENCE_UNSUPPORTED);
}

static void a_counter_starts_at_the_drivers_value_and_rises(void **state)
{
	struct lab *lab = *state;

	assert_near(step_with(lab, SLOT_ENERGY, 5000), 5000, 0);
	assert_near(step_with(lab, SLOT_ENERGY, 5300), 5300, 0);
	assert_near(step_with(lab, SLOT_ENERGY, 5300), 5300, 0);
}

/* As many seconds as an odd counter stays in doubt. */
enum { DOUBT_S = 15 };

/* The counter says the same for long enough to be believed. */
static double insist_on(struct lab *lab, unsigned slot, double reading)
{
	for (unsigned i = 0; i < DOUBT_S; i++)
		step_with(lab, slot, reading);
	return value(lab, 0, slot);
}

static void a_restarted_driver_continues_the_sum(void **state)
{
	struct lab *lab = *state;

	step_with(lab, SLOT_ENERGY, 5000);
	assert_near(step_with(lab, SLOT_ENERGY, 100), 5000, 0); /* in doubt */
	assert_near(insist_on(lab, SLOT_ENERGY, 400), 5400, 0); /* it did restart: all of it is new */
	assert_near(step_with(lab, SLOT_ENERGY, 600), 5600, 0);
}

/* Or it would be added on the way down, and again on the way up. */
static void a_few_wrong_readings_add_nothing(void **state)
{
	struct lab *lab = *state;

	step_with(lab, SLOT_ENERGY, 5000);
	for (unsigned glitch = 0; glitch < 3; glitch++) {
		for (unsigned i = 0; i < DOUBT_S - 5; i++)
			assert_near(step_with(lab, SLOT_ENERGY, 1), 5000 + 100 * glitch, 0);
		assert_near(step_with(lab, SLOT_ENERGY, 5100 + 100 * glitch), 5100 + 100 * glitch, 0);
	}
	assert_int_equal(lab->s->rejected[GPU_ENERGY], 0);
}

/*
 * A restart brings no more than the time since can have brought: here, by the board's limit, 1050 watts for
 * 18 seconds.
 */
static void what_a_board_cannot_take_is_not_added(void **state)
{
	struct lab *lab = *state;

	for (unsigned i = 0; i <= DOUBT_S; i++) {
		struct reading_entity *e = lab_gpu(lab, 0);

		lab_set(e, SLOT_POWER_LIMIT_MAX, 700);
		lab_set(e, SLOT_ENERGY, i == 0 ? 5e6 : 1e6);
		assert_int_equal(lab_step(lab, NSEC_PER_SEC), 0);
	}
	assert_near(value(lab, 0, SLOT_ENERGY), 5e6, 0);
	assert_int_equal(lab->s->rejected[GPU_ENERGY], 1);
}

static void one_wrong_reading_adds_nothing(void **state)
{
	struct lab *lab = *state;

	step_with(lab, SLOT_ENERGY, 5000);
	assert_near(step_with(lab, SLOT_ENERGY, 0), 5000, 0);
	assert_near(step_with(lab, SLOT_ENERGY, 5100), 5100, 0);
	assert_near(step_with(lab, SLOT_ENERGY, 9e12), 5100, 0);
	assert_near(step_with(lab, SLOT_ENERGY, 5300), 5300, 0);
	assert_int_equal(lab->s->rejected[GPU_ENERGY], 0);
}

static void a_counter_with_another_base_goes_on_from_there(void **state)
{
	struct lab *lab = *state;

	step_with(lab, SLOT_ENERGY, 5000);
	step_with(lab, SLOT_ENERGY, 9e12);
	assert_near(insist_on(lab, SLOT_ENERGY, 9e12 + 300), 5000, 0);
	assert_int_equal(lab->s->rejected[GPU_ENERGY], 1);
	assert_near(step_with(lab, SLOT_ENERGY, 9e12 + 700), 5400, 1e-3);
}

static void a_counter_of_few_bits_comes_round(void **state)
{
	struct lab *lab = *state;

	step_with(lab, SLOT_PCIE_REPLAY, 4294967290.0);
	assert_near(step_with(lab, SLOT_PCIE_REPLAY, 4), 4294967300.0, 0);
	assert_near(step_with(lab, SLOT_PCIE_REPLAY, 10), 4294967306.0, 0);
	/* From the lower half it does not come round: that is a restart. */
	assert_near(step_with(lab, SLOT_PCIE_REPLAY, 3), 4294967306.0, 0);
	assert_near(insist_on(lab, SLOT_PCIE_REPLAY, 3), 4294967309.0, 0);
}

static void a_counter_that_cannot_be_read_is_absent_and_loses_nothing(void **state)
{
	struct lab *lab = *state;

	step_with(lab, SLOT_ENERGY, 5000);
	lab_gpu(lab, 0)->p[SLOT_ENERGY] = PRESENCE_FAILED;
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(presence(lab, 0, SLOT_ENERGY), PRESENCE_FAILED);
	assert_near(step_with(lab, SLOT_ENERGY, 5600), 5600, 0);
}

/* Of a board that takes at most 1050 watts. */
static void step_of_board(struct lab *lab, double joules, enum presence presence)
{
	struct reading_entity *e = lab_gpu(lab, 0);

	lab_set(e, SLOT_POWER_LIMIT_MAX, 700);
	lab_set(e, SLOT_ENERGY, joules);
	e->p[SLOT_ENERGY] = (uint8_t)presence;
	assert_int_equal(lab_step(lab, NSEC_PER_SEC), 0);
}

/* While others of its figures are read. */
static void a_counter_that_fails_for_long_loses_nothing(void **state)
{
	struct lab *lab = *state;

	step_of_board(lab, 5000, PRESENCE_PRESENT);
	for (unsigned i = 1; i < 300; i++)
		step_of_board(lab, 0, PRESENCE_FAILED);
	step_of_board(lab, 5000 + 300 * 600, PRESENCE_PRESENT);
	assert_near(value(lab, 0, SLOT_ENERGY), 5000 + 300 * 600, 0);
	assert_int_equal(lab->s->rejected[GPU_ENERGY], 0);
}

/* Its newest value is said at each tick, but it is asked for seldom. */
static void a_counter_that_is_asked_seldom_loses_nothing(void **state)
{
	struct lab *lab = *state;

	for (unsigned i = 0; i < 300; i++)
		step_of_board(lab, 5000, PRESENCE_PRESENT);
	step_of_board(lab, 5000 + 300 * 600, PRESENCE_PRESENT);
	assert_near(value(lab, 0, SLOT_ENERGY), 5000 + 300 * 600, 0);
	assert_int_equal(lab->s->rejected[GPU_ENERGY], 0);
}

/* It says for a while that the board takes no more than 12 watts. */
static void a_driver_that_is_wrong_about_power_loses_no_energy(void **state)
{
	struct lab *lab = *state;

	step_of_board(lab, 5000, PRESENCE_PRESENT);
	for (unsigned i = 1; i <= 60; i++) {
		struct reading_entity *e = lab_gpu(lab, 0);

		lab_set(e, SLOT_POWER_LIMIT_MAX, 12);
		lab_set(e, SLOT_ENERGY, 5000 + i * 600);
		assert_int_equal(lab_step(lab, NSEC_PER_SEC), 0);
	}
	assert_near(value(lab, 0, SLOT_ENERGY), 5000 + 60 * 600, 0);
	assert_int_equal(lab->s->rejected[GPU_ENERGY], 0);
}

static double step_with_estimate(struct lab *lab, double joules)
{
	struct reading_entity *e = lab_gpu(lab, 0);

	lab_set(e, SLOT_ENERGY, joules);
	e->p[SLOT_ENERGY] |= PRESENCE_ESTIMATED;
	lab_step(lab, NSEC_PER_SEC);
	return value(lab, 0, SLOT_ENERGY);
}

/* Where power was not known either; an estimate that was too high is not taken back. */
static void what_was_estimated_is_measured_afterwards(void **state)
{
	struct lab *lab = *state;

	step_with(lab, SLOT_ENERGY, 5000);
	step_with_estimate(lab, 0);
	assert_near(step_with_estimate(lab, 300), 5300, 0);
	assert_near(step_with(lab, SLOT_ENERGY, 7000), 7000, 0);
	assert_near(step_with(lab, SLOT_ENERGY, 7100), 7100, 0);
	step_with_estimate(lab, 300);
	assert_near(step_with_estimate(lab, 700), 7500, 0);
	assert_near(step_with(lab, SLOT_ENERGY, 7300), 7500, 0);
	assert_near(step_with(lab, SLOT_ENERGY, 7400), 7600, 0);
	assert_int_equal(presence(lab, 0, SLOT_ENERGY), PRESENCE_PRESENT | PRESENCE_ESTIMATED);
}

static void an_estimate_stays_called_one(void **state)
{
	struct lab *lab = *state;
	struct reading_entity *e = lab_gpu(lab, 0);

	lab_set(e, SLOT_ENERGY, 100);
	e->p[SLOT_ENERGY] |= PRESENCE_ESTIMATED;
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(presence(lab, 0, SLOT_ENERGY), PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	/* The driver's own counter has another base: it does not add to the sum, its differences do. */
	assert_near(step_with(lab, SLOT_ENERGY, 7e9), 100, 0);
	assert_near(step_with(lab, SLOT_ENERGY, 7e9 + 50), 150, 1e-3);
	assert_int_equal(presence(lab, 0, SLOT_ENERGY), PRESENCE_PRESENT | PRESENCE_ESTIMATED);
}

static void increments_add_up(void **state)
{
	struct lab *lab = *state;

	assert_near(step_with(lab, SLOT_BUSY_GPU, 0.5), 0.5, 0);
	assert_near(step_with(lab, SLOT_BUSY_GPU, 0.25), 0.75, 0);
	assert_near(step_with(lab, SLOT_BUSY_GPU, 0), 0.75, 0);
}

static void more_time_than_has_passed_is_rejected(void **state)
{
	struct lab *lab = *state;

	step_with(lab, SLOT_BUSY_GPU, 0.5);
	assert_near(step_with(lab, SLOT_BUSY_GPU, 4), 0.5, 0);
	assert_int_equal(lab->s->rejected[GPU_BUSY_GPU], 1);
	assert_near(step_with(lab, SLOT_BUSY_GPU, 1), 1.5, 0);
}

/* What a pass took at its beginning ends there: a slow pass does not shorten what the next may bring. */
static void a_slow_pass_is_followed_by_more(void **state)
{
	struct lab *lab = *state;

	step_with(lab, SLOT_BUSY_GPU, 0.5);
	lab_set(lab_gpu(lab, 0), SLOT_BUSY_GPU, 1);
	lab_step(lab, 8 * NSEC_PER_SEC); /* from its beginning to its end */
	lab_wait(lab, NSEC_PER_SEC);
	assert_near(step_with(lab, SLOT_BUSY_GPU, 9), 10.5, 0);
	assert_int_equal(lab->s->rejected[GPU_BUSY_GPU], 0);
}

static void a_buffer_bridges_a_gap(void **state)
{
	struct lab *lab = *state;

	/* The first reading brings what the driver's buffer holds. */
	assert_near(step_with(lab, SLOT_OBSERVED, 29), 29, 0);
	lab_wait(lab, 60 * NSEC_PER_SEC);
	assert_near(step_with(lab, SLOT_OBSERVED, 61), 90, 0);
	/* Readings without samples do not shorten what the next may bring. */
	for (unsigned i = 0; i < 10; i++)
		step_with(lab, SLOT_OBSERVED, 0);
	assert_near(step_with(lab, SLOT_OBSERVED, 11), 101, 0);
}

static void a_sum_of_ours_survives_a_failed_reading_but_not_a_missing_feature(void **state)
{
	struct lab *lab = *state;

	step_with(lab, SLOT_BUSY_GPU, 0.5);
	lab_gpu(lab, 0)->p[SLOT_BUSY_GPU] = PRESENCE_FAILED;
	lab_step(lab, NSEC_PER_SEC);
	assert_near(value(lab, 0, SLOT_BUSY_GPU), 0.5, 0);
	lab_gpu(lab, 0)->p[SLOT_BUSY_GPU] = PRESENCE_UNSUPPORTED;
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(presence(lab, 0, SLOT_BUSY_GPU), PRESENCE_UNSUPPORTED);
	assert_near(step_with(lab, SLOT_BUSY_GPU, 0.5), 1.0, 0);
}

static void a_peak_is_the_highest(void **state)
{
	struct lab *lab = *state;

	step_with(lab, SLOT_MEMORY_USED, 5e9);
	assert_near(value(lab, 0, SLOT_MEMORY_USED_PEAK), 5e9, 0);
	step_with(lab, SLOT_MEMORY_USED, 9e9);
	step_with(lab, SLOT_MEMORY_USED, 1e9);
	assert_near(value(lab, 0, SLOT_MEMORY_USED_PEAK), 9e9, 0);
	assert_near(value(lab, 0, SLOT_MEMORY_USED), 1e9, 0);
}

static void a_lost_gpu_keeps_its_sums_and_no_gauge(void **state)
{
	struct lab *lab = *state;
	struct reading_entity *e = lab_gpu(lab, 0);

	lab_set(e, SLOT_POWER, 300);
	lab_set(e, SLOT_ENERGY, 5000);
	lab_set(e, SLOT_BUSY_GPU, 0.5);
	lab_step(lab, NSEC_PER_SEC);
	assert_true(lab->s->entities[0].present);
	lab_gpu(lab, 0)->lost = 1;
	lab->reading->entities[0].name[0] = '\0';
	lab_step(lab, NSEC_PER_SEC);
	assert_false(lab->s->entities[0].present);
	assert_string_equal(lab->s->entities[0].id.name, "Test 0");
	assert_int_equal(presence(lab, 0, SLOT_POWER), PRESENCE_ABSENT);
	assert_near(value(lab, 0, SLOT_ENERGY), 5000, 0);
	assert_near(value(lab, 0, SLOT_BUSY_GPU), 0.5, 0);
	e = lab_gpu(lab, 0);
	lab_set(e, SLOT_POWER, 100);
	lab_set(e, SLOT_ENERGY, 5100);
	lab_set(e, SLOT_BUSY_GPU, 0.5);
	lab_step(lab, NSEC_PER_SEC);
	assert_true(lab->s->entities[0].present);
	assert_near(value(lab, 0, SLOT_POWER), 100, 0);
	assert_near(value(lab, 0, SLOT_ENERGY), 5100, 0);
	assert_near(value(lab, 0, SLOT_BUSY_GPU), 1.0, 0);
}

static void a_gpu_is_found_again_by_its_uuid(void **state)
{
	struct lab *lab = *state;
	struct reading_entity *a = lab_gpu(lab, 0), *b = lab_gpu(lab, 1);

	lab_set(a, SLOT_BUSY_GPU, 0.1);
	lab_set(b, SLOT_BUSY_GPU, 0.9);
	lab_step(lab, NSEC_PER_SEC);
	/* The driver numbers them the other way round. */
	a = lab_gpu(lab, 1);
	b = lab_gpu(lab, 0);
	a->index = 0;
	b->index = 1;
	lab_set(a, SLOT_BUSY_GPU, 0.9);
	lab_set(b, SLOT_BUSY_GPU, 0.1);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab->s->entities_n, 2);
	assert_string_equal(lab->s->entities[0].id.uuid, "GPU-0001");
	assert_near(value(lab, 0, SLOT_BUSY_GPU), 1.8, 1e-9);
	assert_string_equal(lab->s->entities[1].id.uuid, "GPU-0000");
	assert_near(value(lab, 1, SLOT_BUSY_GPU), 0.2, 1e-9);
}

static void one_that_is_not_listed_stays_with_present_false(void **state)
{
	struct lab *lab = *state;

	lab_gpu(lab, 0);
	lab_set(lab_gpu(lab, 1), SLOT_ENERGY, 10);
	lab_step(lab, NSEC_PER_SEC);
	lab_gpu(lab, 0);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab->s->entities_n, 2);
	assert_true(lab->s->entities[0].present);
	assert_false(lab->s->entities[1].present);
	assert_near(value(lab, 1, SLOT_ENERGY), 10, 0);
}

static void without_a_driver_all_are_gone_but_not_when_we_let_go(void **state)
{
	struct lab *lab = *state;

	lab_set(lab_gpu(lab, 0), SLOT_POWER, 100);
	lab_step(lab, NSEC_PER_SEC);
	lab->reading->state = READING_RELEASED;
	lab_step(lab, NSEC_PER_SEC);
	assert_true(lab->s->entities[0].present);
	lab->reading->state = READING_NO_DRIVER;
	lab_step(lab, NSEC_PER_SEC);
	assert_false(lab->s->entities[0].present);
	assert_int_equal(presence(lab, 0, SLOT_POWER), PRESENCE_ABSENT);
	assert_int_equal(snapshot_driver(lab->s)->state, READING_NO_DRIVER);
}

static void instances_follow_their_gpu_in_order(void **state)
{
	struct lab *lab = *state;
	struct reading_entity *a = lab_gpu(lab, 1), *b = lab_gpu(lab, 0), *instance;

	lab_mig(lab, a, 7, 0);
	instance = lab_mig(lab, b, 2, 0);
	lab_set(instance, SLOT_BUSY_GPU, 0.5);
	lab_mig(lab, b, 1, 1);
	lab_mig(lab, b, 1, 0);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab->s->entities_n, 6);
	assert_string_equal(lab->s->entities[0].id.uuid, "GPU-0000");
	assert_int_equal(lab->s->entities[0].id.parent, READING_NONE);
	assert_int_equal(lab->s->entities[1].id.gi, 1);
	assert_int_equal(lab->s->entities[1].id.ci, 0);
	assert_int_equal(lab->s->entities[2].id.ci, 1);
	assert_int_equal(lab->s->entities[3].id.gi, 2);
	assert_int_equal(lab->s->entities[3].id.parent, 0);
	assert_string_equal(lab->s->entities[3].id.mig_uuid, "MIG-2-0");
	assert_ptr_equal(snapshot_gpu(lab->s, &lab->s->entities[5]), &lab->s->entities[4]);
	/* Made again in the same place: the sum goes on. */
	b = lab_gpu(lab, 0);
	instance = lab_mig(lab, b, 2, 0);
	snprintf(instance->mig_uuid, sizeof(instance->mig_uuid), "MIG-new");
	lab_set(instance, SLOT_BUSY_GPU, 0.5);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab->s->entities_n, 6);
	assert_string_equal(lab->s->entities[3].id.mig_uuid, "MIG-new");
	assert_near(value(lab, 3, SLOT_BUSY_GPU), 1.0, 1e-9);
	assert_false(lab->s->entities[1].present);
}

static void the_same_entity_twice_counts_once(void **state)
{
	struct lab *lab = *state;

	for (unsigned i = 0; i < 2; i++) {
		lab_set(lab_gpu(lab, 0), SLOT_BUSY_GPU, 0.5);
		lab_set(lab_gpu(lab, 0), SLOT_BUSY_GPU, 0.5);
		/* An instance of what does not count is none either, and least of all a GPU. */
		lab_mig(lab, &lab->reading->entities[1], 1, 0);
		lab_step(lab, NSEC_PER_SEC);
		assert_int_equal(lab->s->entities_n, 1);
		assert_near(value(lab, 0, SLOT_BUSY_GPU), 0.5 * (i + 1), 0);
	}
}

static void a_reading_counts_once(void **state)
{
	struct lab *lab = *state;

	lab_set(lab_gpu(lab, 0), SLOT_BUSY_GPU, 0.5);
	assert_int_equal(lab_step(lab, NSEC_PER_SEC), 0);
	lab_set(lab_gpu(lab, 0), SLOT_BUSY_GPU, 0.5);
	assert_int_equal(lab_step(lab, 0), -ESTALE);
	assert_near(value(lab, 0, SLOT_BUSY_GPU), 0.5, 0);
}

static void devices_are_bounded_and_the_longest_gone_makes_room(void **state)
{
	struct lab *lab = *state;

	for (unsigned i = 0; i < READING_ENTITIES_MAX; i++)
		lab_gpu(lab, i);
	lab_step(lab, NSEC_PER_SEC);
	for (unsigned i = 1; i <= READING_ENTITIES_MAX; i++)
		lab_gpu(lab, i);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab->s->entities_n, READING_ENTITIES_MAX);
	assert_string_equal(lab->s->entities[0].id.uuid, "GPU-0001");
	assert_string_equal(lab->s->entities[READING_ENTITIES_MAX - 1].id.uuid, "GPU-0256");
	assert_near(lab->s->agent[AGENT_DROPPED_ENTITIES], 1, 0);
}

static void values_grow_stale_and_say_since_when(void **state)
{
	struct lab *lab = *state;
	int64_t sampled;

	step_with(lab, SLOT_POWER, 100);
	sampled = clock_boot_ns();
	assert_false(lab->s->entities[0].stale);
	lab_wait(lab, 3 * NSEC_PER_SEC);
	assert_false(lab->s->entities[0].stale);
	lab_wait(lab, 1);
	assert_true(lab->s->entities[0].stale);
	assert_int_equal(lab->s->entities[0].sampled_boot_ns, sampled);
	model_set_period(lab->model, 10 * NSEC_PER_SEC);
	lab_wait(lab, 21 * NSEC_PER_SEC);
	assert_false(lab->s->entities[0].stale); /* 24 seconds */
	lab_wait(lab, 2 * NSEC_PER_SEC);
	assert_true(lab->s->entities[0].stale);
}

static void sums_over_samples_for_atop(void **state)
{
	struct lab *lab = *state;
	struct reading_entity *e = lab_gpu(lab, 0);

	lab_set(e, SLOT_UTILIZATION_GPU, 0.5);
	lab_set(e, SLOT_UTILIZATION_MEMORY, 0.25);
	lab_set(e, SLOT_MEMORY_USED, 4096);
	lab_step(lab, NSEC_PER_SEC);
	/* A tick whose utilisation failed is no sample. */
	e = lab_gpu(lab, 0);
	e->p[SLOT_UTILIZATION_GPU] = PRESENCE_FAILED;
	lab_set(e, SLOT_MEMORY_USED, 8192);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab->s->entities[0].samples, 1);
	assert_near(lab->s->entities[0].percent_sum[0], 50, 0);
	assert_near(lab->s->entities[0].percent_sum[1], 25, 0);
	assert_near(lab->s->entities[0].memory_kib_sum, 4, 0);
	/* Where there is none at all, memory is sampled. */
	e = lab_gpu(lab, 0);
	e->p[SLOT_UTILIZATION_GPU] = PRESENCE_UNSUPPORTED;
	lab_set(e, SLOT_MEMORY_USED, 8192);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(lab->s->entities[0].samples, 2);
	assert_near(lab->s->entities[0].memory_kib_sum, 12, 0);
}

int main(void)
{
#define CASE(name_) cmocka_unit_test_setup_teardown(name_, lab_setup, lab_teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_gauge_is_its_reading),
		CASE(a_counter_starts_at_the_drivers_value_and_rises),
		CASE(a_restarted_driver_continues_the_sum),
		CASE(a_few_wrong_readings_add_nothing),
		CASE(what_a_board_cannot_take_is_not_added),
		CASE(one_wrong_reading_adds_nothing),
		CASE(a_counter_with_another_base_goes_on_from_there),
		CASE(a_counter_of_few_bits_comes_round),
		CASE(a_counter_that_cannot_be_read_is_absent_and_loses_nothing),
		CASE(a_counter_that_fails_for_long_loses_nothing),
		CASE(a_counter_that_is_asked_seldom_loses_nothing),
		CASE(a_driver_that_is_wrong_about_power_loses_no_energy),
		CASE(what_was_estimated_is_measured_afterwards),
		CASE(an_estimate_stays_called_one),
		CASE(increments_add_up),
		CASE(more_time_than_has_passed_is_rejected),
		CASE(a_slow_pass_is_followed_by_more),
		CASE(a_buffer_bridges_a_gap),
		CASE(a_sum_of_ours_survives_a_failed_reading_but_not_a_missing_feature),
		CASE(a_peak_is_the_highest),
		CASE(a_lost_gpu_keeps_its_sums_and_no_gauge),
		CASE(a_gpu_is_found_again_by_its_uuid),
		CASE(one_that_is_not_listed_stays_with_present_false),
		CASE(without_a_driver_all_are_gone_but_not_when_we_let_go),
		CASE(instances_follow_their_gpu_in_order),
		CASE(the_same_entity_twice_counts_once),
		CASE(a_reading_counts_once),
		CASE(devices_are_bounded_and_the_longest_gone_makes_room),
		CASE(values_grow_stale_and_say_since_when),
		CASE(sums_over_samples_for_atop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
