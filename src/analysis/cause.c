// SPDX-License-Identifier: Apache-2.0
/*
 * Which findings explain which others (causes.def): what follows from another finding is its symptom, and is
 * listed under it. Judged anew at the end of each window, so that a symptom that lasts longer than its cause
 * becomes a finding of its own; one that has ended keeps its cause.
 */
#include "analysis/private.h"
#include "base/clock.h"

/* What began so long before has become usual, by which latencies and steps are judged. */
#define ONSET_NS (300 * (uint64_t)NSEC_PER_SEC)
enum { SLACK_WINDOWS = 2 }; /* rules judge windows, by figures that are a second old */

#define R(rule_) (UINT32_C(1) << FINDING_##rule_)
#define K(kind_) (UINT32_C(1) << ANALYSIS_##kind_)
#define LATENCY (R(LATENCY_OUTLIERS) | R(LATENCY_IN_CONTEXT) | R(LATENCY_SHIFT))
#define WAITS (K(SYNC) | K(COPY) | K(LAUNCH))
#define DEVICE_KINDS (WAITS | K(WORK) | K(COLLECTIVE))
#define ANY UINT32_MAX

_Static_assert(FINDING_RULES <= 32 && ANALYSIS_KINDS <= 32, "bits");

enum cause_where { WHERE_DEVICE, WHERE_PROCESS, WHERE_OPERATION, WHERE_COMMUNICATOR };

static const struct cause_row {
	uint32_t causes, of, symptoms, by; /* bits: rules, kinds, rules, kinds */
	enum cause_where where;
} rows[] = {
#define CAUSE(causes_, of_, where_, symptoms_, by_) \
	{ .causes = causes_, .of = of_, .where = WHERE_##where_, .symptoms = symptoms_, .by = by_ },
#include "analysis/causes.def"
#undef CAUSE
};

static bool uses_device(const struct process_usage *usage, uint32_t device)
{
	for (uint32_t i = 0; i < usage->devices_n; i++)
		if (usage->devices[i].device == device)
			return true;
	return false;
}

static bool has_device(const struct analysis *a, const struct analysis_finding *f, uint32_t device)
{
	const struct process_usage *usage =
		f->pid != 0 && f->device == 0 ? usage_process(a, f->node, f->pid) : NULL;

	return f->device == device || (usage && uses_device(usage, device));
}

/* Of a device: one of its processes is in the communicator. */
static bool has_communicator(const struct analysis *a, const struct analysis_finding *f,
			     uint64_t communicator)
{
	uint32_t n;
	const struct process_usage *list = usage_processes(a, &n);

	if (f->communicator != 0)
		return f->communicator == communicator;
	for (uint32_t i = 0; i < n; i++)
		if (list[i].node == f->node && list[i].communicator == communicator &&
		    (f->pid != 0 ? list[i].pid == f->pid : uses_device(&list[i], f->device)))
			return true;
	return false;
}

static bool is_there(const struct analysis *a, enum cause_where where, const struct analysis_finding *cause,
		     const struct analysis_finding *f)
{
	bool process = cause->pid != 0 && f->node == cause->node && f->pid == cause->pid;

	switch (where) {
	case WHERE_DEVICE:
		return cause->device != 0 && f->node == cause->node && has_device(a, f, cause->device);
	case WHERE_OPERATION:
		return process && f->subject == cause->subject;
	case WHERE_COMMUNICATOR:
		return cause->communicator != 0 && has_communicator(a, f, cause->communicator);
	default:
		return process;
	}
}

/* The symptom begins with its cause, or soon after, and does not outlast it. */
static bool is_then(const struct analysis *a, const struct analysis_finding *cause,
		    const struct analysis_finding *f)
{
	uint64_t slack_ns = SLACK_WINDOWS * a->options.window_ns;

	return f->begin_ns + slack_ns >= cause->begin_ns && f->begin_ns <= cause->begin_ns + ONSET_NS &&
	       (cause->active || f->end_ns <= cause->end_ns + slack_ns);
}

static bool explains(const struct analysis *a, const struct cause_row *row,
		     const struct analysis_finding *cause, const struct analysis_finding *f)
{
	return row->causes >> cause->rule & 1 && (row->of == ANY || cause->kinds & row->of) &&
	       (row->by == ANY || (f->kinds != 0 && (f->kinds & ~row->by) == 0)) && is_then(a, cause, f) &&
	       is_there(a, row->where, cause, f);
}

/* Numbers ascend in the list. NULL: it gave its place to another. */
static struct analysis_finding *find_numbered(struct analysis *a, uint32_t number)
{
	struct analysis_finding *list = a->findings.list;
	uint32_t from = 0, to = a->findings.n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (list[middle].number == number)
			return &list[middle];
		if (list[middle].number < number)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

/* What a finding follows from in the end, itself if from nothing. */
static struct analysis_finding *root_of(struct analysis *a, struct analysis_finding *f)
{
	struct analysis_finding *cause;

	while (f->cause != 0 && (cause = find_numbered(a, f->cause)))
		f = cause;
	return f;
}

/* None that follows from the symptom itself: no circles. */
static uint32_t cause_of(struct analysis *a, const struct analysis_finding *f)
{
	struct analysis_finding *list = a->findings.list;

	for (unsigned row = 0; row < ARRAY_SIZE(rows); row++) {
		if (!(rows[row].symptoms >> f->rule & 1))
			continue;
		for (uint32_t i = 0; i < a->findings.n; i++)
			if (&list[i] != f && explains(a, &rows[row], &list[i], f) &&
			    root_of(a, &list[i]) != f)
				return list[i].number;
	}
	return 0;
}

void findings_explain(struct analysis *a)
{
	struct analysis_finding *list = a->findings.list;
	uint64_t recent_ns = a->newest_ns - MIN(a->newest_ns, SLACK_WINDOWS * a->options.window_ns);

	for (uint32_t i = 0; i < a->findings.n; i++)
		if (list[i].active)
			list[i].cause = 0;
	for (uint32_t i = 0; i < a->findings.n; i++)
		if (list[i].cause == 0 && (list[i].active || list[i].reported_ns >= recent_ns))
			list[i].cause = cause_of(a, &list[i]);
	for (uint32_t i = 0; i < a->findings.n; i++)
		if (list[i].cause != 0)
			list[i].cause = root_of(a, &list[i])->number;
}
