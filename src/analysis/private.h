// SPDX-License-Identifier: Apache-2.0
/* Shared by the files of this folder. */
#pragma once

#include "analysis/analysis.h"
#include "analysis/tables.h"

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
	uint64_t waits; /* for the device, in these */
	double seconds, part[ANALYSIS_STEP_PARTS], idle[ANALYSIS_STEP_PARTS];
	bool work_known;
};

enum {
	PROCESS_DEVICES = 8,
	DEVICE_REASONS = 16,
	USAGE_SMALL_LAUNCH = 16384, /* threads: fewer cannot fill a GPU, whose SMs hold 2048 each */
};
#define USAGE_IDLE 0.01 /* utilisation below which a device is not in use */
#define USAGE_CPU_NONE 0.001 /* cores below which a process does nothing */

/* What a process did in a window, and before. */
struct process_usage {
	/* Of all its time: */
	uint32_t node, pid, device; /* device: of its newest event that has one; 0: none had */
	uint64_t begin_ns; /* its first event */
	uint64_t active_ns; /* its newest event that is not a figure, or figure of CPU time that it used */
	uint64_t newest_stack; /* of its calls; 0: none had one */
	uint64_t communicator; /* of its newest collective; 0: it had none */
	uint32_t ranks; /* of that; 0: not known */
	uint64_t collective_ns; /* its newest collective's end, of any communicator */
	uint32_t models; /* of latencies of its operations */
	uint32_t devices_n;
	struct process_device {
		uint32_t device;
		bool memory_known;
		double memory; /* newest figure */
		uint64_t launches;
	} devices[PROCESS_DEVICES];
	bool cpu_known;
	uint32_t uneven; /* windows in a row in which it had more to do than the other ranks */
	/* Of the window: */
	bool ended;
	struct call_sum kinds[ANALYSIS_KINDS]; /* without nested ones */
	struct call_sum true_work; /* of its work, what has the device's own times */
	struct call_sum blocking_copies, pageable_copies, pinned_copies;
	struct call_sum device_allocations; /* that the driver served */
	uint64_t sized_launches, small_launches; /* sized: whose grid and block are known */
	struct step_sums steps;
	uint64_t stack; /* of the longest blocking copy */
	double stack_seconds;
};

struct device_usage {
	uint32_t node, device;
	uint64_t used_ns; /* when it was in use last; at first, when it was seen */
	uint32_t unaccounted; /* windows in a row in which no process held much of its memory */
	struct {
		double sum, last;
		uint64_t n; /* samples in the window */
		bool known; /* last: in any window */
	} counters[ANALYSIS_COUNTERS];
	uint32_t reasons_n;
	struct {
		uint32_t reason; /* text */
		double seconds; /* throttled for it in the window */
	} reasons[DEVICE_REASONS];
};

enum { LOADS = 1024 };

/* Loaders' turns that have begun. */
struct loads {
	uint32_t n;
	struct load {
		uint64_t key, begin_ns; /* begin_ns 0: free */
	} list[LOADS];
};

struct analysis {
	struct analysis_options options;
	struct text_table texts;
	struct stack_table stacks;
	struct user_shares shares;
	struct loads loads;
	uint64_t first_ns, newest_ns, window_ns; /* window: its begin */
	uint32_t seen;
	void *parts[ANALYSIS_PARTS];
	struct row_list findings; /* struct analysis_finding */
	uint32_t findings_told; /* numbers given */
	struct analysis_counts counts;
};

/* What a rule judges by, and where it puts what it says. */
struct judgement {
	const struct analysis *analysis;
	const struct analysis_window *window;
	struct analysis_finding *finding; /* rule, node, pid, device, begin and end are set */
};

/*
 * Whether the rule says so; it sets confidence, values, and what it knows beyond. What has to last for
 * several windows it counts in @usage.
 */
#define SUBJECT_PROCESS(function_) \
	bool rule_##function_(const struct judgement *judgement, struct process_usage *usage);
#define SUBJECT_DEVICE(function_) \
	bool rule_##function_(const struct judgement *judgement, struct device_usage *usage);
#define SUBJECT_NOBODY(function_)
#define FINDING(id_, function_, subject_, needs_, title_, remedy_) SUBJECT_##subject_(function_)
#include "analysis/findings.def"
#undef FINDING
#undef SUBJECT_PROCESS
#undef SUBJECT_DEVICE
#undef SUBJECT_NOBODY

/* usage.c: which of a process's work is known by the device's own times: a value, or what would be surer. */
void usage_say_times(const struct process_usage *usage, struct analysis_finding *finding);

/* finding.c */
/*
 * A rule says something, in this window: a finding begins, or the active one of the same rule, node, pid,
 * device, subject and communicator goes on. Values and end are the new ones, the confidence the greatest.
 * Takes @finding's frames; those of its stack are added where it has none.
 */
void finding_report(struct analysis *analysis, const struct analysis_finding *finding);
void findings_free(struct analysis *analysis);
/* Those that were not reported since @since_ns have ended. */
void findings_expire(struct analysis *analysis, uint64_t since_ns);
/* cause.c: which of them explain which others. */
void findings_explain(struct analysis *analysis);
/* At the end of a window: every rule that has the evidence which it needs. */
void rules_judge(struct analysis *analysis, const struct analysis_window *window);
void finding_value(struct analysis_finding *finding, const char *name, enum analysis_unit unit, double value);

/* loads.c */
/* Whether the event is such a begin. */
bool load_begins(struct loads *loads, const struct analysis_event *event);
/* Whether one ends by this event; it comes before it. */
bool load_ends(struct loads *loads, const struct analysis_event *event, struct analysis_event *ret_load);

/* memory.c */
/* A step of a process begins. */
void memory_step(struct analysis *analysis, uint32_t node, uint32_t pid, uint64_t ns);

/* steps.c */
/* Seconds of a step, as the program says its steps; 0: it does not. */
double steps_marked(const struct analysis *analysis, uint32_t node, uint32_t pid);

/* usage.c */
/* What there is in the window; valid until the next event. */
struct process_usage *usage_processes(const struct analysis *analysis, uint32_t *ret_n);
struct device_usage *usage_devices(const struct analysis *analysis, uint32_t *ret_n);
/* NULL: not seen. */
struct process_usage *usage_process(const struct analysis *analysis, uint32_t node, uint32_t pid);
struct device_usage *usage_device(const struct analysis *analysis, uint32_t node, uint32_t device);
/* How much of its steps a process waited for the device and for others; false: its steps are not known. */
bool usage_waits(const struct process_usage *usage, double *ret_share);
/* Bytes of a device that processes hold, by the newest figures. */
double usage_held(const struct analysis *analysis, const struct device_usage *usage);
/* Mean of a device's figure in the window, or the last one before; false: there never was one. */
bool usage_figure(const struct device_usage *usage, enum analysis_counter counter, double *ret_value);
/* A window begins. */
void usage_reset(const struct analysis *analysis);
