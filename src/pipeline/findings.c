// SPDX-License-Identifier: Apache-2.0
#include "pipeline/findings.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

_Static_assert((int)EVIDENCE_KINDS <= (int)FINDING_EVIDENCE, "each has words");
_Static_assert((int)ANALYSIS_VALUES <= (int)FINDING_VALUES, "each is shown");

static enum metric_unit unit_of(enum analysis_unit unit)
{
	static const enum metric_unit units[ANALYSIS_UNITS] = {
		[ANALYSIS_NUMBER] = UNIT_NONE,
		[ANALYSIS_RATIO] = UNIT_RATIO,
		[ANALYSIS_SECONDS] = UNIT_SECONDS,
		[ANALYSIS_BYTES] = UNIT_BYTES,
		[ANALYSIS_BYTES_PER_SECOND] = UNIT_BYTES_PER_SECOND,
		[ANALYSIS_PER_SECOND] = UNIT_NONE,
		[ANALYSIS_HERTZ] = UNIT_HERTZ,
		[ANALYSIS_WATTS] = UNIT_WATTS,
	};

	return units[unit];
}

static void put_name(const struct analysis *analysis, uint32_t text, char *name, size_t size)
{
	snprintf(name, size, "%s", analysis_text_get(analysis, text));
	utf8_sanitize(name); /* where it was cut */
}

static void fill_finding(const struct analysis *analysis, const struct analysis_finding *from,
			 struct finding *to)
{
	*to = (struct finding){
		.rule = from->rule,
		.id = from->number,
		.cause = from->cause,
		.active = from->active,
		.pid = from->pid,
		.communicator = from->communicator,
		.begin_ns = from->begin_ns,
		.end_ns = from->end_ns,
		.confidence = from->confidence,
		.without = from->without,
		.values_n = from->values_n,
	};
	put_name(analysis, from->node, to->node, sizeof(to->node));
	put_name(analysis, from->device, to->device, sizeof(to->device));
	put_name(analysis, from->subject, to->subject, sizeof(to->subject));
	for (uint32_t i = 0; i < from->values_n; i++)
		to->values[i] = (struct finding_value){ from->values[i].name, unit_of(from->values[i].unit),
							from->values[i].value };
}

static char *put_frame_text(char *texts, const char *text, const char **ret_text)
{
	size_t n = strlen(text) + 1;

	memcpy(texts, text, n);
	*ret_text = texts;
	return texts + n;
}

/* Returns where the next one's texts begin. */
static char *fill_frames(const struct analysis_finding *from, struct findings *findings, struct finding *to,
			 char *texts)
{
	uint32_t n = from->frames ? from->frames->n : 0;

	to->frames_at = findings->frames_n;
	to->frames_n = n;
	for (uint32_t i = 0; i < n; i++) {
		struct finding_frame *row = &findings->frames[findings->frames_n++];

		row->depth = from->frames->list[i].depth;
		texts = put_frame_text(texts, from->frames->list[i].frame, &row->frame);
		texts = put_frame_text(texts, from->frames->list[i].ranks, &row->ranks);
	}
	return texts;
}

static struct findings *findings_for(const struct analysis_finding *list, uint32_t n, char **ret_texts)
{
	uint32_t frames = 0;
	size_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; list[i].frames && k < list[i].frames->n; k++) {
			frames++;
			bytes += strlen(list[i].frames->list[k].frame) +
				 strlen(list[i].frames->list[k].ranks) + 2;
		}
	return findings_new(n, FINDING_RULES, frames, bytes, ret_texts);
}

static void fill_rules(const struct analysis *analysis, struct findings *findings)
{
	for (uint32_t i = 0; i < FINDING_RULES; i++)
		findings->rules[i] = (struct finding_rule){
			.name = analysis_rules[i].name,
			.title = analysis_rules[i].title,
			.remedy = analysis_rules[i].remedy,
			.missing = analysis_missing(analysis, (enum analysis_rule)i),
		};
	for (uint32_t i = 0; i < EVIDENCE_KINDS; i++)
		findings->evidence[i] = analysis_evidence_words((enum analysis_evidence)i);
	findings->rules_n = FINDING_RULES;
}

struct findings *findings_of(const struct analysis *analysis, int64_t real_offset_ns)
{
	const struct analysis_counts *counts = analysis_counts(analysis);
	uint32_t n;
	const struct analysis_finding *list = analysis_findings(analysis, &n);
	char *texts = NULL;
	struct findings *findings = findings_for(list, n, &texts);

	if (!findings)
		return NULL;
	fill_rules(analysis, findings);
	for (uint32_t i = 0; i < n; i++) {
		fill_finding(analysis, &list[i], &findings->list[i]);
		texts = fill_frames(&list[i], findings, &findings->list[i], texts);
	}
	findings->n = n;
	findings_count(findings);
	findings->real_offset_ns = real_offset_ns;
	findings->events = counts->events;
	findings->late = counts->late;
	findings->beyond = counts->beyond + counts->unmodelled + counts->findings_beyond;
	return findings;
}
