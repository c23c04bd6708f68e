// SPDX-License-Identifier: Apache-2.0
/*
 * Programs that hang in NCCL. A communicator on which nothing was enqueued for T, the longer of 30 s and 20
 * times the 99th percentile of a step, hangs if
 *   (a) ranks have enqueued different numbers of collectives: the one with the fewest is missing;
 *   (b) they have enqueued as many, but one with another operation, count or type: they do not match;
 *   (c) they match, the GPU is busy and its power low: the network, or a rank elsewhere, is at fault;
 *   (d) a rank's process has ended, or its thread waits in the kernel (state D), and others wait for it.
 * What does not match is told at once, as a finding of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/private.h"
#include "base/clock.h"

enum {
	GROUPS_MAX = 256, /* communicators */
	RANKS_MAX = 4096, /* of all of them, as far as they are seen */
	CALLS = 64, /* newest collectives, with what the first rank enqueued */
	GAPS = 256, /* newest times from one step to the next */
};
#define HANG_NS (30 * (uint64_t)NSEC_PER_SEC)
#define STEPS_LONG 20
#define BUSY 0.99
#define POWER_LOW 0.5 /* of the limit */

struct hang_rank {
	uint32_t node, pid, name;
	int32_t rank;
	uint64_t sequence, newest_ns, stack;
	bool gone, blocked;
};

struct hang_call {
	uint64_t sequence, count;
	uint32_t name, pid;
	uint8_t datatype;
};

struct hang_group {
	uint64_t communicator, newest_ns, sequence; /* sequence: the highest */
	uint32_t ranks; /* 0: not known */
	struct hang_rank *seen;
	uint32_t seen_n, room;
	struct hang_call calls[CALLS];
	struct hang_call expected, found; /* that do not match; expected.sequence 0: all did */
	double gaps[GAPS];
	uint64_t gaps_n;
};

struct hang {
	struct hang_group *groups[GROUPS_MAX];
	uint32_t n, ranks_n;
	uint64_t step_ns; /* of one process: when its newest step began */
	uint32_t step_pid;
	double steps[GAPS];
	uint64_t steps_n;
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

static struct hang_group *hang_group_of(struct analysis *a, struct hang *h,
					const struct analysis_event *event)
{
	struct hang_group *g;

	for (uint32_t i = 0; i < h->n; i++)
		if (h->groups[i]->communicator == event->communicator)
			return h->groups[i];
	g = h->n < GROUPS_MAX ? calloc(1, sizeof(*g)) : NULL;
	if (!g) {
		a->counts.beyond++;
		return NULL;
	}
	g->communicator = event->communicator;
	h->groups[h->n++] = g;
	return g;
}

static struct hang_rank *rank_of(struct analysis *a, struct hang *h, struct hang_group *g,
				 const struct analysis_event *event)
{
	for (uint32_t i = 0; i < g->seen_n; i++)
		if (g->seen[i].node == event->node && g->seen[i].pid == event->pid)
			return &g->seen[i];
	if (g->seen_n == g->room) {
		uint32_t room = MAX(2 * g->room, 8U);
		struct hang_rank *seen =
			h->ranks_n < RANKS_MAX ? reallocarray(g->seen, room, sizeof(*seen)) : NULL;

		if (!seen) {
			a->counts.beyond++;
			return NULL;
		}
		g->seen = seen;
		g->room = room;
	}
	h->ranks_n++;
	g->seen[g->seen_n] =
		(struct hang_rank){ .node = event->node, .pid = event->pid, .rank = event->rank };
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
	rank->stack = event->stack;
	rank->gone = rank->blocked = false;
	match(g, event);
	if (event->sequence > g->sequence) {
		add_gap(g->gaps, &g->gaps_n, g->newest_ns, event->end_ns);
		g->sequence = event->sequence;
	}
	g->newest_ns = MAX(g->newest_ns, event->end_ns);
}

static void on_process_event(struct hang *h, const struct analysis_event *event)
{
	for (uint32_t i = 0; i < h->n; i++)
		for (uint32_t k = 0; k < h->groups[i]->seen_n; k++) {
			struct hang_rank *rank = &h->groups[i]->seen[k];

			if (rank->node != event->node || rank->pid != event->pid)
				continue;
			rank->gone |= event->kind == ANALYSIS_EXIT;
			rank->blocked |= event->kind == ANALYSIS_BLOCKED;
		}
}

void hang_event(struct analysis *a, void *state, const struct analysis_event *event)
{
	struct hang *h = state;

	if (event->kind == ANALYSIS_EXIT || event->kind == ANALYSIS_BLOCKED)
		on_process_event(h, event);
	else if (event->kind == ANALYSIS_COLLECTIVE && event->result == 0 && event->communicator &&
		 event->sequence)
		on_collective(a, h, event);
	if (event->kind != ANALYSIS_STEP || (h->step_ns && h->step_pid != event->pid))
		return;
	add_gap(h->steps, &h->steps_n, h->step_ns, event->begin_ns);
	h->step_ns = event->begin_ns;
	h->step_pid = event->pid;
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
static uint64_t patience_ns(const struct hang *h, const struct hang_group *g)
{
	double step = h->steps_n > 0 ? p99(h->steps, h->steps_n) : p99(g->gaps, g->gaps_n);

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

/* Whose turn it is: of those with the fewest collectives one that has ended, is blocked, or the first. */
static const struct hang_rank *culprit_of(const struct hang_group *g)
{
	const struct hang_rank *culprit = NULL;

	for (uint32_t i = 0; i < g->seen_n; i++) {
		const struct hang_rank *rank = &g->seen[i];

		if (!culprit || rank->sequence < culprit->sequence ||
		    (rank->sequence == culprit->sequence && !culprit->gone && !culprit->blocked &&
		     (rank->gone || rank->blocked)))
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
		       double *ret_confidence)
{
	*ret_confidence = 0.9;
	if (culprit->sequence < g->sequence)
		return culprit->gone    ? "its process has ended" :
		       culprit->blocked ? "its process waits in the kernel (state D)" :
					  "missing rank";
	if (culprit->blocked)
		return "its process waits in the kernel (state D)";
	if (g->expected.sequence == g->sequence)
		return "operations do not match";
	*ret_confidence = 0.75;
	return !culprit->gone && spins(a, culprit) ? "no progress" : NULL;
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

static void judge_group(struct analysis *a, const struct hang *h, struct hang_group *g,
			const struct analysis_window *window)
{
	const struct hang_rank *culprit = culprit_of(g);
	uint64_t patience = patience_ns(h, g);
	double confidence;
	const char *subject;

	if (g->expected.sequence && g->expected.sequence + CALLS > g->sequence)
		report_mismatch(a, g, window);
	if (!culprit || window->end_ns < g->newest_ns + patience)
		return;
	subject = why(a, g, culprit, &confidence);
	if (subject)
		report_hang(a, g, culprit, subject, confidence, window->end_ns, patience);
}

void hang_window(struct analysis *a, void *state, const struct analysis_window *window)
{
	struct hang *h = state;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < h->n; i++) {
		struct hang_group *g = h->groups[i];

		if (all_gone(g)) {
			h->ranks_n -= g->seen_n;
			hang_group_free(g);
			continue;
		}
		judge_group(a, h, g, window);
		h->groups[kept++] = g;
	}
	h->n = kept;
}
