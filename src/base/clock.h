// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NSEC_PER_USEC INT64_C(1000)
#define NSEC_PER_MSEC INT64_C(1000000)
#define NSEC_PER_SEC INT64_C(1000000000)
#define USEC_PER_SEC INT64_C(1000000)

/*
 * Nanoseconds since boot including suspend (what the kernel log and process start times use), since
 * an arbitrary start without suspend (for timeouts), and since 1970 in UTC (which may jump).
 */
int64_t clock_boot_ns(void);
int64_t clock_mono_ns(void);
int64_t clock_real_ns(void);
/* What is to be added to clock_mono_ns() for the others, and how far off that may be. */
struct clock_offsets {
	int64_t real_ns, boot_ns;
	int64_t error_ns;
};
/* The best of a few measurements, each between two looks at the same clock. */
void clock_offsets(struct clock_offsets *ret_offsets);
/* CPU time of the calling thread; not of the simulated clock. */
int64_t clock_thread_cpu_ns(void);

/*
 * The simulated clock of tests and benchmarks: advances all three clocks of this process by @ns. If the clock
 * is frozen, only this advances it. A thawed clock continues at the system's time plus all advances, so no
 * clock ever goes backwards.
 */
void clock_advance(int64_t ns);
void clock_freeze(bool frozen);

/* UTC with milliseconds, "2026-01-31T23:59:59.042Z"; exact for every int64_t (years 1677 to 2262). */
void format_rfc3339(int64_t real_ns, char buf[static 32]);
