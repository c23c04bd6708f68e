// SPDX-License-Identifier: Apache-2.0
/* Shared by the files of this folder. */
#pragma once

#include "analysis/analysis.h"
#include "base/hashmap.h"
#include "base/row_list.h"
#include "base/strbuf.h"

struct analysis_window {
	uint64_t begin_ns, end_ns;
	double seconds;
};

enum analysis_parts {
#define PART(name_) ANALYSIS_PART_##name_,
#include "analysis/parts.def"
#undef PART
	ANALYSIS_PARTS
};

#define PART(name_)                                                                                        \
	int name_##_new(void **ret_state);                                                                 \
	void name_##_event(struct analysis *analysis, void *state, const struct analysis_event *event);    \
	void name_##_window(struct analysis *analysis, void *state, const struct analysis_window *window); \
	void name_##_free(void *state);
#include "analysis/parts.def"
#undef PART

/* Sums of calls of one kind in a window. */
struct call_sum {
	uint64_t n, bytes;
	double seconds; /* of the threads in them */
};

/* Steps that ended in a window. */
struct step_sums {
	uint32_t n; /* 0: none, or where they begin is not known */
	double seconds, part[ANALYSIS_STEP_PARTS], idle[ANALYSIS_STEP_PARTS];
	bool work_known;
};

/* What a process did in a window. */
struct process_usage {
	uint32_t node, pid, device; /* device: of its newest event that has one; 0: none had */
	uint64_t begin_ns; /* its first event ever */
	bool ended;
	struct call_sum kinds[ANALYSIS_KINDS]; /* without nested ones */
	struct call_sum blocking_copies, pageable_copies, pinned_copies;
	struct step_sums steps;
	uint64_t stack; /* of the longest blocking copy */
	double stack_seconds;
};

struct device_usage {
	uint32_t node, device;
	struct {
		double sum, last;
		uint64_t n; /* samples in the window */
		bool known; /* last: in any window */
	} counters[ANALYSIS_COUNTERS];
};

struct analysis {
	struct analysis_options options;
	struct strbuf bytes; /* of texts, each with its NUL */
	struct row_list texts; /* uint32_t: where it begins */
	struct hashmap text_by;
	uint64_t first_ns, newest_ns, window_ns; /* window: its begin */
	uint32_t seen;
	void *parts[ANALYSIS_PARTS];
	struct row_list findings; /* struct analysis_finding */
	struct analysis_counts counts;
};

/* What a rule judges by, and where it puts what it says. */
struct judgement {
	const struct analysis *analysis;
	const struct analysis_window *window;
	struct analysis_finding *finding; /* rule, node, pid, device, begin and end are set */
};

/* Whether the rule says so; it sets confidence, values, and what it knows beyond. */
#define SUBJECT_PROCESS(function_) \
	bool rule_##function_(const struct judgement *judgement, const struct process_usage *usage);
#define SUBJECT_DEVICE(function_) \
	bool rule_##function_(const struct judgement *judgement, const struct device_usage *usage);
#define SUBJECT_NOBODY(function_)
#define FINDING(id_, function_, subject_, needs_, title_, remedy_) SUBJECT_##subject_(function_)
#include "analysis/findings.def"
#undef FINDING
#undef SUBJECT_PROCESS
#undef SUBJECT_DEVICE
#undef SUBJECT_NOBODY

/* finding.c */
/*
 * A rule says something, in this window: a finding begins, or the active one of the same rule, node, pid,
 * device, subject and communicator goes on. Values and end are the new ones, the confidence the greatest.
 */
void finding_report(struct analysis *analysis, const struct analysis_finding *finding);
/* Those that were not reported since @since_ns have ended. */
void findings_expire(struct analysis *analysis, uint64_t since_ns);
/* At the end of a window: every rule that has the evidence which it needs. */
void rules_judge(struct analysis *analysis, const struct analysis_window *window);
void finding_value(struct analysis_finding *finding, const char *name, enum analysis_unit unit, double value);

/* usage.c */
/* What there is in the window; valid until the next event. */
struct process_usage *usage_processes(const struct analysis *analysis, uint32_t *ret_n);
struct device_usage *usage_devices(const struct analysis *analysis, uint32_t *ret_n);
/* NULL: not seen. */
struct process_usage *usage_process(const struct analysis *analysis, uint32_t node, uint32_t pid);
struct device_usage *usage_device(const struct analysis *analysis, uint32_t node, uint32_t device);
/* A window begins. */
void usage_reset(const struct analysis *analysis);
