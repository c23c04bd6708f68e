// SPDX-License-Identifier: Apache-2.0
/* leak: memory that grows with every step; and caches, models and steps that only look like it. */
#include <math.h>

#include "analysis/stream.h"

#define MIB 0x1p20

enum shape { GROWS, FILLS, VARIES, JUMPS };

/* Bytes that are held more after so many steps. */
static uint64_t grown(struct stream *s, enum shape shape, unsigned step)
{
	switch (shape) {
	case GROWS:
		return (uint64_t)(step * 4 * MIB);
	case FILLS: /* a cache */
		return (uint64_t)(400 * MIB * (1 - exp(-(double)step / 8)));
	case VARIES:
		return (uint64_t)(stream_random(s) * 400 * MIB);
	default: /* another phase begins */
		return step < 20 ? 0 : (uint64_t)(300 * MIB);
	}
}

/* Steps of a second each; what the driver says rises by so much of it, NAN: it says nothing. */
static struct stream run(enum shape shape, double agrees, unsigned steps)
{
	struct stream s = stream_begin(0);
	struct analysis_event first = { .kind = ANALYSIS_ALLOCATE, .address = 0x1000, .bytes = 1 << 30 };
	uint64_t held = 0;

	stream_add(&s, first, US);
	for (unsigned i = 0; i < steps; i++) {
		uint64_t now = grown(&s, shape, i);
		uint64_t block = 0x100000 + (uint64_t)i * 0x1000000;

		if (now > held)
			stream_add(&s,
				   (struct analysis_event){
					   .kind = ANALYSIS_ALLOCATE, .address = block, .bytes = now - held },
				   US);
		/* A step's own block comes and goes. */
		stream_add(&s,
			   (struct analysis_event){
				   .kind = ANALYSIS_ALLOCATE, .address = 0x2000, .bytes = 1 << 28 },
			   US);
		stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_FREE, .address = 0x2000 }, US);
		if (shape == VARIES)
			stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_FREE, .address = block },
				   US);
		else
			held = now;
		if (!isnan(agrees))
			stream_add(&s,
				   (struct analysis_event){ .kind = ANALYSIS_COUNTER,
							    .counter = ANALYSIS_COUNTER_PROCESS_MEMORY,
							    .value = 2e9 + agrees * (double)held },
				   0);
		stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_STEP }, 0);
		s.now_ns += 1000 * MS;
	}
	return s;
}

static double confidence_of(enum shape shape, double agrees, unsigned steps)
{
	struct stream s = run(shape, agrees, steps);
	const struct analysis_finding *finding = stream_finding(&s, FINDING_LEAK);
	double confidence = finding ? finding->confidence : 0;

	if (finding)
		assert_true(fabs(finding_get(finding, "rate") - 4 * MIB) < 0.2 * MIB);
	stream_end(&s);
	return confidence;
}

static void grows(void **state)
{
	(void)state;
	assert_true(confidence_of(GROWS, 1, 60) > 0.9);
	assert_true(confidence_of(GROWS, NAN, 60) < 0.7);
}

static void nearly(void **state)
{
	(void)state;
	assert_true(confidence_of(GROWS, 0, 60) == 0); /* the driver does not agree */
	assert_true(confidence_of(GROWS, 1, 25) == 0); /* not for 30 steps yet */
	assert_true(confidence_of(FILLS, 1, 60) == 0);
	assert_true(confidence_of(VARIES, 1, 60) == 0);
	assert_true(confidence_of(JUMPS, 1, 60) == 0);
}

/* Two stacks allocate: one frees what it had, the other does not. More stacks than are kept come, too. */
static void names_the_stack(void **state)
{
	static const struct analysis_place leaky[] = { { "remember", "train.py", 12 },
						       { "main", "train.py", 3 } },
					   fine[] = { { "forward", "model.py", 31 } };
	struct stream s = stream_begin(0);
	uint64_t grows, comes;
	const struct analysis_finding *finding;

	(void)state;
	assert_int_equal(analysis_stack(s.analysis, 0, 1, leaky, 2, &grows), 0);
	assert_int_equal(analysis_stack(s.analysis, 0, 2, fine, 1, &comes), 0);
	for (unsigned i = 0; i < 60; i++) {
		struct analysis_event event = { .kind = ANALYSIS_ALLOCATE,
						.address = 0x2000,
						.bytes = 1 << 28 };

		event.stack = comes;
		stream_add(&s, event, US);
		event.address = 0x100000 + (uint64_t)i * 0x1000000;
		event.bytes = 4 << 20;
		event.stack = grows;
		stream_add(&s, event, US);
		event.address += 0x800000;
		event.bytes = 512;
		event.stack = 1000 + i; /* one more each time */
		stream_add(&s, event, US);
		stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_FREE, .address = 0x2000 }, US);
		stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_STEP }, 1000 * MS);
	}
	finding = stream_finding(&s, FINDING_LEAK);
	assert_non_null(finding);
	assert_true(finding->stack == grows);
	assert_non_null(finding->frames);
	assert_string_equal(finding->frames->list[1].frame, "remember (train.py:12)");
	assert_true(fabs(finding_get(finding, "rise_of_stack") - 29 * 4 * MIB) < 5 * MIB);
	assert_true(finding_get(finding, "held_by_stack") >= finding_get(finding, "rise_of_stack"));
	stream_end(&s);
}

/* What the allocator of PyTorch holds grows, in the memory that it has from the driver. */
static void by_the_allocator(void **state)
{
	struct stream s = stream_begin(0);

	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		stream_add(&s,
			   (struct analysis_event){ .kind = ANALYSIS_COUNTER,
						    .counter = ANALYSIS_COUNTER_TORCH_ALLOCATED,
						    .value = 1e9 + i * 1e7 },
			   0);
		stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_STEP }, 1000 * MS);
	}
	assert_non_null(stream_finding(&s, FINDING_LEAK));
	assert_int_equal(analysis_missing(s.analysis, FINDING_LEAK), 0);
	stream_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows),
		cmocka_unit_test(names_the_stack),
		cmocka_unit_test(nearly),
		cmocka_unit_test(by_the_allocator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
