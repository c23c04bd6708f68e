// SPDX-License-Identifier: Apache-2.0
/*
 * Steps: where they begin, how long they take, what they spend their time with, and whether that changes.
 *
 * A program that marks its steps is believed. Else a period is looked for in the sequence of its
 * collectives, then of its collectives, copies and waits, then of all calls; the first that has one is taken.
 * A step begins with the call that is there once in a period, or else every so many calls.
 *
 * A step is divided when the next one has ended, since work of the device is told late. What goes on at a
 * boundary and has not ended is not known then: it counts from the boundary on.
 *
 * Memory: TRACKERS_MAX processes of about 150 KiB.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/change.h"
#include "analysis/period.h"
#include "analysis/private.h"
#include "analysis/sweep.h"
#include "base/clock.h"

enum {
	TRACKERS_MAX = 64,
	SEQUENCES = 3,
	SEARCH_FIRST = 64, /* calls after which a period is looked for; then at each doubling */
	NEWEST = 64, /* steps of which the median is */
};
#define CHANGE_LEAST 0.0953 /* ln(1.1): a mean shift of 10 % */
#define RECENT 0.05 /* weight of a step in the means of the parts */

struct step_sequence {
	uint32_t symbols[PERIOD_CALLS]; /* a ring */
	uint64_t n, searched;
	uint32_t period, rare;
	bool once;
};

struct step_tracker {
	uint64_t key;
	struct analysis_steps shown;
	struct step_sums window;
	struct step_sequence sequences[SEQUENCES];
	unsigned sequence; /* the one that steps are of */
	uint32_t since; /* calls of it since the step began */
	uint64_t boundary_ns
		[2]; /* of the step that is not divided yet, and of the one that goes on; 0: none */
	uint32_t waits[2]; /* for the device, in these */
	bool has_work, ended;
	double newest[NEWEST];
	struct sweep sweep;
	struct change change;
	double usual[ANALYSIS_STEP_PARTS], recent[ANALYSIS_STEP_PARTS]; /* seconds of a step; usual: before */
	double level; /* ln of seconds of a step before it became slower */
	bool slow;
	uint32_t grown; /* the part that grew, and 1; 0: not known yet */
	uint64_t slow_ns;
};

struct steps {
	struct step_tracker *trackers[TRACKERS_MAX];
	uint32_t n;
	struct hashmap by;
	struct analysis_steps shown[TRACKERS_MAX];
};

static const struct {
	const char *name;
	uint8_t kind;
} step_parts[ANALYSIS_STEP_PARTS] = {
#define STEP_PART(id_, name_, kind_) { name_, ANALYSIS_##kind_ },
#include "analysis/steps.def"
#undef STEP_PART
};

const char *analysis_step_part_name(enum analysis_step_part part)
{
	return step_parts[part].name;
}

int steps_new(void **ret_state)
{
	*ret_state = calloc(1, sizeof(struct steps));
	return *ret_state ? 0 : -ENOMEM;
}

void steps_free(void *state)
{
	struct steps *s = state;

	if (!s)
		return;
	for (uint32_t i = 0; i < s->n; i++)
		free(s->trackers[i]);
	hashmap_done(&s->by);
	free(s);
}

const struct analysis_steps *analysis_steps(const struct analysis *a, uint32_t *ret_n)
{
	struct steps *s = a->parts[ANALYSIS_PART_steps];

	*ret_n = 0;
	for (uint32_t i = 0; i < s->n; i++)
		if (s->trackers[i]->shown.steps > 0)
			s->shown[(*ret_n)++] = s->trackers[i]->shown;
	return s->shown;
}

static void tracker_init(struct step_tracker *t, uint64_t key, const struct analysis_event *event)
{
	memset(t, 0, sizeof(*t));
	t->key = key;
	t->shown.node = event->node;
	t->shown.pid = event->pid;
}

static struct step_tracker *tracker_get(struct steps *s, const struct analysis_event *event)
{
	uint64_t key = (uint64_t)event->node << 32 | event->pid;
	struct step_tracker *t;
	uint32_t index;

	if (hashmap_get(&s->by, key, &index)) {
		t = s->trackers[index];
		if (t->ended) /* the PID is another process's now */
			tracker_init(t, key, event);
		return t;
	}
	t = s->n < TRACKERS_MAX ? malloc(sizeof(*t)) : NULL;
	if (!t || hashmap_put(&s->by, key, s->n) < 0) {
		free(t);
		return NULL;
	}
	tracker_init(t, key, event);
	s->trackers[s->n++] = t;
	return t;
}

/* ---- a step ---- */

static int compare_seconds(const void *a, const void *b)
{
	double first = *(const double *)a, other = *(const double *)b;

	return (first > other) - (first < other);
}

static void take_median(struct step_tracker *t, double seconds)
{
	double sorted[NEWEST];
	uint32_t n = (uint32_t)MIN(t->shown.steps, (uint64_t)NEWEST);

	t->newest[(t->shown.steps - 1) % NEWEST] = seconds;
	memcpy(sorted, t->newest, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_seconds);
	t->shown.median = sorted[n / 2];
}

/* Slower than before, or as it was again. */
static void follow_change(struct step_tracker *t, double seconds, uint64_t begin_ns)
{
	if (seconds <= 0 || !change_add(&t->change, log(seconds), CHANGE_LEAST))
		return;
	if (t->slow) {
		t->slow = t->change.after >= t->level + CHANGE_LEAST;
		return;
	}
	t->slow = t->change.after > t->change.before;
	t->level = t->change.before;
	t->slow_ns = begin_ns;
	t->grown = 0;
}

static void step_over(struct step_tracker *t, uint64_t begin_ns, uint64_t end_ns)
{
	double seconds = (double)(end_ns - begin_ns) / (double)NSEC_PER_SEC;
	struct step_times times;

	sweep_times(&t->sweep, begin_ns, end_ns, &times);
	t->shown.steps++;
	t->shown.seconds += seconds;
	t->window.n++;
	t->window.seconds += seconds;
	t->window.waits += t->waits[0];
	for (unsigned i = 0; i < ANALYSIS_STEP_PARTS; i++) {
		double weight = t->shown.steps == 1 ? 1 : RECENT;

		t->shown.part[i] += times.part[i];
		t->shown.idle[i] += times.idle[i];
		t->window.part[i] += times.part[i];
		t->window.idle[i] += times.idle[i];
		t->recent[i] += weight * (times.part[i] - t->recent[i]);
		if (!t->slow)
			t->usual[i] = t->recent[i];
	}
	t->shown.work_known = t->window.work_known = t->has_work;
	t->shown.resolution = (double)t->sweep.resolution_ns / (double)NSEC_PER_SEC;
	take_median(t, seconds);
	follow_change(t, seconds, begin_ns);
}

static void step_begins(struct analysis *a, struct step_tracker *t, uint64_t ns)
{
	t->since = 0;
	if (t->boundary_ns[1] != 0 && ns <= t->boundary_ns[1])
		return;
	if (t->boundary_ns[0] != 0) {
		step_over(t, t->boundary_ns[0], t->boundary_ns[1]);
		sweep_forget(&t->sweep, t->boundary_ns[1]);
	}
	t->boundary_ns[0] = t->boundary_ns[1];
	t->boundary_ns[1] = ns;
	t->waits[0] = t->waits[1];
	t->waits[1] = 0;
	memory_step(a, t->shown.node, t->shown.pid, ns);
}

/* ---- where steps begin ---- */

static bool is_in_sequence(const struct analysis_event *event, unsigned sequence)
{
	static const uint32_t kinds[SEQUENCES] = {
		1U << ANALYSIS_COLLECTIVE,
		1U << ANALYSIS_COLLECTIVE | 1U << ANALYSIS_COPY | 1U << ANALYSIS_SYNC,
		1U << ANALYSIS_COLLECTIVE | 1U << ANALYSIS_COPY | 1U << ANALYSIS_SYNC |
			1U << ANALYSIS_LAUNCH | 1U << ANALYSIS_ALLOCATE | 1U << ANALYSIS_FREE,
	};

	/* A collective's work on the device is told by its call already. */
	return kinds[sequence] >> event->kind & 1 &&
	       !(event->kind == ANALYSIS_COLLECTIVE && event->flags & ANALYSIS_TRUE);
}

static uint32_t symbol_of(const struct analysis_event *event)
{
	bool collective = event->kind == ANALYSIS_COLLECTIVE;
	const uint64_t parts[] = { event->kind, event->name, collective ? event->communicator : 0,
				   collective ? event->bytes : 0 };

	return (uint32_t)hash_bytes(parts, sizeof(parts));
}

/* In order, out of the ring. Of all calls, one after the other of the same is no step. */
static void search_period(struct step_sequence *q, bool all_calls)
{
	uint32_t in_order[PERIOD_CALLS], n = (uint32_t)MIN(q->n, (uint64_t)PERIOD_CALLS);

	for (uint32_t i = 0; i < n; i++)
		in_order[i] = q->symbols[(q->n - n + i) % PERIOD_CALLS];
	q->period = period_find(in_order, n, &q->rare, &q->once);
	if (all_calls && q->period == 1)
		q->period = 0;
	q->searched = q->n;
}

static void choose_sequence(struct step_tracker *t)
{
	unsigned i = 0;

	if (t->shown.source == ANALYSIS_STEPS_MARKED)
		return;
	while (i < SEQUENCES && t->sequences[i].period == 0)
		i++;
	if (i < SEQUENCES && t->shown.source == ANALYSIS_STEPS_FOUND && i == t->sequence &&
	    t->sequences[i].period == t->shown.calls)
		return;
	t->shown.source = i < SEQUENCES ? ANALYSIS_STEPS_FOUND : ANALYSIS_STEPS_NONE;
	t->sequence = i;
	t->shown.calls = i < SEQUENCES ? t->sequences[i].period : 0;
	t->boundary_ns[0] = t->boundary_ns[1] = 0;
	t->since = 0;
}

static void add_symbol(struct analysis *a, struct step_tracker *t, unsigned sequence,
		       const struct analysis_event *event)
{
	struct step_sequence *q = &t->sequences[sequence];
	uint32_t symbol = symbol_of(event);

	q->symbols[q->n++ % PERIOD_CALLS] = symbol;
	if (q->n >= MIN(MAX(2 * q->searched, (uint64_t)SEARCH_FIRST), q->searched + PERIOD_CALLS)) {
		search_period(q, sequence == SEQUENCES - 1);
		choose_sequence(t);
	}
	if (t->shown.source != ANALYSIS_STEPS_FOUND || t->sequence != sequence)
		return;
	t->since++;
	if (q->once ? symbol == q->rare : t->since >= q->period)
		step_begins(a, t, event->begin_ns);
}

static void mark_step(struct analysis *a, struct step_tracker *t, uint64_t ns)
{
	if (t->shown.source != ANALYSIS_STEPS_MARKED) {
		t->shown.source = ANALYSIS_STEPS_MARKED;
		t->shown.calls = 0;
		t->boundary_ns[0] = t->boundary_ns[1] = 0;
	}
	step_begins(a, t, ns);
}

/* ---- events ---- */

static void add_interval(struct step_tracker *t, const struct analysis_event *event)
{
	if (event->kind == ANALYSIS_WORK)
		sweep_add(&t->sweep, SWEEP_WORK, event->begin_ns, event->end_ns);
	else if (event->kind == ANALYSIS_COLLECTIVE && event->flags & ANALYSIS_TRUE)
		sweep_add(&t->sweep, SWEEP_COLLECTIVE, event->begin_ns, event->end_ns);
	else if (event->kind == ANALYSIS_FREE)
		sweep_add(&t->sweep, ANALYSIS_STEP_ALLOCATOR, event->begin_ns, event->end_ns);
	else
		for (unsigned part = 0; part < ANALYSIS_STEP_OTHER; part++)
			if (step_parts[part].kind == event->kind)
				sweep_add(&t->sweep, part, event->begin_ns, event->end_ns);
}

void steps_event(struct analysis *a, void *state, const struct analysis_event *event)
{
	struct step_tracker *t = NULL;

	if (event->pid != 0 && event->kind != ANALYSIS_COUNTER && event->kind != ANALYSIS_OPERATOR &&
	    event->kind != ANALYSIS_PYTHON && event->kind != ANALYSIS_CALL &&
	    !(event->flags & ANALYSIS_NESTED))
		t = tracker_get(state, event);
	if (!t)
		return;
	t->ended |= event->kind == ANALYSIS_EXIT;
	t->has_work |= event->kind == ANALYSIS_WORK;
	if (event->kind == ANALYSIS_STEP)
		mark_step(a, t, event->begin_ns);
	for (unsigned i = 0; i < SEQUENCES; i++)
		if (is_in_sequence(event, i))
			add_symbol(a, t, i, event);
	/* After it: a call that begins a step is in that step. */
	if (t->boundary_ns[1] == 0)
		return;
	t->waits[1] += event->kind == ANALYSIS_SYNC;
	add_interval(t, event);
}

/* ---- windows ---- */

double steps_marked(const struct analysis *a, uint32_t node, uint32_t pid)
{
	const struct steps *s = a->parts[ANALYSIS_PART_steps];
	uint32_t index;

	if (!hashmap_get(&s->by, (uint64_t)node << 32 | pid, &index))
		return 0;
	return s->trackers[index]->shown.source == ANALYSIS_STEPS_MARKED ? s->trackers[index]->shown.median :
									   0;
}

/* The part whose time grew the most since steps were as usual; where none did, what is none of the others. */
static unsigned most_grown(const struct step_tracker *t)
{
	unsigned most = ANALYSIS_STEP_OTHER;

	for (unsigned i = 0; i < ANALYSIS_STEP_PARTS; i++)
		if (t->recent[i] - t->usual[i] > t->recent[most] - t->usual[most])
			most = i;
	return most;
}

static void report_slower(struct analysis *a, struct step_tracker *t)
{
	unsigned part = t->grown > 0 ? t->grown - 1 : most_grown(t);
	struct analysis_finding finding = { .rule = FINDING_STEP_SLOWER,
					    .node = t->shown.node,
					    .pid = t->shown.pid,
					    .begin_ns = t->slow_ns,
					    .end_ns = t->boundary_ns[1],
					    .confidence = 0.9 };

	t->grown = part + 1;
	analysis_text(a, step_parts[part].name, &finding.subject);
	finding.kinds = UINT32_C(1) << step_parts[part].kind;
	finding.without = t->has_work ? 0 : 1U << EVIDENCE_WORK;
	finding_value(&finding, "before", ANALYSIS_SECONDS, exp(t->level));
	finding_value(&finding, "now", ANALYSIS_SECONDS, exp(t->change.after));
	finding_value(&finding, "part_before", ANALYSIS_SECONDS, t->usual[part]);
	finding_value(&finding, "part_now", ANALYSIS_SECONDS, t->recent[part]);
	finding_report(a, &finding);
}

static void remove_tracker(struct steps *s, uint32_t i)
{
	hashmap_del(&s->by, s->trackers[i]->key);
	free(s->trackers[i]);
	s->trackers[i] = s->trackers[--s->n];
	if (i < s->n)
		hashmap_put(&s->by, s->trackers[i]->key, i); /* replaces, so that it cannot fail */
}

void steps_window(struct analysis *a, void *state, _unused_ const struct analysis_window *window)
{
	struct steps *s = state;

	for (uint32_t i = 0; i < s->n; i++) {
		struct step_tracker *t = s->trackers[i];
		struct process_usage *usage = usage_process(a, t->shown.node, t->shown.pid);

		if (usage)
			usage->steps = t->window;
		if (t->slow && t->window.n > 0)
			report_slower(a, t);
		t->window = (struct step_sums){ 0 };
	}
	/* What they did is shown until others need the place. */
	for (uint32_t i = s->n; i > 0 && s->n == TRACKERS_MAX; i--)
		if (s->trackers[i - 1]->ended)
			remove_tracker(s, i - 1);
}
