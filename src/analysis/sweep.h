// SPDX-License-Identifier: Apache-2.0
/*
 * Which part of a step each moment belongs to, and whether the device worked then. Intervals may overlap and
 * nest; of those of one part that touch, or lie closer than the resolution, one is made. When there are too
 * many the resolution doubles.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/analysis.h"

enum {
	SWEEP_MAX = 2048, /* intervals */
	/* Beside the parts: */
	SWEEP_WORK = ANALYSIS_STEP_PARTS, /* the device works */
	SWEEP_COLLECTIVE, /* it works at a collective */
	SWEEP_CLASSES
};

struct sweep {
	uint32_t n;
	uint64_t resolution_ns; /* by so much each merged gap may be wrong */
	uint32_t last[SWEEP_CLASSES]; /* index of the newest of a class, plus one */
	struct sweep_interval {
		uint64_t begin_ns, end_ns;
		uint8_t class;
	} at[SWEEP_MAX];
};

struct step_times {
	double part[ANALYSIS_STEP_PARTS]; /* seconds, of all the time */
	double idle[ANALYSIS_STEP_PARTS]; /* of that, while the device did nothing */
};

/* @class: enum analysis_step_part, or SWEEP_WORK, SWEEP_COLLECTIVE. */
void sweep_add(struct sweep *sweep, unsigned class, uint64_t begin_ns, uint64_t end_ns);
/* The time between @begin_ns and @end_ns, divided. */
void sweep_times(const struct sweep *sweep, uint64_t begin_ns, uint64_t end_ns, struct step_times *ret_times);
/* Forgets what ended at @ns or before. */
void sweep_forget(struct sweep *sweep, uint64_t ns);
