// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>

#include "cuda/private.h"
#include "scene.h"

static void spans_clamped_at_both_ends(void **state)
{
	struct scene *s = *state;

	/* A span from 100 to 3100, in windows of 1000. */
	s->now_us = 100;
	launch(s, 0);
	window_at(s, 1000);
	assert_value(s, UUID0, TRACED_ACTIVE_RATIO, 0.9);
	assert_value(s, UUID0, TRACED_SPAN, 900e-6);
	window_at(s, 2000);
	assert_value(s, UUID0, TRACED_ACTIVE_RATIO, 1);
	assert_value(s, UUID0, TRACED_SPAN, 1900e-6);
	s->now_us = 2500;
	sync_stream(s, 0, 600);
	assert_int_equal(s->now_us, 3100);
	/* The event is newer than the end of the window: the rest belongs to the next one. */
	window_at(s, 3000);
	assert_value(s, UUID0, TRACED_SPAN, 2900e-6);
	window_at(s, 4000);
	assert_value(s, UUID0, TRACED_SPAN, 3000e-6);
	assert_value(s, UUID0, TRACED_ACTIVE_RATIO, 0.1);
	window_at(s, 5000);
	assert_value(s, UUID0, TRACED_ACTIVE_RATIO, 0);
	assert_value(s, UUID0, TRACED_SPAN, 3000e-6);
	/* A launch newer than the end. */
	s->now_us = 6500;
	launch(s, 0);
	window_at(s, 6000);
	assert_value(s, UUID0, TRACED_ACTIVE_RATIO, 0);
	window_at(s, 7000);
	assert_value(s, UUID0, TRACED_ACTIVE_RATIO, 0.5);
	s->now_us = 8500;
	launch(s, 2); /* another stream's beside one that is pending: 100 cores each */
	window_at(s, 8000);
	assert_value(s, UUID0, TRACED_CORES, 100);
}

/* Events that come after their window was closed, in any order: nothing underflows, nothing counts twice. */
static void late_events(void **state)
{
	struct scene *s = *state;

	window_at(s, 10000);
	s->now_us = 100;
	launch(s, 0);
	sync_stream(s, 0, 50); /* over before the window began */
	window_at(s, 11000);
	assert_value(s, UUID0, TRACED_SPAN, 0);
	s->now_us = 500;
	launch(s, 0);
	s->now_us = 11000;
	sync_stream(s, 0, 100);
	window_at(s, 12000);
	assert_value(s, UUID0, TRACED_SPAN, 100e-6);
	/* A wait that seems to end before the launch began. */
	s->now_us = 12500;
	s->duration_us = 0;
	launch(s, 0);
	s->now_us = 12500;
	sync_stream(s, 0, 0);
	window_at(s, 13000);
	assert_value(s, UUID0, TRACED_SPAN, 100e-6);
}

static void windows_need_time(void **state)
{
	struct scene *s = *state;
	struct cuda_figures figures = { 4711, 0, 0, 0 };

	window_at(s, 1000);
	assert_int_equal(cuda_window(s->cuda, (int64_t)scene_ns(s, 1000), &figures), -EINVAL);
	assert_int_equal(cuda_window(s->cuda, 0, &figures), -EINVAL);
	assert_int_equal(figures.processes_n, 4711);
	assert_int_equal(cuda_window(s->cuda, (int64_t)scene_ns(s, 1001), &figures), 0);
	assert_int_equal(cuda_window(s->cuda, (int64_t)scene_ns(s, 1001), &figures), -EINVAL);
}

static void cores_limited_and_normalised(void **state)
{
	struct scene *s = *state;

	/* 100 threads for half the window: 50 cores. */
	s->now_us = 0;
	launch_threads(s, 0, 10, 10);
	sync_stream(s, 0, 498);
	window_at(s, 1000);
	assert_value(s, UUID0, TRACED_CORES, 50);
	/* A million threads keep no more cores busy than there are. */
	launch_threads(s, 0, 1000, 1000);
	sync_stream(s, 0, 500 - DURATION_US);
	window_at(s, 2000);
	assert_value(s, UUID0, TRACED_CORES, CORES / 2.0);
	/* The mean of launches with 200 and 400 threads. */
	launch_threads(s, 0, 200, 1);
	launch_threads(s, 0, 400, 1);
	sync_stream(s, 0, 1000 - 2 * DURATION_US);
	window_at(s, 3000);
	assert_value(s, UUID0, TRACED_CORES, 300);
	/* Two processes that each take the whole device have half of it each. */
	launch_threads(s, 0, 1000, 1000);
	sync_stream(s, 0, 1000 - DURATION_US);
	s->tgid = s->tid = PID + 1;
	s->now_us = 3000;
	scene_process(s, PID + 1, 2);
	launch_threads(s, 0, 1000, 1000);
	window_at(s, 4000);
	assert_value(s, UUID0, TRACED_CORES, CORES / 2.0);
	s->tgid = PID;
	assert_value(s, UUID0, TRACED_CORES, CORES / 2.0);
	assert_value(s, UUID0, TRACED_ACTIVE_RATIO, 1);
	assert_true(fabs(s->view->totals[0].v[TRACED_CORES] - CORES) < 1e-9);
	assert_true(fabs(s->view->totals[0].v[TRACED_ACTIVE_RATIO] - 1) < 1e-9);
}

/* Of a device: the union over its processes, not their sum. */
static void devices_are_unions(void **state)
{
	struct scene *s = *state;

	scene_process(s, PID + 1, 2);
	s->now_us = 0;
	launch(s, 0);
	sync_stream(s, 0, 398);
	s->tgid = s->tid = PID + 1;
	s->now_us = 200;
	launch(s, 0);
	sync_stream(s, 0, 398);
	window_at(s, 1000);
	assert_true(fabs(s->view->totals[0].v[TRACED_ACTIVE_RATIO] - 0.6) < 1e-9);
	assert_true(fabs(s->view->totals[0].v[TRACED_SPAN] - 800e-6) < 1e-12);
}

static void reading_disturbs_nothing(void **state)
{
	struct scene *often = *state, *once = scene_new(NULL);
	struct scene *both[] = { often, once };

	srandom(4);
	for (int i = 0; i < 2000; i++) {
		long what = random() % 3, wait = random() % 200, gap = random() % 100;

		for (int k = 0; k < 2; k++) {
			struct scene *s = both[k];

			if (what == 0)
				sync_stream(s, 0, (uint64_t)wait);
			else
				launch(s, 0);
			s->now_us += (uint64_t)gap;
		}
		often->now_us = once->now_us; /* window() may need a microsecond */
		if (i % 3 == 0 && often->now_us > often->closed_us)
			window(often);
		once->now_us = often->now_us;
	}
	window_at(often, 1000000);
	window_at(once, 1000000);
	assert_true(fabs(value(often, UUID0, TRACED_SPAN) - value(once, UUID0, TRACED_SPAN)) < 1e-9);
	assert_value(once, UUID0, TRACED_LAUNCHES, value(often, UUID0, TRACED_LAUNCHES));
	scene_free(once);
}

/* ---- spans against a model that keeps every launch ---- */

enum { STREAMS = 4, ITEMS = 400, MARKS = 4, STEPS = 400, HORIZON = 60000 };

struct item {
	unsigned stream;
	uint64_t begin, end;
	bool over;
	bool after[ITEMS]; /* what is over when it is */
};

struct model {
	struct item items[ITEMS];
	unsigned n;
	bool waited[STREAMS][ITEMS]; /* what a stream's next item comes after */
	bool mark[MARKS][ITEMS];
	bool busy[HORIZON];
};

/*
 * Stream 0 is the legacy one, 1 and 2 are blocking, 3 is not: what an action in a stream comes after, besides
 * its own.
 */
static void model_order(struct model *m, unsigned stream, bool legacy)
{
	for (unsigned i = 0; legacy && i < m->n; i++) {
		if (stream == 0)
			m->waited[0][i] |= m->waited[1][i] || m->waited[2][i];
		else if (stream != 3)
			m->waited[stream][i] |= m->waited[0][i];
	}
}

static void model_launch(struct model *m, unsigned stream, uint64_t now)
{
	struct item *item = &m->items[m->n];

	*item = (struct item){ .stream = stream, .begin = now, .end = now + DURATION_US };
	memcpy(item->after, m->waited[stream], sizeof(item->after));
	m->waited[stream][m->n++] = true;
}

static void model_over(struct model *m, const bool *covered, uint64_t entered, uint64_t returned)
{
	for (unsigned i = 0; i < m->n; i++) {
		struct item *item = &m->items[i];

		if (item->over || !covered[i] || item->end > entered)
			continue;
		item->over = true;
		for (uint64_t at = item->begin; at < returned && at < HORIZON; at++)
			m->busy[at] = true;
	}
}

static void step(struct scene *s, struct model *m, bool legacy)
{
	unsigned stream = (unsigned)(random() % STREAMS), mark = (unsigned)(random() % MARKS);
	uint64_t handle = legacy && stream == 0 ? 0 : 0x1000 + stream, before = s->now_us,
		 wait = (uint64_t)(random() % 40);
	bool all[ITEMS];

	switch (random() % 12) {
	case 0:
	case 1:
		CALL(s, EVENT_RECORD, .stream = handle, .handle = mark + 1);
		model_order(m, stream, legacy);
		memcpy(m->mark[mark], m->waited[stream], sizeof(m->mark[mark]));
		break;
	case 2:
		CALL(s, EVENT_WAIT, .stream = handle, .handle = mark + 1);
		model_order(m, stream, legacy);
		for (unsigned i = 0; i < m->n; i++)
			m->waited[stream][i] |= m->mark[mark][i];
		break;
	case 3:
	case 4:
	case 5:
	case 6:
		sync_stream(s, handle, wait);
		if (stream == 0)
			model_order(m, stream, legacy);
		model_over(m, m->waited[stream], before, s->now_us);
		break;
	case 7:
	case 8:
		sync_mark(s, mark + 1, wait);
		model_over(m, m->mark[mark], before, s->now_us);
		break;
	case 9:
		sync_context(s, wait);
		memset(all, true, sizeof(all));
		model_over(m, all, before, s->now_us);
		break;
	default:
		launch(s, handle);
		model_order(m, stream, legacy);
		model_launch(m, stream, before);
		break;
	}
	s->now_us += (uint64_t)(random() % 100);
}

static void spans_against_every_launch(void **state)
{
	static struct model m;
	int idle = 0;

	(void)state;
	srandom(5);
	for (int round = 0; round < 120; round++) {
		bool legacy = round % 2;
		struct scene *s = scene_new(NULL);
		uint64_t exact = 0, got;

		memset(&m, 0, sizeof(m));
		for (unsigned i = 0; i < STREAMS; i++)
			CALL(s, STREAM_CREATE, .stream = 0x1000 + i, .kind = !legacy || i == 3);
		for (int i = 0; i < STEPS; i++) {
			step(s, &m, legacy);
			if (i % 20 == 0)
				window(s); /* so that no blocks must be put together */
		}
		window_at(s, HORIZON);
		for (unsigned i = 0; i < m.n; i++)
			for (uint64_t at = m.items[i].begin; !m.items[i].over && at < HORIZON; at++)
				m.busy[at] = true;
		for (unsigned at = 0; at < HORIZON; at++)
			exact += m.busy[at];
		got = (uint64_t)llround(value(s, UUID0, TRACED_SPAN) * 1e6);
		/*
		 * Of several items in a row the legacy stream keeps the newest: seldom more than the truth,
		 * never less.
		 */
		assert_true(got >= exact);
		assert_true(got <= (legacy ? exact + exact / 50 : exact));
		idle += exact < HORIZON * 9 / 10;
		scene_free(s);
	}
	assert_true(idle > 100); /* or nothing was tried */
}

/* ---- the estimate ---- */

/*
 * A device that works 300 us for each launch, one after the other; the program launches in bursts, does other
 * things, and waits at the end of each second. NVML tells the truth a second late and with its own window.
 */
static double run_bursts(struct scene *s, unsigned seconds, bool with_nvml, double *ret_busy)
{
	double device_free = 0, busy = 0, told = 0;

	for (unsigned second = 0; second < seconds; second++) {
		uint64_t begin = second * UINT64_C(1000000);
		unsigned launches = 500 + 500 * (second % 3);

		s->now_us = begin;
		for (unsigned i = 0; i < launches; i++) {
			s->now_us = begin + i * 400;
			device_free = MAX(device_free, (double)s->now_us) + 300;
			busy += 300;
			launch(s, 0);
		}
		s->now_us = begin + 900000;
		sync_stream(s, 0, 5); /* over long ago */
		if (with_nvml)
			cuda_nvml(s->cuda, (struct process_id){ .pid = PID }, UUID0, told * 1e-6,
				  second + 1.0, 1e9);
		told = busy;
		window_at(s, begin + 1000000);
	}
	*ret_busy = busy * 1e-6;
	return value(s, UUID0, TRACED_BUSY_ESTIMATED);
}

static void learned_from_nvml(void **state)
{
	struct scene *s = *state;
	struct cuda_stats stats;
	double busy, estimate = run_bursts(s, 120, true, &busy), before = estimate, span;

	cuda_stats(s->cuda, &stats);
	assert_true(stats.calibration_windows > 30);
	assert_true(value(s, UUID0, TRACED_BUSY_ERROR) < 0.5);
	assert_int_equal(shown(s, PID, UUID0)->p[TRACED_BUSY_ESTIMATED],
			 PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	span = value(s, UUID0, TRACED_SPAN);
	assert_true(estimate <= span);
	/*
	 * The span is nearly all the time, the truth is less than a third of it; the estimate is near the
	 * truth.
	 */
	assert_true(span > 100);
	assert_true(fabs(before - busy) / busy < 0.15);
}

/* Bursts of launches, which nobody waits for in time; what CUPTI measures of every second one. */
static double run_measured(struct scene *s, unsigned seconds, uint64_t launch_us, double *ret_busy)
{
	*ret_busy = 0;
	for (unsigned second = 0; second < seconds; second++) {
		uint64_t begin = second * UINT64_C(1000000);

		for (unsigned i = 0; i < 1000; i++) {
			s->now_us = begin + i * 900;
			launch(s, 0);
		}
		s->now_us = begin + 950000;
		sync_stream(s, 0, 5);
		*ret_busy += 1000 * (double)launch_us * 1e-6;
		if (second % 2)
			cuda_measured(s->cuda, PID, UINT64_MAX, UUID0, scene_ns(s, begin),
				      scene_ns(s, begin + 1000000), 1000 * launch_us * 1000);
		window_at(s, begin + 1000000);
	}
	return value(s, UUID0, TRACED_BUSY_ESTIMATED);
}

static void learned_from_what_was_measured(void **state)
{
	struct scene *s = *state;
	double busy, before, estimate;

	/* The first is estimated by its span, nearly all the time; then it is known better. */
	estimate = run_measured(s, 40, 300, &busy);
	assert_true(fabs(estimate - busy) / busy < 0.2);
	assert_true(value(s, UUID0, TRACED_BUSY_MEASURED_ERROR) < 0.2);
	assert_near(value(s, UUID0, TRACED_BUSY_MEASURED_COMPARED), 20, 1e-6);
	assert_near(value(s, UUID0, TRACED_BUSY_MEASURED_AGE), 0, 1e-6);
	assert_true(isnan(value(s, UUID0, TRACED_BUSY_ERROR)));
	/* It becomes older; NVML does not take its place until it is old. */
	before = value(s, UUID0, TRACED_BUSY_ESTIMATED);
	for (unsigned second = 40; second < 60; second++) {
		s->now_us = second * UINT64_C(1000000) + 1;
		for (int i = 0; i < 1000; i++)
			launch(s, 0);
		cuda_nvml(s->cuda, (struct process_id){ .pid = PID }, UUID0, second * 0.9, second + 1.0,
			  1e9);
		window_at(s, (second + 1) * UINT64_C(1000000));
	}
	assert_near(value(s, UUID0, TRACED_BUSY_MEASURED_AGE), 20, 1e-6);
	assert_true(fabs(value(s, UUID0, TRACED_BUSY_ESTIMATED) - before - 20 * 0.3) < 1);
	assert_true(value(s, UUID0, TRACED_BUSY_ERROR) > 0.5);
}

/* Not measured is not an error of 0; a process says nothing of another, or of a device it has not. */
static void whose_it_is_not(void **state)
{
	struct scene *s = *state;

	for (unsigned second = 0; second < 5; second++) {
		uint64_t begin_ns = scene_ns(s, second * UINT64_C(1000000)), end_ns = begin_ns + 900000000;

		s->now_us = second * UINT64_C(1000000) + 1;
		launch(s, 0);
		sync_stream(s, 0, 998);
		cuda_measured(s->cuda, PID + 1, UINT64_MAX, UUID0, begin_ns, end_ns, 5);
		cuda_measured(s->cuda, PID, UINT64_MAX, UUID1, begin_ns, end_ns, 5);
		window_at(s, (second + 1) * UINT64_C(1000000));
	}
	assert_true(isnan(value(s, UUID0, TRACED_BUSY_MEASURED_ERROR)));
	assert_true(isnan(value(s, UUID0, TRACED_BUSY_MEASURED_COMPARED)));
	assert_true(isnan(value(s, UUID0, TRACED_BUSY_MEASURED_AGE)));
}

/* A program that never waits has a span that never ends; what was launched is spent, and no more. */
static void never_waits(void **state)
{
	struct scene *s = *state;
	double told = 0, estimate;

	for (unsigned second = 0; second < 60; second++) {
		s->now_us = second * UINT64_C(1000000) + 1;
		for (int i = 0; i < 1000 && second < 30; i++)
			launch(s, 0);
		told += second < 30 ? 0.25 : 0;
		cuda_nvml(s->cuda, (struct process_id){ .pid = PID }, UUID0, told, second + 1.0, 1e9);
		window_at(s, (second + 1) * UINT64_C(1000000));
	}
	estimate = value(s, UUID0, TRACED_BUSY_ESTIMATED);
	assert_true(value(s, UUID0, TRACED_SPAN) > 59);
	assert_true(estimate < 7.5 + 4 && estimate > 7.5 - 2); /* the first seconds were not calibrated yet */
}

/* Little work is 0 percent to NVML: that agrees with the estimate and does not make it 0. */
static void below_a_percent(void **state)
{
	struct scene *s = *state;

	for (unsigned second = 0; second < 60; second++) {
		s->now_us = second * UINT64_C(1000000) + 1;
		launch(s, 0);
		sync_stream(s, 0, 998);
		cuda_nvml(s->cuda, (struct process_id){ .pid = PID }, UUID0, 0, second + 1.0, 1e9);
		window_at(s, (second + 1) * UINT64_C(1000000));
	}
	assert_true(fabs(value(s, UUID0, TRACED_BUSY_ESTIMATED) - 60e-3) < 2e-3);
}

/* Much of it cannot be: it is less than a percent, but not nothing. */
static void above_what_nvml_says(void **state)
{
	struct scene *s = *state;

	for (unsigned second = 0; second < 60; second++) {
		s->now_us = second * UINT64_C(1000000) + 1;
		launch(s, 0); /* nobody waits: its span does not end */
		cuda_nvml(s->cuda, (struct process_id){ .pid = PID }, UUID0, 0, second + 1.0, 1e9);
		window_at(s, (second + 1) * UINT64_C(1000000));
	}
	/* The first seconds were not calibrated yet. */
	assert_true(value(s, UUID0, TRACED_BUSY_ESTIMATED) > 0.2);
	assert_true(value(s, UUID0, TRACED_BUSY_ESTIMATED) < 60 * 0.01 + 4);
}

/*
 * What a window has no time for is left for the next; a program that has waited for everything leaves
 * nothing.
 */
static void backlog(void **state)
{
	struct estimate e = { .calibrated = true, .per_launch = 0.1 };

	(void)state;
	assert_true(fabs(estimate_window(&e, 1, 1, 1, 15, true) - 1) < 1e-9);
	assert_true(fabs(estimate_window(&e, 1, 1, 1, 0, true) - 0.5) < 1e-9);
	assert_true(fabs(estimate_window(&e, 1, 1, 1, 0, true)) < 1e-9);
	assert_true(fabs(estimate_window(&e, 1, 1, 1, 15, false) - 1) < 1e-9);
	assert_true(fabs(estimate_window(&e, 1, 1, 1, 0, true)) < 1e-9);
}

static void before_calibration(void **state)
{
	struct scene *s = *state;

	/* A wait that waited: the device worked until it returned. */
	s->now_us = 0;
	launch(s, 0);
	sync_stream(s, 0, 498);
	window_at(s, 1000);
	assert_value(s, UUID0, TRACED_BUSY_ESTIMATED, 500e-6);
	/* One that returned at once, long after: no more than until the launch returned. */
	launch(s, 0);
	s->now_us = 1900;
	sync_stream(s, 0, 5);
	window_at(s, 2000);
	assert_value(s, UUID0, TRACED_BUSY_ESTIMATED, 502e-6);
	assert_value(s, UUID0, TRACED_SPAN, 1405e-6);
	/* Copies alone are no work of the kind that NVML counts. */
	CALL(s, COPY, .size = 1);
	sync_stream(s, 0, 400);
	window_at(s, 3000);
	assert_value(s, UUID0, TRACED_BUSY_ESTIMATED, 502e-6);
	assert_true(isnan(value(s, UUID0, TRACED_BUSY_ERROR)));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(spans_clamped_at_both_ends),
		CASE(late_events),
		CASE(windows_need_time),
		CASE(cores_limited_and_normalised),
		CASE(devices_are_unions),
		CASE(reading_disturbs_nothing),
		cmocka_unit_test(spans_against_every_launch),
		CASE(learned_from_nvml),
		CASE(learned_from_what_was_measured),
		CASE(whose_it_is_not),
		CASE(never_waits),
		cmocka_unit_test(backlog),
		CASE(below_a_percent),
		CASE(above_what_nvml_says),
		CASE(before_calibration),
	};

	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
