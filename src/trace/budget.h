// SPDX-License-Identifier: Apache-2.0
/*
 * The budget for the cost of tracing. This code only computes a verdict from costs and times; the engine acts
 * on it.
 *
 *   below the budget ──> above: QUIET (no events) ──> still above: GIVE_UP the most expensive group ──> ...
 *          ^                        │                                  │
 *          └── after the back-off ──┴──────────────────────────────────┘
 *
 * Before that, stacks become a sample, lose their native frames or are given up (budget_judge_stacks(),
 * within a second), then operators are given up (PROBE_GROUP_OPERATORS), then libraries above CUDA
 * (PROBE_GROUP_CALLS), if they are more than BUDGET_NOTABLE of the cost.
 *
 * The back-off is 30 s, and twice as long each time, up to 1 h.
 *
 * A verdict covers a full window of BUDGET_WINDOW_NS. The next window starts from zero, to measure the effect
 * of what was done.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "trace/probe.h"

#define BUDGET_NOTABLE (1.0 / 16)
#define BUDGET_STACKS_NS INT64_C(1000000000)
#define BUDGET_WINDOW_NS INT64_C(10000000000)
#define BUDGET_BACKOFF_MIN_NS INT64_C(30000000000)
#define BUDGET_BACKOFF_MAX_NS INT64_C(3600000000000)

/* Something that is switched off for a while: a group of a file's sites, or the events of a process. */
struct budget_backoff {
	bool taken;
	int64_t since_ns; /* when it was taken or given back */
	int64_t length_ns; /* of the newest back-off; 0: none yet */
};

void budget_take(struct budget_backoff *backoff, int64_t now_ns);
/* Whether it is time to give it back. */
bool budget_due(const struct budget_backoff *backoff, int64_t now_ns);
void budget_give_back(struct budget_backoff *backoff, int64_t now_ns);

/* Before the sample becomes smaller than one in 1 << this, native frames are given up. */
enum { BUDGET_NATIVE_SHIFT = 6 };

/*
 * Of a process's stacks: of 1 << shift events one has its stack taken, and counts for all of them. Given up
 * for a back-off where not even the smallest sample fits.
 */
struct budget_stacks {
	int64_t begin_ns; /* of a window of BUDGET_STACKS_NS; 0: none yet */
	double cost_ns, others_ns; /* in it: of the stacks, of all else */
	double overhead; /* of the stacks in the last one: share of a core */
	unsigned shift;
	struct budget_backoff native; /* native frames are given up */
	struct budget_backoff none;
};

/* What tracing has cost one process. */
struct budget_process {
	int64_t begin_ns; /* of the window; 0: none yet */
	double cost_ns[PROBE_GROUPS]; /* in the window */
	double events; /* in the window */
	double stacks_ns; /* in the window */
	/* of the last full window, or of the first one so far */
	double event_rate; /* per second */
	double overhead; /* share of a core */
	bool full_window; /* at least one full window has passed */
	struct budget_backoff quiet;
	struct budget_stacks stacks;
};

void budget_add(struct budget_process *process, enum probe_group group, double cost_ns, double events);

/* Stacks of it took @cost_ns. */
void budget_add_stacks(struct budget_process *process, double cost_ns);
/*
 * Ends the window of the stacks if its time has passed, and chooses the sample: with it, stacks and all else
 * (@others; false: the stacks alone) cost at most @max. It becomes smaller at once, larger one step
 * in a window.
 * @shift_min: what the user has asked for; @native: with native frames. True: process->stacks.shift, .native
 * or .none has changed.
 */
bool budget_judge_stacks(struct budget_process *process, double max, bool others, unsigned shift_min,
			 bool native, int64_t now_ns);

enum budget_verdict { BUDGET_FINE, BUDGET_QUIET, BUDGET_GIVE_UP };

/*
 * Ends the window if its time has passed. @given_up: groups that are already given up in all files of the
 * process. @ret_group, with BUDGET_GIVE_UP: PROBE_GROUP_OPERATORS, PROBE_GROUP_CALLS, then the most expensive
 * remaining group; PROBE_GROUP_SETUP is the last. @max: share of a core; 0: no budget.
 */
enum budget_verdict budget_judge(struct budget_process *process, double max, unsigned given_up,
				 int64_t now_ns, enum probe_group *ret_group);

/* CPU time that this process takes for events, as a share of a core over the last window. */
struct budget_own {
	int64_t begin_ns;
	double begin_seconds, share;
};

/*
 * Called each tick with the CPU seconds since the start. True when a window has just ended with more than
 * @max.
 */
bool budget_own_judge(struct budget_own *own, double seconds, double max, int64_t now_ns);
