// SPDX-License-Identifier: Apache-2.0
/* Rules of processes among others: each with a node that shows it and some that nearly do. */
#include <math.h>

#include "analysis/stream.h"

#define GIB 0x1p30

static void figure(struct stream *s, enum analysis_counter counter, double value)
{
	stream_add(s,
		   (struct analysis_event){
			   .kind = ANALYSIS_COUNTER, .counter = (uint8_t)counter, .value = value },
		   0);
}

/* A process that holds memory and uses so much CPU, and calls something every @call seconds (0: never). */
static const struct analysis_finding *held_by(struct stream *s, double memory, double cpu, unsigned call,
					      unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		figure(s, ANALYSIS_COUNTER_PROCESS_MEMORY, memory);
		if (!isnan(cpu))
			figure(s, ANALYSIS_COUNTER_PROCESS_CPU, cpu);
		if (call > 0 && i % call == 0)
			stream_add(s, (struct analysis_event){ .kind = ANALYSIS_LAUNCH }, 10 * US);
		s->now_ns += 1000 * MS;
	}
	return stream_finding(s, FINDING_MEMORY_HELD);
}

static void memory_held(void **state)
{
	static const struct {
		double memory, cpu;
		unsigned call, seconds;
		bool found;
	} cases[] = {
		{ 10 * GIB, 0, 0, 650, true },     { 10 * GIB, 0, 0, 590, false }, /* not yet */
		{ 10 * GIB, 0.05, 0, 650, false }, /* it computes something */
		{ 10 * GIB, 0, 300, 650, false }, /* seldom, but it works */
		{ 0.1 * GIB, 0, 0, 650, false },   { 10 * GIB, NAN, 0, 650, false }, /* who knows */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct stream s = stream_begin(0);

		assert_int_equal(held_by(&s, cases[i].memory, cases[i].cpu, cases[i].call,
					 cases[i].seconds) != NULL,
				 cases[i].found);
		stream_end(&s);
	}
}

/* A rank with memory on GPU 0 and 1, which launches on 1 and, if told so, on 0. */
static bool wrong_device(double memory, bool both)
{
	struct stream s = stream_begin(0);
	uint32_t first = s.device, second = stream_text(&s, "GPU 1");
	bool found;

	for (unsigned i = 0; i < 2500; i++) {
		s.device = first;
		figure(&s, ANALYSIS_COUNTER_PROCESS_MEMORY, memory);
		if (both && i % 1000 == 0)
			stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_LAUNCH }, 10 * US);
		s.device = second;
		figure(&s, ANALYSIS_COUNTER_PROCESS_MEMORY, 30 * GIB);
		stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_LAUNCH }, 10 * MS);
	}
	found = stream_finding(&s, FINDING_WRONG_DEVICE);
	if (found)
		assert_int_equal(stream_finding(&s, FINDING_WRONG_DEVICE)->device, first);
	stream_end(&s);
	return found;
}

static void has_a_context_elsewhere(void **state)
{
	(void)state;
	assert_true(wrong_device(0.5 * GIB, false));
	assert_false(wrong_device(0.5 * GIB, true)); /* it uses both */
	assert_false(wrong_device(0.01 * GIB, false)); /* it only looked */
}

/* Two ranks in steps of 20 ms, of which they wait for so many ms. */
static uint32_t uneven(unsigned first_ms, unsigned second_ms, uint64_t communicator)
{
	struct stream s = stream_begin(0);
	uint32_t found;

	for (unsigned i = 0; i < 2000; i++) {
		uint64_t begin_ns = s.now_ns;

		for (uint32_t rank = 0; rank < 2; rank++) {
			unsigned wait_ms = rank ? second_ms : first_ms;
			struct analysis_event collective = { .kind = ANALYSIS_COLLECTIVE,
							     .communicator = rank ? communicator : 9,
							     .ranks = 2,
							     .rank = (int32_t)rank };

			s.now_ns = begin_ns;
			s.pid = 100 + rank;
			stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_STEP }, 0);
			s.now_ns += (20 - wait_ms) * MS;
			stream_add(&s, collective, 0);
			stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_SYNC }, wait_ms * MS);
		}
	}
	found = stream_finding(&s, FINDING_UNEVEN_RANKS) ? stream_finding(&s, FINDING_UNEVEN_RANKS)->pid : 0;
	stream_end(&s);
	return found;
}

static void one_rank_has_more_to_do(void **state)
{
	(void)state;
	assert_int_equal(uneven(2, 12, 9), 100);
	assert_int_equal(uneven(12, 2, 9), 101);
	assert_int_equal(uneven(8, 11, 9), 0); /* 15 % of a step */
	assert_int_equal(uneven(2, 12, 8), 0); /* they have nothing to do with each other */
}

/* The device's times of the collective before are the same traffic. */
static void add_true_times(struct stream *s)
{
	stream_put(s,
		   (struct analysis_event){ .kind = ANALYSIS_COLLECTIVE,
					    .flags = ANALYSIS_TRUE,
					    .pid = s->pid,
					    .bytes = 100000000,
					    .communicator = 9,
					    .ranks = 2 },
		   s->now_ns, s->now_ns + MS);
}

/* Two ranks that reduce 1 GB a second; rates of the device's links in bytes a second, NAN: none. */
static bool slow_path(double nvlink, double pcie, uint32_t ranks_here)
{
	struct stream s = stream_begin(0);
	bool found;

	for (unsigned i = 0; i < 250; i++) {
		for (uint32_t rank = 0; rank < ranks_here; rank++) {
			s.pid = 100 + rank;
			stream_add(&s,
				   (struct analysis_event){ .kind = ANALYSIS_COLLECTIVE,
							    .bytes = 100000000,
							    .communicator = 9,
							    .ranks = 2 },
				   50 * US);
			add_true_times(&s);
		}
		if (!isnan(nvlink)) {
			stream_counter(&s, ANALYSIS_COUNTER_NVLINK_TX, nvlink / 2);
			stream_counter(&s, ANALYSIS_COUNTER_NVLINK_RX, nvlink / 2);
		}
		stream_counter(&s, ANALYSIS_COUNTER_PCIE_TX, pcie / 2);
		stream_counter(&s, ANALYSIS_COUNTER_PCIE_RX, pcie / 2);
		s.now_ns += 100 * MS;
	}
	found = stream_finding(&s, FINDING_NCCL_SLOW_PATH);
	if (found)
		assert_in_range(finding_get(stream_finding(&s, FINDING_NCCL_SLOW_PATH), "collectives"), 9e8,
				1.1e9);
	stream_end(&s);
	return found;
}

static void nccl_takes_pcie(void **state)
{
	(void)state;
	assert_true(slow_path(1e6, 2e9, 2));
	assert_false(slow_path(2e9, 1e8, 2)); /* as it should be */
	assert_false(slow_path(2e9, 2e9, 2)); /* what takes PCIe is something else */
	assert_false(slow_path(1e6, 2e9, 1)); /* the other rank is on another node */
	assert_false(slow_path(NAN, 2e9, 2)); /* there is no NVLink */
	assert_false(slow_path(1e6, 1e8, 2)); /* neither: it is within the GPU */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_held),
		cmocka_unit_test(has_a_context_elsewhere),
		cmocka_unit_test(one_rank_has_more_to_do),
		cmocka_unit_test(nccl_takes_pcie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
