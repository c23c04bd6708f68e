// SPDX-License-Identifier: Apache-2.0
/*
 * The order of events for an analysis, live or of a file: what CUPTI measures is told later than calls are.
 * Calls, and estimates of work, of a process in which it measures wait for it (MEASURED_LATE_NS); then what
 * was measured is given on where there is some, and estimates of the other time. Other processes' do not
 * wait.
 *
 * Memory is bounded. Where more comes than can wait, the oldest goes early: then its time is judged by
 * estimates, and what is measured of it is not taken.
 */
#pragma once

#include "analysis/analysis.h"
#include "base/row_list.h"
#include "pipeline/measured.h"

enum {
	ANALYSIS_LATE_AGENT = 1 << 15, /* that wait, of calls and of what is measured each; some 4 MiB */
	ANALYSIS_LATE_COMMAND = 1 << 18, /* of who has asked for a file or a program */
};

typedef int analysis_late_fn(const struct analysis_event *event, void *userdata);

struct analysis_late {
	analysis_late_fn *give;
	void *userdata;
	const struct measured *measured; /* NULL: nothing is, and nothing waits */
	struct analysis_event *ring; /* in the order in which they came; NULL: there was none yet */
	uint32_t max, at, n;
	struct row_list works; /* struct analysis_event */
	uint32_t given; /* of them */
	bool sorted;
	uint64_t early_ns; /* up to then estimates were judged */
};

/* @max: that wait. */
void analysis_late_init(struct analysis_late *late, const struct measured *measured, uint32_t max,
			analysis_late_fn *give, void *userdata);
void analysis_late_done(struct analysis_late *late);
/* A call, or an estimate of work; where it does not wait, what give() says. */
int analysis_late_add(struct analysis_late *late, const struct analysis_event *event);
/* Work that was measured. -ENOBUFS: there is no room, or it comes too late. */
int analysis_late_work(struct analysis_late *late, const struct analysis_event *work);
/* To be called once a second: what has waited long enough is given; UINT64_MAX: all that waits. */
void analysis_late_tick(struct analysis_late *late, uint64_t now_ns);
