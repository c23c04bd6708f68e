// SPDX-License-Identifier: Apache-2.0
#include "analysis/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct sweep_edge {
	uint64_t ns;
	uint8_t class;
	int8_t by; /* begins: 1, ends: -1 */
};

static bool sweep_join(struct sweep *s, unsigned class, uint64_t begin_ns, uint64_t end_ns)
{
	struct sweep_interval *last = s->last[class] ? &s->at[s->last[class] - 1] : NULL;

	if (!last || begin_ns > last->end_ns + s->resolution_ns || end_ns + s->resolution_ns < last->begin_ns)
		return false;
	last->begin_ns = MIN(last->begin_ns, begin_ns);
	last->end_ns = MAX(last->end_ns, end_ns);
	return true;
}

static void sweep_append(struct sweep *s, unsigned class, uint64_t begin_ns, uint64_t end_ns)
{
	if (sweep_join(s, class, begin_ns, end_ns))
		return;
	s->at[s->n++] = (struct sweep_interval){ begin_ns, end_ns, (uint8_t) class };
	s->last[class] = s->n;
}

/* Adds all again, from @ns on, which joins what can be joined. */
static void sweep_rebuild(struct sweep *s, uint64_t ns)
{
	uint32_t n = s->n;

	s->n = 0;
	memset(s->last, 0, sizeof(s->last));
	for (uint32_t i = 0; i < n; i++) {
		struct sweep_interval at = s->at[i];

		if (at.end_ns > ns)
			sweep_append(s, at.class, at.begin_ns, at.end_ns);
	}
}

void sweep_add(struct sweep *s, unsigned class, uint64_t begin_ns, uint64_t end_ns)
{
	while (s->n == SWEEP_MAX && !sweep_join(s, class, begin_ns, end_ns)) {
		s->resolution_ns = MAX(2 * s->resolution_ns, (uint64_t)NSEC_PER_USEC);
		sweep_rebuild(s, 0);
	}
	sweep_append(s, class, begin_ns, end_ns);
}

void sweep_forget(struct sweep *s, uint64_t ns)
{
	sweep_rebuild(s, ns);
}

static int compare_edge(const void *a, const void *b)
{
	const struct sweep_edge *first = a, *other = b;

	return (first->ns > other->ns) - (first->ns < other->ns);
}

static enum analysis_step_part part_now(const int32_t open[static SWEEP_CLASSES])
{
	unsigned part = 0;

	while (part < ANALYSIS_STEP_OTHER && open[part] <= 0)
		part++;
	/* What it waits for is known, if the device says what it works at. */
	if (part == ANALYSIS_STEP_SYNC && open[SWEEP_COLLECTIVE] > 0)
		part = ANALYSIS_STEP_COLLECTIVES;
	return (enum analysis_step_part)part;
}

static void count_until(const int32_t open[static SWEEP_CLASSES], uint64_t ns, struct step_times *times)
{
	double seconds = (double)ns / (double)NSEC_PER_SEC;
	enum analysis_step_part part = part_now(open);

	times->part[part] += seconds;
	if (open[SWEEP_WORK] <= 0 && open[SWEEP_COLLECTIVE] <= 0)
		times->idle[part] += seconds;
}

void sweep_times(const struct sweep *s, uint64_t begin_ns, uint64_t end_ns, struct step_times *ret_times)
{
	struct sweep_edge edges[2 * SWEEP_MAX];
	int32_t open[SWEEP_CLASSES] = { 0 };
	uint64_t now_ns = begin_ns;
	uint32_t n = 0;

	memset(ret_times, 0, sizeof(*ret_times));
	for (uint32_t i = 0; i < s->n; i++) {
		const struct sweep_interval *at = &s->at[i];

		if (at->end_ns <= begin_ns || at->begin_ns >= end_ns)
			continue;
		edges[n++] = (struct sweep_edge){ MAX(at->begin_ns, begin_ns), at->class, 1 };
		edges[n++] = (struct sweep_edge){ MIN(at->end_ns, end_ns), at->class, -1 };
	}
	qsort(edges, n, sizeof(*edges), compare_edge);
	for (uint32_t i = 0; i < n; i++) {
		count_until(open, edges[i].ns - now_ns, ret_times);
		now_ns = edges[i].ns;
		open[edges[i].class] += edges[i].by;
	}
	count_until(open, end_ns - now_ns, ret_times);
}
