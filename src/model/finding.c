// SPDX-License-Identifier: Apache-2.0
#include "model/finding.h"

#include <stdlib.h>

struct findings *findings_new(uint32_t n, uint32_t rules, uint32_t frames, size_t bytes, char **ret_texts)
{
	struct findings *findings =
		calloc(1, sizeof(*findings) + n * sizeof(*findings->list) + rules * sizeof(*findings->rules) +
				  frames * sizeof(*findings->frames) + bytes);

	if (!findings)
		return NULL;
	findings->list = (struct finding *)(void *)(findings + 1);
	findings->rules = (struct finding_rule *)(void *)(findings->list + n);
	findings->frames = (struct finding_frame *)(void *)(findings->rules + rules);
	if (ret_texts)
		*ret_texts = (char *)(findings->frames + frames);
	return findings;
}

bool finding_is_symptom(const struct finding *f, const struct finding *cause)
{
	return f->cause != 0 && f->cause == cause->id && cause->cause == 0;
}

const struct finding *finding_cause(const struct findings *findings, const struct finding *f)
{
	for (uint32_t i = 0; f->cause != 0 && i < findings->n; i++)
		if (finding_is_symptom(f, &findings->list[i]))
			return &findings->list[i];
	return NULL;
}

void findings_count(struct findings *findings)
{
	for (uint32_t i = 0; i < findings->rules_n; i++)
		findings->rules[i].active = 0;
	for (uint32_t i = 0; i < findings->n; i++) {
		const struct finding *f = &findings->list[i];

		if (f->active && !finding_cause(findings, f))
			findings->rules[f->rule].active++;
	}
}
