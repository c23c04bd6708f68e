// SPDX-License-Identifier: Apache-2.0
/* The list of findings, and the rules that make them at the end of a window. */
#include <stdlib.h>

#include "analysis/private.h"

#define BITS_1(a_) (1U << EVIDENCE_##a_)
#define BITS_2(a_, b_) (BITS_1(a_) | BITS_1(b_))
#define BITS_3(a_, b_, c_) (BITS_1(a_) | BITS_2(b_, c_))
#define BITS_4(a_, b_, c_, d_) (BITS_2(a_, b_) | BITS_2(c_, d_))
#define BITS_N(a_, b_, c_, d_, bits_, ...) bits_
#define BITS(...) BITS_N(__VA_ARGS__, BITS_4, BITS_3, BITS_2, BITS_1, )(__VA_ARGS__)
/* Two members of a row: the bits, and whether one of them is enough. */
#define NEEDS(...) BITS(__VA_ARGS__), false
#define NEEDS_ANY(...) BITS(__VA_ARGS__), true

const struct analysis_rule_row analysis_rules[FINDING_RULES] = {
#define FINDING(id_, function_, subject_, needs_, title_, remedy_) { #function_, title_, remedy_, needs_ },
#include "analysis/findings.def"
#undef FINDING
};

static const struct {
	bool (*process)(const struct judgement *judgement, struct process_usage *usage);
	bool (*device)(const struct judgement *judgement, struct device_usage *usage);
} rules[FINDING_RULES] = {
#define SUBJECT_PROCESS(function_) { .process = rule_##function_ },
#define SUBJECT_DEVICE(function_) { .device = rule_##function_ },
#define SUBJECT_NOBODY(function_) { 0 },
#define FINDING(id_, function_, subject_, needs_, title_, remedy_) SUBJECT_##subject_(function_)
#include "analysis/findings.def"
#undef FINDING
};

void finding_value(struct analysis_finding *finding, const char *name, enum analysis_unit unit, double value)
{
	if (finding->values_n < ANALYSIS_VALUES)
		finding->values[finding->values_n++] = (struct analysis_value){ name, unit, value };
}

static bool finding_is_same(const struct analysis_finding *a, const struct analysis_finding *b)
{
	return a->rule == b->rule && a->node == b->node && a->pid == b->pid && a->device == b->device &&
	       a->subject == b->subject && a->communicator == b->communicator;
}

static struct analysis_finding *find_active(struct analysis *a, const struct analysis_finding *finding)
{
	struct analysis_finding *list = a->findings.list;

	for (uint32_t i = a->findings.n; i > 0; i--)
		if (list[i - 1].active && finding_is_same(&list[i - 1], finding))
			return &list[i - 1];
	return NULL;
}

/* The oldest that has ended gives its place. */
static struct analysis_finding *add_finding(struct analysis *a)
{
	struct analysis_finding *list = a->findings.list;
	uint32_t i = 0;

	if (a->findings.n < ANALYSIS_FINDINGS_MAX)
		return row_list_add(&a->findings);
	while (i < a->findings.n && list[i].active)
		i++;
	a->counts.findings_beyond++;
	if (i == a->findings.n)
		return NULL;
	free(list[i].frames);
	memmove(&list[i], &list[i + 1], (a->findings.n - i - 1) * sizeof(*list));
	return &list[a->findings.n - 1];
}

/* Its own, or those of its one stack. */
static struct analysis_frames *frames_of(const struct analysis *a, const struct analysis_finding *finding)
{
	struct ranked_stack one = { .stack = finding->stack, .rank = -1 };

	return finding->frames || finding->stack == 0 ? finding->frames : stacks_merge(a, &one, 1);
}

void finding_report(struct analysis *a, const struct analysis_finding *finding)
{
	struct analysis_frames *frames = frames_of(a, finding);
	struct analysis_finding *known = find_active(a, finding);

	if (known) {
		uint64_t begin_ns = MIN(known->begin_ns, finding->begin_ns);
		double confidence = MAX(known->confidence, finding->confidence);
		uint64_t told_ns = known->told_ns;
		uint32_t number = known->number, cause = known->cause, kinds = known->kinds | finding->kinds;
		struct analysis_frames *before = known->frames;

		*known = *finding;
		known->begin_ns = begin_ns;
		known->confidence = confidence;
		known->told_ns = told_ns;
		known->number = number;
		known->cause = cause;
		known->kinds = kinds;
		known->frames = frames ? frames : before;
		if (frames)
			free(before);
	} else {
		known = add_finding(a);
		if (!known) {
			free(frames);
			return;
		}
		*known = *finding;
		known->told_ns = a->newest_ns;
		known->number = ++a->findings_told;
		known->frames = frames;
	}
	known->active = true;
	known->reported_ns = a->newest_ns;
}

void findings_free(struct analysis *a)
{
	struct analysis_finding *list = a->findings.list;

	for (uint32_t i = 0; i < a->findings.n; i++)
		free(list[i].frames);
	row_list_done(&a->findings);
}

void findings_expire(struct analysis *a, uint64_t since_ns)
{
	struct analysis_finding *list = a->findings.list;

	for (uint32_t i = 0; i < a->findings.n; i++)
		if (list[i].reported_ns < since_ns)
			list[i].active = false;
}

const struct analysis_finding *analysis_findings(const struct analysis *a, uint32_t *ret_n)
{
	*ret_n = a->findings.n;
	return a->findings.list;
}

/* A rule without the evidence that it needs is not asked. */
static bool is_asked(const struct analysis *a, unsigned rule)
{
	return analysis_missing(a, (enum analysis_rule)rule) == 0;
}

static void judge_process(struct analysis *a, const struct analysis_window *window,
			  struct process_usage *usage)
{
	for (unsigned rule = 0; rule < FINDING_RULES; rule++) {
		struct analysis_finding finding = {
			.rule = (enum analysis_rule)rule,
			.node = usage->node,
			.pid = usage->pid,
			.device = usage->devices_n <= 1 ? usage->device : 0, /* not of one alone */
			.begin_ns = window->begin_ns,
			.end_ns = window->end_ns,
		};

		if (rules[rule].process && is_asked(a, rule) &&
		    rules[rule].process(&(struct judgement){ a, window, &finding }, usage))
			finding_report(a, &finding);
	}
}

static void judge_device(struct analysis *a, const struct analysis_window *window, struct device_usage *usage)
{
	for (unsigned rule = 0; rule < FINDING_RULES; rule++) {
		struct analysis_finding finding = {
			.rule = (enum analysis_rule)rule,
			.node = usage->node,
			.device = usage->device,
			.begin_ns = window->begin_ns,
			.end_ns = window->end_ns,
		};

		if (rules[rule].device && is_asked(a, rule) &&
		    rules[rule].device(&(struct judgement){ a, window, &finding }, usage))
			finding_report(a, &finding);
	}
}

void rules_judge(struct analysis *a, const struct analysis_window *window)
{
	uint32_t n;
	struct process_usage *processes = usage_processes(a, &n);

	for (uint32_t i = 0; i < n; i++)
		judge_process(a, window, &processes[i]);

	struct device_usage *devices = usage_devices(a, &n);

	for (uint32_t i = 0; i < n; i++)
		judge_device(a, window, &devices[i]);
}
