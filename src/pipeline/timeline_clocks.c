// SPDX-License-Identifier: Apache-2.0
/* How the other clocks relate to a timeline's, as it was measured, and when one of them was set. */
#include "pipeline/timeline_private.h"

#define STEP_NS (10 * NSEC_PER_MSEC) /* more than a clock is slewed by in a second */

static void say_clocks(struct trace_timeline *t, const char *what, const struct clock_offsets *offsets)
{
	struct timeline_event event = { .type = TIMELINE_INSTANT,
					.category = TIMELINE_TRACING,
					.begin_ns = (uint64_t)clock_mono_ns() };

	timeline_put_arg(t, &event, "realtime_ns", TIMELINE_SIGNED, (uint64_t)offsets->real_ns);
	timeline_put_arg(t, &event, "boottime_ns", TIMELINE_SIGNED, (uint64_t)offsets->boot_ns);
	timeline_put_arg(t, &event, "error_ns", TIMELINE_UNSIGNED, (uint64_t)offsets->error_ns);
	timeline_mark_own(t, &event, what);
}

void timeline_clocks(struct trace_timeline *t)
{
	struct clock_offsets now;
	int64_t step_ns;

	clock_offsets(&now);
	step_ns = now.real_ns - t->offsets.real_ns;
	if (t->offsets.real_ns == 0)
		say_clocks(t, "clocks", &now);
	else if (step_ns > STEP_NS || step_ns < -STEP_NS)
		say_clocks(t, "the wall clock was set", &now);
	t->offsets = now;
}
