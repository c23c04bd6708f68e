// SPDX-License-Identifier: Apache-2.0
/*
 * src/analysis (L2) finds out why programs on GPUs are slow: events in, findings out. It knows no file
 * format, no probe and no view: what is live (src/pipeline) and what is read from files (src/cmd/analyze)
 * becomes the same events.
 *
 *   events ── analysis_add() ──> parts (parts.def) ── rules (findings.def) ──> analysis_findings()
 *
 * Invariants
 *  1. Events come in the order of their ends, about: one that comes later is counted (analysis_counts) and
 *     falls into the window that is open. Times are nanoseconds of one clock; who reads files of several
 *     nodes aligns them first.
 *  2. Rules judge windows of `window_ns` of the events' own time; analysis_tick() closes them when nothing
 *     comes. A finding lasts as long as its rule repeats it, and has ended when it does not.
 *  3. Memory is bounded: texts, processes, devices and findings have limits, and what is beyond is counted.
 *     A part bounds its own. Nothing of the caller's is kept but copies.
 *  4. Absent evidence is said: which kinds of evidence came (analysis_seen()), which a rule needs and did not
 *     get (analysis_missing()), which a finding would be surer with (its `without`).
 *  5. What follows from another finding is its symptom (causes.def): never lost, but no alert of its own.
 *
 * One thread owns a struct analysis. Nothing here sleeps, reads a clock or draws random numbers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/stack.h"
#include "base/macro.h"

enum analysis_kind {
#define EVENT_KIND(id_, name_, evidence_) ANALYSIS_##id_,
#include "analysis/kinds.def"
#undef EVENT_KIND
	ANALYSIS_KINDS
};

enum analysis_counter {
#define COUNTER(id_, name_, evidence_) ANALYSIS_COUNTER_##id_,
#include "analysis/counters.def"
#undef COUNTER
	ANALYSIS_COUNTERS
};

enum analysis_evidence {
#define EVIDENCE(id_, words_) EVIDENCE_##id_,
#include "analysis/evidence.def"
#undef EVIDENCE
	EVIDENCE_KINDS
};

enum analysis_step_part {
#define STEP_PART(id_, name_, kind_) ANALYSIS_STEP_##id_,
#include "analysis/steps.def"
#undef STEP_PART
	ANALYSIS_STEP_PARTS
};

enum analysis_rule {
#define FINDING(id_, function_, subject_, needs_, title_, remedy_) FINDING_##id_,
#include "analysis/findings.def"
#undef FINDING
	FINDING_RULES
};

enum analysis_flag {
	ANALYSIS_NESTED = 1 << 0, /* within a call of its own layer, which is an event, too: not counted */
	ANALYSIS_BLOCKS = 1 << 1, /* the call returns when the work is done: a synchronous copy */
	ANALYSIS_PAGEABLE = 1 << 2, /* the host's memory of a copy is not pinned */
	ANALYSIS_PINNED = 1 << 3, /* it is; neither: not known */
	ANALYSIS_HOST = 1 << 4, /* an allocation of the host's memory */
	ANALYSIS_ESTIMATED = 1 << 5, /* the times are an estimate */
	ANALYSIS_TRUE = 1 << 6, /* the times are the device's own */
	ANALYSIS_CACHED = 1 << 7, /* an allocation that a program's own allocator served */
};

enum analysis_copy {
	ANALYSIS_COPY_UNKNOWN,
	ANALYSIS_COPY_TO_DEVICE,
	ANALYSIS_COPY_TO_HOST,
	ANALYSIS_COPY_ON_DEVICE,
	ANALYSIS_COPY_PEER,
};

enum {
	ANALYSIS_TEXTS_MAX = 1 << 16,
	ANALYSIS_TEXT_BYTES = 8 << 20, /* of all texts */
	ANALYSIS_TEXT_MAX = 512, /* of one: a longer one is cut */
	ANALYSIS_PROCESSES_MAX = 1024,
	ANALYSIS_DEVICES_MAX = 1024,
	ANALYSIS_FINDINGS_MAX = 1024,
	ANALYSIS_VALUES = 10, /* of a finding */
};

/* What does not apply is 0. `node`, `device`, `name`: texts (analysis_text()). */
struct analysis_event {
	uint8_t kind; /* enum analysis_kind */
	uint8_t counter; /* enum analysis_counter, of ANALYSIS_COUNTER */
	uint8_t copy; /* enum analysis_copy */
	uint8_t datatype; /* ncclDataType_t */
	uint16_t flags; /* enum analysis_flag */
	int32_t rank; /* in the communicator; -1: not known */
	uint32_t ranks; /* 0: not known */
	uint32_t node, device; /* device: UUID or what names it on its node */
	uint32_t pid, tid;
	uint32_t name; /* of the function, kernel, operator, reason, ... */
	uint64_t user; /* who answers for the process, so that users share what has limits; 0: all are one */
	int32_t result; /* 0: success */
	uint64_t begin_ns, end_ns; /* equal for what has no length */
	uint64_t bytes;
	uint64_t address; /* of an allocation, or what is freed */
	uint64_t stream;
	uint64_t threads; /* of a launch: grid times block; 0: not known */
	uint64_t communicator, sequence, count; /* communicator: equal on all ranks */
	uint64_t stack; /* analysis_stack(); 0: none */
	double value; /* of a counter, in base units */
};

enum analysis_unit {
	ANALYSIS_NUMBER,
	ANALYSIS_RATIO, /* 0 to 1 */
	ANALYSIS_SECONDS,
	ANALYSIS_BYTES,
	ANALYSIS_BYTES_PER_SECOND,
	ANALYSIS_PER_SECOND,
	ANALYSIS_HERTZ,
	ANALYSIS_WATTS,
	ANALYSIS_UNITS
};

struct analysis_value {
	const char *name; /* a literal, as in JSON: "small_kernels_per_second" */
	enum analysis_unit unit;
	double value;
};

struct analysis_finding {
	enum analysis_rule rule;
	bool active; /* the rule still says so */
	uint32_t number; /* from 1, ascending */
	uint32_t cause; /* number of the finding that explains it, which has none; 0: none does */
	uint32_t kinds; /* bits of enum analysis_kind: of the operations that it is of; 0: of none */
	uint32_t node, pid, device; /* pid 0: of no single process */
	uint32_t subject; /* text: operation, kernel, reason, ...; 0: none */
	uint64_t communicator; /* 0: none */
	uint64_t begin_ns, end_ns; /* what was seen of it: the place in a timeline */
	uint64_t told_ns, reported_ns; /* when the rule said so first, and last */
	uint64_t stack; /* 0: none */
	struct analysis_frames *frames; /* of its stack, or of all ranks here; NULL: none are known */
	double confidence; /* 0 to 1, docs/analysis.md */
	uint32_t without; /* bits of enum analysis_evidence that would have made it surer */
	uint32_t values_n;
	struct analysis_value values[ANALYSIS_VALUES]; /* of the newest window */
};

struct analysis_rule_row {
	const char *name; /* "copy_bound" */
	const char *title; /* one line */
	const char *remedy;
	uint32_t needs; /* bits of enum analysis_evidence */
	bool any; /* one of them is enough */
};
extern const struct analysis_rule_row analysis_rules[FINDING_RULES];

enum analysis_steps_source {
	ANALYSIS_STEPS_NONE,
	ANALYSIS_STEPS_MARKED, /* the program says where they begin */
	ANALYSIS_STEPS_FOUND, /* a period was found in the sequence of its calls */
};

/* The steps of a process, of all its time: sums, to be divided by `steps` or `seconds`. */
struct analysis_steps {
	uint32_t node, pid;
	enum analysis_steps_source source;
	uint32_t calls; /* of a period that was found */
	uint64_t steps;
	double seconds, median; /* median: of one of the newest 64 */
	double part[ANALYSIS_STEP_PARTS]; /* seconds of enum analysis_step_part, together `seconds` */
	double idle[ANALYSIS_STEP_PARTS]; /* of that, while the device did nothing; if work_known */
	bool work_known;
	double resolution; /* seconds by which each gap between calls may be wrong; 0: exact */
};

struct analysis_thread {
	uint32_t node, pid, tid; /* tid 0: not known */
};

struct analysis_options {
	uint64_t window_ns; /* 0: ANALYSIS_WINDOW_NS */
	/* Models of latencies fitted in a window, each 20 to 60 ms of CPU time; 0: ANALYSIS_FITS */
	uint32_t fits;
};
enum { ANALYSIS_FITS = 4 }; /* 1 to 3 % of a core; a file's reader, for whom nobody waits, takes more */
#define ANALYSIS_WINDOW_NS UINT64_C(10000000000)

struct analysis_counts {
	uint64_t events;
	uint64_t late; /* ended before the window that was open */
	uint64_t beyond; /* of processes, devices, communicators and texts beyond the limits */
	uint64_t unmodelled; /* operations whose latency no model had room for */
	uint64_t findings_beyond;
};

struct analysis;

/* -ENOMEM. */
int analysis_new(const struct analysis_options *options, struct analysis **ret_analysis);
void analysis_free(struct analysis *analysis);
DEFINE_CLEANUP(struct analysis *, analysis_free, analysis_freep)

/* The number of a text, the same for equal ones; "" is 0. Made printable. -ENOBUFS, counted; -ENOMEM. */
int analysis_text(struct analysis *analysis, const char *text, uint32_t *ret_text);
/* Valid until the next analysis_text(); "" for 0 and what is no text's number. */
const char *analysis_text_get(const struct analysis *analysis, uint32_t text);

/* -EINVAL: a kind, counter or times that cannot be. -ENOBUFS: beyond a limit, and counted. -ENOMEM. */
int analysis_add(struct analysis *analysis, const struct analysis_event *event);
/* It is @now_ns: windows that have ended are judged. */
void analysis_tick(struct analysis *analysis, uint64_t now_ns);
/* No event comes any more: the last window is judged if it lasted for a tenth of one. Ends no finding. */
void analysis_finish(struct analysis *analysis);

/* In the order in which they began to be reported, those that have ended, too; valid until the next event. */
const struct analysis_finding *analysis_findings(const struct analysis *analysis, uint32_t *ret_n);
/* Of processes that have some; valid until the next event. */
const struct analysis_steps *analysis_steps(const struct analysis *analysis, uint32_t *ret_n);
/*
 * Threads for which others may be waiting, so that their states say why: of communicators on which
 * nothing was enqueued for @quiet_ns the ranks with the fewest collectives. Returns how many, at most @max.
 */
uint32_t analysis_suspects(const struct analysis *analysis, uint64_t quiet_ns,
			   struct analysis_thread list[static 1], uint32_t max);
/* "data loading" */
const char *analysis_step_part_name(enum analysis_step_part part);
/* Bits of enum analysis_evidence that came. */
uint32_t analysis_seen(const struct analysis *analysis);
/* What a rule needs and did not get. Not 0: that it found nothing says nothing. */
uint32_t analysis_missing(const struct analysis *analysis, enum analysis_rule rule);
/* "GPU memory of the driver (NVML)" */
const char *analysis_evidence_words(enum analysis_evidence evidence);
/* "copies" */
const char *analysis_kind_name(enum analysis_kind kind);
const struct analysis_counts *analysis_counts(const struct analysis *analysis);
