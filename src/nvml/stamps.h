// SPDX-License-Identifier: Apache-2.0
/*
 * The driver stamps samples and field values with a clock of its own: the wall clock, or about that. A value
 * is never stamped later than the call ends that gives it, so each call tells what at least is to be added to
 * our clock for the driver's. The highest of a few readings is taken for it.
 *
 *   begin of the call   the driver's time stamp   end of the call
 *   ───────┴───────────────────────┴─────────────────────┴───────> CLOCK_BOOTTIME
 *                                   <-- error at most -->
 */
#pragma once

#include "model/reading.h"

enum { STAMPS_KEPT = 8 };

struct device;
struct reader;

struct driver_clock {
	int64_t least_ns[STAMPS_KEPT]; /* the newest readings' */
	unsigned n; /* readings that there were */
	uint32_t pass; /* the newest one's */
	int64_t offset_ns, error_ns; /* to be added to CLOCK_BOOTTIME */
	unsigned unsteady; /* readings to wait for since it was set */
	bool refused; /* a time stamp of this pass makes no sense */
	int64_t at_ns[STAMPED_METRICS]; /* CLOCK_BOOTTIME of what it stamped; 0: none */
};

/*
 * A call of this pass between @begin_ns and @end_ns, CLOCK_BOOTTIME, gave a value that the driver stamped
 * with this time, and that may have been @late_us old. The first of a pass counts.
 */
void stamps_look(struct driver_clock *clock, uint32_t pass, uint64_t stamp_us, int64_t begin_ns,
		 int64_t end_ns, int64_t late_us);
/* The time of a number; 0: it has none. */
void stamps_put(struct driver_clock *clock, enum stamped what, uint64_t stamp_us);
/* Into the reading, as the last of a device. */
void stamps_read(struct reader *reader, struct device *device);
void stamps_forget(struct device *device);
