// SPDX-License-Identifier: Apache-2.0
#include "trace/budget.h"

#include <string.h>

#include "base/macro.h"
#include "bpf/event.h"

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
	process->stacks.others_ns += cost_ns;
	process->events += events;
}

void budget_add_stacks(struct budget_process *process, double cost_ns)
{
	process->stacks_ns += cost_ns;
	process->stacks.cost_ns += cost_ns;
}

/* The smallest shift, from @shift on, with which stacks that would all cost @all fit in @room. */
static unsigned shift_for(double all, double room, unsigned shift)
{
	while (shift <= TRACE_FLAG_SAMPLED_BITS && all / (double)(1U << shift) > room)
		shift++;
	return shift;
}

/* The sample that fits, or what is given up. */
static void choose_sample(struct budget_stacks *s, double all, double room, unsigned shift_min, bool native,
			  int64_t now_ns)
{
	unsigned shift = shift_for(all, room, shift_min);

	if (budget_due(&s->native, now_ns))
		budget_give_back(&s->native, now_ns);
	else if (native && !s->native.taken && all > 0 &&
		 shift > MAX(shift_min, (unsigned)BUDGET_NATIVE_SHIFT)) {
		/* What stacks cost without is measured first. */
		budget_take(&s->native, now_ns);
		s->shift = MAX(s->shift, MAX(shift_min, (unsigned)BUDGET_NATIVE_SHIFT));
		return;
	}
	if (shift > TRACE_FLAG_SAMPLED_BITS && all > 0)
		budget_take(&s->none, now_ns);
	else if (shift > s->shift)
		s->shift = shift;
	else if (s->shift > shift_min && all / (double)(1U << (s->shift - 1)) <= room / 2)
		s->shift--;
}

bool budget_judge_stacks(struct budget_process *process, double max, bool others, unsigned shift_min,
			 bool native, int64_t now_ns)
{
	struct budget_stacks *s = &process->stacks;
	struct budget_stacks before = *s;
	int64_t length = now_ns - s->begin_ns;
	double room, all;

	if (s->begin_ns == 0) {
		s->begin_ns = now_ns;
		s->shift = MAX(s->shift, shift_min);
		return s->shift != before.shift;
	}
	if (length < BUDGET_STACKS_NS)
		return false;
	room = max - (others ? s->others_ns / (double)length : 0);
	s->overhead = s->cost_ns / (double)length;
	all = s->overhead * (double)(1U << s->shift);
	s->begin_ns = now_ns;
	s->cost_ns = s->others_ns = 0;
	if (max <= 0)
		return false;
	if (s->none.taken) {
		if (!budget_due(&s->none, now_ns))
			return false;
		/* Begins with the smallest sample. */
		budget_give_back(&s->none, now_ns);
		s->shift = TRACE_FLAG_SAMPLED_BITS;
		return true;
	}
	choose_sample(s, all, room, shift_min, native, now_ns);
	return s->none.taken != before.none.taken || s->native.taken != before.native.taken ||
	       s->shift != before.shift;
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

static double total(const struct budget_process *process)
{
	double sum = process->stacks_ns;

	for (int g = 0; g < PROBE_GROUPS; g++)
		sum += process->cost_ns[g];
	return sum;
}

/* What is given up before events are: others tell more for what they cost. Not what costs next to nothing. */
static bool is_first(const struct budget_process *process, unsigned given_up, enum probe_group group)
{
	return !(given_up >> group & 1) && process->cost_ns[group] > total(process) * BUDGET_NOTABLE;
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
		if (is_first(process, given_up, PROBE_GROUP_OPERATORS)) {
			*ret_group = PROBE_GROUP_OPERATORS;
			verdict = BUDGET_GIVE_UP;
		} else if (is_first(process, given_up, PROBE_GROUP_CALLS)) {
			*ret_group = PROBE_GROUP_CALLS;
			verdict = BUDGET_GIVE_UP;
		} else if (!process->quiet.taken && process->events > 0)
			verdict = BUDGET_QUIET;
		else if (most_expensive(process, given_up, ret_group))
			verdict = BUDGET_GIVE_UP;
	}
	process->begin_ns = now_ns;
	process->events = 0;
	process->stacks_ns = 0;
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
