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
