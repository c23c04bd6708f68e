// SPDX-License-Identifier: Apache-2.0
/* Rules of what steps spend their time with: each with a program that shows it and some that nearly do. */
#include <math.h>
#include <string.h>

#include "analysis/stream.h"

/* Of a second: every finding wants whole windows. */
#define WINDOW_NS (1000 * MS)

/* What a program does in each step; times in microseconds. */
struct program {
	unsigned data_us;
	bool data_begins; /* of the loader's turn only the begin is told */
	unsigned launches, launch_us;
	uint64_t threads; /* of a launch; 0: not told */
	unsigned waits, wait_us;
	unsigned allocations, allocation_us; /* each allocated and freed */
	unsigned other_us;
	unsigned work_us; /* of the device, from the first launch on; 0: not told */
	enum analysis_flag work_times;
	double utilization; /* 0: not told */
};

static void repeat(struct stream *s, enum analysis_kind kind, const char *name, unsigned n, unsigned us,
		   uint64_t threads)
{
	uint32_t text = stream_text(s, name);

	for (unsigned i = 0; i < n; i++)
		stream_add(s,
			   (struct analysis_event){ .kind = (uint8_t)kind,
						    .name = text,
						    .threads = threads,
						    .bytes = kind == ANALYSIS_ALLOCATE ? 1 << 20 : 0,
						    .address = 0x7000 + i * 0x1000 },
			   us * US);
}

static void run(struct stream *s, const struct program *p, double windows)
{
	uint64_t until_ns = s->now_ns + (uint64_t)(windows * WINDOW_NS);

	while (s->now_ns < until_ns) {
		uint64_t work_ns;

		if (p->utilization > 0)
			stream_counter(s, ANALYSIS_COUNTER_UTILIZATION, p->utilization);
		repeat(s, ANALYSIS_STEP, "step", 1, 0, 0);
		if (p->data_us > 0)
			repeat(s, ANALYSIS_DATA, "next", 1, p->data_begins ? 0 : p->data_us, 0);
		if (p->data_begins)
			s->now_ns += p->data_us * US;
		work_ns = s->now_ns;
		repeat(s, ANALYSIS_ALLOCATE, "cudaMalloc", p->allocations, p->allocation_us, 0);
		repeat(s, ANALYSIS_LAUNCH, "gemm", p->launches, p->launch_us, p->threads);
		repeat(s, ANALYSIS_SYNC, "cudaStreamSynchronize", p->waits, p->wait_us, 0);
		repeat(s, ANALYSIS_FREE, "cudaFree", p->allocations, p->allocation_us, 0);
		s->now_ns += p->other_us * US;
		if (p->work_us > 0)
			stream_put(s,
				   (struct analysis_event){
					   .kind = ANALYSIS_WORK,
					   .flags = p->work_times,
					   .pid = s->pid,
					   .device = s->device },
				   work_ns, work_ns + p->work_us * US);
	}
}

/* Whether the rule speaks, of a program that runs for two windows and a half; and how sure it is. */
static double confidence_of(enum analysis_rule rule, const struct program *program)
{
	struct stream s = stream_begin(WINDOW_NS);
	const struct analysis_finding *finding;
	double confidence = 0;

	run(&s, program, 2.5);
	finding = stream_finding(&s, rule);
	if (finding) {
		assert_true(finding->values_n > 0 && finding->values_n < ANALYSIS_VALUES);
		assert_int_equal(finding->pid, s.pid);
		confidence = finding->confidence;
	}
	stream_end(&s);
	return confidence;
}

/* A step of 10 ms. */
static const struct program fine = { .data_us = 300,
				     .launches = 100,
				     .launch_us = 5,
				     .threads = 1 << 20,
				     .waits = 2,
				     .wait_us = 4000,
				     .other_us = 1200,
				     .work_us = 9700 };

static void nothing_to_say(void **state)
{
	struct stream s = stream_begin(WINDOW_NS);
	uint32_t n;

	(void)state;
	run(&s, &fine, 6);
	analysis_findings(s.analysis, &n);
	assert_int_equal(n, 0);
	stream_end(&s);
}

static void launch_bound(void **state)
{
	struct program p = { .launches = 1000,
			     .launch_us = 6,
			     .threads = 4096,
			     .waits = 1,
			     .wait_us = 100,
			     .other_us = 3900,
			     .work_us = 4000 };

	(void)state;
	assert_true(confidence_of(FINDING_LAUNCH_BOUND, &p) > 0.9);
	p.work_us = 0; /* without the device's own, by what the driver says */
	p.utilization = 0.4;
	assert_true(confidence_of(FINDING_LAUNCH_BOUND, &p) > 0.9);
	p.utilization = 0;
	assert_true(confidence_of(FINDING_LAUNCH_BOUND, &p) < 0.8);
	/* Nearly. */
	p.work_us = 9000; /* the device has enough to do */
	assert_true(confidence_of(FINDING_LAUNCH_BOUND, &p) == 0);
	p.work_us = 4000;
	p.threads = 1 << 20; /* large kernels */
	assert_true(confidence_of(FINDING_LAUNCH_BOUND, &p) == 0);
	p.threads = 4096;
	p.launch_us = 1; /* cheap ones */
	assert_true(confidence_of(FINDING_LAUNCH_BOUND, &p) == 0);
}

static void sync_in_loop(void **state)
{
	struct program p = { .launches = 100,
			     .launch_us = 5,
			     .threads = 1 << 20,
			     .waits = 8,
			     .wait_us = 700,
			     .other_us = 3000,
			     .work_us = 6000 };

	(void)state;
	assert_true(confidence_of(FINDING_SYNC_IN_LOOP, &p) > 0.8);
	p.waits = 2; /* one of the loss, one at the end */
	p.wait_us = 2800;
	assert_true(confidence_of(FINDING_SYNC_IN_LOOP, &p) == 0);
	p.waits = 8;
	p.wait_us = 700;
	p.work_us = 8800; /* the device does not idle */
	assert_true(confidence_of(FINDING_SYNC_IN_LOOP, &p) == 0);
}

static void data_starvation(void **state)
{
	struct program p = fine;

	(void)state;
	p.data_us = 3000;
	assert_true(confidence_of(FINDING_DATA_STARVATION, &p) > 0.9);
	p.work_us = 0;
	assert_true(confidence_of(FINDING_DATA_STARVATION, &p) < 0.7);
	p.data_us = 800; /* 8 % */
	assert_true(confidence_of(FINDING_DATA_STARVATION, &p) == 0);
}

/* Where only the begin of a turn is told, it lasts until the next call: turns are as many. */
static void data_begins(void **state)
{
	struct stream s = stream_begin(WINDOW_NS);
	struct program p = fine;
	double waits;

	(void)state;
	p.data_us = 3000;
	run(&s, &p, 2.5);
	assert_non_null(stream_finding(&s, FINDING_DATA_STARVATION));
	waits = finding_get(stream_finding(&s, FINDING_DATA_STARVATION), "waits");
	stream_end(&s);
	s = stream_begin(WINDOW_NS);
	p.data_begins = true;
	run(&s, &p, 2.5);
	assert_non_null(stream_finding(&s, FINDING_DATA_STARVATION));
	assert_true(fabs(finding_get(stream_finding(&s, FINDING_DATA_STARVATION), "waits") - waits) <= 1);
	stream_end(&s);
}

/* The loader takes its time, but while the device works. */
static void data_in_time(void **state)
{
	struct stream s = stream_begin(WINDOW_NS);

	(void)state;
	for (unsigned i = 0; i < 250; i++) {
		uint64_t begin_ns = s.now_ns;

		repeat(&s, ANALYSIS_STEP, "step", 1, 0, 0);
		repeat(&s, ANALYSIS_LAUNCH, "gemm", 10, 10, 1 << 20);
		repeat(&s, ANALYSIS_DATA, "next", 1, 5000, 0);
		repeat(&s, ANALYSIS_SYNC, "wait", 1, 4900, 0);
		stream_put(&s,
			   (struct analysis_event){ .kind = ANALYSIS_WORK, .pid = s.pid, .device = s.device },
			   begin_ns + 100 * US, s.now_ns);
	}
	assert_null(stream_finding(&s, FINDING_DATA_STARVATION));
	stream_end(&s);
}

static void allocator_thrash(void **state)
{
	struct program p = fine;

	(void)state;
	p.allocations = 10;
	p.allocation_us = 100;
	assert_true(confidence_of(FINDING_ALLOCATOR_THRASH, &p) > 0.8);
	p.allocation_us = 10; /* 2 % of the time */
	assert_true(confidence_of(FINDING_ALLOCATOR_THRASH, &p) == 0);
}

/* A model that is loaded: only the first window. */
static void loads_a_model(void **state)
{
	struct stream s = stream_begin(WINDOW_NS);

	(void)state;
	repeat(&s, ANALYSIS_ALLOCATE, "cudaMalloc", 50, 1000, 0);
	repeat(&s, ANALYSIS_FREE, "cudaFree", 50, 1000, 0);
	run(&s, &fine, 3);
	assert_null(stream_finding(&s, FINDING_ALLOCATOR_THRASH));
	stream_end(&s);
}

/* One launch after the other, so that there are no steps: what the device does is known by its work. */
static void launch_bound_without_steps(void **state)
{
	(void)state;
	for (unsigned percent = 10; percent <= 90; percent += 80) {
		struct stream s = stream_begin(WINDOW_NS);
		const struct analysis_finding *finding;

		for (unsigned i = 0; i < 250000; i++) {
			uint64_t begin_ns = s.now_ns;

			if (i % 100000 == 0) /* of others' */
				stream_counter(&s, ANALYSIS_COUNTER_UTILIZATION, 0.95);
			repeat(&s, ANALYSIS_LAUNCH, "gemm", 1, 6, 4096);
			s.now_ns += 4 * US;
			stream_put(&s,
				   (struct analysis_event){ .kind = ANALYSIS_WORK,
							    .flags = ANALYSIS_TRUE,
							    .pid = s.pid,
							    .device = s.device },
				   begin_ns, begin_ns + percent * US / 10);
		}
		finding = stream_finding(&s, FINDING_LAUNCH_BOUND);
		assert_int_equal(finding != NULL, percent == 10);
		if (finding)
			assert_float_equal(finding_get(finding, "device_idle_share"), 0.9, 1e-3);
		stream_end(&s);
	}
}

/* By which times of the device's work it was judged is said. */
static void measured_or_estimated(void **state)
{
	struct program p = { .launches = 1000,
			     .launch_us = 6,
			     .threads = 4096,
			     .waits = 1,
			     .wait_us = 100,
			     .other_us = 3900,
			     .work_us = 4000,
			     .work_times = ANALYSIS_TRUE };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct stream s = stream_begin(WINDOW_NS);
		const struct analysis_finding *finding;
		double share = 0;

		run(&s, &p, 2.5);
		finding = stream_finding(&s, FINDING_LAUNCH_BOUND);
		assert_non_null(finding);
		for (uint32_t k = 0; k < finding->values_n; k++)
			if (strcmp(finding->values[k].name, "work_measured_share") == 0)
				share = finding->values[k].value;
		assert_float_equal(share, p.work_times == ANALYSIS_TRUE ? 1 : 0, 1e-9);
		assert_int_equal(finding->without >> EVIDENCE_TRUE_TIMES & 1,
				 p.work_times != ANALYSIS_TRUE);
		stream_end(&s);
		p.work_times = ANALYSIS_ESTIMATED;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_say),   cmocka_unit_test(launch_bound),
		cmocka_unit_test(launch_bound_without_steps),
		cmocka_unit_test(measured_or_estimated),
		cmocka_unit_test(sync_in_loop),     cmocka_unit_test(data_starvation),
		cmocka_unit_test(data_begins),      cmocka_unit_test(data_in_time),
		cmocka_unit_test(allocator_thrash), cmocka_unit_test(loads_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
