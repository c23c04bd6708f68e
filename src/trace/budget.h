// SPDX-License-Identifier: Apache-2.0
/*
 * What tracing may cost. Bookkeeping only: hits and time in, a verdict out; the engine carries it out.
 *
 *   below the budget ──> above: QUIET (no events) ──> still above: GIVE_UP the most expensive group ──> ...
 *          ^                        │                                  │
 *          └── after the back-off ──┴──────────────────────────────────┘
 *
 * The back-off is 30 s, and twice as long each time, up to 1 h.
 *
 * A verdict is on a whole window of BUDGET_WINDOW_NS, and the next window starts from zero: what was done
 * must be seen to work.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "trace/probe.h"

#define BUDGET_WINDOW_NS INT64_C(10000000000)
#define BUDGET_BACKOFF_MIN_NS INT64_C(30000000000)
#define BUDGET_BACKOFF_MAX_NS INT64_C(3600000000000)

/* Something that was taken away and comes back: a group of a file's sites, the events of a process. */
struct budget_backoff {
	bool taken;
	int64_t since_ns; /* taken, or given back */
	int64_t length_ns; /* of the newest one; 0 never yet */
};

void budget_take(struct budget_backoff *backoff, int64_t now_ns);
/* Time to give it back? */
bool budget_due(const struct budget_backoff *backoff, int64_t now_ns);
void budget_give_back(struct budget_backoff *backoff, int64_t now_ns);

/* What tracing has cost one process. */
struct budget_process {
	int64_t begin_ns; /* of the window; 0: has none yet */
	double cost_ns[PROBE_GROUPS]; /* in it */
	double events; /* in it */
	double event_rate; /* a second; and */
	double overhead; /* share of a core: the last whole window's, or the first one's so far */
	bool whole; /* has had a whole window */
	struct budget_backoff quiet;
};

void budget_add(struct budget_process *process, enum probe_group group, double cost_ns, double events);

enum budget_verdict { BUDGET_FINE, BUDGET_QUIET, BUDGET_GIVE_UP };

/*
 * Ends the window where it is over. @given_up: groups that are given up in every file of the process's
 * already. BUDGET_GIVE_UP names the dearest group that is left, never PROBE_GROUP_SETUP before the others:
 * @ret_group. @max: share of a core; 0 no budget.
 */
enum budget_verdict budget_judge(struct budget_process *process, double max, unsigned given_up,
				 int64_t now_ns, enum probe_group *ret_group);

/*
 * CPU that events take: share of a core over the last window; asked for each tick with the seconds since
 * start.
 */
struct budget_own {
	int64_t begin_ns;
	double begin_seconds, share;
};

/* True when a window has just ended with more than @max. */
bool budget_own_judge(struct budget_own *own, double seconds, double max, int64_t now_ns);
