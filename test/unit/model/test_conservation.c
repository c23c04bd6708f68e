// SPDX-License-Identifier: Apache-2.0
/*
 * Random nodes: processes come, go, come back, change PIDs' owners, hide from lists and outnumber their
 * series, workloads and places; GPUs are lost, the driver goes away, counters restart. After each reading
 * everything must add up: what the test put in is in the totals, each increment in one series or in "other",
 * no sum ever falls.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "lab.h"

/* A sanitizer looks at memory, which a few seeds show; the figures are for the others to prove. */
enum { GPUS = 3, PIDS = 40, STEPS = 400, SEEDS = SANITIZED ? 3 : 12 };

struct world {
	struct lab *lab;
	uint64_t random;
	struct {
		bool runs;
		unsigned ticks;
		double series[GPUS]; /* highest seen of this start of the PID */
		double total[GPUS];
	} pid[PIDS];
	double energy[GPUS]; /* the driver's counter */
	bool quiet; /* the GPUs work for nobody, so that there is a rest */
	double energy_seen[GPUS], energy_first[GPUS];
	double parts_seen[GPUS][3];
	double given[GPUS]; /* busy time put into readings */
	double other_seen[GPUS], total_seen[GPUS];
	double left[GPUS]; /* what stays with series that are gone */
};

/* Marsaglia's xorshift: the same run for the same seed everywhere. */
static unsigned draw(struct world *w, unsigned below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (unsigned)(w->random >> 33) % below;
}

static bool chance(struct world *w, unsigned percent)
{
	return draw(w, 100) < percent;
}

static void live(struct world *w)
{
	static unsigned ticks;

	for (unsigned pid = 1; pid < PIDS; pid++) {
		char id[16];

		if (!chance(w, 8))
			continue;
		w->pid[pid].runs = !w->pid[pid].runs;
		if (!w->pid[pid].runs) {
			w->lab->proc[pid].exists = false;
			continue;
		}
		if (chance(w, 70) || w->pid[pid].ticks == 0) {
			/* A new process; else the one that was there before takes up its work again. */
			w->pid[pid].ticks = ++ticks;
			memset(w->pid[pid].series, 0, sizeof(w->pid[pid].series));
			memset(w->pid[pid].total, 0, sizeof(w->pid[pid].total));
		}
		snprintf(id, sizeof(id), "w%u", draw(w, 20));
		lab_exists(w->lab, pid, w->pid[pid].ticks, chance(w, 80) ? WORKLOAD_CONTAINER : WORKLOAD_NONE,
			   id);
	}
}

static void read_gpu(struct world *w, unsigned gpu)
{
	struct reading_entity *e = lab_gpu(w->lab, gpu);

	e->lost = chance(w, 3);
	if (e->lost)
		return;
	w->energy[gpu] = chance(w, 2) ? 0 : w->energy[gpu] + draw(w, 700);
	lab_set(e, SLOT_ENERGY, w->energy[gpu]);
	lab_set(e, SLOT_MEMORY_TOTAL, 80e9);
	if (chance(w, 90))
		lab_set(e, SLOT_MEMORY_USED, draw(w, 40000) * 1048576.0);
	if (chance(w, 95))
		lab_set(e, SLOT_BUSY_GPU, draw(w, 65) / 64.0);
	if (chance(w, 5))
		e->process_list = PRESENCE_FAILED;
	for (unsigned pid = 1; pid < PIDS; pid++) {
		struct reading_process *p;

		if (!w->pid[pid].runs || pid % GPUS > gpu)
			continue;
		p = lab_process(w->lab, e, pid);
		if (chance(w, 5))
			p->types = 0;
		/* Binary fractions: sums of them are exact, so that "equal" can mean equal. */
		lab_set_process(p, PROCESS_BUSY, w->quiet ? 0 : draw(w, 65) / 64.0);
		lab_set_process(p, PROCESS_MEMORY, draw(w, 1000) * 1048576.0);
		w->given[gpu] += p->v[PROCESS_BUSY];
	}
}

static void check_process(struct world *w, const struct process *p, double *live_series)
{
	double *series = &w->pid[p->id.pid].series[p->entity], *total = &w->pid[p->id.pid].total[p->entity];

	live_series[p->entity] += p->series[PROCESS_BUSY];
	if (p->id.start_ticks != w->pid[p->id.pid].ticks)
		return; /* the PID has a new owner, and nobody has noticed yet */
	assert_true(p->series[PROCESS_BUSY] >= *series);
	assert_true(p->v[PROCESS_BUSY] >= *total);
	assert_true(p->series[PROCESS_BUSY] <= p->v[PROCESS_BUSY]);
	*series = p->series[PROCESS_BUSY];
	*total = p->v[PROCESS_BUSY];
}

static void check(struct world *w, const struct model_limits *limits)
{
	const struct snapshot *s = w->lab->s;
	double live_series[GPUS] = { 0 }, ended[GPUS] = { 0 };
	unsigned has_series = 0;

	for (uint32_t i = 0; i < s->processes_n; i++) {
		check_process(w, &s->processes[i], live_series);
		has_series += s->processes[i].has_series;
	}
	for (uint32_t i = 0; i < s->exited_n; i++)
		ended[s->exited[i].entity] += s->exited[i].series[PROCESS_BUSY];
	assert_true(has_series <= limits->series);
	assert_true(s->processes_n <= limits->processes);
	for (unsigned gpu = 0; gpu < s->entities_n; gpu++) {
		const struct entity *e = &s->entities[gpu];
		double energy = e->id.v[SLOT_ENERGY];

		assert_near(e->process_total[PROCESS_BUSY], w->given[gpu], 0);
		assert_near(e->process_other[PROCESS_BUSY] + live_series[gpu] + ended[gpu], w->given[gpu], 0);
		assert_true(e->process_other[PROCESS_BUSY] >= w->other_seen[gpu]);
		assert_true(energy >= w->energy_seen[gpu]);
		w->other_seen[gpu] = e->process_other[PROCESS_BUSY];
		w->energy_seen[gpu] = energy;
	}
}

/* What processes account for, and what they do not, is the device's figure; sums do not fall. */
static void check_attribution(struct world *w)
{
	const struct snapshot *s = w->lab->s;

	for (unsigned gpu = 0; gpu < s->entities_n; gpu++) {
		const double *v = s->entities[gpu].id.v;
		const uint8_t *p = s->entities[gpu].id.p;
		double parts[] = { v[SLOT_ATTRIBUTION_BUSY_UNATTRIBUTED],
				   v[SLOT_ATTRIBUTION_BUSY_OVERATTRIBUTED],
				   v[SLOT_ATTRIBUTION_ENERGY_UNATTRIBUTED] };

		if (presence_is(p[SLOT_ATTRIBUTION_MEMORY_PROCESSES]))
			assert_near(v[SLOT_ATTRIBUTION_MEMORY_PROCESSES] +
					    v[SLOT_ATTRIBUTION_MEMORY_UNATTRIBUTED] -
					    v[SLOT_ATTRIBUTION_MEMORY_OVERATTRIBUTED],
				    v[SLOT_MEMORY_USED], 0);
		assert_near(v[SLOT_ATTRIBUTION_BUSY_PROCESSES] + parts[0] - parts[1] +
				    v[SLOT_ATTRIBUTION_BUSY_RESIDUAL],
			    v[SLOT_BUSY_GPU], 0);
		assert_true(fabs(v[SLOT_ATTRIBUTION_BUSY_RESIDUAL]) <= 2);
		assert_near(v[SLOT_ATTRIBUTION_BUSY_PROCESSES], w->given[gpu], 0);
		if (w->energy_first[gpu] < 0 && presence_is(p[SLOT_ENERGY]))
			w->energy_first[gpu] = v[SLOT_ENERGY];
		if (presence_is(p[SLOT_ENERGY]))
			assert_near(v[SLOT_ATTRIBUTION_ENERGY_PROCESSES] + parts[2],
				    v[SLOT_ENERGY] - w->energy_first[gpu], 1e-6);
		for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
			assert_true(parts[i] >= w->parts_seen[gpu][i]);
			w->parts_seen[gpu][i] = parts[i];
		}
	}
}

/*
 * All workloads of a device, and its "other", never exceed the device's processes; none falls while it is
 * there.
 */
static void check_workloads(const struct snapshot *s, const struct model_limits *limits)
{
	double sums[GPUS] = { 0 };

	assert_true(s->workloads_n <= limits->workloads + GPUS);
	for (uint32_t i = 0; i < s->workloads_n; i++)
		sums[s->workloads[i].entity] += s->workloads[i].v[PROCESS_BUSY];
	for (unsigned gpu = 0; gpu < s->entities_n; gpu++)
		assert_true(sums[gpu] <= s->entities[gpu].process_total[PROCESS_BUSY]);
}

static void run(uint64_t seed, const struct model_limits *limits)
{
	struct world w = { .lab = lab_new(limits), .random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1 };

	for (unsigned gpu = 0; gpu < GPUS; gpu++)
		w.energy_first[gpu] = -1;
	for (unsigned step = 0; step < STEPS; step++) {
		live(&w);
		w.quiet ^= chance(&w, 5);
		if (chance(&w, 3)) {
			w.lab->reading->state = READING_NO_DRIVER;
		} else {
			for (unsigned gpu = 0; gpu < GPUS; gpu++)
				read_gpu(&w, gpu);
		}
		/* Never so long that exit records expire: what they hold would be missing from the sum. */
		lab_step(w.lab, chance(&w, 5) ? 4 * NSEC_PER_SEC : NSEC_PER_SEC);
		check(&w, limits);
		check_workloads(w.lab->s, limits);
		check_attribution(&w);
	}
	assert_near(w.lab->s->agent[AGENT_DROPPED_EXITED], 0, 0);
	lab_free(w.lab);
}

static void everything_adds_up_with_room(_unused_ void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		run(seed, &(struct model_limits){
				  .processes = 4096, .series = 500, .exited = 20000, .workloads = 500 });
}

static void everything_adds_up_with_few_series(_unused_ void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		run(seed, &(struct model_limits){
				  .processes = 4096, .series = 5, .exited = 20000, .workloads = 500 });
}

static void everything_adds_up_with_no_room_at_all(_unused_ void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		run(seed,
		    &(struct model_limits){ .processes = 15, .series = 4, .exited = 20000, .workloads = 5 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_adds_up_with_room),
		cmocka_unit_test(everything_adds_up_with_few_series),
		cmocka_unit_test(everything_adds_up_with_no_room_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
