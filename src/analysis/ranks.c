// SPDX-License-Identifier: Apache-2.0
/*
 * Which rank the others wait for: a collective is one event on all ranks of a communicator, told by its
 * sequence, and who arrives last at most of them, by more than chance, is a straggler. A second view are
 * scores as NVIDIA's resiliency extension has them, of the time that a rank takes by itself, from the
 * moment when all had arrived at one collective to its own arrival at the next: the fastest rank's, and its
 * own best so far, as a share of that.
 *
 * An arrival is a call, which enqueues: where the CPU runs ahead of the GPU it says less than the work's own
 * begin (ANALYSIS_TRUE).
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/private.h"
#include "base/clock.h"

enum {
	PENDING = 128, /* collectives at which not all have arrived */
	KEPT = 100, /* newest collectives that are judged by */
	LAST_MIN = 50, /* of them that the rank is the last at */
};
#define STEP_SHARE 0.05
#define MADS 3
#define PATIENCE_NS (5 * (uint64_t)NSEC_PER_SEC)
#define FORGET_NS \
	(60 * (uint64_t)NSEC_PER_SEC) /* quiet for so long, a communicator gives its place to others */

struct rank_row {
	uint32_t node, pid; /* pid 0: not seen */
	double own[KEPT]; /* seconds by itself */
	uint64_t own_n;
	double best; /* median of a window; 0: none yet */
};

struct rank_pending {
	uint64_t sequence; /* 0: free */
	uint32_t arrived;
	uint64_t *at_ns; /* by rank; 0: not yet */
};

struct rank_group {
	uint64_t communicator, newest_ns;
	uint64_t user; /* who is charged */
	uint32_t ranks;
	struct rank_row *rank;
	uint64_t *times; /* of `pending` */
	double *sorted;
	struct rank_pending pending[PENDING];
	uint64_t judged, released, released_ns; /* released: sequence of the newest at which all arrived */
	bool is_true; /* times of the device; those of calls are another group's */
	struct {
		uint32_t last;
		double lateness, gap; /* gap: since the one before; 0: not known */
	} newest[KEPT];
};

struct ranks {
	struct rank_group *groups[ROOM_RANK_GROUPS];
	uint32_t n, ranks_n;
};

/* ---- groups ---- */

static void group_free(struct rank_group *g)
{
	if (!g)
		return;
	free(g->rank);
	free(g->times);
	free(g->sorted);
	free(g);
}

int ranks_new(void **ret_state)
{
	*ret_state = calloc(1, sizeof(struct ranks));
	return *ret_state ? 0 : -ENOMEM;
}

void ranks_free(void *state)
{
	struct ranks *r = state;

	for (uint32_t i = 0; r && i < r->n; i++)
		group_free(r->groups[i]);
	free(r);
}

static struct rank_group *group_new(uint64_t communicator, uint32_t ranks)
{
	struct rank_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->communicator = communicator;
	g->ranks = ranks;
	g->rank = calloc(ranks, sizeof(*g->rank));
	g->times = calloc((size_t)PENDING * ranks, sizeof(*g->times));
	g->sorted = calloc(MAX(ranks, (uint32_t)KEPT), sizeof(*g->sorted));
	if (!g->rank || !g->times || !g->sorted) {
		group_free(g);
		return NULL;
	}
	for (uint32_t i = 0; i < PENDING; i++)
		g->pending[i].at_ns = g->times + (size_t)i * ranks;
	return g;
}

static bool has_room(struct analysis *a, const struct ranks *r, const struct analysis_event *event)
{
	return r->n < ROOM_RANK_GROUPS && event->ranks <= ROOM_RANKS - r->ranks_n &&
	       share_has(a, event->user, SHARE_RANK_GROUPS, 1) &&
	       share_has(a, event->user, SHARE_RANKS, event->ranks);
}

/* Those that are quiet: what was enqueued long ago says nothing new. */
static void forget_quiet(struct analysis *a, struct ranks *r, const struct analysis_event *event)
{
	for (uint32_t i = r->n; i > 0 && !has_room(a, r, event); i--) {
		struct rank_group *g = r->groups[i - 1];

		if (g->newest_ns + FORGET_NS >= event->end_ns)
			continue;
		r->ranks_n -= g->ranks;
		share_give(a, g->user, SHARE_RANK_GROUPS, 1);
		share_give(a, g->user, SHARE_RANKS, g->ranks);
		group_free(g);
		r->groups[i - 1] = r->groups[--r->n];
	}
}

/* NULL: no room, which is counted. */
static struct rank_group *group_of(struct analysis *a, struct ranks *r, const struct analysis_event *event)
{
	bool is_true = event->flags & ANALYSIS_TRUE;
	struct rank_group *g;

	for (uint32_t i = 0; i < r->n; i++)
		if (r->groups[i]->communicator == event->communicator && r->groups[i]->is_true == is_true)
			return r->groups[i]->ranks == event->ranks ? r->groups[i] : NULL;
	forget_quiet(a, r, event);
	g = has_room(a, r, event) ? group_new(event->communicator, event->ranks) : NULL;
	if (!g) {
		a->counts.beyond++;
		return NULL;
	}
	g->is_true = is_true;
	g->user = event->user;
	share_take(a, g->user, SHARE_RANK_GROUPS, 1);
	share_take(a, g->user, SHARE_RANKS, g->ranks);
	r->groups[r->n++] = g;
	r->ranks_n += event->ranks;
	return g;
}

/* ---- collectives ---- */

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_of(double *values, uint32_t n)
{
	qsort(values, n, sizeof(*values), compare_doubles);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void add_own(struct rank_group *g, const struct rank_pending *p)
{
	for (uint32_t i = 0; i < g->ranks; i++)
		if (p->at_ns[i])
			g->rank[i].own[g->rank[i].own_n++ % KEPT] =
				(double)(int64_t)(p->at_ns[i] - g->released_ns) / NSEC_PER_SEC;
}

/* All have arrived that will. The last one is late by what it is behind the median. */
static void finish_collective(struct rank_group *g, struct rank_pending *p)
{
	uint32_t last = 0, n = 0;
	uint64_t first_ns = UINT64_MAX;
	double lateness;

	for (uint32_t i = 0; i < g->ranks; i++) {
		if (p->at_ns[i] > p->at_ns[last])
			last = i;
		if (p->at_ns[i])
			first_ns = MIN(first_ns, p->at_ns[i]);
	}
	for (uint32_t i = 0; i < g->ranks; i++)
		if (p->at_ns[i])
			g->sorted[n++] = (double)(p->at_ns[i] - first_ns) / NSEC_PER_SEC;
	if (n >= 2 && p->sequence > g->released) {
		bool next = g->released && p->sequence == g->released + 1;
		uint64_t slot = g->judged++ % KEPT;

		lateness = (double)(p->at_ns[last] - first_ns) / NSEC_PER_SEC - median_of(g->sorted, n);
		if (n == 2) /* the median is in the middle of both */
			lateness *= 2;
		g->newest[slot].last = last;
		g->newest[slot].lateness = lateness;
		g->newest[slot].gap =
			next ? (double)(int64_t)(p->at_ns[last] - g->released_ns) / NSEC_PER_SEC : 0;
		if (next)
			add_own(g, p);
		g->released = p->sequence;
		g->released_ns = p->at_ns[last];
	}
	p->sequence = 0;
}

static void begin_pending(struct rank_group *g, struct rank_pending *p, uint64_t sequence)
{
	if (p->sequence)
		finish_collective(g, p);
	p->sequence = sequence;
	p->arrived = 0;
	for (uint32_t i = 0; i < g->ranks; i++)
		p->at_ns[i] = 0;
}

static bool is_usable(const struct analysis_event *event)
{
	return event->kind == ANALYSIS_COLLECTIVE && event->result == 0 && event->communicator &&
	       event->sequence && event->ranks >= 2 && event->rank >= 0 &&
	       (uint32_t)event->rank < event->ranks && event->begin_ns > 0;
}

void ranks_event(struct analysis *a, void *state, const struct analysis_event *event)
{
	struct rank_group *g;
	struct rank_pending *p;

	g = is_usable(event) ? group_of(a, state, event) : NULL;
	if (!g || event->sequence <= g->released)
		return;
	g->newest_ns = MAX(g->newest_ns, event->end_ns);
	g->rank[event->rank].node = event->node;
	g->rank[event->rank].pid = event->pid;
	p = &g->pending[event->sequence % PENDING];
	if (p->sequence > event->sequence)
		return;
	if (p->sequence != event->sequence)
		begin_pending(g, p, event->sequence);
	if (p->at_ns[event->rank])
		return;
	p->at_ns[event->rank] = event->begin_ns;
	if (++p->arrived == g->ranks)
		finish_collective(g, p);
}

/* ---- judging ---- */

/* 0: not known. */
static double own_median(struct rank_group *g, const struct rank_row *rank)
{
	uint32_t n = (uint32_t)MIN(rank->own_n, (uint64_t)KEPT);

	for (uint32_t i = 0; i < n; i++)
		g->sorted[i] = rank->own[i];
	return n > 0 ? MAX(median_of(g->sorted, n), 0.0) : 0;
}

/* The rank that is most often the last, and how often it is that. */
static uint32_t most_often_last(const struct rank_group *g, uint32_t *ret_times)
{
	uint32_t rank = 0, times = 0;

	/* Who has the majority survives being counted against all others. */
	for (uint32_t i = 0; i < KEPT; i++) {
		if (times == 0)
			rank = g->newest[i].last;
		times = g->newest[i].last == rank ? times + 1 : times - 1;
	}
	times = 0;
	for (uint32_t i = 0; i < KEPT; i++)
		times += g->newest[i].last == rank;
	*ret_times = times;
	return rank;
}

static double median_lateness(struct rank_group *g, uint32_t rank, double *ret_mad)
{
	uint32_t n = 0;
	double median;

	for (uint32_t i = 0; i < KEPT; i++)
		if (g->newest[i].last == rank)
			g->sorted[n++] = g->newest[i].lateness;
	median = median_of(g->sorted, n);
	for (uint32_t i = 0; i < n; i++)
		g->sorted[i] = fabs(g->sorted[i] - median);
	*ret_mad = median_of(g->sorted, n);
	return median;
}

/* Of the rank's program if it says so, else from one collective to the next. */
static double step_of(const struct analysis *a, struct rank_group *g, const struct rank_row *rank)
{
	double marked = steps_marked(a, rank->node, rank->pid);
	uint32_t n = 0;

	if (marked > 0)
		return marked;
	for (uint32_t i = 0; i < KEPT; i++)
		if (g->newest[i].gap > 0)
			g->sorted[n++] = g->newest[i].gap;
	return n > 0 ? median_of(g->sorted, n) : 0;
}

static void put_scores(struct rank_group *g, struct rank_row *late, struct analysis_finding *finding)
{
	double own = own_median(g, late), least = own;

	for (uint32_t i = 0; i < g->ranks; i++) {
		double other = own_median(g, &g->rank[i]);

		least = g->rank[i].own_n > 0 ? MIN(least, other) : least;
	}
	if (own <= 0)
		return;
	finding_value(finding, "relative_score", ANALYSIS_RATIO, least / own);
	finding_value(finding, "individual_score", ANALYSIS_RATIO,
		      late->best > 0 ? MIN(late->best / own, 1.0) : 1);
}

static void keep_best(struct rank_group *g)
{
	for (uint32_t i = 0; i < g->ranks; i++) {
		double own = own_median(g, &g->rank[i]);

		if (g->rank[i].own_n >= KEPT && own > 0)
			g->rank[i].best = g->rank[i].best > 0 ? MIN(g->rank[i].best, own) : own;
	}
}

static void judge_group(struct analysis *a, struct rank_group *g, const struct analysis_window *window)
{
	uint32_t times, last = most_often_last(g, &times);
	struct rank_row *late = &g->rank[last];
	double mad, lateness, step;
	struct analysis_finding finding = {
		.rule = FINDING_STRAGGLER,
		.node = late->node,
		.pid = late->pid,
		.communicator = g->communicator,
		.begin_ns = window->begin_ns,
		.end_ns = window->end_ns,
		.confidence = g->is_true ? 0.95 : 0.7,
		.without = g->is_true ? 0 : 1U << EVIDENCE_TRUE_TIMES,
	};
	char subject[32];

	if (times <= LAST_MIN)
		return;
	lateness = median_lateness(g, last, &mad);
	step = step_of(a, g, late);
	if (lateness <= STEP_SHARE * step || lateness <= MADS * mad)
		return;
	snprintf(subject, sizeof(subject), "rank %u", last);
	if (analysis_text(a, subject, &finding.subject) < 0)
		return;
	finding_value(&finding, "rank", ANALYSIS_NUMBER, last);
	finding_value(&finding, "ranks", ANALYSIS_NUMBER, g->ranks);
	finding_value(&finding, "last_share", ANALYSIS_RATIO, (double)times / KEPT);
	finding_value(&finding, "lateness", ANALYSIS_SECONDS, lateness);
	finding_value(&finding, "step", ANALYSIS_SECONDS, step);
	put_scores(g, late, &finding);
	finding_report(a, &finding);
}

/* Who has not arrived for that long is not seen: the others are judged without. */
static void finish_old(struct rank_group *g, uint64_t before_ns)
{
	for (uint64_t i = 0, from = g->released; i < PENDING; i++) {
		uint64_t sequence = from + 1 + i, newest_ns = 0;
		struct rank_pending *p = &g->pending[sequence % PENDING];

		for (uint32_t rank = 0; p->sequence == sequence && rank < g->ranks; rank++)
			newest_ns = MAX(newest_ns, p->at_ns[rank]);
		if (newest_ns > 0 && newest_ns < before_ns)
			finish_collective(g, p);
	}
}

static bool is_judged(const struct rank_group *g, const struct analysis_window *window)
{
	/* Nothing new says nothing new. */
	return g->judged >= KEPT && g->released_ns >= window->begin_ns;
}

/* The device's own times of the same communicator say more. */
static bool is_outdone(const struct ranks *r, const struct rank_group *g,
		       const struct analysis_window *window)
{
	for (uint32_t i = 0; i < r->n && !g->is_true; i++)
		if (r->groups[i]->is_true && r->groups[i]->communicator == g->communicator &&
		    is_judged(r->groups[i], window))
			return true;
	return false;
}

void ranks_window(struct analysis *a, void *state, const struct analysis_window *window)
{
	struct ranks *r = state;

	for (uint32_t i = 0; i < r->n; i++) {
		struct rank_group *g = r->groups[i];

		finish_old(g, window->end_ns - MIN(window->end_ns, PATIENCE_NS));
		if (is_judged(g, window) && !is_outdone(r, g, window)) {
			judge_group(a, g, window);
			keep_best(g);
		}
	}
}
