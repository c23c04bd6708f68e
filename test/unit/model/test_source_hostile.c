// SPDX-License-Identifier: Apache-2.0
/*
 * Two models see the same readings of NVML. One also has a second source that fails, lies and returns.
 * Nothing that the good source says may look different there.
 */
#include "test.h"

#include "lab.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

#define SECOND NSEC_PER_SEC
#define LIAR SOURCE_DCGM
/* A sanitizer looks at memory, which fewer rounds show, too. */
enum { GPUS = 4, ROUNDS = SANITIZED ? 75 : 300, PIDS = 12 };

/* xorshift: the same numbers in each run. */
static uint32_t dice(uint32_t below)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

/* What NVML says in a round: some GPUs come and go, counters rise, processes work. */
static void fill_good(struct lab *lab, unsigned round)
{
	for (unsigned i = 0; i < GPUS; i++) {
		struct reading_entity *gpu, *mig;

		if (i == 3 && round / 100 % 2)
			continue;
		gpu = lab_gpu(lab, i);
		gpu->lost = i == 2 && round / 50 % 4 == 1;
		lab_set(gpu, SLOT_ENERGY, 150.0 * round);
		lab_set(gpu, SLOT_POWER, 100 + round % 7);
		lab_set(gpu, SLOT_MEMORY_USED, 1e9 + round % 13);
		lab_set(gpu, SLOT_MEMORY_TOTAL, 80e9);
		lab_set(gpu, SLOT_BUSY_GPU, 0.25);
		lab_set(gpu, SLOT_UTILIZATION_GPU, 0.25);
		if (i == 1) {
			mig = lab_mig(lab, gpu, 1, 0);
			lab_set(mig, SLOT_MEMORY_USED, 5e8);
		}
		if (gpu->lost)
			continue;
		for (unsigned pid = 1; pid <= PIDS; pid++) {
			struct reading_process *p;

			if (pid % GPUS != i || (round / (20 + pid)) % 5 == 0)
				continue;
			p = lab_process(lab, gpu, pid);
			lab_set_process(p, PROCESS_MEMORY, 1e8 * pid);
			lab_set_process(p, PROCESS_BUSY, 0.1);
		}
	}
}

static double lie(void)
{
	static const double lies[] = { 0, -1, 1e300, NAN, INFINITY, -INFINITY, 4294967295.0, 0.5, 1e9, 42 };

	return lies[dice(ARRAY_SIZE(lies))];
}

static void fill_values_of_liar(struct reading_entity *e, unsigned round)
{
	for (unsigned slot = 0; slot < GPU_SLOTS; slot++) {
		if (dice(4) == 0)
			continue;
		e->v[slot] = dice(2) ? lie() : 1000.0 * round + dice(100);
		e->p[slot] = dice(6) ? PRESENCE_PRESENT : (uint8_t)dice(256);
	}
	e->lost = dice(20) == 0;
	e->process_list = (uint8_t)dice(PRESENCE_MAX);
}

/* Right UUIDs and wrong ones, the same one twice, instances of the wrong GPU, PIDs of the good source's. */
static void fill_liar(struct lab *lab, unsigned round)
{
	struct reading_entity *e;

	if (dice(10) == 0) {
		lab->reading->state = 1 + dice(READING_STATES - 1);
		return;
	}
	for (unsigned i = 0; i < 6; i++) {
		if (dice(5) == 0)
			continue;
		e = lab_gpu(lab, dice(3) ? i : dice(300));
		e->index = dice(8);
		fill_values_of_liar(e, round);
		if (dice(3) == 0)
			fill_values_of_liar(lab_mig(lab, e, 1 + dice(2), 0), round);
		for (unsigned n = dice(6); n > 0; n--) {
			struct reading_process *p = lab_process(lab, e, 1 + dice(2 * PIDS));

			lab_set_process(p, PROCESS_MEMORY, lie());
			lab_set_process(p, PROCESS_BUSY, dice(2) ? 0.9 : lie());
		}
	}
	if (dice(4) == 0 && lab->reading->entities_n > 0) { /* somebody else's UUID for an instance */
		e = lab_mig(lab, &lab->reading->entities[0], 1, 0);
		snprintf(e->uuid, sizeof(e->uuid), "GPU-%04u", dice(GPUS));
		fill_values_of_liar(e, round);
	}
}

static const struct entity *same_entity(const struct snapshot *s, const struct entity *e)
{
	const struct entity *found = NULL;

	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *other = &s->entities[i];

		if (strcmp(other->id.uuid, e->id.uuid) != 0 || other->id.gi != e->id.gi)
			continue;
		assert_null(found); /* one device has one entity */
		found = other;
	}
	assert_non_null(found);
	return found;
}

/* Where the good source has a device, its identity and gauges are what is shown. */
static void compare_entity(const struct entity *good, const struct entity *mixed)
{
	if (good->present) {
		assert_true(mixed->present);
		assert_true(mixed->stale == good->stale);
		assert_string_equal(mixed->id.name, good->id.name);
		assert_string_equal(mixed->id.pci_bus_id, good->id.pci_bus_id);
		assert_int_equal(mixed->id.index, good->id.index);
		if (mixed->samples < good->samples)
			fprintf(stderr, "DBG %s gi %u samples %lu < %lu source %d mixed %d\n", good->id.uuid,
				good->id.gi, mixed->samples, good->samples, mixed->source, mixed->mixed);
		assert_true(mixed->samples >= good->samples);
	}
	assert_int_equal(mixed->id.lost, good->id.lost);
	for (unsigned slot = 0; slot < GPU_SLOTS; slot++) {
		if (!presence_is(good->id.p[slot]) || !good->present)
			continue;
		/* Made with processes, of which the other source may know more. */
		if (slot >= SLOT_ATTRIBUTION_MEMORY_PROCESSES && slot <= SLOT_ATTRIBUTION_ENERGY_UNATTRIBUTED)
			continue;
		if (gpu_slot_metric(slot)->kind == METRIC_GAUGE) {
			assert_int_equal(mixed->id.p[slot], good->id.p[slot]);
			assert_true(mixed->id.v[slot] == good->id.v[slot]);
		} else {
			assert_true(presence_is(mixed->id.p[slot]));
		}
	}
}

static void compare_processes(const struct lab *good, const struct lab *mixed)
{
	for (uint32_t i = 0; i < good->s->processes_n; i++) {
		const struct process *p = &good->s->processes[i], *other = NULL;
		const struct entity *e = &good->s->entities[p->entity];

		for (uint32_t j = 0; j < mixed->s->processes_n; j++)
			if (mixed->s->processes[j].id.pid == p->id.pid &&
			    strcmp(mixed->s->entities[mixed->s->processes[j].entity].id.uuid, e->id.uuid) ==
				    0)
				other = &mixed->s->processes[j];
		if (!other)
			fprintf(stderr, "DBG pid %u on %s n %u %u\n", p->id.pid, e->id.uuid,
				good->s->processes_n, mixed->s->processes_n);
		assert_non_null(other);
		assert_true(other->v[PROCESS_BUSY] == p->v[PROCESS_BUSY]);
		assert_true(other->v[PROCESS_MEMORY] == p->v[PROCESS_MEMORY]);
	}
}

static void a_lying_source_changes_nothing_of_a_good_one(_unused_ void **state)
{
	struct lab *good = lab_new(NULL), *mixed = lab_new(NULL);

	for (unsigned round = 1; round <= ROUNDS; round++) {
		fill_good(good, round);
		lab_step(good, SECOND);
		fill_good(mixed, round);
		lab_step(mixed, 0);
		fill_liar(mixed, round);
		lab_step_of(mixed, LIAR, 0);
		lab_wait(good, 0);
		for (uint32_t i = 0; i < good->s->entities_n; i++)
			compare_entity(&good->s->entities[i], same_entity(mixed->s, &good->s->entities[i]));
		assert_true(mixed->s->entities_n <= READING_ENTITIES_MAX);
	}
	lab_free(good);
	lab_free(mixed);
}

/* The good source never loses a device, so nothing of it may ever come from the other one. */
static void numbers_are_equal_to_the_last_bit(_unused_ void **state)
{
	struct lab *good = lab_new(NULL), *mixed = lab_new(NULL);

	for (unsigned round = 1; round <= ROUNDS / 3; round++) {
		struct lab *labs[] = { good, mixed };

		for (unsigned n = 0; n < 2; n++) {
			for (unsigned i = 0; i < GPUS; i++) {
				struct reading_entity *gpu = lab_gpu(labs[n], i);

				for (unsigned slot = 0; slot < GPU_SLOTS; slot++)
					lab_set(gpu, slot, 0.5 * (round % 2));
				lab_set(gpu, SLOT_ENERGY, 150.0 * round);
				for (unsigned pid = i; pid <= PIDS; pid += GPUS) {
					struct reading_process *p = lab_process(labs[n], gpu, pid + 1);

					lab_set_process(p, PROCESS_MEMORY, 1e8 * round);
					lab_set_process(p, PROCESS_BUSY, 0.1);
				}
			}
			lab_step(labs[n], n == 0 ? SECOND : 0);
		}
		fill_liar(mixed, round);
		lab_step_of(mixed, LIAR, 0);
		for (uint32_t i = 0; i < good->s->entities_n; i++) {
			const struct entity *a = &good->s->entities[i], *b = same_entity(mixed->s, a);

			assert_memory_equal(a->id.v, b->id.v, sizeof(a->id.v));
			assert_memory_equal(a->id.p, b->id.p, sizeof(a->id.p));
			assert_memory_equal(a->process_total, b->process_total, sizeof(a->process_total));
			assert_memory_equal(a->percent_sum, b->percent_sum, sizeof(a->percent_sum));
			assert_int_equal(a->samples, b->samples);
			assert_true(b->present && !b->stale);
		}
		compare_processes(good, mixed);
	}
	lab_free(good);
	lab_free(mixed);
}

static void made_up_devices_take_no_place_of_real_ones(void **state)
{
	struct lab *lab = *state;
	size_t before = 0;

	for (unsigned round = 0; round < 60; round++) {
		if (round == 30)
			before = mallinfo2().uordblks;
		for (unsigned i = 0; i < GPUS; i++)
			lab_set(lab_gpu(lab, i), SLOT_POWER, 100);
		lab_step(lab, SECOND);
		for (unsigned i = 0; i < READING_ENTITIES_MAX; i++)
			lab_gpu(lab, 100 + (round % 10) * READING_ENTITIES_MAX + i);
		lab_step_of(lab, LIAR, 0);
		assert_true(lab->s->entities_n <= READING_ENTITIES_MAX);
	}
	if (before != 0) /* a sanitizer's heap tells nothing */
		assert_true(mallinfo2().uordblks <= before + 4096);
	assert_true(lab->s->sources[LIAR].dropped > 0);
	/* A board that is plugged in has a place, although the table is full of what is not there. */
	for (unsigned i = 0; i <= GPUS; i++)
		lab_set(lab_gpu(lab, i), SLOT_POWER, 100);
	lab_step(lab, SECOND);
	for (unsigned i = 0; i <= GPUS; i++) {
		char uuid[16];

		snprintf(uuid, sizeof(uuid), "GPU-%04u", i);
		assert_non_null(lab_entity(lab, uuid));
		assert_true(lab_entity(lab, uuid)->present);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lying_source_changes_nothing_of_a_good_one),
		cmocka_unit_test(numbers_are_equal_to_the_last_bit),
		cmocka_unit_test_setup_teardown(made_up_devices_take_no_place_of_real_ones, lab_setup,
						lab_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
