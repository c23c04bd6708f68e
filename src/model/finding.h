// SPDX-License-Identifier: Apache-2.0
/*
 * What an analysis has found out, for the views: why programs are slow, by which evidence, how sure that is,
 * what to do, and where in a timeline to look. Immutable.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/metric.h"

enum {
	FINDING_NODE = 64,
	FINDING_DEVICE = 96,
	FINDING_SUBJECT = 160,
	FINDING_VALUES = 10,
	FINDING_EVIDENCE = 32,
	FINDING_FRAMES = 256,
};

struct finding_value {
	const char *name; /* of a JSON member, without its unit */
	enum metric_unit unit;
	double value;
};

/* Texts are sanitised UTF-8, "" if they do not apply. */
struct finding {
	uint32_t rule; /* index of its row */
	uint32_t id; /* 0: not known */
	uint32_t cause; /* id of the finding that explains it; 0: none does. finding_cause() */
	bool active; /* as of the newest window; else it was so */
	uint32_t pid; /* 0: of no single process */
	char node[FINDING_NODE], device[FINDING_DEVICE], subject[FINDING_SUBJECT];
	uint64_t communicator; /* 0: none */
	uint64_t begin_ns, end_ns; /* on the timeline's clock */
	double confidence; /* 0 to 1 */
	uint32_t without; /* bits: evidence that would have made it surer */
	uint32_t values_n;
	struct finding_value values[FINDING_VALUES];
	uint32_t frames_at, frames_n; /* its rows of struct findings.frames; frames_n 0: no stack is known */
};

/*
 * Stacks merged by frame: a tree in the order in which it is printed, the outermost frame first. Recordings
 * do not have it.
 */
struct finding_frame {
	uint32_t depth; /* from 0 */
	const char *frame; /* "forward (model.py:31)" */
	const char *ranks; /* whose stacks these are, "0-2, 5"; "": the finding has one stack */
};

/* A rule, and whether it could be judged. */
struct finding_rule {
	const char *name, *title, *remedy;
	uint32_t missing; /* bits of evidence that it needs and that did not come; 0: it was judged */
	uint32_t active; /* its findings that are, and are no symptoms of others */
};

struct findings {
	uint32_t n, rules_n;
	struct finding *list; /* in the order in which they began */
	struct finding_rule *rules;
	struct finding_frame *frames; /* of all */
	uint32_t frames_n;
	const char *evidence[FINDING_EVIDENCE]; /* words of a bit */
	int64_t real_offset_ns; /* wall clock less the timeline's; 0: not known */
	uint64_t events; /* seen */
	uint64_t late; /* out of order */
	uint64_t beyond; /* events and findings beyond a limit, so that something may be missing */
};

/*
 * Zeroed, with room for so many rows, and so many bytes of texts, which begin at *ret_texts; one allocation,
 * to be freed. NULL: out of memory.
 */
struct findings *findings_new(uint32_t n, uint32_t rules, uint32_t frames, size_t bytes, char **ret_texts);
/* The finding whose symptom this one is, which is no symptom itself; NULL: of none that is listed. */
const struct finding *finding_cause(const struct findings *findings, const struct finding *finding);
bool finding_is_symptom(const struct finding *finding, const struct finding *cause);
/* Sets `active` of the rules. */
void findings_count(struct findings *findings);
