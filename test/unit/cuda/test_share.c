// SPDX-License-Identifier: Apache-2.0
/* Kernels: estimated time, series, their order; and that nothing of it is lost or counted twice. */
#include "cuda/private.h"
#include "scene.h"

enum { A = 0x1000, B = 0x2000, C = 0x3000 };
#define WAVE (16 * CORES) /* threads */

/* ---- time ---- */

static double seconds(const struct scene *s, uint64_t function)
{
	return kernel_at(s, function)->all.seconds;
}

static void split_by_waves(void **state)
{
	struct scene *s = *state;

	s->now_us = 100;
	launch_many(s, 0, A, 10, 10); /* less than one */
	launch_many(s, 0, B, WAVE / 100 * 3, 100); /* three */
	sync_stream(s, 0, 900);
	window_at(s, 2000);
	assert_value(s, UUID0, TRACED_BUSY_ESTIMATED, 904e-6);
	assert_near(seconds(s, A), 904e-6 / 4, 1e-9);
	assert_near(seconds(s, B), 904e-6 * 3 / 4, 1e-9);
	assert_sums(s);
	/* Of a device whose cores are not known each counts one. */
	assert_int_equal(cuda_set_devices(s->cuda, (struct cuda_device[]){ { .uuid = UUID0 } }, 1), 0);
	launch_many(s, 0, A, 10, 10);
	launch_many(s, 0, B, WAVE / 100 * 3, 100);
	sync_stream(s, 0, 900);
	window_at(s, 4000);
	assert_near(seconds(s, A), 904e-6 * 3 / 4, 1e-9);
	assert_sums(s);
}

static void time_of_graphs(void **state)
{
	struct scene *s = *state;

	CALL(s, CAPTURE_BEGIN, .stream = 5);
	launch_many(s, 5, A, 10, 10);
	launch_many(s, 5, A, 10, 10);
	launch_many(s, 5, A, 10, 10);
	CALL(s, CAPTURE_END, .stream = 5, .handle = 0x77);
	CALL(s, GRAPH_INSTANTIATE, .handle = 0x78, .addr = 0x77);
	window(s);
	assert_int_equal(s->view->kernels_n, 0);
	CALL(s, GRAPH_LAUNCH, .stream = 0, .handle = 0x78);
	launch_many(s, 0, A, 10, 10);
	sync_context(s, 1000);
	window(s);
	assert_near(seconds(s, 0), 3 * seconds(s, A), 4e-9);
	assert_int_equal(kernel_at(s, 0)->all.launches, 0);
	assert_int_equal(kernel_at(s, 0)->shapes_n, 0);
	assert_sums(s);
}

static void pending_work_goes_on(void **state)
{
	struct scene *s = *state;
	double before;

	/* A runs on in its stream, while B comes and goes in another. */
	launch_many(s, 5, A, 10, 10);
	for (unsigned i = 1; i <= 5; i++) {
		launch_many(s, 6, B, 10, 10);
		sync_stream(s, 6, 10);
		window_at(s, 1000 * i);
		assert_sums(s);
	}
	assert_near(seconds(s, A), seconds(s, B), 1e-9);
	sync_stream(s, 5, 10);
	window_at(s, 6000); /* in which it ended */
	before = seconds(s, A);
	launch_many(s, 6, B, 10, 10);
	window_at(s, 7000);
	assert_near(seconds(s, A), before, 0);
	assert_sums(s);
}

/* A stream works in order: what was given to it in a later window comes after. */
static void older_work_is_over(void **state)
{
	struct scene *s = *state;
	double a;

	launch_many(s, 5, A, 10, 10);
	window_at(s, 1000);
	a = seconds(s, A);
	launch_many(s, 5, B, 10, 10);
	window_at(s, 2000);
	assert_near(seconds(s, A) - a, seconds(s, B), 2e-9);
	a = seconds(s, A);
	window_at(s, 3000);
	assert_near(seconds(s, A), a, 0);
	assert_sums(s);
}

/* In more streams than are told apart. */
static void in_many_streams(void **state)
{
	struct scene *s = *state;

	for (uint64_t stream = 5; stream < 10; stream++)
		launch_many(s, stream, A, 10, 10);
	launch_many(s, 5, B, 10, 10);
	window_at(s, 1000);
	assert_near(seconds(s, A), 5 * seconds(s, B), 5e-9);
	window_at(s, 2000);
	assert_true(seconds(s, A) > seconds(s, B));
	assert_sums(s);
}

static void merged_while_pending(void **state)
{
	struct scene *s = *state;
	double before;

	launch_many(s, 5, A, 10, 10);
	launch_many(s, 6, B, 10, 10);
	launch_many(s, 7, C, 10, 10);
	window_at(s, 1000);
	answer_with(s, 0, &scene_kernel);
	answer_with(s, 2, &scene_kernel);
	before = value(s, UUID0, TRACED_BUSY_ESTIMATED);
	window_at(s, 2000);
	assert_sums(s);
	assert_int_equal(shown_kernels(s, PID), 2);
	assert_near(shown_kernel(s, PID, UUID0, "k")->all.seconds,
		    value(s, UUID0, TRACED_BUSY_ESTIMATED) * 2 / 3, 1e-8);
	assert_true(value(s, UUID0, TRACED_BUSY_ESTIMATED) > before);
	assert_near(device_total(s, UUID0)->kernels.seconds, value(s, UUID0, TRACED_BUSY_ESTIMATED), 1e-9);
}

static void merged_in_its_window(void **state)
{
	struct scene *s = *state;
	double before;

	/* In more streams than one row tells apart. */
	launch_many(s, 5, A, 10, 10);
	launch_many(s, 6, A, 10, 10);
	launch_many(s, 7, B, 10, 10);
	launch_many(s, 8, B, 10, 10);
	launch_many(s, 9, C, 10, 10);
	answer_with(s, 0, &scene_kernel);
	answer_with(s, 1, &scene_kernel);
	window_at(s, 1000);
	assert_near(shown_kernel(s, PID, UUID0, "k")->all.seconds,
		    value(s, UUID0, TRACED_BUSY_ESTIMATED) * 4 / 5, 1e-8);
	assert_sums(s);
	/* In one. Of those four two are still known to be pending. */
	before = shown_kernel(s, PID, UUID0, "k")->all.seconds;
	launch_many(s, 4, A + 1, 10, 10);
	launch_many(s, 4, A + 2, 10, 10);
	launch_many(s, 4, A + 3, 10, 10);
	answer_with(s, 3, &scene_kernel);
	answer_with(s, 4, &scene_kernel);
	window_at(s, 2000);
	assert_sums(s);
	assert_near(shown_kernel(s, PID, UUID0, "k")->all.seconds - before,
		    (2 + 2) * kernel_at(s, A + 3)->all.seconds, 1e-8);
}

static void merged_in_one_stream(void **state)
{
	struct scene *s = *state;

	launch_many(s, 5, A, 10, 10);
	launch_many(s, 5, B, 10, 10);
	launch_many(s, 5, C, 10, 10);
	answer_with(s, 0, &scene_kernel);
	answer_with(s, 1, &scene_kernel);
	window_at(s, 1000);
	assert_near(shown_kernel(s, PID, UUID0, "k")->all.seconds, 2 * kernel_at(s, C)->all.seconds, 4e-9);
	assert_sums(s);
}

/* The stream is busy again, with something else. */
static void over_in_a_busy_stream(void **state)
{
	struct scene *s = *state;
	double a;

	for (uint64_t stream = 5; stream < 10; stream++)
		launch_many(s, stream, A, 10, 10);
	sync_context(s, 100);
	launch_many(s, 9, B, 10, 10);
	launch_many(s, 5, B, 10, 10);
	window_at(s, 1000);
	a = kernel_at(s, A)->all.seconds;
	assert_true(a > 0);
	window_at(s, 2000);
	assert_near(kernel_at(s, A)->all.seconds, a, 0);
	assert_sums(s);
}

/* ---- series ---- */

static void the_most_have_series(void **state)
{
	struct scene *s = *state;
	const struct traced_total *t;
	uint64_t other;

	launch_many(s, 0, A, 10, 10);
	launch_many(s, 0, B, WAVE, 3);
	launch_many(s, 0, C, WAVE, 2);
	sync_context(s, 1000);
	window(s);
	assert_false(kernel_at(s, A)->has_series);
	assert_true(kernel_at(s, B)->has_series && kernel_at(s, C)->has_series);
	assert_int_equal(kernel_at(s, B)->series.launches, 1);
	assert_int_equal(kernel_at(s, A)->series.launches, 0);
	t = device_total(s, UUID0);
	assert_int_equal(t->kernels.launches, 3);
	assert_int_equal(t->kernels_other.launches, 1);
	assert_near(t->kernels_other.seconds, seconds(s, A), 0);
	/* Not yet clearly more than C. */
	for (unsigned i = 0; i < 2; i++)
		launch_many(s, 0, A, 10, 10);
	sync_context(s, 200);
	window(s);
	assert_true(seconds(s, A) > seconds(s, C) && seconds(s, A) < 1.5 * seconds(s, C));
	assert_false(kernel_at(s, A)->has_series);
	assert_true(kernel_at(s, C)->has_series);
	other = device_total(s, UUID0)->kernels_other.launches;
	assert_int_equal(other, 3);
	for (unsigned i = 0; i < 2; i++)
		launch_many(s, 0, A, 10, 10);
	sync_context(s, 3000);
	window(s);
	assert_true(kernel_at(s, A)->has_series);
	assert_false(kernel_at(s, C)->has_series);
	assert_int_equal(kernel_at(s, A)->series.launches, 2);
	assert_int_equal(kernel_at(s, A)->all.launches, 5);
	assert_int_equal(device_total(s, UUID0)->kernels_other.launches, 3);
	/* C comes back and goes on from where it was. */
	for (unsigned i = 0; i < 3; i++)
		launch_many(s, 0, C, WAVE, 2);
	sync_context(s, 30000);
	window(s);
	assert_true(kernel_at(s, C)->has_series);
	assert_int_equal(kernel_at(s, C)->series.launches, 4);
	assert_sums(s);
}

static void the_most_of_many(void **state)
{
	struct scene *s = scene_new(&(struct cuda_limits){ .series = 1, .kernel_series = 6 });

	(void)state;
	for (uint32_t i = 0; i < 41; i++)
		launch_many(s, 0, A + i, WAVE, 1 + i * 17 % 41);
	sync_context(s, 100000);
	window(s);
	for (uint32_t i = 0; i < 41; i++)
		assert_int_equal(kernel_at(s, A + i)->has_series, i * 17 % 41 >= 41 - 6);
	/* Others are the most now: the least of those that have a series go first. */
	for (uint32_t i = 0; i < 41; i++)
		launch_many(s, 0, A + i, WAVE, i * 17 % 41 < 4 ? 200 - i * 17 % 41 : 1);
	sync_context(s, 1000000);
	window(s);
	for (uint32_t i = 0; i < 41; i++)
		assert_int_equal(kernel_at(s, A + i)->has_series, i * 17 % 41 >= 41 - 2 || i * 17 % 41 < 4);
	scene_free(s);
}

/* What was long ago does not count for ever. */
static void recent_time(void **state)
{
	struct scene *s = *state;

	launch_many(s, 0, A, 10, 10);
	launch_many(s, 0, B, 10, 10);
	sync_context(s, 10000000);
	window(s);
	s->now_us += 600000000;
	window(s);
	launch_many(s, 0, C, 10, 10);
	sync_context(s, 100000);
	window(s);
	assert_true(kernel_at(s, C)->has_series);
	assert_true(seconds(s, C) < seconds(s, B) / 10);
}

static void only_of_processes_with_series(void **state)
{
	struct scene *s = *state;

	for (uint32_t i = 0; i < 3; i++) {
		s->tgid = PID + i;
		if (i > 0)
			scene_process(s, s->tgid, i + 1);
		launch_many(s, 0, A, 10, 10);
		sync_context(s, 1000 * i * i);
	}
	window(s);
	assert_false(kernel_at(s, A)->has_series);
	s->tgid = PID;
	assert_true(kernel_at(s, A)->has_series);
	/* Of a process that is over the final figures are in its series, which then is free. */
	launch_many(s, 0, A, 10, 10);
	scene_end(s, TRACE_EVENT_EXIT);
	window(s);
	assert_true(s->view->processes[0].exited);
	assert_int_equal(kernel_at(s, A)->series.launches, 2);
	window(s);
	s->tgid = PID + 1;
	launch_many(s, 0, B, 10, 10);
	sync_context(s, 10);
	window(s);
	assert_true(kernel_at(s, B)->has_series);
	assert_int_equal(device_total(s, UUID0)->kernels.launches, 5);
	assert_int_equal(device_total(s, UUID0)->kernels_other.launches, 1);
}

static void none_before_its_name_is_known(void **state)
{
	struct scene *s = *state;

	launch_many(s, 0, A, 10, 10);
	window(s);
	assert_false(s->view->kernels[0].has_series);
	answer_with(s, 0, &scene_kernel);
	launch_many(s, 0, A, 10, 10);
	window(s);
	assert_true(s->view->kernels[0].has_series);
	assert_int_equal(s->view->kernels[0].all.launches, 2);
	assert_int_equal(s->view->kernels[0].series.launches, 1);
	assert_int_equal(device_total(s, UUID0)->kernels_other.launches, 1);
}

static void sorted(void **state)
{
	struct scene *s = *state;
	const struct traced_process *p;

	for (uint32_t i = 0; i < 3; i++) {
		s->tgid = PID + 2 - i;
		if (s->tgid != PID)
			scene_process(s, s->tgid, i + 1);
		for (uint64_t k = 1; k < 6; k++)
			launch_many(s, 0, A + k * 7 % 5, WAVE, (uint32_t)k);
		CALL(s, DEVICE_SET, .kind = 1);
		launch_many(s, 0, A, 10, 10);
		sync_context(s, 1000);
		CALL(s, DEVICE_SET, .kind = 0);
		sync_context(s, 1000);
	}
	window(s);
	assert_int_equal(s->view->kernels_n, 18);
	for (uint32_t i = 0; i < 3; i++) {
		p = &s->view->processes[i];
		assert_int_equal(p->kernels_first, 6 * i);
		assert_int_equal(p->kernels_n, 6);
		for (uint32_t k = p->kernels_first; k < p->kernels_first + 6; k++) {
			assert_int_equal(s->view->kernels[k].process, i);
			assert_true(k == p->kernels_first ||
				    s->view->kernels[k].all.seconds <= s->view->kernels[k - 1].all.seconds);
		}
	}
}

/* ---- whatever happens ---- */

struct ever { /* series by process, kernel and device, the last value of each; a process's PID comes once */
	uint64_t launches;
	double seconds;
};

static void add_up(struct scene *s, struct ever ever[64][8][3])
{
	static const char *const uuids[3] = { UUID0, UUID1, "" };
	uint64_t launches[3] = { 0 };
	double sums[3] = { 0 };

	for (uint32_t i = 0; i < s->view->kernels_n; i++) {
		const struct traced_kernel *k = &s->view->kernels[i];
		uint32_t pid = s->view->processes[k->process].id.pid - PID;
		unsigned device = !k->uuid[0] ? 2 : STRV_EQ(k->uuid, UUID1);
		struct ever *e;

		if (!k->kernel) {
			assert_int_equal(k->series.launches, 0);
			continue;
		}
		e = &ever[pid][strtoul(k->kernel->symbol, NULL, 16) - A][device];
		assert_true(k->series.launches >= e->launches && k->series.seconds >= e->seconds);
		assert_true(k->series.launches <= k->all.launches);
		assert_true(k->series.seconds <= k->all.seconds + 1e-12);
		if (!k->has_series)
			assert_true(k->series.launches == e->launches);
		*e = (struct ever){ k->series.launches, k->series.seconds };
	}
	for (unsigned pid = 0; pid < 64; pid++)
		for (unsigned k = 0; k < 8; k++)
			for (unsigned d = 0; d < 3; d++) {
				launches[d] += ever[pid][k][d].launches;
				sums[d] += ever[pid][k][d].seconds;
			}
	for (unsigned d = 0; d < 3; d++) {
		const struct traced_total *t = device_total(s, uuids[d]);

		if (!t)
			continue;
		assert_int_equal(launches[d] + t->kernels_other.launches, t->kernels.launches);
		assert_near(sums[d] + t->kernels_other.seconds, t->kernels.seconds, 1e-9);
		assert_near((double)t->kernels.launches, t->v[TRACED_LAUNCHES], 0);
		assert_near(t->kernels.seconds, t->v[TRACED_BUSY_ESTIMATED], 1e-9);
	}
}

static uint64_t number(uint64_t *seed, uint64_t below)
{
	*seed = *seed * 6364136223846793005 + 1442695040888963407;
	return (*seed >> 33) % below;
}

static void act(struct scene *s, uint64_t *seed, uint32_t alive[4], uint32_t *pids)
{
	uint32_t *pid = &alive[number(seed, 4)];

	s->tgid = *pid;
	s->tid = s->tgid;
	switch (number(seed, 24)) {
	case 0:
		sync_stream(s, number(seed, 4) + 4, number(seed, 300));
		break;
	case 1:
		sync_context(s, number(seed, 1000));
		break;
	case 2:
		CALL(s, DEVICE_SET, .kind = (uint32_t)number(seed, 2));
		break;
	case 3:
		if (*pids == 60 || number(seed, 8) != 0)
			break;
		scene_end(s, TRACE_EVENT_EXIT);
		*pid = s->tgid = PID + *pids;
		scene_process(s, s->tgid, ++*pids);
		break;
	case 4:
		CALL(s, GRAPH_LAUNCH, .stream = 0, .handle = 5);
		break;
	case 5:
		s->now_us += number(seed, 3000);
		break;
	case 6:
		cuda_nvml(s->cuda, (struct process_id){ .pid = s->tgid }, number(seed, 2) ? UUID1 : UUID0,
			  (double)s->now_us * 5e-7, (double)s->now_us * 1e-6, 0);
		break;
	default:
		launch_many(s, number(seed, 4) + 4, A + number(seed, 8), (uint32_t)number(seed, 1000),
			    (uint32_t)number(seed, 1000));
		break;
	}
}

static void nothing_is_lost(void **state)
{
	static const struct cuda_limits limits[] = {
		{ .series = 128, .kernel_series = 64 },
		{ .series = 2, .kernel_series = 3, .kernels = 5, .streams = 3 },
		{ .series = 128, .kernel_series = 2 },
		{ .series = 0, .kernel_series = 5 },
		{ .series = 128 },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(limits); i++) {
		struct scene *s = scene_new(&limits[i]);
		struct ever ever[64][8][3] = { 0 };
		uint64_t seed = i + 1;
		uint32_t alive[4] = { PID, PID + 1, PID + 2, PID + 3 }, pids = 4, with = 0;

		for (uint32_t k = 1; k < pids; k++)
			scene_process(s, alive[k], k + 1);
		for (unsigned k = 0; k < 20000; k++) {
			act(s, &seed, alive, &pids);
			if (number(&seed, 20) != 0)
				continue;
			window(s);
			assert_sums(s);
			add_up(s, ever);
			with = 0;
			for (uint32_t n = 0; n < s->view->kernels_n; n++)
				with += s->view->kernels[n].has_series;
			assert_true(with <= limits[i].kernel_series);
		}
		assert_true(pids > 20);
		assert_int_equal(with > 0, limits[i].kernel_series > 0 && limits[i].series > 0);
		scene_free(s);
	}
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, scene_setup_kernels, scene_teardown)
#define FEW(test) cmocka_unit_test_setup_teardown(test, scene_setup_few, scene_teardown)
#define NAMING(test) cmocka_unit_test_setup_teardown(test, scene_setup_kernels_naming, scene_teardown)
	const struct CMUnitTest tests[] = {
		TEST(split_by_waves),
		TEST(time_of_graphs),
		TEST(pending_work_goes_on),
		TEST(older_work_is_over),
		TEST(in_many_streams),
		NAMING(merged_while_pending),
		NAMING(merged_in_its_window),
		NAMING(merged_in_one_stream),
		TEST(over_in_a_busy_stream),
		cmocka_unit_test(the_most_of_many),
		FEW(the_most_have_series),
		FEW(recent_time),
		FEW(only_of_processes_with_series),
		NAMING(none_before_its_name_is_known),
		TEST(sorted),
		cmocka_unit_test(nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
