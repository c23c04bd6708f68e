// SPDX-License-Identifier: Apache-2.0
/*
 * All who have series in bounded number, over the same random days: NVML's processes in a model, traced
 * processes and their kernels. Each increment is in one series or in "other", and in the sum of all.
 */
#include "model/lab.h"
#undef assert_near /* the same of scene.h */
#include "cuda/scene.h"

#include "base/clock.h"
#include "model/series.h"

#define assert_exactly(value_, wanted_) assert_near(value_, wanted_, 0)

enum { STEPS = 200, PIDS = 6, FUNCTIONS = 5, SERIES = 2, CLAIMS = 20 };

/* ---- the real users ---- */

struct day {
	struct lab *lab;
	struct scene *scene;
	double busy; /* given to the model */
	uint64_t launches; /* made */
	double ended_launches; /* in series of traced processes that have ended */
	uint64_t ended_kernels;
};

static void nvml_step(struct day *d)
{
	struct reading_entity *gpu = lab_gpu(d->lab, 0);

	lab_set(gpu, SLOT_MEMORY_TOTAL, 80e9);
	for (uint32_t pid = 1; pid <= PIDS; pid++) {
		struct reading_process *p;

		if (random() % 4 == 0)
			continue; /* not there this time */
		lab_exists(d->lab, pid, pid, WORKLOAD_NONE, "");
		p = lab_process(d->lab, gpu, pid);
		/* Binary fractions: sums of them are exact. */
		lab_set_process(p, PROCESS_BUSY, (double)(random() % 65) / 64);
		lab_set_process(p, PROCESS_MEMORY, 0);
		d->busy += p->v[PROCESS_BUSY];
	}
	lab_step(d->lab, NSEC_PER_SEC);
}

static void check_nvml(const struct day *d)
{
	const struct snapshot *s = d->lab->s;
	double series = s->entities[0].process_other[PROCESS_BUSY];
	unsigned with = 0;

	for (uint32_t i = 0; i < s->processes_n; i++) {
		series += s->processes[i].series[PROCESS_BUSY];
		with += s->processes[i].has_series;
	}
	for (uint32_t i = 0; i < s->exited_n; i++) {
		series += s->exited[i].series[PROCESS_BUSY];
		assert_false(s->exited[i].has_series);
	}
	assert_true(with <= SERIES);
	assert_exactly(series, d->busy);
	assert_exactly(s->entities[0].process_total[PROCESS_BUSY], d->busy);
}

static void traced_step(struct day *d, uint64_t step)
{
	struct scene *s = d->scene;

	s->tgid = PID + (uint32_t)(random() % PIDS);
	s->tid = s->tgid;
	if (random() % 6 == 0)
		scene_end(s, TRACE_EVENT_EXIT);
	s->now_us++;
	if (random() % 3 == 0)
		scene_process(s, s->tgid, 1000 + step);
	for (long n = random() % 8; n > 0; n--, d->launches++)
		launch_function(s, 0, 0x1000 + (uint64_t)(random() % FUNCTIONS));
	s->now_us += (uint64_t)(random() % 200);
	sync_context(s, 50);
	window(s);
}

static void check_traced(struct day *d)
{
	const struct trace_view *view = d->scene->view;
	const struct traced_total *total = device_total(d->scene, UUID0);
	uint64_t kernels = total->kernels_other.launches;
	double launches = total->other[TRACED_LAUNCHES];
	unsigned with = 0, kernels_with = 0;

	for (uint32_t i = 0; i < view->devices_n; i++) {
		const struct traced_process *p = &view->processes[view->devices[i].process];

		if (p->has_series && p->exited)
			d->ended_launches += view->devices[i].v[TRACED_LAUNCHES];
		else if (p->has_series)
			launches += view->devices[i].v[TRACED_LAUNCHES];
	}
	for (uint32_t i = 0; i < view->kernels_n; i++) {
		const struct traced_kernel *k = &view->kernels[i];

		if (view->processes[k->process].exited)
			d->ended_kernels += k->series.launches;
		else
			kernels += k->series.launches;
		kernels_with += k->has_series;
		assert_true(k->series.launches <= k->all.launches);
	}
	for (uint32_t i = 0; i < view->processes_n; i++)
		with += view->processes[i].has_series;
	assert_true(with <= SERIES && kernels_with <= SERIES);
	assert_exactly(total->v[TRACED_LAUNCHES], (double)d->launches);
	assert_exactly(launches + d->ended_launches, (double)d->launches);
	assert_int_equal(total->kernels.launches, d->launches);
	assert_int_equal(kernels + d->ended_kernels, d->launches);
}

static void all_users_add_up(_unused_ void **state)
{
	static const struct model_limits limits = {
		.processes = 100, .series = SERIES, .exited = 10000, .workloads = 10
	};
	static const struct cuda_limits traced = { .series = SERIES, .kernel_series = SERIES, .kernels = 4 };

	for (unsigned seed = 1; seed <= 5; seed++) {
		struct day d = { .lab = lab_new(&limits), .scene = scene_new(&traced) };

		srandom(seed);
		for (uint64_t step = 0; step < STEPS; step++) {
			nvml_step(&d);
			check_nvml(&d);
			traced_step(&d, step);
			if (d.launches > 0)
				check_traced(&d);
		}
		scene_free(d.scene);
		clock_freeze(true);
		lab_free(d.lab);
	}
}

/* ---- what they use ---- */

struct series_owner {
	struct series_claim claim;
	double own;
	uint64_t own_count;
};

struct sums {
	double all, other;
	uint64_t all_count, other_count;
};

static void credit_all(struct series_owner *owners, struct sums *sums)
{
	double own = 0;
	uint64_t own_count = 0;
	unsigned with = 0;

	for (unsigned i = 0; i < CLAIMS; i++) {
		double increment = (double)(random() % 1000) / 64;
		uint64_t count = (uint64_t)(random() % 1000);

		series_credit(owners[i].claim.has, increment, &sums->all, &owners[i].own, &sums->other);
		series_credit_count(owners[i].claim.has, count, &sums->all_count, &owners[i].own_count,
				    &sums->other_count);
		own += owners[i].own;
		own_count += owners[i].own_count;
		with += owners[i].claim.has;
	}
	assert_true(with <= SERIES);
	assert_exactly(own + sums->other, sums->all);
	assert_int_equal(own_count + sums->other_count, sums->all_count);
}

/* First come, takeovers, the best: whichever process has a series, and however often that changes. */
static void each_way_of_choosing_adds_up(_unused_ void **state)
{
	for (unsigned way = 0; way < 3; way++) {
		struct series_owner owners[CLAIMS] = { 0 };
		struct series_claim *heap[SERIES];
		struct series_set set = { .limit = SERIES };
		struct sums sums = { 0 };
		unsigned changes = 0;

		srandom(way);
		for (unsigned step = 0; step < STEPS; step++) {
			struct series_best best = { .heap = heap, .limit = SERIES };
			const struct series_rows rows = { &owners[0].claim, sizeof(owners[0]), CLAIMS };
			struct series_claim *claim = &owners[random() % CLAIMS].claim;
			bool had = claim->has;

			if (way == 0 && random() % 2)
				series_give_up(&set, claim);
			else if (way == 0)
				series_take(&set, claim);
			claim->score = (double)(random() % 100);
			if (way == 1)
				changes += series_balance(&set, rows);
			for (unsigned i = 0; way == 2 && i < CLAIMS; i++)
				series_offer(&best, &owners[i].claim, true);
			series_settle(&best);
			changes += claim->has != had;
			credit_all(owners, &sums);
		}
		assert_true(changes > 10);
		assert_true(sums.other > 0 && sums.all > sums.other);
	}
}

static void no_sum_wraps(_unused_ void **state)
{
	uint64_t all = UINT64_MAX - 1, own = 0, other = UINT64_MAX;

	series_credit_count(false, 5, &all, &own, &other);
	assert_int_equal(all, UINT64_MAX);
	assert_int_equal(other, UINT64_MAX);
	assert_int_equal(own, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_users_add_up),
		cmocka_unit_test(each_way_of_choosing_adds_up),
		cmocka_unit_test(no_sum_wraps),
	};

	return cmocka_run_group_tests_name("series", tests, NULL, NULL);
}
