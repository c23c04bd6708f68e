// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/process_id.h"

/* The input as /proc/PID/stat: the name lies within it, and what was refused has changed nothing. */
int fuzz_one(const uint8_t *data, size_t size)
{
	static const struct process_stat untouched;
	struct process_stat stat = untouched;
	const char *text = (const char *)data;

	if (process_stat_parse(text, size, &stat) < 0) {
		if (memcmp(&stat, &untouched, sizeof(stat)) != 0)
			abort();
		return 0;
	}
	if (stat.comm.p < text + 1 || stat.comm.p > stat.comm.end || stat.comm.end >= text + size)
		abort();
	if (memchr(stat.comm.end + 1, ')', size - (size_t)(stat.comm.end + 1 - text)))
		abort();
	if (process_boot_ns(stat.start_ticks) != INT64_MAX &&
	    process_ticks((uint64_t)process_boot_ns(stat.start_ticks)) != stat.start_ticks)
		abort();
	return 0;
}
