// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "lab.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

#define SECOND NSEC_PER_SEC
/* A second source of devices: any id of that kind other than NVML's. */
#define SECOND_SOURCE SOURCE_DCGM

static const char gpu_0[] = "GPU-0000";

/* GPU 0 of the reading at hand. */
static struct reading_entity *first_gpu(struct lab *lab)
{
	return lab->reading->entities_n ? &lab->reading->entities[0] : lab_gpu(lab, 0);
}

/* One reading of one source: GPU 0 with an energy counter and a power gauge. */
static const struct entity *step(struct lab *lab, enum source_id source, int64_t ns, double joules,
				 double watts)
{
	struct reading_entity *gpu = first_gpu(lab);

	lab_set(gpu, SLOT_ENERGY, joules);
	lab_set(gpu, SLOT_POWER, watts);
	assert_int_equal(lab_step_of(lab, source, ns), 0);
	return lab_entity(lab, gpu_0);
}

static void a_source_is_in_use_from_its_first_word(void **state)
{
	struct lab *lab = *state;

	lab_wait(lab, SECOND);
	for (unsigned i = 0; i < SOURCES; i++)
		assert_false(lab->s->sources[i].in_use);
	step(lab, SOURCE_NVML, SECOND, 1, 1);
	model_set_source(lab->model, SOURCE_KMSG, READING_FAILED, "cannot be read");
	lab_wait(lab, 0);
	assert_true(lab->s->sources[SOURCE_NVML].fresh);
	assert_true(lab->s->sources[SOURCE_KMSG].in_use);
	assert_false(lab->s->sources[SOURCE_KMSG].fresh);
	assert_string_equal(lab->s->sources[SOURCE_KMSG].error, "cannot be read");
	assert_near(lab->s->agent[AGENT_SOURCE_UP_KMSG], 0, 0);
	model_set_source(lab->model, SOURCE_KMSG, READING_OK, "");
	lab_wait(lab, 0);
	assert_near(lab->s->agent[AGENT_SOURCE_UP_KMSG], 1, 0);
	assert_false(lab->s->sources[SECOND_SOURCE].in_use);
}

static void the_node_is_fresh_while_one_source_of_devices_is(void **state)
{
	struct lab *lab = *state;

	step(lab, SOURCE_NVML, SECOND, 1, 1);
	step(lab, SECOND_SOURCE, 0, 1, 1);
	assert_int_equal(lab->s->device_source, SOURCE_NVML);
	for (unsigned i = 0; i < 10; i++)
		step(lab, SECOND_SOURCE, SECOND, 1, 1);
	assert_true(lab->s->fresh);
	assert_false(lab->s->sources[SOURCE_NVML].fresh);
	assert_near(lab->s->agent[AGENT_SOURCE_UP_NVML], 0, 0);
	assert_int_equal(lab->s->device_source, SECOND_SOURCE);
	lab_wait(lab, 10 * SECOND);
	assert_false(lab->s->fresh);
	assert_int_equal(lab->s->device_source, SOURCE_NVML);
}

static void the_better_source_decides(void **state)
{
	struct lab *lab = *state;
	const struct entity *e;

	step(lab, SECOND_SOURCE, SECOND, 5000, 77);
	e = step(lab, SOURCE_NVML, SECOND, 100, 50);
	assert_near(e->id.v[SLOT_POWER], 50, 0);
	assert_int_equal(snapshot_slot_source(lab->s, e, SLOT_POWER), SOURCE_NVML);
	e = step(lab, SECOND_SOURCE, SECOND, 5001, 77);
	assert_near(e->id.v[SLOT_POWER], 50, 0);
	assert_true(lab->s->entities_n == 1);
	/* What the better one does not know, the other says. */
	lab_set(lab_gpu(lab, 0), SLOT_TEMPERATURE, 33);
	lab_step_of(lab, SECOND_SOURCE, SECOND / 2);
	e = lab_entity(lab, gpu_0);
	assert_near(e->id.v[SLOT_TEMPERATURE], 33, 0);
	assert_int_equal(snapshot_slot_source(lab->s, e, SLOT_TEMPERATURE), SECOND_SOURCE);
	assert_int_equal(snapshot_slot_source(lab->s, e, SLOT_POWER), SOURCE_NVML);
	assert_int_equal(snapshot_slot_source(lab->s, e, SLOT_UTILIZATION_GPU), SOURCES);
}

static void a_row_may_prefer_another_source(_unused_ void **state)
{
	struct metric metric = gpu_metrics[GPU_POWER];

	assert_true(source_before(&metric, SOURCE_NVML, SECOND_SOURCE));
	assert_false(source_before(&metric, SECOND_SOURCE, SOURCE_NVML));
	metric.preferred_source = SECOND_SOURCE + 1;
	assert_false(source_before(&metric, SOURCE_NVML, SECOND_SOURCE));
	assert_true(source_before(&metric, SECOND_SOURCE, SOURCE_NVML));
	assert_false(source_before(&metric, SECOND_SOURCE, SECOND_SOURCE));
}

static void a_stale_value_gives_way(void **state)
{
	struct lab *lab = *state;
	const struct entity *e;

	lab_set(lab_gpu(lab, 0), SLOT_TEMPERATURE, 40);
	step(lab, SECOND_SOURCE, SECOND, 5000, 77);
	lab_set(lab_gpu(lab, 0), SLOT_UTILIZATION_GPU, 0.5);
	step(lab, SOURCE_NVML, 0, 100, 50);
	for (unsigned i = 1; i <= 5; i++) {
		e = step(lab, SECOND_SOURCE, SECOND, 5000, 70 + i);
		assert_true(e->present);
		assert_false(e->stale);
		assert_near(e->id.v[SLOT_POWER], i <= 3 ? 50 : 70 + i, 0);
	}
	assert_int_equal(e->numbers_from, 1 << SECOND_SOURCE);
	/* What NVML alone knew is of an earlier time than the rest. */
	assert_false(presence_is(e->id.p[SLOT_UTILIZATION_GPU]));
	assert_int_equal(snapshot_slot_source(lab->s, e, SLOT_POWER), SECOND_SOURCE);
	e = step(lab, SOURCE_NVML, SECOND, 200, 51);
	assert_near(e->id.v[SLOT_POWER], 51, 0);
	/* The second has none that the first has not. */
	assert_int_equal(e->numbers_from, 1 << SOURCE_NVML);
	/* When all is silent, everything stays, and is stale. */
	lab_wait(lab, 20 * SECOND);
	e = lab_entity(lab, gpu_0);
	assert_true(e->present && e->stale);
	assert_near(e->id.v[SLOT_POWER], 51, 0);
}

static void a_counter_goes_on_when_another_source_decides(void **state)
{
	struct lab *lab = *state;
	const struct entity *e;

	step(lab, SOURCE_NVML, SECOND, 1000, 1);
	step(lab, SECOND_SOURCE, 0, 70000, 1);
	e = step(lab, SOURCE_NVML, SECOND, 1100, 1);
	step(lab, SECOND_SOURCE, 0, 70100, 1);
	/* NVML is silent; the other's readings count from the first after NVML's newest on. */
	for (unsigned i = 1; i <= 10; i++) {
		e = step(lab, SECOND_SOURCE, SECOND, 70100 + 100 * i, 1);
		assert_near(e->id.v[SLOT_ENERGY], i <= 4 ? 1100 : 1100 + 100 * (i - 4), 1e-6);
	}
	/* 1000 more by its own count, of which 600 were counted: it adds the rest. */
	e = step(lab, SOURCE_NVML, SECOND, 2200, 1);
	assert_near(e->id.v[SLOT_ENERGY], 2200, 1e-6);
	step(lab, SECOND_SOURCE, 0, 71300, 1);
	e = step(lab, SOURCE_NVML, SECOND, 2300, 1);
	assert_near(e->id.v[SLOT_ENERGY], 2300, 1e-6);
}

static void a_source_that_counted_too_much_takes_nothing_back(void **state)
{
	struct lab *lab = *state;
	const struct entity *e;

	step(lab, SOURCE_NVML, SECOND, 1000, 1);
	for (unsigned i = 0; i <= 10; i++) /* ten times what NVML will say */
		e = step(lab, SECOND_SOURCE, SECOND, 5000 + 1000 * i, 1);
	double shown = e->id.v[SLOT_ENERGY];

	assert_true(shown > 2000);
	for (unsigned i = 1; i <= 5; i++) {
		e = step(lab, SOURCE_NVML, SECOND, 2100 + 100 * i, 1);
		assert_near(e->id.v[SLOT_ENERGY], shown + 100 * (i - 1), 1e-6);
	}
}

/* Its counter runs wild while the better one decides, even after it has decided once: nothing is added. */
static void what_it_counted_meanwhile_is_not_added(void **state)
{
	struct lab *lab = *state;
	const struct entity *e = NULL;
	double good = 0, bad = 0, before;

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 10; i++) {
			before = e ? e->id.v[SLOT_ENERGY] : 0;
			step(lab, SOURCE_NVML, SECOND, good += i == 0 ? 1000 : 100, 1);
			e = step(lab, SECOND_SOURCE, 0, bad += 20000, 1);
			assert_true(e->id.v[SLOT_ENERGY] >= before && e->id.v[SLOT_ENERGY] <= before + 1000);
		}
		for (unsigned i = 0; i < 6; i++) {
			before = e->id.v[SLOT_ENERGY];
			e = step(lab, SECOND_SOURCE, SECOND, bad += 10, 1);
			assert_true(e->id.v[SLOT_ENERGY] >= before && e->id.v[SLOT_ENERGY] <= before + 10);
		}
	}
}

/* What it knew before the other's newest reading is no base: part of what came after has been counted. */
static void a_rarely_read_source_begins_with_a_new_reading(void **state)
{
	struct lab *lab = *state;
	const struct entity *e;

	model_set_source_period(lab->model, SECOND_SOURCE, 30 * SECOND);
	step(lab, SOURCE_NVML, SECOND, 1000, 1);
	step(lab, SECOND_SOURCE, 0, 5000, 1);
	for (unsigned i = 1; i <= 10; i++)
		step(lab, SOURCE_NVML, SECOND, 1000 + 100 * i, 1);
	lab_wait(lab, 10 * SECOND);
	assert_near(lab_entity(lab, gpu_0)->id.v[SLOT_ENERGY], 2000, 0);
	assert_int_equal(snapshot_slot_source(lab->s, lab_entity(lab, gpu_0), SLOT_POWER), SECOND_SOURCE);
	e = step(lab, SECOND_SOURCE, 10 * SECOND, 8000, 1);
	assert_near(e->id.v[SLOT_ENERGY], 2000, 1e-6);
	e = step(lab, SECOND_SOURCE, 30 * SECOND, 11000, 1);
	assert_near(e->id.v[SLOT_ENERGY], 5000, 1e-6);
}

static void a_driver_that_starts_again_meanwhile_is_not_counted_twice(void **state)
{
	struct lab *lab = *state;
	const struct entity *e = NULL;
	double before;

	step(lab, SOURCE_NVML, SECOND, 50000, 1);
	for (unsigned i = 0; i <= 10; i++)
		e = step(lab, SECOND_SOURCE, SECOND, 100 * i, 1);
	before = e->id.v[SLOT_ENERGY];
	/* NVML's counter began at zero when its driver did, 10 seconds ago; the other still counts. */
	for (unsigned i = 11; i <= 40; i++) {
		step(lab, SECOND_SOURCE, SECOND, 100 * i, 1);
		e = step(lab, SOURCE_NVML, 0, 100 * i, 1);
		assert_true(e->id.v[SLOT_ENERGY] >= before);
		assert_true(e->id.v[SLOT_ENERGY] <= 50000 + 100 * i + 1e-6);
		before = e->id.v[SLOT_ENERGY];
	}
	assert_near(e->id.v[SLOT_ENERGY], 50000 + 4000, 1e-6);
}

static void increments_follow_the_same_rule(void **state)
{
	struct lab *lab = *state;
	const struct entity *e = NULL;

	for (unsigned i = 0; i < 30; i++) {
		bool silent = i >= 10 && i < 20;

		if (!silent) {
			lab_set(lab_gpu(lab, 0), SLOT_BUSY_GPU, i == 20 ? 11 * 0.5 : 0.5);
			lab_step_of(lab, SOURCE_NVML, SECOND);
		} else {
			lab_wait(lab, SECOND);
		}
		lab_set(lab_gpu(lab, 0), SLOT_BUSY_GPU, 0.5);
		lab_step_of(lab, SECOND_SOURCE, 0);
		e = lab_entity(lab, gpu_0);
		assert_true(e->id.v[SLOT_BUSY_GPU] <= 0.5 * (i + 1) + 1e-9);
	}
	assert_near(e->id.v[SLOT_BUSY_GPU], 15, 1e-9);
}

static void what_a_failing_source_alone_knew_goes(void **state)
{
	struct lab *lab = *state;
	const struct entity *e;

	lab_set(lab_gpu(lab, 0), SLOT_POWER, 50);
	lab_set(lab_gpu(lab, 1), SLOT_POWER, 51);
	lab_step(lab, SECOND);
	lab_set(lab_gpu(lab, 0), SLOT_POWER, 60);
	lab_set(lab_gpu(lab, 2), SLOT_POWER, 62);
	lab_step_of(lab, SECOND_SOURCE, 0);
	assert_int_equal(lab->s->entities_n, 3);
	lab->reading->state = READING_FAILED;
	snprintf(lab->reading->error, sizeof(lab->reading->error), "broken");
	lab_step(lab, SECOND);
	e = lab_entity(lab, gpu_0);
	assert_true(e->present);
	assert_near(e->id.v[SLOT_POWER], 60, 0);
	assert_false(lab_entity(lab, "GPU-0001")->present);
	assert_false(presence_is(lab_entity(lab, "GPU-0001")->id.p[SLOT_POWER]));
	assert_true(lab_entity(lab, "GPU-0002")->present);
	assert_string_equal(lab->s->sources[SOURCE_NVML].error, "broken");
	assert_true(lab->s->fresh);
	/* The other fails, and NVML is back. */
	lab_set(lab_gpu(lab, 0), SLOT_POWER, 50);
	lab_set(lab_gpu(lab, 1), SLOT_POWER, 51);
	lab_step(lab, SECOND);
	lab->reading->state = READING_FAILED;
	lab_step_of(lab, SECOND_SOURCE, 0);
	assert_near(lab_entity(lab, gpu_0)->id.v[SLOT_POWER], 50, 0);
	assert_true(lab_entity(lab, "GPU-0001")->present);
	assert_false(lab_entity(lab, "GPU-0002")->present);
}

static void one_source_gives_the_processes_of_a_device(void **state)
{
	struct lab *lab = *state;
	struct reading_entity *gpu;

	lab_exists(lab, 7, 70, WORKLOAD_CONTAINER, "box");
	for (unsigned i = 0; i < 20; i++) {
		if (i < 8 || i >= 16) {
			gpu = lab_gpu(lab, 0);
			lab_set_process(lab_process(lab, gpu, 7), PROCESS_BUSY, 0.5);
			lab_step(lab, SECOND);
		} else {
			lab_wait(lab, SECOND);
		}
		gpu = lab_gpu(lab, 0);
		if (i != 3) /* a list that lacks it ends nothing */
			lab_set_process(lab_process(lab, gpu, 7), PROCESS_BUSY, 0.5);
		lab_set_process(lab_process(lab, gpu, 8), PROCESS_BUSY, 0.5);
		lab_step_of(lab, SECOND_SOURCE, 0);
		assert_non_null(lab_find(lab, 7));
		assert_true((lab_find(lab, 8) != NULL) == (i >= 11 && i < 16));
		assert_true(lab_find(lab, 7)->v[PROCESS_BUSY] <= 0.5 * (i + 1));
	}
	assert_int_equal(lab->s->processes_n, 1);
	assert_true(lab_find(lab, 7)->v[PROCESS_BUSY] >= 0.5 * 14);
	assert_near(lab_workload(lab, "box")->v[PROCESS_BUSY], lab_find(lab, 7)->v[PROCESS_BUSY], 1e-9);
}

static void an_error_that_three_sources_report_is_one(void **state)
{
	struct lab *lab = *state;

	lab_event(lab, lab_gpu(lab, 0), 79);
	lab_step(lab, SECOND);
	lab_kmsg(lab->model, "00000000:01:00.0", 79, clock_boot_ns(), 0);
	lab_event(lab, lab_gpu(lab, 0), 79);
	lab_step_of(lab, SECOND_SOURCE, SECOND);
	assert_int_equal(lab->s->xids_n, 1);
	assert_int_equal(lab->s->xids[0].count, 1);
	lab_event(lab, lab_gpu(lab, 0), 79);
	lab_step_of(lab, SECOND_SOURCE, SECOND);
	assert_int_equal(lab->s->xids[0].count, 2);
}

int main(void)
{
#define CASE(name_) cmocka_unit_test_setup_teardown(name_, lab_setup, lab_teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_source_is_in_use_from_its_first_word),
		CASE(the_node_is_fresh_while_one_source_of_devices_is),
		CASE(the_better_source_decides),
		CASE(a_row_may_prefer_another_source),
		CASE(a_stale_value_gives_way),
		CASE(a_counter_goes_on_when_another_source_decides),
		CASE(a_source_that_counted_too_much_takes_nothing_back),
		CASE(what_it_counted_meanwhile_is_not_added),
		CASE(a_rarely_read_source_begins_with_a_new_reading),
		CASE(a_driver_that_starts_again_meanwhile_is_not_counted_twice),
		CASE(increments_follow_the_same_rule),
		CASE(what_a_failing_source_alone_knew_goes),
		CASE(one_source_gives_the_processes_of_a_device),
		CASE(an_error_that_three_sources_report_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
