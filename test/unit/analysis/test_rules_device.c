// SPDX-License-Identifier: Apache-2.0
/* Rules of the driver's figures: each with figures that show it and some that nearly do. */
#include <math.h>

#include "analysis/stream.h"

#define GIB 0x1p30

/* Figures of a device, once a second; NAN: not told. */
struct figures {
	double utilization, memory, held, clock; /* held: by a process */
	double width, generation;
	const char *reason; /* for half of each second; NULL: none */
};

static const struct figures fine = {
	.utilization = 0.9, .memory = 20 * GIB, .held = 19.5 * GIB, .clock = 1, .width = 16, .generation = 5
};

static void tell(struct stream *s, enum analysis_counter counter, double value)
{
	if (!isnan(value))
		stream_counter(s, counter, value);
}

static void run(struct stream *s, const struct figures *f, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		tell(s, ANALYSIS_COUNTER_UTILIZATION, f->utilization);
		tell(s, ANALYSIS_COUNTER_MEMORY_USED, f->memory);
		tell(s, ANALYSIS_COUNTER_MEMORY_TOTAL, 80 * GIB);
		tell(s, ANALYSIS_COUNTER_CLOCK_SM, f->clock * 2e9);
		tell(s, ANALYSIS_COUNTER_CLOCK_SM_MAX, 2e9);
		tell(s, ANALYSIS_COUNTER_PCIE_WIDTH, f->width);
		tell(s, ANALYSIS_COUNTER_PCIE_WIDTH_MAX, 16);
		tell(s, ANALYSIS_COUNTER_PCIE_GENERATION, f->generation);
		tell(s, ANALYSIS_COUNTER_PCIE_GENERATION_MAX, 5);
		stream_add(s,
			   (struct analysis_event){ .kind = ANALYSIS_COUNTER,
						    .counter = ANALYSIS_COUNTER_PROCESS_MEMORY,
						    .value = f->held },
			   0);
		if (f->reason)
			stream_put(s,
				   (struct analysis_event){ .kind = ANALYSIS_THROTTLE,
							    .device = s->device,
							    .name = stream_text(s, f->reason) },
				   s->now_ns - 500 * MS, s->now_ns);
		s->now_ns += 1000 * MS;
	}
}

static double confidence_of(enum analysis_rule rule, const struct figures *figures, unsigned seconds)
{
	struct stream s = stream_begin(0);
	const struct analysis_finding *finding;
	double confidence = 0;

	run(&s, figures, seconds);
	finding = stream_finding(&s, rule);
	if (finding) {
		assert_int_equal(finding->device, s.device);
		assert_int_equal(finding->pid, 0);
		confidence = finding->confidence;
	}
	stream_end(&s);
	return confidence;
}

static void nothing_to_say(void **state)
{
	struct stream s = stream_begin(0);
	uint32_t n;

	(void)state;
	run(&s, &fine, 400);
	analysis_findings(s.analysis, &n);
	assert_int_equal(n, 0);
	stream_end(&s);
}

static void clocks_throttled(void **state)
{
	struct figures f = fine;

	(void)state;
	f.reason = "sw_thermal_slowdown";
	f.clock = 0.7;
	assert_true(confidence_of(FINDING_CLOCKS_THROTTLED, &f, 25) > 0.9);
	f.utilization = f.clock = NAN;
	assert_true(confidence_of(FINDING_CLOCKS_THROTTLED, &f, 25) < 0.7);
	/* Nearly. */
	f.utilization = 0.2; /* hardly used */
	assert_true(confidence_of(FINDING_CLOCKS_THROTTLED, &f, 25) == 0);
	f.utilization = 0.9;
	f.reason = "applications_clocks_setting"; /* somebody wants it so */
	assert_true(confidence_of(FINDING_CLOCKS_THROTTLED, &f, 25) == 0);
	f.reason = "sw_power_cap";
	f.clock = NAN; /* what it costs is not known */
	assert_true(confidence_of(FINDING_CLOCKS_THROTTLED, &f, 25) == 0);
	f.clock = 0.95; /* at its limit, as boards are under load */
	assert_true(confidence_of(FINDING_CLOCKS_THROTTLED, &f, 25) == 0);
	f.clock = 0.8;
	assert_true(confidence_of(FINDING_CLOCKS_THROTTLED, &f, 25) > 0.9);
}

static void names_the_reason(void **state)
{
	struct stream s = stream_begin(0);
	struct figures f = fine;

	(void)state;
	f.reason = "hw_power_brake_slowdown";
	run(&s, &f, 25);
	assert_string_equal(analysis_text_get(s.analysis,
					      stream_finding(&s, FINDING_CLOCKS_THROTTLED)->subject),
			    "hw_power_brake_slowdown");
	assert_true(fabs(finding_get(stream_finding(&s, FINDING_CLOCKS_THROTTLED), "time_share") - 0.5) <
		    0.01);
	stream_end(&s);
}

static void pcie_degraded(void **state)
{
	struct figures f = fine;

	(void)state;
	f.width = 8;
	assert_true(confidence_of(FINDING_PCIE_DEGRADED, &f, 25) > 0.9);
	f.width = 16;
	f.generation = 3;
	assert_true(confidence_of(FINDING_PCIE_DEGRADED, &f, 25) > 0.7);
	f.utilization = 0; /* an idle GPU saves power */
	assert_true(confidence_of(FINDING_PCIE_DEGRADED, &f, 25) == 0);
	f.utilization = NAN;
	assert_true(confidence_of(FINDING_PCIE_DEGRADED, &f, 25) == 0);
}

static void idle_allocated(void **state)
{
	struct figures f = fine;

	(void)state;
	f.utilization = 0;
	assert_true(confidence_of(FINDING_IDLE_ALLOCATED, &f, 330) > 0.8);
	assert_true(confidence_of(FINDING_IDLE_ALLOCATED, &f, 290) == 0); /* not that long */
	f.utilization = 0.02;
	assert_true(confidence_of(FINDING_IDLE_ALLOCATED, &f, 330) == 0);
	f.utilization = 0;
	f.memory = f.held = 0.5 * GIB; /* the driver's own */
	assert_true(confidence_of(FINDING_IDLE_ALLOCATED, &f, 330) == 0);
	f = fine;
	f.utilization = NAN; /* it is not known whether it is idle */
	assert_true(confidence_of(FINDING_IDLE_ALLOCATED, &f, 330) == 0);
}

static void memory_unaccounted(void **state)
{
	struct figures f = fine;

	(void)state;
	f.held = 5 * GIB;
	assert_true(confidence_of(FINDING_MEMORY_UNACCOUNTED, &f, 45) > 0.6);
	assert_true(confidence_of(FINDING_MEMORY_UNACCOUNTED, &f, 25) ==
		    0); /* a process may be about to end */
	f.held = 15 * GIB; /* a sixteenth of all */
	assert_true(confidence_of(FINDING_MEMORY_UNACCOUNTED, &f, 45) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_say),   cmocka_unit_test(clocks_throttled),
		cmocka_unit_test(names_the_reason), cmocka_unit_test(pcie_degraded),
		cmocka_unit_test(idle_allocated),   cmocka_unit_test(memory_unaccounted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
