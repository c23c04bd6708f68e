// SPDX-License-Identifier: Apache-2.0
/*
 * Programs that hang in NCCL. A communicator on which nothing was enqueued for T, the longer of 30 s and 20
 * times the 99th percentile of a step of one of its own ranks, hangs if
 *   (a) ranks have enqueued different numbers of collectives: the one with the fewest is missing;
 *   (b) they have enqueued as many, but one with another operation, count or type: they do not match;
 *   (c) they match, the GPU is busy and its power low: the network, or a rank elsewhere, is at fault;
 *   (d) a rank's process has ended, or its thread waits in the kernel (state D), and others wait for it, as
 *       in (a) or (c).
 * What does not match is told at once, as a finding of its own. Ranks that have enqueued all, and go on with
 * other communicators for longer than half of T, do not wait: it was given up.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/private.h"
#include "base/clock.h"

enum {
	CALLS = 64, /* newest collectives, with what the first rank enqueued */
	GAPS = 256, /* newest times from one step to the next */
};
#define FORGET_NS \
	(600 * (uint64_t)NSEC_PER_SEC) /* quiet for so long, a healthy one gives its place to others */
#define HANG_NS (30 * (uint64_t)NSEC_PER_SEC)
#define STEPS_LONG 20
#define BUSY 0.99
#define POWER_LOW 0.5 /* of the limit */

struct hang_rank {
	uint64_t user; /* who is charged */
	uint32_t node, pid, tid, name; /* tid: of its newest collective */
	int32_t rank;
	uint64_t sequence, newest_ns, stack;
	uint64_t blocked_ns; /* when its process was last seen in state D; 0: never */
	bool gone;
};

struct hang_call {
	uint64_t sequence, count;
	uint32_t name, pid;
	uint8_t datatype;
};

struct hang_group {
	uint64_t communicator, newest_ns;
	uint64_t user; /* of the first rank's process: the group is charged to him */
	uint64_t sequence, advanced_ns; /* the highest, and when its first rank enqueued it */
	uint32_t ranks; /* 0: not known */
	struct hang_rank *seen;
	uint32_t seen_n, room;
	struct hang_call calls[CALLS];
	struct hang_call expected, found; /* that do not match; expected.sequence 0: all did */
	double gaps[GAPS]; /* between collectives */
	uint64_t gaps_n;
	uint32_t step_node, step_pid; /* the rank whose steps count; PID 0: none says them */
	uint64_t step_ns; /* when its newest step began */
	double steps[GAPS];
	uint64_t steps_n;
};

struct hang {
	struct hang_group *groups[ROOM_HANG_GROUPS];
	uint32_t n, ranks_n;
};

/* ---- groups ---- */

int hang_new(void **ret_state)
{
	*ret_state = calloc(1, sizeof(struct hang));
	return *ret_state ? 0 : -ENOMEM;
}

static void hang_group_free(struct hang_group *g)
{
	free(g->seen);
	free(g);
}

void hang_free(void *state)
{
	struct hang *h = state;

	for (uint32_t i = 0; h && i < h->n; i++)
		hang_group_free(h->groups[i]);
	free(h);
}

/* The last group takes its place. */
static void hang_group_remove(struct analysis *a, struct hang *h, uint32_t i)
{
	struct hang_group *g = h->groups[i];

	share_give(a, g->user, SHARE_HANG_GROUPS, 1);
	for (uint32_t k = 0; k < g->seen_n; k++)
		share_give(a, g->seen[k].user, SHARE_HANG_RANKS, 1);
	h->ranks_n -= g->seen_n;
	hang_group_free(g);
	h->groups[i] = h->groups[--h->n];
}

static uint64_t fewest(const struct hang_group *g)
{
	uint64_t least = g->sequence;

	for (uint32_t i = 0; i < g->seen_n; i++)
		least = MIN(least, g->seen[i].sequence);
	return least;
}

/* The one that is quiet for the longest, if that is long and nobody waits in it. */
static void forget_one(struct analysis *a, struct hang *h, uint64_t now_ns)
{
	uint32_t oldest = h->n;

	for (uint32_t i = 0; i < h->n; i++)
		if (h->groups[i]->newest_ns + FORGET_NS < now_ns &&
		    fewest(h->groups[i]) == h->groups[i]->sequence &&
		    (oldest == h->n || h->groups[i]->newest_ns < h->groups[oldest]->newest_ns))
			oldest = i;
	if (oldest < h->n)
		hang_group_remove(a, h, oldest);
}

static struct hang_group *hang_group_of(struct analysis *a, struct hang *h,
					const struct analysis_event *event)
{
	struct hang_group *g = NULL;

	for (uint32_t i = 0; i < h->n; i++)
		if (h->groups[i]->communicator == event->communicator)
			return h->groups[i];
	if (h->n == ROOM_HANG_GROUPS || !share_has(a, event->user, SHARE_HANG_GROUPS, 1))
		forget_one(a, h, event->end_ns);
	if (h->n < ROOM_HANG_GROUPS && share_has(a, event->user, SHARE_HANG_GROUPS, 1))
		g = calloc(1, sizeof(*g));
	if (!g) {
		a->counts.beyond++;
		return NULL;
	}
	g->communicator = event->communicator;
	g->user = event->user;
	share_take(a, g->user, SHARE_HANG_GROUPS, 1);
	h->groups[h->n++] = g;
	return g;
}

static bool hang_make_room(struct hang_group *g)
{
	uint32_t room = MAX(2 * g->room, 8U);
	struct hang_rank *seen;

	if (g->seen_n < g->room)
		return true;
	seen = reallocarray(g->seen, room, sizeof(*seen));
	if (!seen)
		return false;
	g->seen = seen;
	g->room = room;
	return true;
}

static struct hang_rank *rank_of(struct analysis *a, struct hang *h, struct hang_group *g,
				 const struct analysis_event *event)
{
	for (uint32_t i = 0; i < g->seen_n; i++) {
		struct hang_rank *rank = &g->seen[i];

		/* A process may have several; one is perhaps learnt later. */
		if (rank->node != event->node || rank->pid != event->pid ||
		    (rank->rank != event->rank && rank->rank >= 0 && event->rank >= 0))
			continue;
		rank->rank = MAX(rank->rank, event->rank);
		return rank;
	}
	if (h->ranks_n == ROOM_HANG_RANKS || !share_has(a, event->user, SHARE_HANG_RANKS, 1) ||
	    !hang_make_room(g)) {
		a->counts.beyond++;
		return NULL;
	}
	h->ranks_n++;
	share_take(a, event->user, SHARE_HANG_RANKS, 1);
	g->seen[g->seen_n] = (struct hang_rank){
		.user = event->user, .node = event->node, .pid = event->pid, .rank = event->rank
	};
	return &g->seen[g->seen_n++];
}

/* ---- events ---- */

static void add_gap(double gaps[static GAPS], uint64_t *n, uint64_t before_ns, uint64_t now_ns)
{
	if (before_ns && now_ns > before_ns)
		gaps[(*n)++ % GAPS] = (double)(now_ns - before_ns);
}

/* Against what the first rank enqueued with this sequence. */
static void match(struct hang_group *g, const struct analysis_event *event)
{
	struct hang_call *first = &g->calls[event->sequence % CALLS];
	const struct hang_call now = { event->sequence, event->count, event->name, event->pid,
				       event->datatype };

	if (first->sequence < event->sequence)
		*first = now;
	else if (first->sequence == event->sequence &&
		 (first->name != now.name || first->count != now.count || first->datatype != now.datatype)) {
		g->expected = *first;
		g->found = now;
	}
}

static void on_collective(struct analysis *a, struct hang *h, const struct analysis_event *event)
{
	struct hang_group *g = hang_group_of(a, h, event);
	struct hang_rank *rank = g ? rank_of(a, h, g, event) : NULL;

	if (!rank)
		return;
	g->ranks = MAX(g->ranks, event->ranks);
	rank->sequence = MAX(rank->sequence, event->sequence);
	rank->newest_ns = event->end_ns;
	rank->name = event->name;
	rank->tid = event->tid;
	if (event->stack != 0)
		rank->stack = event->stack;
	rank->gone = false;
	match(g, event);
	if (event->sequence > g->sequence) {
		add_gap(g->gaps, &g->gaps_n, g->advanced_ns, event->end_ns);
		g->sequence = event->sequence;
		g->advanced_ns = event->end_ns;
	}
	g->newest_ns = MAX(g->newest_ns, event->end_ns);
}

/* Of the first rank that says its steps, while its process lives. */
static void on_group_step(struct hang_group *g, const struct analysis_event *event)
{
	bool known = g->step_pid == event->pid && g->step_node == event->node;

	if (g->step_pid && !known)
		return;
	for (uint32_t i = 0; i < g->seen_n && !known; i++)
		known = g->seen[i].pid == event->pid && g->seen[i].node == event->node;
	if (!known)
		return;
	if (g->step_pid)
		add_gap(g->steps, &g->steps_n, g->step_ns, event->begin_ns);
	g->step_node = event->node;
	g->step_pid = event->pid;
	g->step_ns = event->begin_ns;
}

static void on_process_event(struct hang *h, const struct analysis_event *event)
{
	for (uint32_t i = 0; i < h->n; i++) {
		struct hang_group *g = h->groups[i];

		for (uint32_t k = 0; k < g->seen_n; k++) {
			struct hang_rank *rank = &g->seen[k];

			if (rank->node != event->node || rank->pid != event->pid)
				continue;
			rank->gone |= event->kind == ANALYSIS_EXIT;
			if (event->kind == ANALYSIS_BLOCKED)
				rank->blocked_ns = event->end_ns;
		}
		if (event->kind == ANALYSIS_EXIT && g->step_pid == event->pid && g->step_node == event->node)
			g->step_pid = 0; /* another one's count from now on */
	}
}

void hang_event(struct analysis *a, void *state, const struct analysis_event *event)
{
	struct hang *h = state;

	if (event->kind == ANALYSIS_EXIT || event->kind == ANALYSIS_BLOCKED)
		on_process_event(h, event);
	else if (event->kind == ANALYSIS_COLLECTIVE && event->result == 0 && event->communicator &&
		 event->sequence && !(event->flags & ANALYSIS_TRUE)) /* what was enqueued is a call's */
		on_collective(a, h, event);
	for (uint32_t i = 0; event->kind == ANALYSIS_STEP && i < h->n; i++)
		on_group_step(h->groups[i], event);
}

/* ---- judging ---- */

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double p99(const double gaps[static GAPS], uint64_t n)
{
	double sorted[GAPS];
	uint32_t kept = (uint32_t)MIN(n, (uint64_t)GAPS);

	if (kept == 0)
		return 0;
	for (uint32_t i = 0; i < kept; i++)
		sorted[i] = gaps[i];
	qsort(sorted, kept, sizeof(*sorted), compare_doubles);
	return sorted[(kept - 1) * 99 / 100];
}

/* A step's, or where the program does not say its steps, what is between collectives. */
static uint64_t patience_ns(const struct hang_group *g)
{
	double step = g->steps_n > 0 ? p99(g->steps, g->steps_n) : p99(g->gaps, g->gaps_n);

	return MAX(HANG_NS, (uint64_t)(STEPS_LONG * step));
}

/* The GPU spins and does nothing. */
static bool spins(const struct analysis *a, const struct hang_rank *rank)
{
	uint32_t n;
	const struct process_usage *all = usage_processes(a, &n);
	const struct device_usage *device = NULL;

	for (uint32_t i = 0; i < n && !device; i++)
		if (all[i].node == rank->node && all[i].pid == rank->pid)
			device = usage_device(a, rank->node, all[i].device);
	if (!device || !device->counters[ANALYSIS_COUNTER_UTILIZATION].known ||
	    !device->counters[ANALYSIS_COUNTER_POWER].known ||
	    !device->counters[ANALYSIS_COUNTER_POWER_LIMIT].known)
		return false;
	return device->counters[ANALYSIS_COUNTER_UTILIZATION].last >= BUSY &&
	       device->counters[ANALYSIS_COUNTER_POWER].last <
		       POWER_LOW * device->counters[ANALYSIS_COUNTER_POWER_LIMIT].last;
}

/* In the window: who was in state D a while ago may have gone on. */
static bool is_blocked(const struct hang_rank *rank, uint64_t since_ns)
{
	return rank->blocked_ns >= MAX(since_ns, UINT64_C(1));
}

/* Whose turn it is: of those with the fewest collectives one that has ended, is blocked, or the first. */
static const struct hang_rank *culprit_of(const struct hang_group *g, uint64_t since_ns)
{
	const struct hang_rank *culprit = NULL;

	for (uint32_t i = 0; i < g->seen_n; i++) {
		const struct hang_rank *rank = &g->seen[i];

		if (!culprit || rank->sequence < culprit->sequence ||
		    (rank->sequence == culprit->sequence && !culprit->gone &&
		     !is_blocked(culprit, since_ns) && (rank->gone || is_blocked(rank, since_ns))))
			culprit = rank;
	}
	return culprit;
}

static bool all_gone(const struct hang_group *g)
{
	for (uint32_t i = 0; i < g->seen_n; i++)
		if (!g->seen[i].gone)
			return false;
	return true;
}

/* NULL: it does not hang. */
static const char *why(const struct analysis *a, const struct hang_group *g, const struct hang_rank *culprit,
		       bool blocked, double *ret_confidence)
{
	*ret_confidence = 0.9;
	if (culprit->sequence < g->sequence)
		return culprit->gone ? "its process has ended" :
		       blocked       ? "its process waits in the kernel (state D)" :
				       "missing rank";
	if (g->expected.sequence == g->sequence)
		return "operations do not match";
	*ret_confidence = 0.75;
	if (culprit->gone || !spins(a, culprit))
		return NULL;
	return blocked ? "its process waits in the kernel (state D)" : "no progress";
}

/* Of its process's newest call; where that has several ranks, of its newest collective. */
static uint64_t stack_of(const struct analysis *a, const struct hang_group *g, const struct hang_rank *rank)
{
	const struct process_usage *usage = usage_process(a, rank->node, rank->pid);

	for (uint32_t i = 0; i < g->seen_n; i++)
		if (&g->seen[i] != rank && g->seen[i].node == rank->node && g->seen[i].pid == rank->pid)
			return rank->stack;
	return usage && usage->newest_stack != 0 ? usage->newest_stack : rank->stack;
}

/* Of all ranks that are seen, merged by frame. */
static void put_stacks(const struct analysis *a, const struct hang_group *g, struct analysis_finding *finding)
{
	_cleanup_free_ struct ranked_stack *list = calloc(g->seen_n, sizeof(*list));
	uint32_t n = 0, known;

	for (uint32_t i = 0; list && i < g->seen_n; i++) {
		uint64_t stack = stack_of(a, g, &g->seen[i]);

		if (stack_numbers(a, stack, &known))
			list[n++] = (struct ranked_stack){ stack, g->seen[i].rank, g->seen[i].pid };
	}
	finding_value(finding, "ranks_with_stacks", ANALYSIS_NUMBER, n);
	if (n > 0)
		finding->frames = stacks_merge(a, list, n);
}

static void report_hang(struct analysis *a, const struct hang_group *g, const struct hang_rank *culprit,
			const char *subject, double confidence, uint64_t now_ns, uint64_t patience)
{
	struct analysis_finding finding = {
		.rule = FINDING_HANG,
		.node = culprit->node,
		.pid = culprit->pid,
		.communicator = g->communicator,
		.begin_ns = g->newest_ns,
		.end_ns = now_ns,
		.confidence = confidence,
		.stack = culprit->stack,
	};

	if (analysis_text(a, subject, &finding.subject) < 0)
		return;
	if (culprit->rank >= 0)
		finding_value(&finding, "rank", ANALYSIS_NUMBER, culprit->rank);
	finding_value(&finding, "quiet", ANALYSIS_SECONDS, (double)(now_ns - g->newest_ns) / NSEC_PER_SEC);
	finding_value(&finding, "threshold", ANALYSIS_SECONDS, (double)patience / NSEC_PER_SEC);
	finding_value(&finding, "sequence", ANALYSIS_NUMBER, (double)culprit->sequence);
	finding_value(&finding, "highest_sequence", ANALYSIS_NUMBER, (double)g->sequence);
	finding_value(&finding, "ranks_seen", ANALYSIS_NUMBER, g->seen_n);
	if (g->ranks)
		finding_value(&finding, "ranks", ANALYSIS_NUMBER, g->ranks);
	put_stacks(a, g, &finding);
	finding_report(a, &finding);
}

static void report_mismatch(struct analysis *a, const struct hang_group *g,
			    const struct analysis_window *window)
{
	struct analysis_finding finding = {
		.rule = FINDING_COLLECTIVE_MISMATCH,
		.pid = g->found.pid,
		.subject = g->found.name,
		.communicator = g->communicator,
		.begin_ns = window->begin_ns,
		.end_ns = window->end_ns,
		.confidence = 0.9,
	};

	for (uint32_t i = 0; i < g->seen_n; i++)
		if (g->seen[i].pid == g->found.pid)
			finding.node = g->seen[i].node;
	finding_value(&finding, "sequence", ANALYSIS_NUMBER, (double)g->found.sequence);
	finding_value(&finding, "count", ANALYSIS_NUMBER, (double)g->found.count);
	finding_value(&finding, "count_expected", ANALYSIS_NUMBER, (double)g->expected.count);
	finding_value(&finding, "type", ANALYSIS_NUMBER, g->found.datatype);
	finding_value(&finding, "type_expected", ANALYSIS_NUMBER, g->expected.datatype);
	finding_report(a, &finding);
}

/* A rank that has enqueued all, and collectives elsewhere long after: it waits for nobody here. */
static bool is_given_up(const struct analysis *a, const struct hang_group *g, uint64_t patience)
{
	for (uint32_t i = 0; i < g->seen_n; i++) {
		const struct process_usage *usage = usage_process(a, g->seen[i].node, g->seen[i].pid);

		if (usage && g->seen[i].sequence == g->sequence &&
		    usage->collective_ns > g->newest_ns + patience / 2)
			return true;
	}
	return false;
}

static void judge_group(struct analysis *a, struct hang_group *g, const struct analysis_window *window)
{
	const struct hang_rank *culprit = culprit_of(g, window->begin_ns);
	uint64_t patience = patience_ns(g);
	double confidence;
	const char *subject;

	if (g->expected.sequence && g->expected.sequence + CALLS > g->sequence)
		report_mismatch(a, g, window);
	if (!culprit || window->end_ns < g->newest_ns + patience || is_given_up(a, g, patience))
		return;
	subject = why(a, g, culprit, is_blocked(culprit, window->begin_ns), &confidence);
	if (subject)
		report_hang(a, g, culprit, subject, confidence, window->end_ns, patience);
}

uint32_t analysis_suspects(const struct analysis *a, uint64_t quiet_ns, struct analysis_thread list[static 1],
			   uint32_t max)
{
	const struct hang *h = a->parts[ANALYSIS_PART_hang];
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->n; i++) {
		const struct hang_group *g = h->groups[i];
		uint64_t least = fewest(g);

		if (a->newest_ns < g->newest_ns + quiet_ns ||
		    (least == g->sequence && a->newest_ns > g->newest_ns + FORGET_NS))
			continue;
		for (uint32_t k = 0; k < g->seen_n && n < max; k++)
			if (g->seen[k].sequence == least && !g->seen[k].gone)
				list[n++] = (struct analysis_thread){ g->seen[k].node, g->seen[k].pid,
								      g->seen[k].tid };
	}
	return n;
}

void hang_window(struct analysis *a, void *state, const struct analysis_window *window)
{
	struct hang *h = state;

	for (uint32_t i = h->n; i > 0; i--) {
		if (all_gone(h->groups[i - 1]))
			hang_group_remove(a, h, i - 1);
		else
			judge_group(a, h->groups[i - 1], window);
	}
}
