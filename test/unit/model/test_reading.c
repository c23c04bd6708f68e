// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "lab.h"

static int setup(void **state)
{
	struct reading *r = calloc(1, sizeof(*r));

	r->entities_n = 2;
	for (unsigned i = 0; i < 2; i++) {
		r->entities[i].parent = READING_NONE;
		r->entities[i].gi = r->entities[i].ci = UINT32_MAX;
	}
	r->processes_n = 1;
	r->begin_ns = 1000;
	r->end_ns = 2000;
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void a_sound_reading_passes_unchanged(void **state)
{
	struct reading *r = *state;

	lab_set(&r->entities[0], SLOT_POWER, 312.5);
	lab_set(&r->entities[0], SLOT_ENERGY, 1e6);
	r->entities[0].p[SLOT_ENERGY] |= PRESENCE_ESTIMATED;
	r->entities[0].p[SLOT_BUSY_OFA] = PRESENCE_UNSUPPORTED;
	lab_set_process(&r->processes[0], PROCESS_MEMORY, 1e9);
	assert_int_equal(reading_check(r), 0);
	assert_near(r->entities[0].v[SLOT_POWER], 312.5, 0);
	assert_int_equal(r->entities[0].p[SLOT_POWER], PRESENCE_PRESENT);
	assert_int_equal(r->entities[0].p[SLOT_ENERGY], PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	assert_int_equal(r->entities[0].p[SLOT_BUSY_OFA], PRESENCE_UNSUPPORTED);
	assert_int_equal(r->processes[0].p[PROCESS_MEMORY], PRESENCE_PRESENT);
	assert_int_equal(r->rejected[GPU_POWER], 0);
}

static void times_of_the_driver_are_not_trusted(void **state)
{
	struct reading *r = *state;
	struct reading_stamps *stamps = &r->entities[0].stamps;

	r->end_ns = 2 * STAMP_AGE_MAX_NS;
	*stamps = (struct reading_stamps){ .error_ns = 5, .unusable = 7 };
	stamps->at_ns[0] = r->end_ns - 1;
	stamps->at_ns[1] = r->end_ns + 1;
	stamps->at_ns[2] = r->end_ns - STAMP_AGE_MAX_NS;
	assert_int_equal(reading_check(r), 0);
	assert_int_equal(stamps->at_ns[0], r->end_ns - 1);
	assert_int_equal(stamps->at_ns[1], 0);
	assert_int_equal(stamps->at_ns[2], 0);
	assert_int_equal(stamps->unusable, 1);
	stamps->offset_ns = INT64_MIN;
	assert_int_equal(reading_check(r), 0);
	assert_int_equal(stamps->error_ns, 0);
	assert_int_equal(stamps->at_ns[0], 0);
}

static void counts_and_indexes_out_of_range_are_refused(void **state)
{
	struct reading *r = *state;

#define REFUSED(member_, bad_)                                \
	do {                                                  \
		__typeof__(r->member_) good = r->member_;     \
		r->member_ = (bad_);                          \
		assert_int_equal(reading_check(r), -EBADMSG); \
		r->member_ = good;                            \
		assert_int_equal(reading_check(r), 0);        \
	} while (0)
	REFUSED(state, READING_STATES);
	REFUSED(entities_n, READING_ENTITIES_MAX + 1);
	REFUSED(entities_n, UINT32_MAX);
	REFUSED(processes_n, READING_PROCESSES_MAX + 1);
	REFUSED(events_n, READING_EVENTS_MAX + 1);
	REFUSED(gpus_unidentified, READING_ENTITIES_MAX + 1);
	REFUSED(topology_n, READING_TOPOLOGY_MAX + 1);
	REFUSED(begin_ns, -1);
	REFUSED(end_ns, 999);
	REFUSED(processes[0].entity, 2);
	REFUSED(entities[1].parent, 1);
	REFUSED(entities[1].parent, 2);
	REFUSED(entities[0].parent, 0);
	r->events_n = 1;
	REFUSED(events[0].entity, 2);
}

static void an_instance_of_an_instance_is_refused(void **state)
{
	struct reading *r = *state;

	r->entities_n = 3;
	r->entities[1].parent = 0;
	r->entities[2].parent = 1;
	assert_int_equal(reading_check(r), -EBADMSG);
	r->entities[2].parent = 0;
	assert_int_equal(reading_check(r), 0);
}

static void strings_end_and_are_utf8(void **state)
{
	struct reading *r = *state;

	memset(r->entities[0].name, 0xff, sizeof(r->entities[0].name));
	memset(r->entities[0].serial, 'x', sizeof(r->entities[0].serial));
	memset(r->processes[0].name, 0xc3, sizeof(r->processes[0].name));
	memset(r->error, 'e', sizeof(r->error));
	assert_int_equal(reading_check(r), 0);
	assert_int_equal(strlen(r->entities[0].name), sizeof(r->entities[0].name) - 1);
	assert_true(utf8_valid(r->entities[0].name, strlen(r->entities[0].name)));
	assert_int_equal(strlen(r->entities[0].serial), sizeof(r->entities[0].serial) - 1);
	assert_true(utf8_valid(r->processes[0].name, strlen(r->processes[0].name)));
	assert_int_equal(strlen(r->error), sizeof(r->error) - 1);
}

static void what_cannot_be_is_rejected_and_counted(void **state)
{
	struct reading *r = *state;

	lab_set(&r->entities[0], SLOT_TEMPERATURE, 644245923);
	lab_set(&r->entities[0], SLOT_FAN_SPEED + 3, NAN);
	lab_set(&r->entities[1], SLOT_FAN_SPEED, -0.5);
	r->entities[0].p[SLOT_POWER] = 77;
	r->entities[0].p[SLOT_CLOCK_SM] = PRESENCE_UNSUPPORTED | PRESENCE_ESTIMATED;
	lab_set_process(&r->processes[0], PROCESS_UTILIZATION, 42949672.95);
	assert_int_equal(reading_check(r), 0);
	assert_int_equal(r->entities[0].p[SLOT_TEMPERATURE], PRESENCE_REJECTED);
	assert_int_equal(r->entities[0].p[SLOT_POWER], PRESENCE_REJECTED);
	assert_int_equal(r->entities[0].p[SLOT_CLOCK_SM], PRESENCE_REJECTED);
	assert_int_equal(r->rejected[GPU_TEMPERATURE], 1);
	assert_int_equal(r->rejected[GPU_FAN_SPEED], 2);
	assert_int_equal(r->rejected[GPU_POWER], 1);
	assert_int_equal(r->processes[0].p[PROCESS_UTILIZATION], PRESENCE_REJECTED);
	assert_int_equal(r->rejected_process[PROCESS_UTILIZATION], 1);
	/* A second look finds nothing more. */
	assert_int_equal(reading_check(r), 0);
	assert_int_equal(r->rejected[GPU_TEMPERATURE], 1);
}

static void a_value_of_the_whole_gpu_is_not_shown_on_its_instances(void **state)
{
	struct reading *r = *state;

	r->entities[1].parent = 0;
	r->entities[1].gi = r->entities[1].ci = 1;
	lab_set(&r->entities[1], SLOT_POWER, 300);
	lab_set(&r->entities[1], SLOT_MEMORY_USED, 5e9);
	assert_int_equal(reading_check(r), 0);
	assert_int_equal(r->entities[1].p[SLOT_POWER], PRESENCE_ABSENT);
	assert_int_equal(r->entities[1].p[SLOT_MEMORY_USED], PRESENCE_PRESENT);
	assert_int_equal(r->entities[1].gi, 1);
	assert_int_equal(r->rejected[GPU_POWER], 0);
}

static void flags_become_flags(void **state)
{
	struct reading *r = *state;

	r->simulated = 200;
	r->entities[0].lost = 9;
	r->entities[0].process_list = 99;
	r->entities[1].gi = 5; /* no instance has one */
	r->processes[0].types = 0xff;
	assert_int_equal(reading_check(r), 0);
	assert_int_equal(r->simulated, 1);
	assert_int_equal(r->entities[0].lost, 1);
	assert_int_equal(r->entities[0].process_list, PRESENCE_FAILED);
	assert_int_equal(r->entities[1].gi, UINT32_MAX);
	assert_int_equal(r->processes[0].types, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_sound_reading_passes_unchanged, setup, teardown),
		cmocka_unit_test_setup_teardown(times_of_the_driver_are_not_trusted, setup, teardown),
		cmocka_unit_test_setup_teardown(counts_and_indexes_out_of_range_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(an_instance_of_an_instance_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(strings_end_and_are_utf8, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_is_rejected_and_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(a_value_of_the_whole_gpu_is_not_shown_on_its_instances, setup,
						teardown),
		cmocka_unit_test_setup_teardown(flags_become_flags, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
