// SPDX-License-Identifier: Apache-2.0
#include "model/finding.h"

#include <stdlib.h>

struct findings *findings_new(uint32_t n, uint32_t rules)
{
	struct findings *findings =
		calloc(1, sizeof(*findings) + n * sizeof(*findings->list) + rules * sizeof(*findings->rules));

	if (!findings)
		return NULL;
	findings->list = (struct finding *)(void *)(findings + 1);
	findings->rules = (struct finding_rule *)(void *)(findings->list + n);
	return findings;
}
