// SPDX-License-Identifier: Apache-2.0
/* copy_bound: many blocking copies; and programs that copy, but do not wait for it. */
#include <math.h>

#include "analysis/stream.h"

/* A second of steps: @copies of @ns each, then work of 10 ms. */
static void run_steps(struct stream *s, unsigned copies, uint64_t ns, unsigned flags)
{
	for (uint64_t end_ns = s->now_ns + 1100 * MS; s->now_ns < end_ns;) {
		for (unsigned i = 0; i < copies; i++)
			stream_add(s,
				   (struct analysis_event){ .kind = ANALYSIS_COPY,
							    .copy = ANALYSIS_COPY_TO_DEVICE,
							    .flags = (uint16_t)flags,
							    .bytes = 1 << 20,
							    .stack = 7 },
				   ns);
		stream_add(s, (struct analysis_event){ .kind = ANALYSIS_SYNC }, 10 * MS);
	}
}

static void waits_for_pageable_copies(void **state)
{
	struct stream s = stream_begin(1000 * MS);
	const struct analysis_finding *finding;

	(void)state;
	run_steps(&s, 4, 500 * US, ANALYSIS_BLOCKS | ANALYSIS_PAGEABLE);
	finding = stream_finding(&s, FINDING_COPY_BOUND);
	assert_non_null(finding);
	assert_true(fabs(finding_get(finding, "time_share") - 1.0 / 6) < 0.01);
	assert_true(finding_get(finding, "pageable_copies") > 300);
	assert_true(fabs(finding_get(finding, "rate") - (1 << 20) / 500e-6) < 1e3);
	assert_int_equal(finding->without, 0);
	assert_int_equal(finding->stack, 7);
	assert_true(finding->confidence > 0.9);
	stream_end(&s);
}

/* Without knowing whose memory it is, less sure, and said. */
static void memory_is_not_known(void **state)
{
	struct stream s = stream_begin(1000 * MS);

	(void)state;
	run_steps(&s, 4, 500 * US, ANALYSIS_BLOCKS);
	assert_int_equal(stream_finding(&s, FINDING_COPY_BOUND)->without, 1U << EVIDENCE_HOST_MEMORY);
	assert_true(stream_finding(&s, FINDING_COPY_BOUND)->confidence < 0.9);
	assert_true(isnan(finding_get(stream_finding(&s, FINDING_COPY_BOUND), "pageable_copies")));
	stream_end(&s);
}

static void nearly(void **state)
{
	static const struct {
		unsigned copies, us, flags;
	} fine[] = {
		{ 4, 500, ANALYSIS_PINNED }, /* asynchronous */
		{ 4, 200, ANALYSIS_BLOCKS | ANALYSIS_PAGEABLE }, /* 7 % of the time */
		{ 4, 500, ANALYSIS_BLOCKS | ANALYSIS_NESTED }, /* the driver's within the runtime's */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++) {
		struct stream s = stream_begin(1000 * MS);

		run_steps(&s, fine[i].copies, fine[i].us * US, fine[i].flags);
		assert_null(stream_finding(&s, FINDING_COPY_BOUND));
		stream_end(&s);
	}
}

/* A checkpoint: a few large copies. */
static void few_large_ones(void **state)
{
	struct stream s = stream_begin(1000 * MS);

	(void)state;
	for (unsigned i = 0; i < 12; i++)
		stream_add(&s,
			   (struct analysis_event){ .kind = ANALYSIS_COPY,
						    .copy = ANALYSIS_COPY_TO_HOST,
						    .flags = ANALYSIS_BLOCKS | ANALYSIS_PAGEABLE,
						    .bytes = 1 << 30 },
			   100 * MS);
	assert_null(stream_finding(&s, FINDING_COPY_BOUND));
	stream_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_pageable_copies),
		cmocka_unit_test(memory_is_not_known),
		cmocka_unit_test(nearly),
		cmocka_unit_test(few_large_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
