// SPDX-License-Identifier: Apache-2.0
#include "analysis/private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const struct {
	int (*new)(void **ret_state);
	void (*event)(struct analysis *analysis, void *state, const struct analysis_event *event);
	void (*window)(struct analysis *analysis, void *state, const struct analysis_window *window);
	void (*free)(void *state);
} parts[ANALYSIS_PARTS] = {
#define PART(name_) { name_##_new, name_##_event, name_##_window, name_##_free },
#include "analysis/parts.def"
#undef PART
};

static const struct {
	const char *name;
	uint8_t evidence;
} kinds[ANALYSIS_KINDS] = {
#define EVENT_KIND(id_, name_, evidence_) { name_, EVIDENCE_##evidence_ },
#include "analysis/kinds.def"
#undef EVENT_KIND
};

static const uint8_t counter_evidence[ANALYSIS_COUNTERS] = {
#define COUNTER(id_, name_, evidence_) EVIDENCE_##evidence_,
#include "analysis/counters.def"
#undef COUNTER
};

static const char *const evidence_words[EVIDENCE_KINDS] = {
#define EVIDENCE(id_, words_) words_,
#include "analysis/evidence.def"
#undef EVIDENCE
};

_Static_assert(EVIDENCE_KINDS <= 32, "bits of analysis_seen()");

const char *analysis_evidence_words(enum analysis_evidence evidence)
{
	return evidence_words[evidence];
}

const char *analysis_kind_name(enum analysis_kind kind)
{
	return kinds[kind].name;
}

uint32_t analysis_seen(const struct analysis *analysis)
{
	return analysis->seen;
}

uint32_t analysis_missing(const struct analysis *analysis, enum analysis_rule rule)
{
	const struct analysis_rule_row *row = &analysis_rules[rule];

	return row->any && row->needs & analysis->seen ? 0 : row->needs & ~analysis->seen;
}

const struct analysis_counts *analysis_counts(const struct analysis *analysis)
{
	return &analysis->counts;
}

/* ---- windows ---- */

static void close_window(struct analysis *a, uint64_t end_ns)
{
	const struct analysis_window window = {
		.begin_ns = a->window_ns,
		.end_ns = end_ns,
		.seconds = (double)(end_ns - a->window_ns) / (double)NSEC_PER_SEC,
	};

	for (unsigned i = 0; i < ANALYSIS_PARTS; i++)
		parts[i].window(a, a->parts[i], &window);
	rules_judge(a, &window);
	findings_expire(a, window.begin_ns);
	findings_explain(a);
	usage_reset(a);
	a->window_ns = end_ns;
}

void analysis_tick(struct analysis *a, uint64_t now_ns)
{
	if (a->counts.events == 0 || now_ns <= a->newest_ns)
		return;
	a->newest_ns = now_ns;
	if (now_ns - a->window_ns < a->options.window_ns)
		return;
	close_window(a, a->window_ns + a->options.window_ns);
	/* In what is between nothing happened: one window says that as well as many. */
	if (now_ns - a->window_ns >= a->options.window_ns)
		close_window(a, now_ns - (now_ns - a->window_ns) % a->options.window_ns);
}

void analysis_finish(struct analysis *a)
{
	if (a->counts.events > 0 && a->newest_ns - a->window_ns >= a->options.window_ns / 10)
		close_window(a, a->newest_ns);
	else
		findings_explain(a);
}

/* ---- events ---- */

static bool is_possible(const struct analysis_event *event)
{
	return event->kind < ANALYSIS_KINDS && event->begin_ns <= event->end_ns &&
	       event->end_ns < INT64_MAX &&
	       (event->kind != ANALYSIS_COUNTER ||
		(event->counter < ANALYSIS_COUNTERS && isfinite(event->value)));
}

static uint32_t evidence_of(const struct analysis_event *event)
{
	uint32_t bits = UINT32_C(1) << (event->kind == ANALYSIS_COUNTER ? counter_evidence[event->counter] :
									  kinds[event->kind].evidence);

	if (event->kind <= ANALYSIS_FREE)
		bits |= 1U << EVIDENCE_CALLS;
	if (event->kind == ANALYSIS_LAUNCH && event->end_ns > event->begin_ns)
		bits |= 1U << EVIDENCE_LAUNCH_TIMES;
	if (event->kind == ANALYSIS_COPY && event->flags & (ANALYSIS_PAGEABLE | ANALYSIS_PINNED))
		bits |= 1U << EVIDENCE_HOST_MEMORY;
	if (event->kind == ANALYSIS_WORK && event->flags & ANALYSIS_TRUE)
		bits |= 1U << EVIDENCE_TRUE_TIMES;
	return bits;
}

static void tell_parts(struct analysis *a, const struct analysis_event *event)
{
	for (unsigned i = 0; i < ANALYSIS_PARTS; i++)
		parts[i].event(a, a->parts[i], event);
}

int analysis_add(struct analysis *a, const struct analysis_event *event)
{
	uint64_t beyond = a->counts.beyond;
	struct analysis_event load;

	if (!is_possible(event))
		return -EINVAL;
	if (a->counts.events++ == 0)
		a->newest_ns = a->window_ns = event->begin_ns;
	analysis_tick(a, event->end_ns);
	a->counts.late += event->end_ns < a->window_ns;
	a->seen |= evidence_of(event);
	if (load_ends(&a->loads, event, &load))
		tell_parts(a, &load);
	if (!load_begins(&a->loads, event))
		tell_parts(a, event);
	return a->counts.beyond > beyond ? -ENOBUFS : 0;
}

/* ---- start and end ---- */

int analysis_new(const struct analysis_options *options, struct analysis **ret_analysis)
{
	_cleanup_(analysis_freep) struct analysis *a = calloc(1, sizeof(*a));
	uint32_t none;
	int r = 0;

	if (!a)
		return -ENOMEM;
	a->options = *options;
	if (a->options.window_ns == 0)
		a->options.window_ns = ANALYSIS_WINDOW_NS;
	if (a->options.fits == 0)
		a->options.fits = ANALYSIS_FITS;
	text_table_init(&a->texts, ANALYSIS_TEXTS_MAX, ANALYSIS_TEXT_BYTES);
	stack_table_init(&a->stacks);
	shares_init(&a->shares);
	a->findings =
		(struct row_list){ .size = sizeof(struct analysis_finding), .max = ANALYSIS_FINDINGS_MAX };
	for (unsigned i = 0; i < ANALYSIS_PARTS && r == 0; i++)
		r = parts[i].new(&a->parts[i]);
	if (r == 0)
		r = analysis_text(a, "", &none);
	if (r < 0)
		return r;
	*ret_analysis = TAKE_PTR(a);
	return 0;
}

void analysis_free(struct analysis *a)
{
	if (!a)
		return;
	for (unsigned i = 0; i < ANALYSIS_PARTS; i++)
		parts[i].free(a->parts[i]);
	text_table_done(&a->texts);
	stack_table_done(&a->stacks);
	findings_free(a);
	free(a);
}
