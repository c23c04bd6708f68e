// SPDX-License-Identifier: Apache-2.0
#include "trace/budget.h"

#include <string.h>

#include "base/macro.h"

void budget_take(struct budget_backoff *backoff, int64_t now_ns)
{
	/* If it was on for at least as long as the last back-off, the next one is short again. */
	bool worked = backoff->length_ns > 0 && now_ns - backoff->since_ns >= backoff->length_ns;

	if (backoff->taken)
		return;
	backoff->length_ns = backoff->length_ns == 0 || worked ?
				     BUDGET_BACKOFF_MIN_NS :
				     MIN(2 * backoff->length_ns, BUDGET_BACKOFF_MAX_NS);
	backoff->since_ns = now_ns;
	backoff->taken = true;
}

bool budget_due(const struct budget_backoff *backoff, int64_t now_ns)
{
	return backoff->taken && now_ns - backoff->since_ns >= backoff->length_ns;
}

void budget_give_back(struct budget_backoff *backoff, int64_t now_ns)
{
	backoff->taken = false;
	backoff->since_ns = now_ns;
}

void budget_add(struct budget_process *process, enum probe_group group, double cost_ns, double events)
{
	process->cost_ns[group] += cost_ns;
	process->events += events;
}

static bool most_expensive(const struct budget_process *process, unsigned given_up,
			   enum probe_group *ret_group)
{
	int best = -1;

	for (int g = 0; g < PROBE_GROUPS; g++)
		if (g != PROBE_GROUP_SETUP && !(given_up >> g & 1) && process->cost_ns[g] > 0 &&
		    (best < 0 || process->cost_ns[g] > process->cost_ns[best]))
			best = g;
	if (best < 0 && !(given_up >> PROBE_GROUP_SETUP & 1) && process->cost_ns[PROBE_GROUP_SETUP] > 0)
		best = PROBE_GROUP_SETUP;
	if (best < 0)
		return false;
	*ret_group = (enum probe_group)best;
	return true;
}

/* They are given up before anything else is, events included: others tell more for what they cost. */
static bool has_operators(const struct budget_process *process, unsigned given_up)
{
	return !(given_up >> PROBE_GROUP_OPERATORS & 1) && process->cost_ns[PROBE_GROUP_OPERATORS] > 0;
}

static double total(const struct budget_process *process)
{
	double sum = 0;

	for (int g = 0; g < PROBE_GROUPS; g++)
		sum += process->cost_ns[g];
	return sum;
}

enum budget_verdict budget_judge(struct budget_process *process, double max, unsigned given_up,
				 int64_t now_ns, enum probe_group *ret_group)
{
	enum budget_verdict verdict = BUDGET_FINE;
	int64_t length;

	if (process->begin_ns == 0)
		process->begin_ns = now_ns;
	length = now_ns - process->begin_ns;
	if (length <= 0)
		return BUDGET_FINE;
	if (!process->full_window || length >= BUDGET_WINDOW_NS) {
		process->overhead = total(process) / (double)length;
		process->event_rate = process->events * 1e9 / (double)length;
	}
	if (length < BUDGET_WINDOW_NS)
		return BUDGET_FINE;
	process->full_window = true;
	if (max > 0 && process->overhead > max) {
		if (has_operators(process, given_up)) {
			*ret_group = PROBE_GROUP_OPERATORS;
			verdict = BUDGET_GIVE_UP;
		} else if (!process->quiet.taken && process->events > 0)
			verdict = BUDGET_QUIET;
		else if (most_expensive(process, given_up, ret_group))
			verdict = BUDGET_GIVE_UP;
	}
	process->begin_ns = now_ns;
	process->events = 0;
	memset(process->cost_ns, 0, sizeof(process->cost_ns));
	return verdict;
}

bool budget_own_judge(struct budget_own *own, double seconds, double max, int64_t now_ns)
{
	int64_t length = now_ns - own->begin_ns;

	if (own->begin_ns == 0) {
		own->begin_ns = now_ns;
		own->begin_seconds = seconds;
		return false;
	}
	if (length < BUDGET_WINDOW_NS)
		return false;
	own->share = (seconds - own->begin_seconds) * 1e9 / (double)length;
	own->begin_ns = now_ns;
	own->begin_seconds = seconds;
	return max > 0 && own->share > max;
}
