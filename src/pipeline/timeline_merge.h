// SPDX-License-Identifier: Apache-2.0
/* Spans that a program wrote of itself, in Chrome's format, in a timeline of what was traced meanwhile. */
#pragma once

#include "pipeline/timeline.h"

struct trace_timeline_merged {
	uint64_t slices, left_out, cut; /* struct chrome_file */
	const char *clock; /* whose times the file has; "": it was refused */
	const char *why; /* it was refused; NULL: it was not */
};

/*
 * Reads the file @fd, and adds its slices, by the clock by which they were while the timeline was. -EBADMSG:
 * it is refused; -errno of reading it; -ENOMEM.
 */
int trace_timeline_merge(struct trace_timeline *timeline, int fd, struct trace_timeline_merged *ret_merged);
